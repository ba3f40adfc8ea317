//! Deliveries that a target did not take: a row for each, kept as long as the history of its run.
//!
//! They lie apart from the history: whoever lists events reads none of them.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::Query;
use crate::tables::Table;
use crate::{Page, Result, Store};

/// Events with numbers beside each other whose failures lie under one key.
const EVENTS_PER_KEY: u32 = 256;

/// A delivery that a target did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDelivery {
    /// Which delivery of the event it was, from 1.
    pub attempt: u8,
    /// When it had failed, to the millisecond.
    pub at: DateTime<Utc>,
    /// How long the call took, in milliseconds; `None` where nobody measured.
    pub took_ms: Option<u32>,
    /// The status of the answer; `None` where there was none, or it has no such thing.
    pub status: Option<u16>,
    /// What happened, in words.
    pub reason: String,
    /// What the target said: the first [`ANSWER_BYTES`](tidegate_domain::limits::ANSWER_BYTES) of its answer.
    pub answer: Option<String>,
}

fn partition(client: &ClientId, event: &EventId) -> String {
    format!("{client}|{}|failures|{}", event.run(), event.index() / EVENTS_PER_KEY)
}

/// What the sort keys of the failures of an event begin with.
fn prefix(event: &EventId) -> String {
    format!("f{:07}.", event.index())
}

/// The row of a failed delivery.
pub(crate) fn row(
    client: &ClientId,
    event: &EventId,
    failed: &FailedDelivery,
    expires_at: DateTime<Utc>,
) -> Row {
    let FailedDelivery { attempt, at, took_ms, status, reason, answer } = failed;
    Row::new(&Key::new(partition(client, event), format!("{}{attempt:03}", prefix(event))))
        .with("tries", number(*attempt))
        .with("done_at", number(at.timestamp_millis()))
        .with("reason", text(&**reason))
        .with_some("took_ms", took_ms.map(number))
        .with_some("status", status.map(number))
        .with_some("answer", answer.as_deref().map(text))
        .expiring(expires_at)
}

fn read(row: &Attributes) -> Result<FailedDelivery> {
    let item = Item::read(Table::Events, row)?;
    Ok(FailedDelivery {
        attempt: item.number("tries")?,
        at: item.instant_ms("done_at")?,
        took_ms: item.find_number("took_ms")?,
        status: item.find_number("status")?,
        reason: item.text("reason")?.to_owned(),
        answer: item.find_text("answer").map(str::to_owned),
    })
}

impl Store {
    /// The deliveries of an event that its target did not take, in their order: 255 at the most, read eventually. Rows that cannot be
    /// read are among the `unreadable` ones.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn failed_deliveries(
        &self,
        client: &ClientId,
        event: &EventId,
    ) -> Result<Page<FailedDelivery>> {
        let sorted = crate::rows::Sorted::Prefix(prefix(event));
        let query = Query { sorted, ..Query::of(Table::Events, partition(client, event)) };
        // They fit into a page of 1 MB.
        Ok(self.query(query).await?.read(Table::Events, read))
    }
}
