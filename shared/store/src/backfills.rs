//! What calls with an idempotency key made of launches that were over: a row for each, by its job and the hash of the key, beside what
//! was triggered of the job.
//!
//! Invariant: an idempotency key makes launches of a job once. Its row is written together with the revision that they are launches
//! of, or not at all.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::change::Change;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::IDEMPOTENCY_HOURS;
use tidegate_domain::time::{seconds, shifted};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::jobs::JobRow;
use crate::keys::KeyHash;
use crate::launch::OutboxEntry;
use crate::tables::Table;
use crate::triggers::partition;
use crate::{Result, Store, Write};

/// What a call is named by that may be made again, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallKey {
    /// The hash of its idempotency key.
    pub key: KeyHash,
    /// The hash of its body.
    pub said: KeyHash,
}

/// What a call with an idempotency key made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeLaunches {
    /// The call.
    pub call: CallKey,
    /// The revision of the job that they are launches of.
    pub revision: u32,
    /// When each was due, in whole seconds and in order of time, and the word of why it had been missed, where that was asked.
    pub launches: Vec<(DateTime<Utc>, Option<String>)>,
    /// Where the window goes on, to the millisecond; `None`: those are all of it.
    pub next_from: Option<DateTime<Utc>>,
    /// When they were made, to the millisecond.
    pub at: DateTime<Utc>,
}

fn place(client: &ClientId, job: &JobId, key: &KeyHash) -> Key {
    Key::new(partition(client, job), format!("backfill|{}", key.as_str()))
}

fn row(client: &ClientId, job: &JobId, made: &MadeLaunches) -> Row {
    let instants = made.launches.iter().map(|(launch_at, _)| number(launch_at.timestamp()));
    // Of all of them, or of none.
    let missed: Vec<_> = made.launches.iter().filter_map(|(_, missed)| missed.as_deref().map(text)).collect();
    Row::new(&place(client, job, &made.call.key))
        .with("said", text(made.call.said.as_str()))
        .with("rev", number(made.revision))
        .with("launch_s", AttributeValue::L(instants.collect()))
        .with_some("missed", (!missed.is_empty()).then_some(AttributeValue::L(missed)))
        .with_some("next_ms", made.next_from.map(|from| number(from.timestamp_millis())))
        .with("made_at", number(made.at.timestamp_millis()))
        .expiring(shifted(made.at, seconds(IDEMPOTENCY_HOURS * 3_600)))
}

fn read(key: &KeyHash, row: &Attributes) -> Result<MadeLaunches> {
    let item = Item::read(Table::Launch, row)?;
    let instants = item.instants_s("launch_s")?;
    let missed = item.texts("missed");
    if !missed.is_empty() && missed.len() != instants.len() {
        return Err(item.corrupt("'missed' is not of each launch"));
    }
    let mut missed = missed.into_iter().map(str::to_owned);
    Ok(MadeLaunches {
        call: CallKey { key: key.clone(), said: KeyHash::read(item.text("said")?) },
        revision: item.number("rev")?,
        launches: instants.into_iter().map(|launch_at| (launch_at, missed.next())).collect(),
        next_from: item.find_instant_ms("next_ms")?,
        at: item.instant_ms("made_at")?,
    })
}

impl Store {
    /// What a call with the idempotency key made of a job; `None` when there was no such call in the last `IDEMPOTENCY_HOURS`, or somewhat
    /// longer. Read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn made_launches(
        &self,
        client: &ClientId,
        job: &JobId,
        key: &KeyHash,
    ) -> Result<Option<MadeLaunches>> {
        let row = self.get(Table::Launch, &place(client, job, key), true).await?;
        row.as_ref().map(|row| read(key, row)).transpose()
    }

    /// Writes a job as [`Self::write_job`] does, by a call with an idempotency key. `Refused` also when the idempotency key was used.
    ///
    /// # Errors
    /// As [`Self::write_job`].
    pub async fn write_job_once(
        &self,
        job: &Job,
        seen: Option<&JobRow>,
        owed: &[OutboxEntry],
        change: Option<&Change>,
        made: &MadeLaunches,
    ) -> Result<Write> {
        let mut items = self.writes_of_job(job, seen, owed, change).await?;
        items.push(self.put_new_item_of(Table::Launch, row(&job.client, &job.id, made))?);
        self.transact(Table::Jobs, items).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_stored_form_of_launches_that_a_call_made_is_pinned() {
        let (client, job) = ("acme".parse().unwrap(), "nightly".parse().unwrap());
        let second = |second| DateTime::from_timestamp(second, 0).unwrap();
        let made = MadeLaunches {
            call: CallKey { key: KeyHash::of("once"), said: KeyHash::of("{}") },
            revision: 4,
            launches: vec![
                (second(1_795_262_400), Some("paused".to_owned())),
                (second(1_795_263_000), Some("expired".to_owned())),
            ],
            next_from: Some(second(1_795_263_600)),
            at: DateTime::from_timestamp_millis(1_795_266_000_123).unwrap(),
        };
        let attributes = row(&client, &job, &made).into_attributes();
        let pinned = HashMap::from([
            ("pk".to_owned(), text("TRIGGERED|acme|nightly")),
            ("sk".to_owned(), text(format!("backfill|{}", KeyHash::of("once").as_str()))),
            ("said".to_owned(), text(KeyHash::of("{}").as_str())),
            ("rev".to_owned(), number(4)),
            (
                "launch_s".to_owned(),
                AttributeValue::L(vec![number(1_795_262_400_i64), number(1_795_263_000_i64)]),
            ),
            ("missed".to_owned(), AttributeValue::L(vec![text("paused"), text("expired")])),
            ("next_ms".to_owned(), number(1_795_263_600_000_i64)),
            ("made_at".to_owned(), number(1_795_266_000_123_i64)),
            ("expires_at".to_owned(), number(1_795_266_000 + 86_400)),
        ]);
        assert_eq!(attributes, pinned);
        assert_eq!(read(&made.call.key, &attributes).unwrap(), made);
        let mut torn = attributes;
        torn.insert("missed".to_owned(), AttributeValue::L(vec![text("paused")]));
        assert!(read(&made.call.key, &torn).is_err(), "nobody knows of which launch that is");
        let all = MadeLaunches { launches: vec![(second(1_795_262_400), None)], next_from: None, ..made };
        let attributes = row(&client, &job, &all).into_attributes();
        assert!(!attributes.contains_key("missed") && !attributes.contains_key("next_ms"));
        assert_eq!(read(&all.call.key, &attributes).unwrap(), all);
    }
}
