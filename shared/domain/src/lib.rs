//! The words of Tidegate and their rules: policies, jobs, triggers, occurrences, packs, slot groups, tokens; the ids of all that
//! has one.
//!
//! Everything here is pure. There is no I/O, no randomness, no environment and no logging, and nothing reads a clock: time and
//! random bytes arrive as arguments. [`clock`] only says what a clock is. Nothing here is `Serialize`: wire and stored formats are types of their own, in
//! the crates that write them.

// Values from outside come here: nothing may panic on them.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

pub mod arn;
pub mod backpressure;
pub mod bounded;
pub mod calendar;
pub mod change;
pub mod clock;
pub mod demand;
pub mod fair;
pub mod flow;
pub mod http_call;
pub mod ids;
pub mod job;
pub mod key;
pub mod lateness;
pub mod launches;
pub mod limits;
pub mod nesting;
pub mod occurrence;
pub mod pack;
pub mod policy;
pub mod quota;
pub mod rate_limit;
pub mod retry;
pub mod rules;
pub mod secret;
pub mod shard;
pub mod shares;
pub mod sideline;
pub mod slots;
pub mod spelling;
pub mod tags;
pub mod target;
pub mod template;
pub mod time;
pub mod token;
pub mod unknown;
pub mod usage;
