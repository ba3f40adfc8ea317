//! A policy's waiting line: an entry per pack that has events not yet granted, ordered by priority, lane, then launch time.
//!
//! A run of many events under a policy of many slot groups waits in several entries, each with a part of its events: an
//! entry remembers a range of each group that took of it, and with hundreds its row would cost many units a write.
//!
//! Invariant: every index below `cursor` was granted to exactly one slot group; the row remembers the last grant of
//! each group until the group has put it in place, so a crash between the two rows loses nothing.

use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

use tidegate_domain::fair::Rank;
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, JobId, PolicyId, RunId};
use tidegate_domain::limits::{GRANT_EVENTS, MAX_PRIORITY, WRITE_ROUNDS};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{PackId, Singles};
use tidegate_domain::retry::Tries;
use tidegate_domain::slots::{GroupKey, LeaseId, PackRef};
use tidegate_domain::time::ceil_second;

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::journal::Entry;
use crate::rows::{Query, Sorted, Update, Updated};
use crate::runs::{Tally, left_out_update, row as run_row};
use crate::tables::Table;
use crate::{Create, Page, Result, Store, StoreError, Write};

/// Stands before the number of a part, in a key.
const PART: char = '.';

/// Entries that are looked at to find one that waits; with more, one will.
const WAITING_LOOK: i32 = 16;

/// Queries that look for the head of a line: each passes over a page of entries, or over what is not due of a lane.
const HEAD_QUERIES: usize = 16;

/// An entry of the line.
///
/// Invariant: the events below `cursor` are with slot groups, each with one; those from it up to `count` wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineEntry {
    /// The pack that waits.
    pub pack: PackId,
    /// When the first of its events is due, in whole seconds.
    pub launch_at: DateTime<Utc>,
    /// The row's sort key: what the line is ordered by. `<priority>|<launch second>|<pack>`, with `.<lane>` behind the
    /// priority where it has one, and the part before the pack where it is one.
    pub line_key: String,
    /// The number behind its last event: how many events the pack has, or the end of its part.
    pub count: u32,
    /// The number of the first event that no group has.
    pub cursor: u32,
    /// The numbers of the slot groups that took a range of it.
    pub groups: Vec<u32>,
    /// What its job's overlap rule still has to say; `None` when it may go.
    pub overlap: Option<Pending>,
}

/// What an overlap rule still has to say of a run in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Whether it is skipped, because an earlier run of its job is not finished.
    Skip,
    /// Whether it waits for that one, or is skipped because another waits already.
    BufferOne,
    /// It waits for the end of the runs before it.
    Buffered,
}

impl Pending {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Skip => "s",
            Self::BufferOne => "b",
            Self::Buffered => "w",
        }
    }

    /// What is to be said of a run that is due, by the rule of its job.
    pub fn of(overlap: Overlap) -> Option<Self> {
        match overlap {
            Overlap::Allow => None,
            Overlap::Skip => Some(Self::Skip),
            Overlap::BufferOne => Some(Self::BufferOne),
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        [Self::Skip, Self::BufferOne, Self::Buffered].into_iter().find(|pending| pending.code() == code)
    }
}

impl LineEntry {
    /// Its priority and lane: the first part of its key. The last priority where that cannot be read.
    pub fn rank(&self) -> Rank {
        rank_of(&self.line_key).unwrap_or(Rank::of_all(MAX_PRIORITY))
    }

    /// Which part of its run it is, from 0; `None` where it is the whole, or was given back by a slot group.
    pub fn part(&self) -> Option<u32> {
        part_of(&self.line_key).map(|(part, _)| part)
    }

    /// The job of its event, when that is sidelined: it is not due until the job drains.
    pub fn sidelined_job(&self) -> Option<JobId> {
        self.line_key.split('|').next()?.strip_prefix(SIDELINED)?.rsplit_once(' ')?.0.parse().ok()
    }

    /// How often its event was delivered before, when it is one that is sent again.
    pub fn tries(&self) -> Option<Tries> {
        tries_of_line_key(&self.line_key)
    }

    /// The run that waits; `None` for a pack of single events.
    pub fn run(&self) -> Option<&RunId> {
        match &self.pack {
            PackId::Run(run) => Some(run),
            PackId::Singles(_) => None,
        }
    }

    /// Whether all its events are with slot groups.
    pub fn is_exhausted(&self) -> bool {
        self.extent().is_exhausted()
    }

    /// How many of its events no slot group has.
    pub fn left(&self) -> u32 {
        self.count.saturating_sub(self.cursor)
    }

    fn extent(&self) -> Extent {
        Extent { cursor: self.cursor, count: self.count }
    }
}

/// How many runs have events in entries that no group has. Each event of a pack of single events is a run.
#[derive(Debug, Default)]
pub struct WaitingRuns {
    batches: BTreeSet<RunId>,
    singles: u32,
}

impl WaitingRuns {
    /// Counts those of an entry. A run whose events lie in several entries counts once; an exhausted entry counts none.
    pub fn add(&mut self, entry: &LineEntry) {
        match &entry.pack {
            _ if entry.is_exhausted() => {}
            PackId::Run(run) => drop(self.batches.insert(run.clone())),
            PackId::Singles(_) => {
                self.singles = self.singles.saturating_add(entry.left());
            }
        }
    }

    /// How many runs there are in the entries that were added.
    pub fn count(&self) -> u32 {
        self.singles.saturating_add(u32::try_from(self.batches.len()).unwrap_or(u32::MAX))
    }
}

/// How much a slot group takes of what is left of an entry: one event at the least, and no more than [`GRANT_EVENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    /// So many events.
    Exactly(u32),
    /// `cap` of every `of` events.
    Part {
        /// The group's share of the limit, in tokens.
        cap: u32,
        /// What that is a part of, in tokens: what all groups have that take of the entry, or twice that, so that each
        /// takes half of its part at a time; its own share where it is alone.
        of: u32,
        /// How many events it is at the least.
        least: u32,
        /// The nearest multiple of so many, where it is more: what is left of it then suffices for all slots, or is nothing.
        step: u32,
        /// How many events wait behind the entry that are served as it is: the part is of them as well, so that a group
        /// does not come back to the line for each of many small entries. All of the entry where less than `least` would
        /// be left of it.
        behind: u32,
    },
}

impl Portion {
    fn of(self, left: u32) -> u32 {
        let (events, least, step) = match self {
            Self::Exactly(events) => (events.into(), 1, 1),
            Self::Part { cap, of, least, step, behind } => {
                let part = u64::from(left.saturating_add(behind)) * u64::from(cap.max(1));
                let part = part.div_ceil(u64::from(of.max(cap).max(1)));
                let is_scrap = behind > 0 && part.saturating_add(least.into()) > left.into();
                (if is_scrap { left.into() } else { part }, least.clamp(1, GRANT_EVENTS), step)
            }
        };
        let events = u32::try_from(events).unwrap_or(GRANT_EVENTS).clamp(least, GRANT_EVENTS);
        // Of a scrap all is taken.
        let steps = [events.saturating_add(step / 2), GRANT_EVENTS].map(|events| events.checked_div(step));
        match steps {
            [Some(nearest), Some(most)] if events < left => nearest.min(most).saturating_mul(step).max(least),
            _ => events,
        }
    }
}

/// How far an entry is: its events from `cursor` up to `count` are with no slot group. `docs/states.md` draws what becomes of
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    cursor: u32,
    count: u32,
}

impl Extent {
    fn is_exhausted(self) -> bool {
        self.cursor >= self.count
    }

    /// After a group took its portion of what is left, but none from event `upto` on: an empty range where a paced run has
    /// nothing now. `None` when nothing is left.
    fn after_take(self, share: Portion, upto: u32) -> Option<Self> {
        let Self { cursor, count } = self;
        let left = count.checked_sub(cursor).filter(|left| *left > 0)?;
        let end = count.min(upto).min(cursor.saturating_add(share.of(left))).max(cursor);
        Some(Self { cursor: end, count })
    }

    /// After what is left was dropped. `None` when nothing is left.
    fn after_drop(self) -> Option<Self> {
        (!self.is_exhausted()).then_some(Self { cursor: self.count, ..self })
    }
}

/// The condition under which an entry may be removed: that it is exhausted, by its row.
const EXHAUSTED: &str = "cur >= n";

/// What came of the attempt to take a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The range `start..end` belongs to the group: an empty one where a paced run has nothing now.
    Taken {
        /// Number of its first event.
        start: u32,
        /// Number behind its last event.
        end: u32,
        /// Nothing is left in the entry: it can be removed.
        last: bool,
    },
    /// The entry is gone or has nothing left.
    Empty,
    /// Other groups were faster in each of `WRITE_ROUNDS` rounds: whoever finishes this refill must ask again.
    Lost,
}

pub(crate) fn partition(client: &ClientId, policy: &PolicyId) -> String {
    format!("{client}|{policy}|line")
}

pub(crate) fn line_key(pack: &PackId, rank: Rank, launch_at: DateTime<Utc>) -> String {
    format!("{rank}|{:012}|{pack}", launch_at.timestamp())
}

fn rank_of(line_key: &str) -> Option<Rank> {
    line_key.split('|').next()?.parse().ok()
}

/// Whether the entry under a key waits in a lane.
pub fn has_lane(line_key: &str) -> bool {
    rank_of(line_key).is_some_and(|rank| rank.lane.is_some())
}

/// What all keys behind those of a rank are greater than; `None` where there are none.
fn behind(Rank { priority, lane }: Rank) -> Option<String> {
    match lane {
        // '}' sorts behind '|', and before every letter of a priority.
        Some(lane) => Some(format!("{priority}.{lane}}}")),
        None if priority < MAX_PRIORITY => Some(format!("{}.", priority.saturating_add(1))),
        None => None,
    }
}

/// The key of a part of a pack, before that of the whole, which has the same priority and launch.
fn line_key_of_part(whole: &str, part: u32, first: u32) -> String {
    let (head, tail) = whole.rsplit_once('|').unwrap_or_default();
    format!("{head}|{PART}{part:03}.{first:07}|{tail}")
}

/// Which part of a pack has a key, and its first event.
fn part_of(line_key: &str) -> Option<(u32, u32)> {
    let (head, _pack) = line_key.rsplit_once('|')?;
    let (part, first) = head.rsplit_once('|')?.1.strip_prefix(PART)?.split_once('.')?;
    Some((part.parse().ok()?, first.parse().ok()?))
}

/// Whether the entry under a key has a part of a run.
pub fn is_part(line_key: &str) -> bool {
    part_of(line_key).is_some()
}

/// Whether event number `event` is the first of the entry under a key, as it was put into the line.
pub fn is_first(line_key: &str, event: u32) -> bool {
    event == part_of(line_key).map_or(0, |(_, first)| first)
}

/// Stands before the epoch of the repair that put an entry into the line again, in its key.
const PUT_BACK: &str = "+r";

/// The key of events that a repair puts into the line again, beside that of the whole. Each repair has an epoch of its own.
pub(crate) fn line_key_put_back(whole: &str, epoch: u64, first: u32) -> String {
    let (head, tail) = whole.rsplit_once('|').unwrap_or_default();
    format!("{head}|{PUT_BACK}{epoch:013}.{first:07}|{tail}")
}

/// Whether the entry under a key was put into the line by a repair.
pub fn is_put_back(line_key: &str) -> bool {
    line_key.split('|').nth(2).is_some_and(|part| part.starts_with(PUT_BACK))
}

/// When the events under a key of the line are due.
fn launch_of(line_key: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(line_key.split('|').nth(1)?.parse().ok()?, 0)
}

/// Stands before how often an event was delivered that is sent again, in the key of its entry.
const TRIED: &str = "+t";

/// How often an event was delivered, in a key or behind the id of a pack.
pub(crate) fn tries_text(Tries { made, failed, since_s }: Tries) -> String {
    format!("{made:03}.{failed:03}.{since_s:010}")
}

pub(crate) fn read_tries(text: &str) -> Option<Tries> {
    let mut numbers = text.split('.');
    let made = numbers.next()?.parse().ok()?;
    Some(Tries { made, failed: numbers.next()?.parse().ok()?, since_s: numbers.next()?.parse().ok()? })
}

/// How often the event of an entry was delivered before, by its key; `None`: never.
///
/// ```
/// use tidegate_store::line::tries_of_line_key;
///
/// let key = "5|001790000600|+t003.002.1790000000.0000.0000000017|nightly.3.1790000000";
/// assert_eq!(tries_of_line_key(key).map(|tries| (tries.made, tries.failed)), Some((3, 2)));
/// assert_eq!(tries_of_line_key("5|001790000000|nightly.3.1790000000"), None);
/// ```
pub fn tries_of_line_key(line_key: &str) -> Option<Tries> {
    read_tries(line_key.split('|').nth(2)?.strip_prefix(TRIED)?)
}

/// An event of a pack that goes back to the line, to be sent again at an instant, or once its job is sidelined no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    /// The pack that it is of.
    pub pack: PackId,
    /// The priority of the pack. What is sent again waits in no lane: it may be due long after what is behind it.
    pub priority: u8,
    /// How it was delivered so far.
    pub tries: Tries,
    /// When it may be sent again: in the line, in whole seconds, rounded up.
    pub due_at: DateTime<Utc>,
}

/// The entry of an event that goes back to the line. A lease ends once, so no two have the same key.
pub(crate) fn requeued_row(key: &GroupKey, lease: LeaseId, back: &Requeued) -> Row {
    let by = format!("{:04}.{:010}", key.group, lease.fence);
    sent_again_row((&key.client, &key.policy), lease.index, back, &by)
}

/// The entry of an event of a dead letter.
pub(crate) fn redriven_row(client: &ClientId, policy: &PolicyId, index: u32, back: &Requeued) -> Row {
    sent_again_row((client, policy), index, back, &format!("redriven.{index:07}"))
}

/// The entry of one event that is sent again. `by` tells its key from those of others.
fn sent_again_row(
    (client, policy): (&ClientId, &PolicyId),
    index: u32,
    Requeued { pack, priority, tries, due_at }: &Requeued,
    by: &str,
) -> Row {
    let (due_s, tries) = (ceil_second(*due_at), tries_text(*tries));
    let line_key = format!("{}|{due_s:012}|{TRIED}{tries}.{by}|{pack}", Rank::of_all(*priority));
    row_of_one((client, policy), line_key, pack, index)
}

/// An entry that has one event of a pack.
fn row_of_one((client, policy): (&ClientId, &PolicyId), line_key: String, pack: &PackId, index: u32) -> Row {
    Row::new(&Key::new(partition(client, policy), line_key))
        .with("pack", text(pack.to_string()))
        .with("n", number(index.saturating_add(1)))
        .with("cur", number(index))
}

/// Stands before the job of an event that is sidelined, in the key of its entry: behind every priority.
const SIDELINED: char = '~';

/// When the entry of an event is due that is sidelined: in no year that anybody launches in.
const NEVER_S: i64 = 253_402_300_799;

/// What the keys of the entries of events begin with whose job is sidelined.
fn sidelined_prefix(job: &JobId) -> String {
    // No id has a space, and none of another job begins with it.
    format!("{SIDELINED}{job} ")
}

/// The entry of an event that is sidelined: it is never due, and lies behind all that waits. `due_at` is when it launched.
pub(crate) fn sidelined_row(key: &GroupKey, (job, lease): (&JobId, LeaseId), at: &Requeued) -> Row {
    let Requeued { pack, priority, tries, due_at } = at;
    let by = format!("{:012}.{:04}.{:010}", due_at.timestamp(), key.group, lease.fence);
    let rank = format!("{}{priority}", sidelined_prefix(job));
    let line_key = format!("{rank}|{NEVER_S:012}|{TRIED}{}.{by}|{pack}", tries_text(*tries));
    row_of_one((&key.client, &key.policy), line_key, pack, lease.index)
}

/// The entry by which an event that was sidelined takes its place in the line again; `None` when the key of `seen` is none of
/// such a one. One that never failed is sent again for as long as a new one.
fn rejoining_row(
    (client, policy): (&ClientId, &PolicyId),
    seen: &LineEntry,
    due_at: DateTime<Utc>,
) -> Option<Row> {
    let mut parts = seen.line_key.split('|');
    let priority = parts.next()?.strip_prefix(SIDELINED)?.rsplit_once(' ')?.1.parse().ok()?;
    let by = parts.nth(1)?.splitn(4, '.').nth(3)?;
    let tries = seen.tries()?;
    let since_s = if tries.failed == 0 { due_at.timestamp() } else { tries.since_s };
    let back = Requeued { pack: seen.pack.clone(), priority, tries: Tries { since_s, ..tries }, due_at };
    Some(sent_again_row((client, policy), seen.cursor, &back, by))
}

/// Where an event waited for its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited {
    /// The policy.
    pub policy: PolicyId,
    /// The pack, among those of that policy.
    pub pack: PackId,
    /// The event's number in the pack, from 0.
    pub index: u32,
}

/// A part of a pack that a slot group gave back: an entry of its own beside the pack's. No grant gives back twice. Of an event
/// that was delivered before, its entry says so as before.
pub(crate) fn returned_row(
    key: &GroupKey,
    grant: u64,
    (pack, rank, launch_at): (&PackRef, Rank, DateTime<Utc>),
    (next, end): (u32, u32),
) -> Row {
    let PackRef { pack, tries, .. } = pack;
    let own = line_key(pack, rank, launch_at);
    let (head, tail) = own.rsplit_once('|').unwrap_or_default();
    let by = format!("{:04}.{grant:010}", key.group);
    let line_key = match tries {
        Some(tries) => format!("{head}|{TRIED}{}.returned.{by}|{tail}", tries_text(*tries)),
        None => format!("{head}|+{by}|{tail}"),
    };
    Row::new(&Key::new(partition(&key.client, &key.policy), line_key))
        .with("pack", text(pack.to_string()))
        .with("n", number(end))
        .with("cur", number(next))
}

/// The pack whose entry is under a key of the line.
///
/// ```
/// use tidegate_store::line::pack_of_line_key;
///
/// assert_eq!(pack_of_line_key("5|001790000000|nightly.3.1790000000")?.to_string(), "nightly.3.1790000000");
/// assert!(pack_of_line_key("nightly").is_err());
/// # Ok::<(), tidegate_store::StoreError>(())
/// ```
///
/// # Errors
/// `StoreError::Corrupt` when the text ends in no pack.
pub fn pack_of_line_key(line_key: &str) -> Result<PackId> {
    let pack = line_key.rsplit('|').next().unwrap_or_default();
    pack.parse().map_err(|e| StoreError::Corrupt {
        table: Table::Policies,
        key: line_key.to_owned(),
        reason: format!("no key of a line: {e}"),
    })
}

/// The entries of a run: one, or as many as it has parts.
fn entry_rows(occurrence: &Occurrence, policy: &PolicyId, parts: u32) -> Vec<Row> {
    let (pack, flow) = (PackId::Run(occurrence.run_id()), &occurrence.terms.flow);
    let whole = line_key(&pack, flow.rank(), occurrence.launch_at);
    let count = occurrence.terms.count.get();
    let entry = |line_key: String, first: u32, end: u32| {
        Row::new(&Key::new(partition(&occurrence.client, policy), line_key))
            .with("pack", text(pack.to_string()))
            .with("n", number(end))
            .with("cur", number(first))
            .with_some("ov", Pending::of(flow.overlap).map(|pending| text(pending.code())))
    };
    if parts <= 1 {
        return vec![entry(whole, 0, count)];
    }
    let first_of = |part: u32| u32::try_from(u64::from(count) * u64::from(part) / u64::from(parts));
    let part = |part: u32| {
        let (first, end) = (first_of(part).unwrap_or(count), first_of(part + 1).unwrap_or(count));
        entry(line_key_of_part(&whole, part, first), first, end)
    };
    (0..parts).map(part).collect()
}

pub(crate) fn singles_row(client: &ClientId, policy: &PolicyId, pack: &Singles) -> Row {
    let line_key = line_key(&PackId::Singles(pack.id), pack.id.kind.rank, pack.launch_at());
    Row::new(&Key::new(partition(client, policy), line_key))
        .with("pack", text(pack.id.to_string()))
        .with("n", number(pack.count()))
        .with("cur", number(0))
}

pub(crate) fn read(row: &Attributes) -> Result<LineEntry> {
    let item = Item::read(Table::Policies, row)?;
    Ok(LineEntry {
        pack: item.parsed("pack", item.text("pack")?)?,
        launch_at: launch_of(item.text("sk")?).ok_or_else(|| item.corrupt("'sk' is no key of a line"))?,
        line_key: item.text("sk")?.to_owned(),
        count: item.number("n")?,
        cursor: item.number("cur")?,
        groups: item.names().filter_map(|n| n.strip_prefix('g')?.parse().ok()).collect(),
        overlap: item.find_text("ov").and_then(Pending::from_code),
    })
}

/// How far an entry is, by its row.
fn extent(row: &Attributes) -> Result<Extent> {
    let item = Item::read(Table::Policies, row)?;
    Ok(Extent { cursor: item.number("cur")?, count: item.number("n")? })
}

/// What the entry's row says of a grant: the range that it has taken. Once a later grant of the group took of the entry,
/// nothing: what would be taken for an earlier one, which is over, no group would put in place.
fn taken_before(row: &Attributes, group: u32, grant: u64) -> Result<Option<Take>> {
    let item = Item::read(Table::Policies, row)?;
    match item.find_number::<u64>(&format!("g{group}"))? {
        Some(latest) if latest > grant => return Ok(Some(Take::Empty)),
        Some(latest) if latest == grant => {}
        _ => return Ok(None),
    }
    let (start, end) = (item.number(&format!("a{group}"))?, item.number(&format!("b{group}"))?);
    let last = item.number::<u32>("cur")? >= item.number("n")?;
    Ok(Some(Take::Taken { start, end, last }))
}

impl Store {
    /// Materialises an occurrence and puts it into its policy's waiting line, in `parts` entries (0 counts as 1): all
    /// or nothing. Repeating it changes nothing, also when the run has left the line long ago: the answer is `Exists`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn enqueue_run(
        &self,
        occurrence: &Occurrence,
        (policy, parts): (&PolicyId, u32),
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let row = run_row(occurrence, Tally::default(), now)?;
        let mut items = vec![self.put_new_item_of(Table::Runs, row)?];
        for entry in entry_rows(occurrence, policy, parts) {
            items.push(self.put_item_of(Table::Policies, entry)?);
        }
        Ok(match self.transact(Table::Runs, items).await? {
            Write::Done => self.noting(Create::Done, || Entry::launched(occurrence, now)),
            Write::Refused => Create::Exists,
        })
    }

    /// Whether something due at `now` waits in a line, as some replica has it. An entry that cannot be read counts as
    /// waiting.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn is_anything_waiting(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
    ) -> Result<bool> {
        let query = Query {
            sorted: Sorted::Between("0".to_owned(), SIDELINED.to_string()),
            limit: Some(WAITING_LOOK),
            ..Query::of(Table::Policies, partition(client, policy))
        };
        let page = self.query(query).await?;
        let waits = |row| read(row).map_or(true, |entry| entry.launch_at <= now && !entry.is_exhausted());
        Ok(page.next.is_some() || page.rows.iter().any(waits))
    }

    /// The first entries of the line that are due at `now`, at most `limit`, read consistently. Exhausted ones are
    /// among them. There is no next page.
    ///
    /// The line is sorted by priority, lane, then launch: an entry that is not due yet ends its lane.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn line_head(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
        limit: i32,
    ) -> Result<Page<LineEntry>> {
        let whole = (String::from("0."), Rank::of_all(MAX_PRIORITY));
        self.due_between((client, policy), whole, now, limit).await
    }

    /// The same of the entries of one priority that come after those of a rank. Nothing is read where none can.
    ///
    /// # Errors
    /// As [`Self::line_head`].
    pub async fn line_after(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        rank: Rank,
        now: DateTime<Utc>,
        limit: i32,
    ) -> Result<Page<LineEntry>> {
        match (rank.lane, behind(rank)) {
            (Some(_), Some(from)) => {
                let rest = (from, Rank::of_all(rank.priority));
                self.due_between((client, policy), rest, now, limit).await
            }
            _ => Ok(Page { rows: Vec::new(), next: None, unreadable: Vec::new() }),
        }
    }

    /// The first entries that are due from a key on, up to those of a rank.
    async fn due_between(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        (mut from, last): (String, Rank),
        now: DateTime<Utc>,
        limit: i32,
    ) -> Result<Page<LineEntry>> {
        // Ids of packs may begin with the highest character of all.
        let last = format!("{last}|{:012}|~~", now.timestamp());
        let (mut due, mut unreadable, mut after) = (Vec::new(), Vec::new(), None);
        for _ in 0..HEAD_QUERIES {
            let query = Query {
                sorted: Sorted::Between(from.clone(), last.clone()),
                limit: Some(limit),
                consistent: true,
                after,
                ..Query::of(Table::Policies, partition(client, policy))
            };
            let Page { rows: entries, next, unreadable: spoiled } =
                self.query(query).await?.read(Table::Policies, read);
            unreadable.extend(spoiled);
            // What is behind an entry of its lane that is not due is not due either.
            let waits = entries.last().filter(|last| last.launch_at > now).map(LineEntry::rank);
            due.extend(entries.into_iter().filter(|entry| entry.launch_at <= now));
            if next.is_none() || due.len() >= limit as usize {
                break;
            }
            (from, after) = match waits.map(behind) {
                Some(Some(behind)) => (behind, None),
                Some(None) => break,
                None => (from, next),
            };
        }
        due.truncate(limit.unsigned_abs() as usize);
        Ok(Page { rows: due, next: None, unreadable })
    }

    /// One entry by its key, read consistently; `None` when it left the line.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn line_entry(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        line_key: &str,
    ) -> Result<Option<LineEntry>> {
        let key = Key::new(partition(client, policy), line_key);
        self.get(Table::Policies, &key, true).await?.as_ref().map(read).transpose()
    }

    /// A page of all entries of the line, due or not, read consistently: as many as DynamoDB gives in one answer (1
    /// MB). The first when `after` is `None`, else what follows a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn line(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        after: Option<String>,
    ) -> Result<Page<LineEntry>> {
        let query =
            Query { consistent: true, after, ..Query::of(Table::Policies, partition(client, policy)) };
        Ok(self.query(query).await?.read(Table::Policies, read))
    }

    /// A page of the entries of the line, due or not, of at most `limit`, read eventually. The first when `after` is `None`, else what
    /// follows the entry with that key, whether it is still there or not.
    ///
    /// # Errors
    /// As [`Self::line`].
    pub async fn line_of(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        after: Option<String>,
        limit: i32,
    ) -> Result<Page<LineEntry>> {
        let of_line = Query::of(Table::Policies, partition(client, policy));
        let query = Query { after, limit: Some(limit), ..of_line };
        Ok(self.query(query).await?.read(Table::Policies, read))
    }

    /// The entries of events of a job under a policy that are sidelined, at most `limit`, read consistently.
    ///
    /// # Errors
    /// As [`Self::line`].
    pub async fn sidelined_of(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        job: &JobId,
        limit: i32,
    ) -> Result<Page<LineEntry>> {
        let query = Query {
            sorted: Sorted::Prefix(sidelined_prefix(job)),
            limit: Some(limit),
            consistent: true,
            ..Query::of(Table::Policies, partition(client, policy))
        };
        Ok(self.query(query).await?.read(Table::Policies, read))
    }

    /// An event that was sidelined takes its place in the line again, due at an instant: once. `Refused` when it has done so already.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts with others
    /// after `WRITE_ROUNDS` more attempts: nothing is written then. `StoreError::Corrupt` when the entry is none of an event that
    /// is sidelined.
    pub async fn rejoin(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        seen: &LineEntry,
        due_at: DateTime<Utc>,
    ) -> Result<Write> {
        let key = Key::new(partition(client, policy), &*seen.line_key);
        let back = rejoining_row((client, policy), seen, due_at).ok_or_else(|| StoreError::Corrupt {
            table: Table::Policies,
            key: seen.line_key.clone(),
            reason: "no event that is sidelined".to_owned(),
        })?;
        let items = vec![
            self.delete_when_item_of(Table::Policies, &key, "attribute_exists(pk)", Attributes::new())?,
            self.put_item_of(Table::Policies, back)?,
        ];
        self.transact(Table::Policies, items).await
    }

    /// Takes events of an entry for slot group `group`: its portion `share` of what is left, but none from event `upto`
    /// on, which a paced run keeps for later. Repeating it with the same `grant` number, the group's refill, answers
    /// with the same range, and with none once a later refill took of the entry. `seen`, how far the entry was when it
    /// was looked at, saves a read.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn take_range(
        &self,
        (client, policy, group): (&ClientId, &PolicyId, u32),
        line_key: &str,
        grant: u64,
        (share, upto): (Portion, u32),
        seen: Option<&LineEntry>,
    ) -> Result<Take> {
        let key = || Key::new(partition(client, policy), line_key);
        let mut known = seen.map(LineEntry::extent);
        // Several calls may finish one refill. All must come to the same end: what one took is lost when another gives up.
        for _ in 0..WRITE_ROUNDS {
            let before = match known {
                Some(known) => known,
                None => {
                    let Some(row) = self.get(Table::Policies, &key(), true).await? else {
                        return Ok(Take::Empty);
                    };
                    if let Some(taken) = taken_before(&row, group, grant)? {
                        return Ok(taken);
                    }
                    extent(&row)?
                }
            };
            // An empty range, too, is this grant's.
            let Some(after) = before.after_take(share, upto) else { return Ok(Take::Empty) };
            let taken = after.cursor.saturating_sub(before.cursor);
            // Behind what others took meanwhile: groups that take at once do not stand in each other's way, as long as
            // there is enough for all.
            let end = if taken == 0 { before.count } else { before.count.min(upto) };
            let changes =
                format!("SET a{group} = cur, b{group} = cur + :taken, cur = cur + :taken, g{group} = :grant");
            let update = Update::new(Table::Policies, key(), changes)
                .when(format!("cur <= :most AND (attribute_not_exists(g{group}) OR g{group} < :grant)"))
                .value(":taken", number(taken))
                .value(":most", number(end.saturating_sub(taken)))
                .value(":grant", number(grant));
            let row = match self.update(update).await? {
                Updated::Refused(None) => return Ok(Take::Empty),
                Updated::Done(row) | Updated::Refused(Some(row)) => row,
            };
            if let Some(taken) = taken_before(&row, group, grant)? {
                return Ok(taken);
            }
            known = Some(extent(&row)?);
        }
        Ok(Take::Lost)
    }

    /// Removes an entry of which nothing is left. `Refused` when something is, or it is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn remove_exhausted(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        line_key: &str,
    ) -> Result<Write> {
        let key = Key::new(partition(client, policy), line_key);
        self.remove_when(Table::Policies, &key, EXHAUSTED, Attributes::new()).await
    }

    /// Leaves nothing in the entries of a run that was stopped, and counts in the run's row what no group had taken of
    /// them. What its groups have is theirs to drop. The entries stay until they are removed as exhausted ones; their
    /// keys are returned. Entries that cannot be read are passed over: whoever comes to them sets them aside.
    /// Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, or a transaction still conflicts with others
    /// after `WRITE_ROUNDS` more attempts; some entries may be exhausted then. `StoreError::Corrupt` when an entry was
    /// changed meanwhile and it, or the run's row, cannot be read.
    pub async fn exhaust(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        (run, rank): (&RunId, Rank),
    ) -> Result<Vec<String>> {
        let mut line_keys = Vec::new();
        let launch = Sorted::Prefix(format!("{rank}|{:012}|", run.launch_at().timestamp()));
        let pack = PackId::Run(run.clone());
        let mut after = None;
        loop {
            let query = Query {
                sorted: launch.clone(),
                consistent: true,
                after,
                ..Query::of(Table::Policies, partition(client, policy))
            };
            let page = self.query(query).await?;
            for row in &page.rows {
                // One that cannot be read is set aside by whoever comes to it.
                if let Ok(entry) = read(row)
                    && entry.pack == pack
                {
                    let line_key = entry.line_key.clone();
                    self.exhaust_entry((client, policy), run, entry).await?;
                    line_keys.push(line_key);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(line_keys);
            }
        }
    }

    /// Leaves nothing in one entry of a run that was stopped; a group that takes of it meanwhile makes it try again.
    ///
    /// # Errors
    /// As [`Self::exhaust`].
    pub async fn exhaust_entry(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        run: &RunId,
        mut entry: LineEntry,
    ) -> Result<()> {
        for _ in 0..WRITE_ROUNDS {
            let Some(after) = entry.extent().after_drop() else { return Ok(()) };
            let to_end = Update::new(
                Table::Policies,
                Key::new(partition(client, policy), &*entry.line_key),
                "SET cur = :end REMOVE ov",
            )
            .when("cur = :cur")
            .value(":cur", number(entry.cursor))
            .value(":end", number(after.cursor));
            let counted = left_out_update(client, run, after.cursor - entry.cursor);
            let items = vec![self.update_item_of(to_end)?, self.update_item_of(counted)?];
            if self.transact(Table::Policies, items).await? == Write::Done {
                return Ok(());
            }
            if self.run(client, run).await?.is_none() {
                // Its time is over: nobody counts any more.
                return self
                    .remove(Table::Policies, &Key::new(partition(client, policy), entry.line_key))
                    .await;
            }
            match self.line_entry(client, policy, &entry.line_key).await? {
                Some(seen) => entry = seen,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Leaves nothing in an entry of a pack of single events: what no group had taken of it is nobody's any more.
    /// `Refused` when a group took of it meanwhile, or it is gone.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn exhaust_singles(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        entry: &LineEntry,
    ) -> Result<Write> {
        let update = Update::new(
            Table::Policies,
            Key::new(partition(client, policy), &*entry.line_key),
            "SET cur = n",
        )
        .when("cur = :cur")
        .value(":cur", number(entry.cursor));
        Ok(self.update(update).await?.into())
    }

    /// Notes what an overlap rule has said of an entry: it waits for the runs before it, or (`None`) may go. `Refused`
    /// when the rule had nothing left to say, or said something else since `entry` was read.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn decide_overlap(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        entry: &LineEntry,
        pending: Option<Pending>,
    ) -> Result<Write> {
        let Some(seen) = entry.overlap else { return Ok(Write::Refused) };
        let key = Key::new(partition(client, policy), &*entry.line_key);
        let changes = if pending.is_some() { "SET ov = :new" } else { "REMOVE ov" };
        let mut update =
            Update::new(Table::Policies, key, changes).when("ov = :seen").value(":seen", text(seen.code()));
        if let Some(pending) = pending {
            update = update.value(":new", text(pending.code()));
        }
        Ok(self.update(update).await?.into())
    }
}

#[cfg(test)]
mod tests;
