//! Repair: after tables were restored from snapshots of different instants, what belongs together is brought together again.
//!
//! It reads whole tables, page by page, and nobody else may be at work. Two rules say what is done:
//!
//! - What is not known to have ended is delivered again, under the same event id.
//! - What cannot be known is listed, and nothing is made up.
//!
//! Each step follows from what the tables say now, so a repair that was killed is simply made again. Decision 0031 goes
//! through every step of the engine that writes more than one table, and says which part of this looks after it.
//!
//! Deliberately absent: queues. Whatever they hold may come, or may be gone; nothing here depends on it.

mod clients;
mod index;
mod known;
mod orphans;
mod report;
mod runs;
mod sent;
mod session;
mod spans;
mod ticker;

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Duration, Utc};
use futures::future::BoxFuture;
use thiserror::Error;
use tidegate_domain::clock::Clock;
use tidegate_domain::limits::LOOK_AHEAD_SECONDS;
use tidegate_domain::slots::Epoch;
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::Store;

use crate::EngineError;
use known::Known;
pub use report::{Finding, FindingKind, RepairReport};
use session::Session;

/// How long before the snapshots launches are looked at that may lie in a queue, unless a caller says otherwise, in seconds.
pub const DEFAULT_LOOK_BACK_SECONDS: u32 = 900;
/// How far apart snapshots may be when nobody says which is the first, in seconds.
const APART_SECONDS: i64 = 60;

/// What a repair is asked for.
#[derive(Debug, Clone, Copy)]
pub struct RepairOptions {
    /// Whether to write. Otherwise it only says what it would do.
    pub apply: bool,
    /// The first instant that a table was restored to; `None`: a minute before the last tick that the tables know of.
    pub restored_to: Option<DateTime<Utc>>,
    /// How long before that launches are looked at whose messages may be lost.
    pub look_back: Duration,
    /// Whether to go on although ticks seem to be at work.
    pub while_running: bool,
}

impl Default for RepairOptions {
    fn default() -> Self {
        let look_back = seconds(i64::from(DEFAULT_LOOK_BACK_SECONDS));
        Self { apply: false, restored_to: None, look_back, while_running: false }
    }
}

/// Why a repair stopped.
#[derive(Debug, Error)]
pub enum RepairError {
    /// Ticks are at work, or were less than two minutes ago.
    #[error(
        "failed to begin a repair: ticks have planned up to {planned_to}, which is still to come, so the emitter is on, or was \
         two minutes ago; turn it off and wait"
    )]
    Running {
        /// How far ticks have planned.
        planned_to: DateTime<Utc>,
    },
    /// Somebody wrote while the repair was at work.
    #[error(
        "failed to repair {what}: somebody else has written it meanwhile; turn every function off and repair again"
    )]
    Moved {
        /// What was to be written.
        what: String,
    },
    /// The tables did not answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<tidegate_store::StoreError> for RepairError {
    fn from(error: tidegate_store::StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// Repairs the tables of a deployment while nobody else uses them.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_engine::clock::SystemClock;
/// use tidegate_engine::{Repair, RepairError, RepairOptions};
///
/// /// What would be done.
/// async fn rehearsed(store: tidegate_store::Store) -> Result<usize, RepairError> {
///     let repair = Repair::new(store, Arc::new(SystemClock));
///     Ok(repair.run(RepairOptions::default()).await?.findings.len())
/// }
/// ```
pub struct Repair {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl Repair {
    /// A repair of these tables. Makes no call.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Says what is to be repaired, and does it if it is asked to. It may be killed anywhere and made again, and changes
    /// nothing but numbers that rise where nothing is to be repaired.
    ///
    /// # Errors
    /// [`RepairError::Running`] when ticks are at work, [`RepairError::Moved`] when somebody else writes meanwhile,
    /// [`RepairError::Engine`] when DynamoDB refuses a call or does not answer. What was repaired until then stays.
    pub fn run(&self, options: RepairOptions) -> BoxFuture<'_, Result<RepairReport, RepairError>> {
        Box::pin(async move {
            let now = self.clock.now();
            let watermark = self.store.watermark().await?;
            let planned_to = watermark.as_ref().map(|watermark| watermark.planned_to);
            if let Some(planned_to) =
                planned_to.filter(|planned_to| *planned_to > now && !options.while_running)
            {
                return Err(RepairError::Running { planned_to });
            }
            let look_ahead = seconds(i64::from(LOOK_AHEAD_SECONDS));
            let last_tick = planned_to.map(|planned_to| shifted(planned_to, -look_ahead));
            let first_cut =
                options.restored_to.or(last_tick.map(|tick| shifted(tick, -seconds(APART_SECONDS))));
            let first_cut = first_cut.unwrap_or(DateTime::UNIX_EPOCH);
            let back_to = ticker::back_to(watermark.as_ref(), shifted(first_cut, -options.look_back));
            let epoch = Epoch::from_millis(now.timestamp_millis());
            let session = Session {
                store: &self.store,
                now,
                apply: options.apply,
                epoch,
                first_cut,
                back_to,
                report: Mutex::new(RepairReport::new(options.apply, first_cut, back_to, epoch)),
            };
            // First of all: whatever becomes of this repair, no number is given twice.
            if session.apply && self.store.begin_epoch(epoch).await? == tidegate_store::Write::Refused {
                return Err(RepairError::Moved { what: "the epoch".to_owned() });
            }
            let known = Known::read(&session).await?;
            let parts = session.begin_parts_anew().await?;
            session.look_at_runs(&known, &parts).await?;
            session.look_at_orphans(&known).await?;
            session.write_groups(&known).await?;
            session.look_at_jobs(&known).await?;
            session.look_at_clients().await?;
            // Last: from here on ticks emit again what may be missing.
            session.set_watermark_back(watermark.as_ref()).await?;
            Ok(session.report.into_inner().unwrap_or_else(PoisonError::into_inner))
        })
    }
}
