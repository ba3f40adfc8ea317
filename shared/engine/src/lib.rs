//! What Tidegate does: emit, deliver, admit, release. Called alike by the functions, the local binary and the simulator.
//!
//! | when | call |
//! | --- | --- |
//! | a minute begins | [`Engine::tick`] |
//! | a dispatch message arrives | [`Engine::handle`] |
//! | the API is called | [`Engine::replace_job`], [`Engine::release`] and their neighbours |
//!
//! Nothing is held between calls but caches of what never changes. Clock, randomness and clients are arguments.

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

pub mod clock;
pub mod message;
pub mod random;

mod batch;
mod calendars;
mod contain;
mod deliver;
mod effect;
mod emit;
mod engine;
mod error;
mod expect;
mod explain;
mod handle;
mod health;
mod history;
mod housekeeping;
mod index;
mod jobs;
mod memory;
mod outlook;
mod packs;
mod policies;
mod queue;
mod runs;
mod scan;
mod take_over;
mod throttle;
mod tick;
mod token_key;
mod upcoming;

pub use calendars::{CalendarDelete, CalendarWrite};
pub use contain::{Panicked, contain, panics_contained};
pub use deliver::callback::CompletionBody;
pub use deliver::event::EventBody;
pub use effect::Release;
pub use engine::{Config, Engine, Parts};
pub use error::EngineError;
pub use expect::Expect;
pub use explain::{Explanation, Holder};
pub use handle::Handled;
pub use health::EmissionStatus;
pub use history::{EventRecord, EventStatus};
pub use jobs::{JobDelete, JobDraft, JobWrite};
pub use policies::{Load, PolicyDelete, PolicyPut, PolicyStatus, PolicyWrite};
pub use queue::QueueCheck;
pub use runs::{RunDetail, RunState, RunSummary};
pub use scan::{Rehearsal, ScanReport, Verdict};
pub use throttle::release::{Extended, Released};
pub use throttle::stop::RunCancel;
pub use tick::TickReport;
pub use tidegate_domain::slots::Outcome;
pub use tidegate_store::runs::Skipped;
pub use token_key::TokenKey;
