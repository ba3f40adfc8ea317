//! The partitions of the index: where a row lies, and what one query of the emitter reads.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::limits::OUTBOX_SHARDS;
use tidegate_domain::shard::shard_of;
use tidegate_domain::time::{AtMinute, Cadence, Minutes, ShardRange, ShardedKey, Window};

use super::{Child, Part};
use crate::Spread;
use crate::item::Key;
use crate::rows::{Query, Sorted};
use crate::tables::Table;

/// One query of the emitter. What each finds are [`IndexRow`](super::IndexRow)s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shard {
    /// Children of a LaunchExpression in a zone.
    Expression {
        /// The zone whose wall clock the LaunchExpression is of.
        zone: Tz,
        /// The LaunchExpression and its minutes.
        range: ShardRange,
        /// Its number: 0 up to, not including, the number of shards that the LaunchExpression has in the zone.
        shard: u32,
    },
    /// Instants of some minutes, which lie in one partition.
    Minutes {
        /// The first minute that is read.
        first: AtMinute,
        /// The last minute that is read, in the same ten minutes.
        last: AtMinute,
        /// Its number: 0 up to, not including, [`Spread::at_shards`].
        shard: u32,
    },
}

impl Shard {
    /// The reads that find every instant of a window. A long window takes a tenth of the reads that its minutes would.
    pub fn instants(window: Window, spread: Spread) -> Vec<Self> {
        let minutes: Vec<AtMinute> = window.at_minutes().collect();
        let parts = minutes.chunk_by(|a, b| ten_minutes(*a) == ten_minutes(*b));
        let ends = parts.filter_map(|part| Some((*part.first()?, *part.last()?)));
        ends.flat_map(|(first, last)| {
            (0..spread.at_shards).map(move |shard| Self::Minutes { first, last, shard })
        })
        .collect()
    }

    /// What it is known by: its partition and its first sort key. A window's shards have different names.
    pub fn name(&self) -> String {
        let first = self.range().map(|(first, _)| first);
        format!("{} {}", self.partition(), first.unwrap_or_default())
    }

    /// Its partition key.
    pub fn partition(&self) -> String {
        match self {
            Self::Expression { zone, range, shard } => {
                expression_partition(*zone, range.launch_expression, *shard)
            }
            Self::Minutes { first, shard, .. } => minute_partition(*first, *shard),
        }
    }

    /// The first and the last sort key that it reads, both included; `None`: all of its partition.
    pub fn range(&self) -> Option<(String, String)> {
        match self {
            Self::Expression { range, .. } => match &range.minutes {
                Minutes::Any => None,
                Minutes::Range(minutes) => {
                    Some((format!("{:02}|", minutes.start()), format!("{:02}|~", minutes.end())))
                }
            },
            Self::Minutes { first, last, .. } => {
                Some((format!("{}|", own_digit(*first)), format!("{}|~", own_digit(*last))))
            }
        }
    }
}

/// The query of a partition between two sort keys.
pub(super) fn query(partition: String, range: Option<(String, String)>, after: Option<String>) -> Query {
    let sorted = range.map_or(Sorted::All, |(first, last)| Sorted::Between(first, last));
    Query { sorted, after, ..Query::of(Table::Launch, partition) }
}

/// The ten minutes that share partitions, as `2026-11-21T11:2`, and the minute's own digit, which begins the sort key.
fn ten_minutes(minute: AtMinute) -> String {
    let mut text = minute.to_string();
    text.pop();
    text
}

fn own_digit(minute: AtMinute) -> char {
    minute.to_string().pop().unwrap_or_default()
}

fn expression_partition(zone: Tz, expression: impl std::fmt::Display, shard: u32) -> String {
    format!("{}|{expression}|{shard:02}", zone.name())
}

fn minute_partition(minute: AtMinute, shard: u32) -> String {
    format!("AT|{}|{shard:02}", ten_minutes(minute))
}

/// The partition of a shard of a minute, and what the sort keys of a client's rows in that minute begin with.
pub(crate) fn place_in_minute(client: &ClientId, minute: AtMinute, shard: u32) -> (String, String) {
    (minute_partition(minute, shard), format!("{}|{client}|", own_digit(minute)))
}

/// The shard, 0 up to, not including, [`Spread::at_shards`], of the minute that an instant's row lies in.
pub fn at_shard(client: &ClientId, job: &JobId, spread: Spread) -> u32 {
    match job.one_time_shard() {
        Some(place) => place.shard,
        None => shard_of(&format!("{client}|{job}"), spread.at_shards),
    }
}

pub(super) fn at_key(client: &ClientId, job: &JobId, launch_at: DateTime<Utc>, spread: Spread) -> Key {
    let minute = AtMinute::of(launch_at);
    let partition = minute_partition(minute, at_shard(client, job, spread));
    Key::new(partition, format!("{}|{client}|{job}", own_digit(minute)))
}

pub(super) fn child_key(client: &ClientId, job: &JobId, zone: Tz, place: &ShardedKey) -> Key {
    Key::new(
        expression_partition(zone, place.key.launch_expression(), place.shard),
        format!("{}|{client}|{job}", place.key.sort_prefix()),
    )
}

/// The key of a debt: one row for the first launches of a job, one for each launch that was triggered, and one for some that are made
/// after all.
pub(super) fn owed_key(child: &Child) -> Key {
    let key = outbox_key(&child.client, &child.job);
    match (&child.part, &child.cadence) {
        (Part::Triggered, Cadence::At(instants)) => {
            Key::new(key.pk, format!("{:012}|{}", instants.first().timestamp(), key.sk))
        }
        (Part::Backfilled, Cadence::At(instants)) => {
            let first = instants.first().timestamp();
            Key::new(key.pk, format!("{first:012}|{:010}|{}", child.revision, key.sk))
        }
        _ => key,
    }
}

pub(super) fn outbox_key(client: &ClientId, job: &JobId) -> Key {
    let name = format!("{client}|{job}");
    Key::new(format!("OUTBOX|{}", shard_of(&name, OUTBOX_SHARDS)), name)
}
