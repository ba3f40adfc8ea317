//! The emitter's own rows: the watermark, and the parts of outages that were not caught up.
//!
//! The watermark row is also the tick's lock: `planned_to` is moved, `scanned_to` follows when the scan is done.
//! Invariant: both only rise, and `scanned_to <= planned_to`.

use chrono::{DateTime, Utc};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Update, Updated};
use crate::tables::Table;
use crate::{Result, Store};

/// The watermark row. Instants are in whole seconds but for the lease.
///
/// Invariant: `scanned_to <= planned_to`, and both only rise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    /// Every launch before it belongs to some tick.
    pub planned_to: DateTime<Utc>,
    /// Every launch before it has been emitted.
    pub scanned_to: DateTime<Utc>,
    /// Launches before it may have been emitted by a tick that died, however many died since.
    pub taken_over_to: DateTime<Utc>,
    /// Launches before it were missed by an outage: the clock of the tick, less a threshold.
    pub missed_before: DateTime<Utc>,
    /// The same for launches before `taken_over_to`: the tick that planned them evaluated them by it.
    pub taken_over_missed_before: DateTime<Utc>,
    /// Rises with each tick that wins the row: a tick with a lower number was taken over.
    pub fence: u64,
    /// Until when the present tick has the row, to the millisecond. Another may take over after it.
    pub lease_end: DateTime<Utc>,
    /// Where the waking of active policies goes on: a shard and the name after which, as the engine wrote them; `None`:
    /// at the beginning.
    pub woken_to: Option<String>,
    /// How far everything was emitted when the third last tick began; `None` before there were as many. What was written in
    /// the last minute follows from launches after it, however far ticks were behind.
    pub past: Option<DateTime<Utc>>,
}

/// On what terms a tick takes the row.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Until when it has the row.
    pub lease_end: DateTime<Utc>,
    /// Launches before it count as missed by an outage.
    pub missed_before: DateTime<Utc>,
}

impl Terms {
    fn put_into(self, update: Update, to: DateTime<Utc>, now: DateTime<Utc>) -> Update {
        update
            .value(":to", number(to.timestamp()))
            .value(":now", number(now.timestamp_millis()))
            .value(":lease", number(self.lease_end.timestamp_millis()))
            .value(":missed", number(self.missed_before.timestamp()))
            .value(":one", number(1))
    }
}

/// What came of the attempt to move the watermark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advance {
    /// The tick has the row; it must scan from `scanned_to` to `planned_to`.
    Won(Watermark),
    /// Another tick has it, or it is far enough already; the row as it is.
    Lost(Watermark),
}

pub(crate) fn key() -> Key {
    Key::new("watermark", "-")
}

fn read(row: &Attributes) -> Result<Watermark> {
    let item = Item::read(Table::Ticker, row)?;
    Ok(Watermark {
        planned_to: item.instant_s("planned_to")?,
        scanned_to: item.instant_s("scanned_to")?,
        taken_over_to: item.instant_s("taken_over_to")?,
        missed_before: item.instant_s("missed")?,
        taken_over_missed_before: item.instant_s("taken_over_missed")?,
        fence: item.number("fence")?,
        lease_end: item.instant_ms("lease_end")?,
        woken_to: item.find_text("woken_to").map(str::to_owned),
        past: item.find_number::<i64>("past_3")?.map(|_| item.instant_s("past_3")).transpose()?,
    })
}

impl Store {
    /// The watermark, read consistently; `None` before the first tick.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn watermark(&self) -> Result<Option<Watermark>> {
        let row = self.get(Table::Ticker, &key(), true).await?;
        row.as_ref().map(read).transpose()
    }

    /// Writes the first watermark: no launch from `start` on was planned yet. `Exists` when there is one, which stays
    /// as it is.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn begin_watermark(&self, start: DateTime<Utc>) -> Result<crate::Create> {
        let mut row = Row::new(&key()).with("fence", number(0)).with("lease_end", number(0));
        for name in ["planned_to", "scanned_to", "taken_over_to", "missed", "taken_over_missed"] {
            row = row.with(name, number(start.timestamp()));
        }
        self.put_new(Table::Ticker, row).await
    }

    /// Moves `planned_to` to `to` and takes the row until its lease ends, if no other tick holds it. The first call of
    /// a deployment creates the row with `scanned_to = start`.
    ///
    /// A tick that died is taken over once its lease ends; then `scanned_to` lies before the old `planned_to`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read. The tick may hold the row then, until its lease ends.
    pub async fn advance_watermark(
        &self,
        start: DateTime<Utc>,
        to: DateTime<Utc>,
        now: DateTime<Utc>,
        terms: Terms,
    ) -> Result<Advance> {
        let update = Update::new(
            Table::Ticker,
            key(),
            "SET taken_over_to = if_not_exists(planned_to, :start), \
             taken_over_missed = if_not_exists(missed, :missed), planned_to = :to, missed = :missed, \
             scanned_to = if_not_exists(scanned_to, :start), lease_end = :lease, \
             past_1 = if_not_exists(scanned_to, :start), past_2 = if_not_exists(past_1, :start), \
             past_3 = if_not_exists(past_2, :start) ADD fence :one",
        )
        .when(
            "attribute_not_exists(pk) OR (scanned_to = planned_to AND planned_to < :to) \
             OR (planned_to <= :to AND scanned_to < planned_to AND scanned_to >= taken_over_to AND lease_end < :now)",
        )
        .value(":start", number(start.timestamp()));
        match self.update(terms.put_into(update, to, now)).await? {
            Updated::Done(row) => Ok(Advance::Won(read(&row)?)),
            Updated::Refused(row) => {
                let seen = read(&row.unwrap_or_default())?;
                match seen.scanned_to < seen.taken_over_to {
                    true => self.take_over_again(to, now, terms).await,
                    false => Ok(Advance::Lost(seen)),
                }
            }
        }
    }

    /// Takes over from a tick that died before it had repeated all that it had taken over itself. Those launches are still
    /// evaluated as they were at first, and nobody has evaluated any after them.
    async fn take_over_again(&self, to: DateTime<Utc>, now: DateTime<Utc>, terms: Terms) -> Result<Advance> {
        let changes = "SET planned_to = :to, missed = :missed, lease_end = :lease, past_1 = scanned_to, \
                       past_2 = if_not_exists(past_1, scanned_to), past_3 = if_not_exists(past_2, scanned_to) \
                       ADD fence :one";
        let update = Update::new(Table::Ticker, key(), changes)
            .when("planned_to <= :to AND scanned_to < taken_over_to AND lease_end < :now");
        Ok(match self.update(terms.put_into(update, to, now)).await? {
            Updated::Done(row) => Advance::Won(read(&row)?),
            Updated::Refused(row) => Advance::Lost(read(&row.unwrap_or_default())?),
        })
    }

    /// Says that all launches before `to` are emitted. `Refused` when the tick with `fence` has the row no more, or
    /// `to` lies before `scanned_to` or beyond `planned_to`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn finish_scan(&self, fence: u64, to: DateTime<Utc>) -> Result<crate::Write> {
        let update = Update::new(Table::Ticker, key(), "SET scanned_to = :to")
            .when("fence = :fence AND scanned_to <= :to AND :to <= planned_to")
            .value(":to", number(to.timestamp()))
            .value(":fence", number(fence));
        Ok(self.update(update).await?.into())
    }

    /// Keeps where the waking of active policies goes on; `None`: at the beginning. `Refused` when the tick with
    /// `fence` has the row no more.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn keep_woken_to(&self, fence: u64, woken_to: Option<&str>) -> Result<crate::Write> {
        let changes = if woken_to.is_some() { "SET woken_to = :to" } else { "REMOVE woken_to" };
        let mut update =
            Update::new(Table::Ticker, key(), changes).when("fence = :fence").value(":fence", number(fence));
        if let Some(woken_to) = woken_to {
            update = update.value(":to", text(woken_to));
        }
        Ok(self.update(update).await?.into())
    }

    /// Ends the lease of whatever tick has the row, if there is a row. Only for a process that knows that no other one
    /// is alive.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn break_tick_lease(&self) -> Result<()> {
        let update = Update::new(Table::Ticker, key(), "SET lease_end = :zero")
            .when("attribute_exists(pk)")
            .value(":zero", number(0));
        self.update(update).await.map(drop)
    }

    /// Records that the launches from `from` up to, not including, `to` were not emitted, and why. Repeating it changes
    /// nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn record_skipped_window(
        &self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
        reason: &str,
    ) -> Result<()> {
        let row = Row::new(&Key::new("skipped", format!("{:012}", from.timestamp())))
            .with("until_at", number(to.timestamp()))
            .with("reason", text(reason));
        self.put(Table::Ticker, row).await
    }
}
