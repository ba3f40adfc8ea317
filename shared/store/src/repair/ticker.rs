//! The table `ticker`: the watermark goes back, and parts begin anew.

use chrono::{DateTime, Utc};

use crate::item::number;
use crate::rows::Update;
use crate::scans::{self, Part, Task};
use crate::tables::Table;
use crate::ticker::{self, Watermark};
use crate::{Result, Store, Write};

impl Store {
    /// Sets the watermark back: launches from `to` on are emitted again, as by a tick that takes over. Those before
    /// `planned_to` were planned, and are evaluated as if those before `missed_before` had been missed by an outage.
    /// `Refused` when a tick has moved it since it was `seen`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn set_watermark_back(
        &self,
        seen: &Watermark,
        (to, planned_to): (DateTime<Utc>, DateTime<Utc>),
        missed_before: DateTime<Utc>,
    ) -> Result<Write> {
        let changes = "SET scanned_to = :to, planned_to = :planned, taken_over_to = :planned, \
                       taken_over_missed = :missed, lease_end = :zero REMOVE woken_to ADD fence :one";
        let update = Update::new(Table::Ticker, ticker::key(), changes)
            .when("fence = :fence AND scanned_to = :seen")
            .value(":to", number(to.timestamp()))
            .value(":planned", number(planned_to.timestamp()))
            .value(":missed", number(missed_before.timestamp()))
            .value(":zero", number(0))
            .value(":one", number(1))
            .value(":fence", number(seen.fence))
            .value(":seen", number(seen.scanned_to.timestamp()));
        Ok(self.update(update).await?.into())
    }

    /// Has a part begin anew, as a repetition: whoever takes it looks up what was emitted. `Refused` when a worker took
    /// it meanwhile, or it is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn begin_part_anew(&self, part: &Part) -> Result<Write> {
        let first = part.first_shard();
        let changes = match first {
            Some(_) => "SET #cursor = :cursor, lease_end = :zero, told_at = :zero ADD fence :one",
            None => "SET lease_end = :zero, told_at = :zero REMOVE #cursor ADD fence :one",
        };
        let mut update = Update::new(Table::Ticker, scans::key(&part.id), changes)
            .when("fence = :fence")
            .name("#cursor", "cursor")
            .value(":zero", number(0))
            .value(":one", number(1))
            .value(":fence", number(part.fence));
        if let Some(first) = first {
            update = update.value(":cursor", crate::item::text(first));
        }
        Ok(self.update(update).await?.into())
    }
}

impl Part {
    /// Whether nobody has it, it is at its beginning, and whoever takes it takes it for a repetition.
    pub fn is_begun_anew(&self) -> bool {
        let is_first = match &self.task {
            Task::Shards { after, .. } => *after == self.first_shard(),
            Task::Rows { cursor, .. } => *cursor == scans::Cursor::default(),
            Task::Events { next, .. } => *next == 0,
        };
        is_first && self.fence > 0 && self.lease_end <= DateTime::<Utc>::UNIX_EPOCH
    }

    /// The name of the shard that its shards stand behind, which its id says.
    fn first_shard(&self) -> Option<String> {
        let Task::Shards { last, .. } = &self.task else { return None };
        let first = self.id.splitn(3, '|').nth(2)?.strip_suffix(&format!(" to {last}"))?;
        Some(first.to_owned()).filter(|first| !first.is_empty())
    }
}
