//! What clients ask and what changes nothing: runs, events, what goes on in a policy, explanations, forecasts.
//!
//! Rows are read one by one, without locks. Deliberately absent: anything that writes or sends.

mod across;
mod ahead;
mod calendar_change;
mod dry_run;
mod explain;
mod forecast;
mod health;
pub(crate) mod history;
mod load;
mod one_times;
mod packs;
mod past;
mod run_state;
mod runs;
mod standing;
mod upcoming;
mod versions;

use std::sync::Arc;

use tidegate_domain::clock::Clock;
use tidegate_store::Store;

use crate::contents::Contents;
use crate::throttle::Throttle;
pub use across::{JobsAlike, JobsPlace, RunsWanted};
pub use ahead::{Ahead, AheadWanted, Due, JobAhead, PolicyAhead, PolicyStrain};
pub use calendar_change::LaunchChange;
pub use dry_run::Observer;
pub use explain::{ExpectationBasis, Explanation, Holder, LeaseSpan, Reason};
pub use forecast::{ForecastBasis, SoFar};
pub use health::EmissionStatus;
pub use history::{EventRecord, EventStatus};
pub use load::{Load, PolicyStatus};
pub use one_times::{NoPlace, OneTimePlace};
pub use past::PastLaunch;
pub use run_state::{RunState, RunSummary};
pub use runs::RunDetail;
pub use standing::{EventsWanted, Standing, StandingPlace};
pub use versions::JobVersion;

/// Answers what clients ask.
pub struct Queries {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) throttle: Arc<Throttle>,
}
