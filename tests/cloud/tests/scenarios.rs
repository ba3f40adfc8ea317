//! Every scenario that has a short form, in it: what must hold on AWS as it is. `cargo xtask cloud` plays all of them, in full.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use tidegate_cloud::scenarios::play;

/// The part of its full size that each is played with.
const SHARE: f64 = 0.01;
/// The same of those whose limits a hundredth does not come near.
const LARGER_SHARE: f64 = 0.1;
const LARGER: [&str; 3] = ["herd", "herd-large-account", "policies"];
/// The same of functions that are killed after each number of requests: most numbers are passed over.
const KILLED_SHARE: f64 = 0.0025;
/// One history that is drawn: fresh ones are drawn by hand.
const DRAWN_SHARE: f64 = 0.005;

fn holds(name: &str) {
    let share = match name {
        "killed" => KILLED_SHARE,
        "histories" => DRAWN_SHARE,
        name if LARGER.contains(&name) => LARGER_SHARE,
        _ => SHARE,
    };
    let report = play(name, 1, share).unwrap();
    assert!(report.holds(), "{name}\n{report}");
}

macro_rules! scenarios {
    ($($test:ident = $name:literal;)*) => {$(
        #[test]
        fn $test() {
            holds($name);
        }
    )*

        #[test]
        fn none_is_left_out() {
            let names: Vec<_> = tidegate_cloud::scenarios::short().collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}

scenarios! {
    herd = "herd";
    herd_in_a_new_account = "herd-new-account";
    herd_in_a_large_account = "herd-large-account";
    herd_with_payloads = "named-herd";
    many_policies = "policies";
    one_policy = "one-policy";
    many_events = "million";
    many_events_that_are_throttled = "million-throttled";
    short_jobs = "short-jobs";
    killed_anywhere = "killed";
    many_tokens = "wide";
    slow_emission = "slow-emission";
    dynamodb_away = "dynamodb-away-15m";
    dynamodb_slow = "dynamodb-slow-15m";
    dynamodb_throttled = "dynamodb-throttled-15m";
    sqs_away = "sqs-away-15m";
    sqs_slow = "sqs-slow-15m";
    sqs_throttled = "sqs-throttled-15m";
    both_away = "both-away-15m";
    both_away_for_hours = "both-away-3h";
    both_throttled = "both-throttled-15m";
    lambda_away = "lambda-away-15m";
    taken_back = "upgrade";
    restored_and_repaired = "restored";
    poison = "poison";
    drawn_histories = "histories";
}
