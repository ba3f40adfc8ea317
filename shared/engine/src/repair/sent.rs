//! Runs of several events that nothing throttles: their parts are messages until a record says that they were sent.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::time::{days, shifted};
use tidegate_store::events::{HistoryOf, HistoryRow, OwnRow, PartRow};
use tidegate_store::runs::RunRow;
use tidegate_store::scans::{Part, Task};

use super::RepairError;
use super::report::FindingKind;
use super::session::Session;
use super::spans::Spans;

impl Session<'_> {
    /// Has a worker send what is not known to have been sent of a run that was emitted in the last day before the snapshots.
    pub(super) async fn look_at_sent(
        &self,
        client: &ClientId,
        row: &RunRow,
        since: DateTime<Utc>,
        parts: &BTreeSet<String>,
    ) -> Result<(), RepairError> {
        let count = row.terms.count.get();
        if count < 2 || row.stopped.is_some() || since < shifted(self.first_cut, -days(1)) {
            return Ok(());
        }
        let mut sent = Sent::default();
        let of = HistoryOf::Run(row.id.clone());
        for page in [
            self.store.parts_with(client, &row.id, 0..count).await?,
            self.store.own_rows(client, &of, OwnRow::Event, 0..count).await?,
        ] {
            self.readable(page).0.into_iter().for_each(|row| sent.add(row));
        }
        let (missing, again) = (sent.first.missing_below(count), sent.tried_again_in_vain());
        let task = Task::Events { occurrence: Box::new(row.occurrence(client)), as_of: since, next: 0 };
        // Whoever takes it takes it for a repetition, and looks up which parts were sent.
        let part = Part { fence: 1, ..Part::new(task, DateTime::UNIX_EPOCH) };
        if (missing.is_empty() && again.is_empty()) || parts.contains(&part.id) {
            return Ok(());
        }
        let retried: u32 = again.iter().map(|part| part.retried).sum();
        let detail =
            format!("{} of {count} events have no record, {retried} were to be tried again", missing.count());
        self.found(FindingKind::EventsSentAgain, client, &row.id, detail);
        if self.apply {
            let store = self.store;
            self.write_all(again.iter().map(|part| store.forget_part(client, &row.id, part.from))).await?;
            self.store.put_part(&part).await?;
        }
        Ok(())
    }
}

/// What the history of a run says of its parts.
#[derive(Default)]
struct Sent {
    /// Events that were sent a first time.
    first: Spans,
    firsts: Vec<PartRow>,
    /// Events of later attempts, and those that are dead.
    later: Spans,
}

impl Sent {
    fn add(&mut self, row: HistoryRow) {
        match row {
            HistoryRow::Part(part) if part.attempt <= 1 => {
                self.first.add(part.from, part.to);
                self.firsts.push(part);
            }
            HistoryRow::Part(part) => self.later.add(part.from, part.to),
            HistoryRow::Event(event) => self.later.add(event.index, event.index.saturating_add(1)),
            HistoryRow::Packed(_) | HistoryRow::ReleaseNote(_) => {}
        }
    }

    /// First attempts that left events to another one of which nothing is known.
    fn tried_again_in_vain(&self) -> Vec<PartRow> {
        let is_open = |(from, to): &(u32, u32)| (*from..*to).any(|index| !self.later.has(index));
        self.firsts.iter().filter(|part| part.retried_ranges.iter().any(is_open)).cloned().collect()
    }
}
