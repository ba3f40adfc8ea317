//! Outcomes of a large run, counted in parts.
//!
//! A compaction counts once: a row remembers the last one of each slot group. With hundreds of groups that would be a row of
//! several write units, so each few groups count in a row of their own. Its counts only rise, and the run's row is told
//! them after each compaction: whoever tells an older sum is refused, and whoever died before telling it is followed by
//! another, since the compaction is not over yet.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::limits::{EVENTS_PER_RUN, HISTORY_DAYS};
use tidegate_domain::time::{days, shifted};

use super::{Added, Tally, key, list_key, read};
use crate::item::{Attributes, Item, Key, number, text};
use crate::rows::{Update, Updated};
use crate::tables::{EXPIRES_AT, Table};
use crate::{Result, Store};

/// Digits of the first number of a sum: of two sums of a part, the later one is the greater text.
const SUM_DIGITS: usize = 7;
const _: () = assert!(EVENTS_PER_RUN < 10_u32.pow(SUM_DIGITS as u32));

/// What the names of sums begin with, in a run's row; the number of the part follows.
const SUM: char = 't';

/// The partition of what is counted in parts of a job's runs.
pub(crate) fn partition(client: &ClientId, run: &RunId) -> String {
    format!("{client}|{}|parts", run.job())
}

fn part_key(client: &ClientId, run: &RunId, part: u32) -> Key {
    Key::new(partition(client, run), format!("{}|{part:04}", list_key(run)))
}

/// Counts the outcomes of a compaction, beside what else is set.
pub(super) fn count_once(key: Key, more: &str, (group, flush): (u32, u64), tally: Tally) -> Update {
    let adds = "ADD succeeded :succeeded, failed :failed, expired :expired, dead :dead";
    Update::new(Table::Runs, key, format!("SET q{group} = :flush, {more} {adds}"))
        .value(":flush", number(flush))
        .value(":succeeded", number(tally.succeeded))
        .value(":failed", number(tally.failed))
        .value(":expired", number(tally.expired))
        .value(":dead", number(tally.dead))
}

/// The condition under which they are not counted yet.
pub(super) fn is_not_counted(group: u32) -> String {
    format!("(attribute_not_exists(q{group}) OR q{group} < :flush)")
}

fn sum_of(row: &Attributes) -> Result<String> {
    let item = Item::new(Table::Runs, row);
    let count = |name| item.number_or::<u32>(name, 0);
    let (succeeded, failed) = (count("succeeded")?, count("failed")?);
    let (expired, dead) = (count("expired")?, count("dead")?);
    let all = [succeeded, failed, expired, dead].into_iter().fold(0_u32, u32::saturating_add);
    Ok(format!("{all:0SUM_DIGITS$}.{failed}.{expired}.{dead}"))
}

/// Whether an attribute of a run's row says what a slot group, or a part, has counted: `q<group>` or `t<part>`.
pub(crate) fn is_count(name: &str) -> bool {
    let number = name.strip_prefix(['q', SUM]);
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The sums of its parts that a run's row knows.
pub(super) fn sum_in(item: Item<'_>) -> Result<Vec<Tally>> {
    let sums = item.names().filter(|name| name.starts_with(SUM) && is_count(name));
    sums.map(|name| {
        let sum = item.text(name)?;
        let numbers: Vec<u32> = sum.split('.').filter_map(|number| number.parse().ok()).collect();
        let [all, failed, expired, dead] = numbers[..] else {
            return Err(item.corrupt(format!("'{name}' is {sum:?}, which is no sum of a part")));
        };
        let rest = [failed, expired, dead].into_iter().fold(all, u32::saturating_sub);
        Ok(Tally { succeeded: rest, failed, expired, dead, ..Tally::default() })
    })
    .collect()
}

impl Store {
    /// Counts outcomes in the part of their group, and tells the run's row the part's sum.
    pub(super) async fn add_to_part(
        &self,
        client: &ClientId,
        run: &RunId,
        (part, group, flush): (u32, u32, u64),
        tally: Tally,
        now: DateTime<Utc>,
    ) -> Result<Added> {
        let expires_at = shifted(now.max(run.launch_at()), days(HISTORY_DAYS));
        let expires = format!("{EXPIRES_AT} = :expires");
        let count = count_once(part_key(client, run, part), &expires, (group, flush), tally)
            .when(is_not_counted(group))
            .value(":expires", number(expires_at.timestamp()));
        let (row, counted) = match self.update(count).await? {
            Updated::Done(row) => (row, true),
            Updated::Refused(Some(row)) => (row, false),
            // It has expired meanwhile, and its run with it.
            Updated::Refused(None) => return Ok(Added { row: None, counted: false }),
        };
        let changes = format!("SET {SUM}{part} = :sum, last_at = :now");
        let tell = Update::new(Table::Runs, key(client, run), changes)
            .when(format!(
                "attribute_exists(pk) AND (attribute_not_exists({SUM}{part}) OR {SUM}{part} < :sum)"
            ))
            .value(":sum", text(sum_of(&row)?))
            .value(":now", number(now.timestamp_millis()));
        let row = match self.update(tell).await? {
            Updated::Done(row) => Some(row),
            Updated::Refused(row) => row,
        };
        Ok(Added { row: row.and_then(|row| read(&row).ok()), counted })
    }
}
