//! How throttled events have ended: rows by blocks of event numbers.
//!
//! A compaction writes one row for each block that its events are of: `of<block>.<group>.<compaction>` when one of them did not
//! succeed, `os<block>.<group>.<compaction>` when all did. So a page of events reads the rows of its blocks, and a search for
//! what did not succeed passes over the rest. Before, a compaction was one row, `o<group>.<compaction>`.

use std::collections::BTreeMap;
use std::ops::Range;

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::limits::PACK_EVENTS;
use tidegate_domain::slots::{Ended, Outcome};

use super::{HistoryOf, HistoryRow, partition, read};
use crate::item::{Key, Row, text};
use crate::rows::{Query, Sorted};
use crate::slots::outcomes;
use crate::tables::Table;
use crate::{Page, Result, Store};

/// Events with numbers beside each other whose outcomes are kept in rows of their own.
///
/// A compaction has some 40 outcomes, mostly of neighbours: of smaller blocks it would touch more, and cost more writes, where
/// many slot groups share a small run. Of larger ones each page would read more.
pub const EVENTS_PER_BLOCK: u32 = 512;
const _: () = assert!(PACK_EVENTS <= EVENTS_PER_BLOCK as usize);

/// Rows that are read at once by whoever looks for events that did not succeed.
const ROWS_PER_SEARCH: i32 = 100;

/// What the sort keys of all rows with outcomes begin with.
const ENDS: &str = "o";
/// The same of rows in which all events succeeded.
const SUCCEEDED: &str = "os";
/// The same of rows in which one did not.
const UNSUCCESSFUL: &str = "of";

/// The block that an event is in.
fn block_of(index: u32) -> u32 {
    index / EVENTS_PER_BLOCK
}

/// Where the rows of some blocks lie, of all groups. `/` is the character behind `.`.
fn of_blocks(kind: &str, first: u32, last: u32) -> Sorted {
    Sorted::Between(format!("{kind}{first:07}."), format!("{kind}{last:07}/"))
}

/// Where the rows of earlier versions lie: the group follows at once. `:` is the character behind `9`.
fn of_earlier_versions() -> Sorted {
    Sorted::Between(format!("{ENDS}0"), format!("{ENDS}:"))
}

/// The first event of the block that a row in which one did not succeed is of.
fn first_of_block(sort_key: &str) -> u32 {
    let block =
        sort_key.strip_prefix(UNSUCCESSFUL).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    block.unwrap_or_default().saturating_mul(EVENTS_PER_BLOCK)
}

/// The rows of a compaction: their sort keys, and which ends they have.
fn rows_of(group: u32, compaction: u64, ends: &[Ended]) -> Vec<(String, Vec<Ended>)> {
    let mut blocks: BTreeMap<u32, Vec<Ended>> = BTreeMap::new();
    for ended in ends {
        blocks.entry(block_of(ended.index)).or_default().push(*ended);
    }
    let row = |(block, ends): (u32, Vec<Ended>)| {
        let all_succeeded = ends.iter().all(|ended| ended.outcome == Outcome::Succeeded);
        let kind = if all_succeeded { SUCCEEDED } else { UNSUCCESSFUL };
        (format!("{kind}{block:07}.{group:04}.{compaction:010}"), ends)
    };
    blocks.into_iter().map(row).collect()
}

impl Store {
    /// Keeps compaction number `compaction` of slot group `group`: the outcomes of events of one pack, for so many days, and at
    /// least [`HISTORY_DAYS`](tidegate_domain::limits::HISTORY_DAYS), from the instant that is given: a repair goes by them.
    /// Repeating it, with the same outcomes, changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer. Some rows may be written then; the call may be
    /// repeated.
    pub async fn keep_outcomes(
        &self,
        client: &ClientId,
        of: &HistoryOf,
        (group, compaction): (u32, u64),
        ends: &[Ended],
        (now, kept): (DateTime<Utc>, HistoryDays),
    ) -> Result<()> {
        let row = |(sort_key, ends): (String, Vec<Ended>)| {
            Row::new(&Key::new(partition(client, of), sort_key))
                .with("packed", text(outcomes::encode_all(&ends)))
                .expiring(kept.at_least_default().from(now))
        };
        let mut rows: Vec<Row> = rows_of(group, compaction, ends).into_iter().map(row).collect();
        if rows.len() > 1 {
            return self.put_all(rows.into_iter().map(|row| (Table::Events, row)).collect()).await;
        }
        match rows.pop() {
            Some(row) => self.put(Table::Events, row).await,
            None => Ok(()),
        }
    }

    /// How some events of a history of `count` events have ended, and others of their blocks. Read consistently. Rows that
    /// cannot be read are among the `unreadable` ones.
    ///
    /// What is read is bounded by the blocks, but for runs that an earlier version has counted outcomes of: of these all
    /// rows are read.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn ends(
        &self,
        client: &ClientId,
        of: &HistoryOf,
        count: u32,
        events: Range<u32>,
    ) -> Result<Page<HistoryRow>> {
        let (first, last) = (block_of(events.start), block_of(events.end.saturating_sub(1)));
        let places = match block_of(count.saturating_sub(1)) {
            0 => vec![Sorted::Prefix(ENDS.to_owned())],
            _ => vec![
                of_blocks(SUCCEEDED, first, last),
                of_blocks(UNSUCCESSFUL, first, last),
                of_earlier_versions(),
            ],
        };
        let partition = partition(client, of);
        self.all_in(places.into_iter().map(|sorted| (partition.clone(), sorted))).await
    }

    /// How events have ended as earlier versions wrote it: of all events of a history, in no order.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer.
    pub async fn ends_of_earlier_versions(
        &self,
        client: &ClientId,
        of: &HistoryOf,
    ) -> Result<Page<HistoryRow>> {
        self.all_of_key(partition(client, of), of_earlier_versions()).await
    }

    /// A page of rows in which an event did not succeed, by block, from the block of event `from` on: the first when `after`
    /// is `None`, else what follows a page whose `next` it was. Read consistently. A row has events of one block, and those
    /// of them that succeeded too. Beside the page: all events before this one were on it or on earlier ones, since its last
    /// block may go on with the next page.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn unsuccessful(
        &self,
        client: &ClientId,
        of: &HistoryOf,
        from: u32,
        after: Option<String>,
    ) -> Result<(Page<HistoryRow>, u32)> {
        let query = Query {
            sorted: of_blocks(UNSUCCESSFUL, block_of(from), block_of(u32::MAX)),
            limit: Some(ROWS_PER_SEARCH),
            consistent: true,
            after,
            ..Query::of(Table::Events, partition(client, of))
        };
        let page = self.query(query).await?.read(Table::Events, read);
        let read_to = page.next.as_deref().map_or(u32::MAX, first_of_block);
        Ok((page, read_to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(index: u32, outcome: Outcome) -> Ended {
        Ended { index, outcome, attempts: 1 }
    }

    #[test]
    fn a_compaction_is_a_row_for_each_block_and_the_same_ones_again() {
        let ends = [
            ended(511, Outcome::Succeeded),
            ended(512, Outcome::Succeeded),
            ended(999_999, Outcome::Dead),
            ended(510, Outcome::Succeeded),
            ended(999_998, Outcome::Succeeded),
        ];
        let rows = rows_of(7, 12, &ends);
        let keys: Vec<(&str, Vec<u32>)> = rows
            .iter()
            .map(|(key, ends)| (key.as_str(), ends.iter().map(|ended| ended.index).collect()))
            .collect();
        assert_eq!(
            keys,
            [
                ("os0000000.0007.0000000012", vec![511, 510]),
                ("os0000001.0007.0000000012", vec![512]),
                ("of0001953.0007.0000000012", vec![999_999, 999_998]),
            ]
        );
        assert_eq!(rows_of(7, 12, &ends), rows);
        assert!(rows_of(7, 12, &[]).is_empty());
    }

    #[test]
    fn what_is_asked_for_is_where_the_rows_are() {
        let lies_in = |sorted: &Sorted, key: &str| match sorted {
            Sorted::Between(first, last) => first.as_str() <= key && key <= last.as_str(),
            Sorted::All | Sorted::Prefix(_) => false,
        };
        let earlier = of_earlier_versions();
        assert!(lies_in(&earlier, "o0000.0000000001") && lies_in(&earlier, "o9999.1795262400000"));
        for outcome in [Outcome::Succeeded, Outcome::Failed] {
            let kind = if outcome == Outcome::Succeeded { SUCCEEDED } else { UNSUCCESSFUL };
            for (index, is_asked_for) in [(1_023, false), (1_024, true), (2_047, true), (2_048, false)] {
                let rows = rows_of(9_999, 1_795_262_400_000, &[ended(index, outcome)]);
                let (key, _) = rows.first().unwrap();
                assert_eq!(lies_in(&of_blocks(kind, 2, 3), key), is_asked_for, "{key}");
                assert!(!lies_in(&earlier, key), "{key}");
                if kind == UNSUCCESSFUL {
                    assert_eq!(first_of_block(key), index / EVENTS_PER_BLOCK * EVENTS_PER_BLOCK, "{key}");
                }
            }
        }
    }
}
