//! What a receive takes, and what it tells of each message.

use std::collections::BTreeMap;
use std::iter;

use rusqlite::{Row, params};

use super::bundle::{self, Member, Texts};
use super::error::Refused;
use super::limits;
use super::message;
use super::receipt::Receipt;
use super::store::{self, Desk};
use super::wire::{MessageAttributes, ReceiveMessage, Received};

/// A receive whose parameters are checked. Absent parameters are the queue's.
pub(super) struct Wanted {
    pub(super) most: i64,
    pub(super) visibility_s: Option<i64>,
    pub(super) wait_s: Option<i64>,
    system: Names,
    attributes: Names,
}

impl Wanted {
    /// # Errors
    /// `InvalidParameterValue` for a number out of its range.
    pub(super) fn parse(request: ReceiveMessage) -> Result<Self, Refused> {
        let mut system = request.attribute_names;
        system.extend(request.message_system_attribute_names);
        Ok(Self {
            most: request.max_number_of_messages.map_or(Ok(1), limits::received)?,
            visibility_s: request.visibility_timeout.map(limits::visibility).transpose()?,
            wait_s: request.wait_time_seconds.map(limits::wait).transpose()?,
            system: Names(system),
            attributes: Names(request.message_attribute_names),
        })
    }
}

/// A row of messages as it is taken from its queue.
pub(super) struct Taken {
    pub(super) seq: i64,
    /// Messages in it.
    pub(super) count: i64,
    pub(super) rank: i64,
    pub(super) receive_count: i64,
    pub(super) first_received_at_ms: i64,
    pub(super) sent_at_ms: i64,
    pub(super) visible_at_ms: i64,
    group_id: Option<String>,
    dedup_id: Option<String>,
    trace: Option<String>,
    source_arn: Option<String>,
    texts: Texts<'static>,
}

/// Columns of [`Taken`], the first of them its number and how many messages are in it.
const COLUMNS: &str = "seq, count, rank, receive_count, first_received_at_ms, sent_at_ms, visible_at_ms, group_id, dedup_id, \
                       trace, source_arn";

/// A query of rows to be read.
pub(super) fn select(which: &str) -> String {
    format!("SELECT {COLUMNS}, {} FROM messages WHERE {which}", bundle::COLUMNS)
}

/// How many messages are in a row of such a query.
pub(super) fn count_in(row: &Row<'_>) -> rusqlite::Result<i64> {
    row.get(1)
}

impl Taken {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            count: row.get(1)?,
            rank: row.get(2)?,
            receive_count: row.get(3)?,
            first_received_at_ms: row.get(4)?,
            sent_at_ms: row.get(5)?,
            visible_at_ms: row.get(6)?,
            group_id: row.get(7)?,
            dedup_id: row.get(8)?,
            trace: row.get(9)?,
            source_arn: row.get(10)?,
            texts: Texts::read(row, 11)?,
        })
    }

    /// Counts the receive, in memory and in its row.
    pub(super) fn receive(
        &mut self,
        desk: &Desk<'_>,
        visible_at_ms: i64,
        state: i64,
    ) -> rusqlite::Result<()> {
        if self.receive_count == 0 {
            self.first_received_at_ms = desk.now_ms;
        }
        self.receive_count += 1;
        desk.conn
            .prepare_cached(
                "UPDATE messages SET state = ?2, visible_at_ms = ?3, receive_count = ?4, received_at_ms = ?5,
                    first_received_at_ms = ?6 WHERE seq = ?1",
            )?
            .execute(params![
                self.seq,
                state,
                visible_at_ms,
                self.receive_count,
                desk.now_ms,
                self.first_received_at_ms
            ])?;
        Ok(())
    }

    /// What its consumer gets.
    pub(super) fn told(&self, queue_id: i64, wanted: &Wanted) -> impl Iterator<Item = Received<'_>> {
        iter::zip(self.seq.., self.texts.each()).map(move |(seq, Member { message_id, attributes, body })| {
            let receipt = Receipt { queue_id, seq, receive_count: self.receive_count };
            let mut message_attributes: MessageAttributes<'_> = match attributes {
                Some(stored) if !wanted.attributes.0.is_empty() => {
                    serde_json::from_str(stored).unwrap_or_default()
                }
                _ => MessageAttributes::new(),
            };
            message_attributes.retain(|name, _| wanted.attributes.contain(name));
            Received {
                message_id: store::uuid_text(message_id),
                receipt_handle: receipt.encode(),
                md5_of_body: message::md5_of_body(body),
                body,
                attributes: self.system_attributes(&wanted.system),
                md5_of_attributes: message::md5_of_attributes(&message_attributes),
                message_attributes,
            }
        })
    }

    fn system_attributes(&self, wanted: &Names) -> BTreeMap<&'static str, String> {
        if wanted.0.is_empty() {
            return BTreeMap::new();
        }
        // Only messages of FIFO queues carry a deduplication id.
        let sequence = self.dedup_id.as_ref().map(|_| store::sequence_text(self.seq));
        let all = [
            ("SenderId", Some("000000000000".to_owned())),
            ("SentTimestamp", Some(self.sent_at_ms.to_string())),
            ("ApproximateReceiveCount", Some(self.receive_count.to_string())),
            ("ApproximateFirstReceiveTimestamp", Some(self.first_received_at_ms.to_string())),
            ("MessageGroupId", self.group_id.clone()),
            ("MessageDeduplicationId", self.dedup_id.clone()),
            ("SequenceNumber", sequence),
            ("AWSTraceHeader", self.trace.clone()),
            ("DeadLetterQueueSourceArn", self.source_arn.clone()),
        ];
        all.into_iter()
            .filter(|(name, _)| wanted.contain(name))
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// Names a caller asks for: themselves, `All`, `.*`, or a prefix with `.*`.
struct Names(Vec<String>);

impl Names {
    fn contain(&self, name: &str) -> bool {
        self.0.iter().any(|wanted| {
            wanted == "All"
                || wanted == name
                || wanted.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
        })
    }
}
