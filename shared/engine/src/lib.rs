//! What Tidegate does: emit, deliver, admit, release. Called alike by the functions, the local binary and the simulator.
//!
//! | when | call |
//! | --- | --- |
//! | a minute begins | [`Engine::tick`] |
//! | messages arrive | [`Engine::handle_all`], [`Engine::handle_releases`] |
//! | clients call | [`Engine::jobs`], [`Engine::policies`], [`Engine::calendars`], [`Engine::secrets`], [`Engine::dead_letters`], [`Engine::sidelining`], [`Engine::tokens`], [`Engine::quotas`], [`Engine::queries`] |
//!
//! [`Engine`] only puts the parts together. A part has the clients and other parts that it needs; imports run from the end of
//! this list to its beginning, which `cargo xtask check` holds:
//!
//! | part | what it does |
//! | --- | --- |
//! | `queues` | sends to our own queues; the messages |
//! | `bus` | publishes what runs and events came to |
//! | `index` | zones and shards of the time index |
//! | `effect` | what follows from what was done, as data |
//! | `secrets` | what clients keep here encrypted, for the headers of their calls |
//! | `contents` | what events deliver, read and remembered |
//! | `throttle` | who gets a policy's tokens; answers with effects |
//! | `scan` | which launches there are in a window |
//! | `deliver` | takes events to their targets; answers with effects |
//! | `effect_loop` | carries effects out |
//! | `tokens` | arrivals, wake-ups, releases: asks `throttle`, and has the effects carried out |
//! | `emit` | from jobs and the clock to messages and lines |
//! | `queries` | what clients ask |
//! | `quotas` | what clients take of their quotas before they write |
//! | `jobs`, `policies`, `calendars`, `dead_letters`, `sidelining` | what clients change |
//! | `handle` | which message is whose |
//! | `repair` | brings tables together again that were restored from snapshots of different instants |
//!
//! Nothing is held between calls but caches of what never changes, for half a minute what no limit depends on, and for seconds
//! clients' secrets. Clock,
//! randomness and clients are arguments.

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

pub mod author;
pub mod clock;
pub mod random;

mod bus;
mod calendars;
mod contain;
mod contents;
mod counters;
mod dead_letters;
mod deadline;
mod deletions;
mod deliver;
mod effect;
mod effect_loop;
mod emit;
mod engine;
mod error;
mod expect;
pub mod figures;
mod gather;
mod handle;
mod heartbeat;
mod index;
mod jobs;
mod outgoing;
mod pauses;
mod policies;
mod queries;
mod queues;
mod quotas;
mod reach;
mod regions;
mod repair;
mod samples;
mod scan;
mod sealing;
mod secrets;
mod services;
mod sidelining;
mod suspension;
mod throttle;
mod token_key;
mod tokens;
mod watches;

pub use bus::{BusTarget, BusTargetError};
pub use calendars::{CalendarDelete, Calendars};
pub use contain::{Panicked, contain, panics_contained};
pub use dead_letters::{DeadLetterCounts, DeadLetterDetail, DeadLetterFilter, DeadLetters, Redriven};
pub use deadline::{until, within};
pub use deletions::Deletions;
pub use deliver::http::{Callee, CalleeAnswer};
pub use effect::Release;
pub use emit::{Emission, TickReport};
pub use engine::{Engine, Parts};
pub use error::EngineError;
pub use expect::{Expect, Written};
pub use heartbeat::{HeartbeatUrl, HeartbeatUrlError};
pub use index::Index;
pub use jobs::{Backfill, Backfilled, JobDelete, JobDraft, Jobs, LeftOut, RunCancel, Triggered};
pub use policies::{Policies, PolicyDelete};
pub use queries::{
    Ahead, AheadWanted, Due, EmissionStatus, EventRecord, EventStatus, EventsWanted, ExpectationBasis,
    Explanation, ForecastBasis, Holder, JobAhead, JobVersion, JobsAlike, JobsPlace, LaunchChange, LeaseSpan,
    Load, NoPlace, Observer, OneTimePlace, PastLaunch, PolicyAhead, PolicyStatus, PolicyStrain, Queries,
    Reason, RunDetail, RunState, RunSummary, RunsWanted, SoFar, Standing, StandingPlace,
};
pub use queues::{Config, Handled, QueueCheck, Queues, Redelivery, message};
pub use quotas::{QuotaTaker, Usage, UsedQuota};
pub use reach::{PrivateTargets, PrivateTargetsError};
pub use repair::{
    DEFAULT_LOOK_BACK_SECONDS, Finding, FindingKind, Repair, RepairError, RepairOptions, RepairReport,
};
pub use scan::{Decision, ScanReport};
pub use secrets::{SecretDelete, SecretPut, Secrets};
pub use services::{Endpoints, Services};
pub use sidelining::{SetAside, Sidelined, Sidelining};
pub use suspension::Suspensions;
pub use throttle::release::Released;
pub use tidegate_calls::Way;
pub use tidegate_domain::slots::Outcome;
pub use tidegate_store::runs::Skipped;
pub use token_key::TokenKey;
pub use tokens::{EntryError, Extended, Tokens, read_release, read_token};
