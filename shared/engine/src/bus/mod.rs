//! The bus of a deployment: what runs and events came to is published for reports, where an operator named a place for it.
//!
//! The store and delivery note it in a journal; it is published before what would keep it from being noted again is written (the
//! mark of a chunk, the end of a compaction), or else before the call ends that noted it. What is noted side by side goes out together.
//!
//! A bus costs nobody more than a few seconds: a call to it takes [`BUS_SECONDS`] at the most, and one that fails is not tried again.
//! It is left alone for [`BUS_PAUSE_SECONDS`] then. What it does not get is dropped and counted.

mod record;
mod target;

use std::sync::Arc;
use std::time::Duration as StdDuration;

use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock;
use tidegate_domain::limits::{BUS_PAUSE_SECONDS, BUS_SECONDS, JOURNAL_ENTRIES};
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::journal::Journal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::figures::BUS_DROPPED;
use crate::regions::Regions;
use target::Publisher;
pub use target::{BusTarget, BusTargetError};

/// How long a call to a bus may take.
const TIMEOUT: StdDuration = StdDuration::from_secs(BUS_SECONDS as u64);
/// Records that are published though the call goes on that noted them.
const MANY: usize = 1_000;

/// The bus of a deployment that has one.
pub(crate) struct Bus {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    publisher: Publisher,
    /// Held while something is published: whoever waits for it knows that what it noted was published too.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was taken from the journal, as lines. Something stays here when whoever published it was stopped.
    lines: Vec<String>,
    /// How many records are lost that were never lines.
    lost: u64,
    /// When a bus is asked again that did not answer.
    not_before: Option<DateTime<Utc>>,
}

impl Bus {
    /// The bus at `target`; `None` when that is off. Makes no call.
    pub(crate) fn at(target: &BusTarget, clock: Arc<dyn Clock>, regions: Arc<Regions>) -> Option<Self> {
        let publisher = Publisher::to(target, regions)?;
        Some(Self { journal: Arc::default(), clock, publisher, state: Mutex::default() })
    }

    /// Where is noted what it publishes.
    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Publishes what was noted, if that is much.
    pub(crate) async fn publish_many(&self) {
        if self.journal.len() >= MANY {
            self.publish().await;
        }
    }

    /// Publishes what was noted before. Afterwards it is published, or dropped and counted.
    pub(crate) async fn publish(&self) {
        let mut state = self.state.lock().await;
        let now = self.clock.now();
        let noted = self.journal.take();
        state.lost = state.lost.saturating_add(noted.lost);
        for entry in &noted.entries {
            match state.lines.len() < JOURNAL_ENTRIES {
                true => state.lines.push(record::line(entry, now)),
                false => state.lost = state.lost.saturating_add(1),
            }
        }
        if state.lines.is_empty() && state.lost == 0 {
            return;
        }
        let is_left_alone = state.not_before.is_some_and(|not_before| now < not_before);
        let (sent, failure) = match is_left_alone {
            true => (0, Some("it did not answer shortly before".to_owned())),
            false => self.send(&state.lines).await,
        };
        if failure.is_some() && !is_left_alone {
            state.not_before = Some(shifted(now, seconds(BUS_PAUSE_SECONDS.into())));
        }
        let unsent = u64::try_from(state.lines.len().saturating_sub(sent)).unwrap_or(u64::MAX);
        let dropped = state.lost.saturating_add(unsent);
        (state.lines, state.lost) = (Vec::new(), 0);
        if dropped > 0 {
            let reason = failure.unwrap_or_else(|| "more were noted than are kept".to_owned());
            warn!(reason, { BUS_DROPPED } = dropped, "records are not published to the bus");
        }
    }

    /// Sends lines until one call fails or the time is over. Says how many were taken, and what went wrong.
    async fn send(&self, lines: &[String]) -> (usize, Option<String>) {
        let until = Instant::now().checked_add(TIMEOUT).unwrap_or_else(Instant::now);
        let mut sent: usize = 0;
        for batch in record::batches(lines) {
            let body: String = batch.concat();
            match timeout_at(until, self.publisher.send(body)).await {
                Ok(Ok(())) => sent = sent.saturating_add(batch.len()),
                Ok(Err(reason)) => return (sent, Some(reason)),
                Err(_) => return (sent, Some(format!("it gave no answer in {BUS_SECONDS} seconds"))),
            }
        }
        (sent, None)
    }
}
