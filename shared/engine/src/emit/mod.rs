//! Emission: from jobs and the clock to messages and rows of lines.
//!
//! | when | where |
//! | --- | --- |
//! | a minute begins | `tick`, then `housekeeping` |
//! | a window is read | `walk`: it goes on until what it took is much, and keeps how far it came |
//! | what is too much for one call | `part`: rows with a cursor, for workers |
//! | a job is written whose first launches are near | `outbox` |
//! | occurrences become messages and rows | `sink`, `chunks` |
//! | a process knows that it is alone | `take_over` |
//!
//! Deliberately absent: which launches there are (`scan`), and how a line is joined (`throttle::lines`).

mod chunks;
mod housekeeping;
mod outbox;
mod part;
mod report;
mod sink;
mod take_over;
mod tick;
mod walk;

use std::sync::Arc;

use tidegate_domain::clock::Clock;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::usage::Tally;
use tidegate_store::Store;

use crate::bus::Bus;
use crate::contents::Contents;
use crate::counters::Counter;
use crate::gather::Gathered;
use crate::index::Index;
use crate::queues::Queues;
use crate::throttle::Throttle;
pub(crate) use outbox::Emitter;
pub use report::TickReport;

/// Emits launches: from rows of the time index to messages of the dispatch queue and entries of lines.
pub struct Emission {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) index: Arc<Index>,
    pub(crate) throttle: Arc<Throttle>,
    /// Single events of one line and minute that are too few for a pack.
    pub(crate) few: usize,
    /// Counts what is emitted for each client; `None`: nobody asks.
    pub(crate) usage: Option<Counter<Tally>>,
    /// Events that go ahead of their jobs, and wait for the send before.
    pub(crate) gathered: Gathered<Occurrence>,
    pub(crate) bus: Option<Arc<Bus>>,
}
