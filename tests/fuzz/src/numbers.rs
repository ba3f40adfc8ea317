//! How many inputs there are, and how they are shared out. Every number of the suite that decides its length stands here.

/// Inputs of the normal test run, over all its rounds.
pub const INPUTS: u64 = 30_000;
/// Inputs of a round, which has a world of its own.
pub const INPUTS_PER_ROUND: u64 = 500;
/// Inputs between two ticks, a minute of virtual time apart.
pub const INPUTS_PER_MINUTE: u64 = 50;
/// Of the inputs of a minute, how many are internal messages.
pub const MESSAGES_PER_MINUTE: u64 = 10;
/// Of the inputs of a minute, how many are batches of the release queue.
pub const RELEASES_PER_MINUTE: u64 = 3;
/// Of the inputs of a minute, how many are answers of an HTTP target. Each takes a socket.
pub const ANSWERS_PER_MINUTE: u64 = 2;
/// Of the inputs of a minute, how many are answers of SQS.
pub const QUEUE_ANSWERS_PER_MINUTE: u64 = 1;
/// Test functions that the rounds of the normal run are spread over, so that they take all cores.
pub const TESTS: u64 = 20;
/// Worlds that are built to find the smallest input that still fails, at the most.
pub const TRIALS: usize = 300;

/// Rounds of the normal test run.
pub const ROUNDS: u64 = INPUTS / INPUTS_PER_ROUND;
/// What is left of a minute for requests to the API.
pub const REQUESTS_PER_MINUTE: u64 = INPUTS_PER_MINUTE
    - MESSAGES_PER_MINUTE
    - RELEASES_PER_MINUTE
    - ANSWERS_PER_MINUTE
    - QUEUE_ANSWERS_PER_MINUTE;

const _: () =
    assert!(INPUTS.is_multiple_of(INPUTS_PER_ROUND) && INPUTS_PER_ROUND.is_multiple_of(INPUTS_PER_MINUTE));
const _: () = assert!(ROUNDS.is_multiple_of(TESTS));
const _: () = assert!(REQUESTS_PER_MINUTE > INPUTS_PER_MINUTE / 2);
