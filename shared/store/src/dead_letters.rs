//! Dead letters: events that did not succeed and that nothing sends again, by client, until they are redriven, discarded or
//! too old for their job.
//!
//! One that is redriven or discarded leaves a mark in its place for a day: what is kept late, by a message that comes twice or a
//! compaction that is repeated, does not bring it back. A later end of the event does.
//!
//! Rows of a client are spread over keys by job, so that a herd of dead events is no hot key, and those of one job lie together:
//! by launch, then by their number in the run.

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, EventId, JobId};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::pack::PackId;
use tidegate_domain::retry::Tries;
use tidegate_domain::shard::shard_of;
use tidegate_domain::slots::Outcome;
use tidegate_domain::time::{days, shifted};

use crate::item::{Attributes, Item, Key, Row, number, text};
pub use crate::line::Waited;
use crate::line::{Requeued, redriven_row};
use crate::rows::{Query, Sorted};
use crate::runs;
use crate::slots::outcomes;
use crate::tables::Table;
use crate::{Page, Result, Store, Write};

/// Keys that the dead letters of a client are spread over.
pub const DEAD_LETTER_SHARDS: u32 = 4;

/// An event that did not succeed and that nothing sends again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Which event.
    pub event: EventId,
    /// How it ended: `Failed`, `Expired` or `Dead`.
    pub outcome: Outcome,
    /// How often it was delivered.
    pub attempts: u8,
    /// When it ended, or when its end was compacted, to the millisecond.
    pub at: DateTime<Utc>,
    /// Why its target did not take it; `None` where the consumer had it.
    pub reason: Option<String>,
    /// Where it waited, when a policy throttled it.
    pub waited: Option<Waited>,
}

/// For how long the mark of a letter that is settled stays: what is kept late comes within minutes.
const SETTLED_DAYS: i64 = 1;

fn partition(client: &ClientId, shard: u32) -> String {
    format!("{client}|dead|{shard}")
}

/// The key of the dead letters of a job.
fn shard(job: &JobId) -> u32 {
    shard_of(job.as_str(), DEAD_LETTER_SHARDS)
}

/// By job, launch, revision, and number in the run. A space stands before every character of a job's id.
fn sort_key(event: &EventId) -> String {
    let run = event.run();
    format!("{} {:012} {:010} {:07}", run.job(), run.launch_at().timestamp(), run.revision(), event.index())
}

fn key(client: &ClientId, event: &EventId) -> Key {
    Key::new(partition(client, shard(event.run().job())), sort_key(event))
}

/// The row of a dead letter. A later end of the same event takes its place.
pub(crate) fn row(client: &ClientId, letter: &DeadLetter, kept: HistoryDays) -> Row {
    let row = Row::new(&key(client, &letter.event))
        .with("event", text(letter.event.to_string()))
        .with("outcome", text(outcomes::code(letter.outcome)))
        .with("tries", number(letter.attempts))
        .with("done_at", number(letter.at.timestamp_millis()))
        .with_some("reason", letter.reason.as_deref().map(text))
        .expiring(kept.from(letter.at));
    match &letter.waited {
        None => row,
        Some(Waited { policy, pack, index }) => row
            .with("policy", text(policy.to_string()))
            .with("pack", text(pack.to_string()))
            .with("place", number(*index)),
    }
}

/// `None`: it is settled.
fn read(row: &Attributes) -> Result<Option<DeadLetter>> {
    let item = Item::read(Table::Events, row)?;
    if item.find_number::<u8>("settled")?.is_some() {
        return Ok(None);
    }
    let waited = match item.find_text("pack") {
        None => None,
        Some(pack) => Some(Waited {
            policy: item.id("policy")?,
            pack: item.parsed("pack", pack)?,
            index: item.number("place")?,
        }),
    };
    Ok(Some(DeadLetter {
        event: item.id("event")?,
        outcome: outcomes::from_code(item.text("outcome")?)
            .ok_or_else(|| item.corrupt("'outcome' is none"))?,
        attempts: item.number("tries")?,
        at: item.instant_ms("done_at")?,
        reason: item.find_text("reason").map(str::to_owned),
        waited,
    }))
}

impl Store {
    /// A page of the dead letters of a client under one of [`DEAD_LETTER_SHARDS`] keys, at most `limit`, read consistently: by
    /// job, launch and number. The first when `after` is `None`, else what follows a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among
    /// the `unreadable` ones of the page. `None` stands for one that was settled within a day.
    pub async fn dead_letters(
        &self,
        client: &ClientId,
        shard: u32,
        after: Option<String>,
        limit: i32,
    ) -> Result<Page<Option<DeadLetter>>> {
        self.letters_in(Query { after, ..Query::of(Table::Events, partition(client, shard)) }, limit).await
    }

    /// The same of one job, all of which lie under one key.
    ///
    /// # Errors
    /// As [`Self::dead_letters`].
    pub async fn dead_letters_of(
        &self,
        client: &ClientId,
        job: &JobId,
        after: Option<String>,
        limit: i32,
    ) -> Result<Page<Option<DeadLetter>>> {
        let sorted = Sorted::Prefix(format!("{job} "));
        let place = partition(client, shard(job));
        self.letters_in(Query { sorted, after, ..Query::of(Table::Events, place) }, limit).await
    }

    async fn letters_in(&self, place: Query, limit: i32) -> Result<Page<Option<DeadLetter>>> {
        let query = Query { limit: Some(limit), consistent: true, ..place };
        Ok(self.query(query).await?.read(Table::Events, read))
    }

    /// The dead letter of an event, read consistently; `None` when there is none, or none any more.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn dead_letter(&self, client: &ClientId, event: &EventId) -> Result<Option<DeadLetter>> {
        let row = self.get(Table::Events, &key(client, event), true).await?;
        Ok(row.as_ref().map(read).transpose()?.flatten())
    }

    /// Forgets a dead letter as it was seen. `Refused` when it is gone, or its event came to another end since.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn discard_dead_letter(
        &self,
        client: &ClientId,
        seen: &DeadLetter,
        now: DateTime<Utc>,
    ) -> Result<Write> {
        let (settled, values) = settled_row(client, seen, now);
        self.put_when(Table::Events, settled, AS_SEEN, values).await
    }

    /// Puts the event of a dead letter into its policy's line again, due at an instant, and forgets the letter: all or nothing,
    /// once. A run counts one end of that kind fewer from then on. `Refused` when the letter is gone, its event came to another
    /// end since, or its run's record is over.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts with others
    /// after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn redrive(
        &self,
        client: &ClientId,
        seen: &DeadLetter,
        waited: &Waited,
        (priority, due_at): (u8, DateTime<Utc>),
        now: DateTime<Utc>,
    ) -> Result<Write> {
        let Waited { policy, pack, index } = waited;
        // Its deliveries count on, and none of them counts as failed: it is sent again for as long as a new one.
        let tries = Tries { made: seen.attempts, failed: 0, since_s: now.timestamp() };
        let back = Requeued { pack: pack.clone(), priority, tries, due_at };
        let mut items = vec![
            self.settled(client, seen, now)?,
            self.put_item_of(Table::Policies, redriven_row(client, policy, *index, &back))?,
        ];
        if let PackId::Run(run) = &waited.pack {
            items.push(self.update_item_of(runs::redriven_update(client, run, seen.outcome))?);
        }
        self.transact(Table::Events, items).await
    }

    /// Forgets the letter of an event that nothing throttles and that is on its way again; a run of several events, where `counts`,
    /// has one dead event fewer from then on: both or neither. `Refused` when the letter is gone, or is of a later end.
    ///
    /// # Errors
    /// As [`Self::redrive`].
    pub async fn forget_redriven(
        &self,
        client: &ClientId,
        seen: &DeadLetter,
        counts: bool,
        now: DateTime<Utc>,
    ) -> Result<Write> {
        if !counts {
            return self.discard_dead_letter(client, seen, now).await;
        }
        let counted = self.update_item_of(runs::redriven_update(client, seen.event.run(), seen.outcome))?;
        let items = vec![self.settled(client, seen, now)?, counted];
        self.transact(Table::Events, items).await
    }

    fn settled(&self, client: &ClientId, seen: &DeadLetter, now: DateTime<Utc>) -> Result<TransactWriteItem> {
        let (settled, values) = settled_row(client, seen, now);
        self.put_when_item_of(Table::Events, settled, AS_SEEN, values)
    }
}

/// What holds of the row of a letter as long as it is of the same end, and not settled.
const AS_SEEN: &str = "tries = :tries AND done_at = :at";

/// What stands in the place of a letter that is settled, if that is still as it was seen.
fn settled_row(client: &ClientId, seen: &DeadLetter, now: DateTime<Utc>) -> (Row, Attributes) {
    let row =
        Row::new(&key(client, &seen.event)).with("tries", number(seen.attempts)).with("settled", number(1));
    (row.expiring(shifted(now, days(SETTLED_DAYS))), as_seen(seen))
}

fn as_seen(seen: &DeadLetter) -> Attributes {
    Attributes::from([
        (":tries".to_owned(), number(seen.attempts)),
        (":at".to_owned(), number(seen.at.timestamp_millis())),
    ])
}
