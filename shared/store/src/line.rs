//! A policy's waiting line: an entry per run that has events not yet granted, ordered by priority, then launch time.
//!
//! Invariant: every index below `cursor` was granted to exactly one slot group; the row remembers the last grant of
//! each group until the group has put it in place, so a crash between the two rows loses nothing.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::limits::{GRANT_EVENTS, SLOTS_PER_GROUP};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted, Update, Updated};
use crate::slots::GroupKey;
use crate::tables::Table;
use crate::{Page, Result, Store, Write};

/// The priority of every entry, until clients may choose one: 0 is served first.
const PRIORITY: u8 = 5;

/// An entry of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineEntry {
    /// The run that waits.
    pub run: RunId,
    /// Its place: what the line is ordered by.
    pub place: String,
    /// How many events the run has.
    pub count: u32,
    /// The first event that no group has.
    pub cursor: u32,
    /// The groups that took a range of it.
    pub groups: Vec<u32>,
}

impl LineEntry {
    /// Whether all its events are with slot groups.
    pub fn is_exhausted(&self) -> bool {
        self.cursor >= self.count
    }
}

/// What came of the attempt to take a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The range `start..end` belongs to the group. `last` when it is the run's last.
    Taken {
        /// First index.
        start: u32,
        /// Past the last index.
        end: u32,
        /// Nothing is left in the entry.
        last: bool,
    },
    /// The entry is gone or has nothing left.
    Empty,
}

fn partition(client: &ClientId, policy: &PolicyId) -> String {
    format!("{client}|{policy}|line")
}

fn place(run: &RunId) -> String {
    format!("{PRIORITY}|{:012}|{run}", run.launch_at().timestamp())
}

/// A part of a run that a slot group gave back: an entry of its own beside the run's. No grant gives back twice.
pub(crate) fn returned_row(key: &GroupKey, grant: u64, run: &RunId, (next, end): (u32, u32)) -> Row {
    let own = place(run);
    let (head, tail) = own.rsplit_once('|').unwrap_or_default();
    let place = format!("{head}|+{:04}.{grant:010}|{tail}", key.group);
    Row::new(&Key::new(partition(&key.client, &key.policy), place))
        .with("run", text(run.to_string()))
        .with("n", number(end))
        .with("cur", number(next))
}

pub(crate) fn entry_row(client: &ClientId, policy: &PolicyId, run: &RunId, count: u32) -> Row {
    Row::new(&Key::new(partition(client, policy), place(run)))
        .with("run", text(run.to_string()))
        .with("n", number(count))
        .with("cur", number(0))
}

fn read(row: &Attributes) -> Result<LineEntry> {
    let item = Item::new(Table::Policies, row);
    Ok(LineEntry {
        run: item.id("run")?,
        place: item.text("sk")?.to_owned(),
        count: item.number("n")?,
        cursor: item.number("cur")?,
        groups: item.names().filter_map(|n| n.strip_prefix('g')?.parse().ok()).collect(),
    })
}

/// The range that the entry's row says a grant has taken.
fn taken_before(row: &Attributes, group: u32, grant: u64) -> Result<Option<Take>> {
    let item = Item::new(Table::Policies, row);
    if item.find_number(&format!("g{group}"))? != Some(grant) {
        return Ok(None);
    }
    let (start, end) = (item.number(&format!("a{group}"))?, item.number(&format!("b{group}"))?);
    let last = item.number::<u32>("cur")? >= item.number("n")?;
    Ok(Some(Take::Taken { start, end, last }))
}

impl Store {
    /// The first entries of the line that are due at `now`, read consistently. Exhausted ones are among them.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn line_head(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
        limit: i32,
    ) -> Result<Vec<LineEntry>> {
        let last = format!("{PRIORITY}|{:012}|~", now.timestamp());
        let query = Query {
            sorted: Sorted::Between(format!("{PRIORITY}|"), last),
            limit: Some(limit),
            consistent: true,
            ..Query::of(Table::Policies, partition(client, policy))
        };
        self.query(query).await?.rows.iter().map(read).collect()
    }

    /// One entry by its place, read consistently.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn line_entry(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        entry_place: &str,
    ) -> Result<Option<LineEntry>> {
        let key = Key::new(partition(client, policy), entry_place);
        self.get(Table::Policies, &key, true).await?.as_ref().map(read).transpose()
    }

    /// A page of all entries of the line, due or not.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn line(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        after: Option<String>,
    ) -> Result<Page<LineEntry>> {
        let query =
            Query { consistent: true, after, ..Query::of(Table::Policies, partition(client, policy)) };
        let page = self.query(query).await?;
        Ok(Page { rows: page.rows.iter().map(read).collect::<Result<_>>()?, next: page.next })
    }

    /// Takes events of an entry for slot group `group`: one of `parts` equal parts of what is left, but at most
    /// [`GRANT_EVENTS`] and no less than a group has slots. Repeating it with the same `grant` number answers with the
    /// same range.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn take_range(
        &self,
        (client, policy, group): (&ClientId, &PolicyId, u32),
        entry_place: &str,
        grant: u64,
        parts: u32,
    ) -> Result<Take> {
        let key = Key::new(partition(client, policy), entry_place);
        let Some(row) = self.get(Table::Policies, &key, true).await? else { return Ok(Take::Empty) };
        if let Some(taken) = taken_before(&row, group, grant)? {
            return Ok(taken);
        }
        let item = Item::new(Table::Policies, &row);
        let (cursor, count): (u32, u32) = (item.number("cur")?, item.number("n")?);
        let fair = count.saturating_sub(cursor).div_ceil(parts.max(1));
        let end = count.min(cursor.saturating_add(fair.clamp(SLOTS_PER_GROUP, GRANT_EVENTS)));
        if cursor >= end {
            return Ok(Take::Empty);
        }
        let changes = format!("SET cur = :end, g{group} = :grant, a{group} = :start, b{group} = :end");
        let update = Update::new(Table::Policies, key, changes)
            .when("cur = :start")
            .value(":start", number(cursor))
            .value(":end", number(end))
            .value(":grant", number(grant));
        Ok(match self.update(update).await? {
            Updated::Done(_) => Take::Taken { start: cursor, end, last: end == count },
            // Another call for the same grant, or a repetition of ours whose reply was lost, may have been faster.
            // Otherwise another group moved the cursor: the caller's next round reads it again.
            Updated::Refused(row) => match row {
                Some(row) => taken_before(&row, group, grant)?.unwrap_or(Take::Empty),
                None => Take::Empty,
            },
        })
    }

    /// Removes an entry of which nothing is left.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn remove_exhausted(&self, client: &ClientId, policy: &PolicyId, place: &str) -> Result<Write> {
        let key = Key::new(partition(client, policy), place);
        self.remove_when(Table::Policies, &key, "cur >= n", Attributes::new()).await
    }

    /// Removes the entries of a run that was cancelled. What its groups have is theirs to drop.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn remove_from_line(&self, client: &ClientId, policy: &PolicyId, run: &RunId) -> Result<()> {
        let partition = partition(client, policy);
        self.remove(Table::Policies, &Key::new(&*partition, place(run))).await?;
        let returned = Sorted::Prefix(format!("{PRIORITY}|{:012}|+", run.launch_at().timestamp()));
        let query = Query { sorted: returned, consistent: true, ..Query::of(Table::Policies, &*partition) };
        for row in self.query(query).await?.rows {
            let entry = read(&row)?;
            if entry.run == *run {
                self.remove(Table::Policies, &Key::new(&*partition, entry.place)).await?;
            }
        }
        Ok(())
    }
}
