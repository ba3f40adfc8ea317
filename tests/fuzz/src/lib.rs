//! Inputs that nobody would send on purpose, to every entry, while two other clients' minute jobs must stay on time.
//!
//! | entry | inputs | module |
//! | --- | --- | --- |
//! | every route of the API | parameters, headers and bodies from the OpenAPI document, most of them spoilt | [`schema`] |
//! | the dispatch and scan queues, the release queue | messages of every kind, sound or spoilt | [`messages`] |
//! | what consumers' addresses answer | HTTP answers over loopback sockets, failures of SQS | [`targets`] |
//!
//! A round is a world of its own ([`stage`]) and the inputs of one seed; after each slice of them the clock moves a minute.
//! What must hold for all of them: the process goes on and nothing panics, not even where somebody catches it; the API
//! answers no 5xx, and refuses in problems that name something; each [neighbour](neighbours) gets its event in its minute.
//! The values that inputs are made of are in [`extremes`], how many there are in [`numbers`].
//!
//! The normal test run plays the same seeds each time. For others, and for more:
//!
//! ```text
//! TIDEGATE_FUZZ_SEED=1000 TIDEGATE_FUZZ_INPUTS=1000000 cargo nextest run -p tidegate-fuzz
//! cargo xtask fuzz 1000000 --from 1000
//! ```
//!
//! A failure tells its seed and the smallest inputs that show it in a fresh world. When an input ends the process, the file
//! that [`round::journal_of`] names holds it.
//!
//! Deliberately absent: feedback from coverage, real time, and addresses of other machines.

pub mod extremes;
pub mod fault;
pub mod found;
pub mod input;
pub mod json;
pub mod known;
pub mod messages;
pub mod neighbours;
pub mod numbers;
pub mod panics;
pub mod round;
pub mod schema;
pub mod smallest;
pub mod stage;
pub mod step;
pub mod targets;
pub mod verdict;
