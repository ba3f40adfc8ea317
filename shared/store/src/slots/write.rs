//! The writes on a slot group. Each is one conditional update, and each answers with the row's image.
//!
//! Attributes of the row: `cap`, `held`, `pr` policy revision, `fc` next fencing number, `rn` run number, `nx` next
//! index, `lf` how many are left, `gs` grant number, `want` line entry, `oc` outcomes, `pk_oc` those being packed, `fs` flush number, `x<k>` run
//! of number k; per slot `i` index, `r` run number, `f` fence, `e` lease end, `p` handed by, `t` attempt when not 1.

use std::fmt::Write as _;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::ids::RunId;

use super::{GroupKey, Outcome, OutcomeEntry, Range, SlotGroup};
use crate::item::{Row, number, text};
use crate::line::returned_row;
use crate::rows::{Update, Updated};
use crate::tables::Table;
use crate::{Create, Result, Store, Write};

/// What came of a write on a slot group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It took place; the group as it is now.
    Done(SlotGroup),
    /// The condition did not hold; the group as it is, `None` if there is no such row.
    Refused(Option<SlotGroup>),
}

/// One lease that is to end: exactly this one, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRelease {
    /// The slot.
    pub slot: u32,
    /// The fencing number of the lease.
    pub fence: u64,
    /// The run number of the event.
    pub run_number: u32,
    /// The event's number in its run.
    pub index: u32,
    /// What came of the event.
    pub outcome: Outcome,
}

impl SlotRelease {
    fn entry(&self) -> OutcomeEntry {
        OutcomeEntry { run_number: self.run_number, index: self.index, outcome: self.outcome }
    }
}

/// The pieces of an update expression, gathered slot by slot.
#[derive(Default)]
struct Expression {
    set: Vec<String>,
    remove: Vec<String>,
    when: Vec<String>,
    values: Vec<(String, AttributeValue)>,
}

impl Expression {
    fn value(&mut self, name: String, value: AttributeValue) -> String {
        self.values.push((name.clone(), value));
        name
    }

    fn holds(&mut self, release: &SlotRelease) {
        let SlotRelease { slot, fence, run_number, index, .. } = *release;
        let fence = self.value(format!(":f{slot}"), number(fence));
        let run = self.value(format!(":r{slot}"), number(run_number));
        let index = self.value(format!(":i{slot}"), number(index));
        self.when.push(format!("f{slot} = {fence} AND r{slot} = {run} AND i{slot} = {index}"));
    }

    /// Gives `slot` the event that lies `offset` behind the head of the range.
    fn grant(&mut self, slot: u32, offset: usize) {
        let plus = match offset {
            0 => String::new(),
            _ => format!(" + {}", self.value(format!(":o{offset}"), number(offset as u64))),
        };
        self.set.push(format!("i{slot} = nx{plus}, r{slot} = rn, f{slot} = fc{plus}, e{slot} = :lease"));
        self.remove.push(format!("t{slot}"));
    }

    fn take_from_range(&mut self, count: usize) {
        let k = self.value(":k".to_owned(), number(count as u64));
        self.set.push(format!("nx = nx + {k}, lf = lf - {k}, fc = fc + {k}"));
        self.when.push(format!("lf >= {k}"));
    }

    fn empty(&mut self, slot: u32) {
        self.remove.push(format!("i{slot}, r{slot}, f{slot}, e{slot}, p{slot}, t{slot}"));
    }

    fn record(&mut self, entries: impl Iterator<Item = OutcomeEntry>) {
        let list = AttributeValue::L(entries.map(|e| text(e.encode())).collect());
        self.values.push((":out".to_owned(), list));
        self.set.push("oc = list_append(oc, :out)".to_owned());
    }

    fn into_update(self, key: &GroupKey) -> Update {
        let mut changes = String::new();
        for (verb, parts) in [("SET", self.set), ("REMOVE", self.remove)] {
            if !parts.is_empty() {
                let _infallible = write!(changes, "{verb} {} ", parts.join(", "));
            }
        }
        let mut update = Update::new(Table::Policies, key.key(), changes).when(self.when.join(" AND "));
        for (name, value) in self.values {
            update = update.value(name, value);
        }
        update
    }
}

impl Store {
    /// A slot group, read consistently.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn slot_group(&self, key: &GroupKey) -> Result<Option<SlotGroup>> {
        let row = self.get(Table::Policies, &key.key(), true).await?;
        row.map(|row| SlotGroup::read(key, &row)).transpose()
    }

    /// Creates an empty group with a share of `cap`.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn create_slot_group(&self, key: &GroupKey, cap: u32, policy_revision: u32) -> Result<Create> {
        let mut row = Row::new(&key.key())
            .with("cap", number(cap))
            .with("pr", number(policy_revision))
            .with("fc", number(1))
            .with("oc", AttributeValue::L(Vec::new()));
        for name in ["held", "rn", "nx", "lf", "gs", "fs"] {
            row = row.with(name, number(0));
        }
        self.put_new(Table::Policies, row).await
    }

    /// Gives a group the share that follows from a later revision of its policy. Acts on the next grant.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn set_share(&self, key: &GroupKey, cap: u32, policy_revision: u32) -> Result<Change> {
        let update = Update::new(Table::Policies, key.key(), "SET cap = :cap, pr = :new")
            .when("pr < :new")
            .value(":cap", number(cap))
            .value(":new", number(policy_revision));
        self.change(key, update).await
    }

    /// Ends the named leases and hands each slot to the next event of the group's range: one write, nothing read.
    ///
    /// Refused when one of the leases is not the present one, the range has fewer events, or more is held than the
    /// share (a lowered limit drains).
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn hand_off(
        &self,
        key: &GroupKey,
        releases: &[SlotRelease],
        lease_end: DateTime<Utc>,
    ) -> Result<Change> {
        let mut e = Expression::default();
        for (offset, release) in releases.iter().enumerate() {
            e.holds(release);
            e.grant(release.slot, offset);
            e.set.push(format!("p{0} = f{0}", release.slot));
        }
        e.take_from_range(releases.len());
        e.when.push("held <= cap".to_owned());
        e.record(releases.iter().map(SlotRelease::entry));
        e.value(":lease".to_owned(), number(lease_end.timestamp_millis()));
        self.change(key, e.into_update(key)).await
    }

    /// Ends the named leases and leaves their slots free.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn free(&self, key: &GroupKey, releases: &[SlotRelease]) -> Result<Change> {
        let mut e = Expression::default();
        for release in releases {
            e.holds(release);
            e.empty(release.slot);
        }
        let k = e.value(":k".to_owned(), number(releases.len() as u64));
        e.set.push(format!("held = held - {k}"));
        e.record(releases.iter().map(SlotRelease::entry));
        self.change(key, e.into_update(key)).await
    }

    /// Ends a lease that ran out at `seen_end`, unless a heartbeat moved its end, and leaves its slot free.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn free_expired(
        &self,
        key: &GroupKey,
        release: &SlotRelease,
        seen_end: DateTime<Utc>,
    ) -> Result<Change> {
        let mut e = Expression::default();
        e.holds(release);
        e.empty(release.slot);
        e.when.push(format!("e{} = :seen", release.slot));
        e.value(":seen".to_owned(), number(seen_end.timestamp_millis()));
        e.set.push("held = held - :one".to_owned());
        e.value(":one".to_owned(), number(1));
        e.record(std::iter::once(release.entry()));
        self.change(key, e.into_update(key)).await
    }

    /// Grants free slots of `seen` to the next events of its range, as many as `slots` has.
    ///
    /// Refused when a slot was taken, the share or the number of holders changed, or the range has fewer events.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn grant(&self, seen: &SlotGroup, slots: &[u32], lease_end: DateTime<Utc>) -> Result<Change> {
        let mut e = Expression::default();
        for (offset, slot) in slots.iter().enumerate() {
            e.when.push(format!("attribute_not_exists(f{slot})"));
            e.grant(*slot, offset);
            e.remove.push(format!("p{slot}"));
        }
        e.take_from_range(slots.len());
        let cap = e.value(":cap".to_owned(), number(seen.cap));
        let room = e.value(":room".to_owned(), number(i128::from(seen.cap) - slots.len() as i128));
        e.when.push(format!("cap = {cap} AND held <= {room}"));
        e.set.push("held = held + :k".to_owned());
        e.value(":lease".to_owned(), number(lease_end.timestamp_millis()));
        self.change(&seen.key, e.into_update(&seen.key)).await
    }

    /// Ends a lease that ran out at `seen_end` and gives the same event a new one, under a new fencing number.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn renew_expired(
        &self,
        key: &GroupKey,
        release: &SlotRelease,
        seen_end: DateTime<Utc>,
        attempt: u8,
        lease_end: DateTime<Utc>,
    ) -> Result<Change> {
        let slot = release.slot;
        let mut e = Expression::default();
        e.holds(release);
        e.when.push(format!("e{slot} = :seen"));
        e.value(":seen".to_owned(), number(seen_end.timestamp_millis()));
        e.set.push(format!("f{slot} = fc, e{slot} = :lease, t{slot} = :attempt, fc = fc + :one"));
        e.value(":lease".to_owned(), number(lease_end.timestamp_millis()));
        e.value(":attempt".to_owned(), number(attempt));
        e.value(":one".to_owned(), number(1));
        e.remove.push(format!("p{slot}"));
        self.change(key, e.into_update(key)).await
    }

    /// Moves the end of a lease.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn extend_lease(
        &self,
        key: &GroupKey,
        lease: &SlotRelease,
        lease_end: DateTime<Utc>,
    ) -> Result<Change> {
        let mut e = Expression::default();
        e.holds(lease);
        e.set.push(format!("e{} = :lease", lease.slot));
        e.value(":lease".to_owned(), number(lease_end.timestamp_millis()));
        self.change(key, e.into_update(key)).await
    }

    /// Writes down that the group is about to take a range from a line entry: the first of the three steps of a
    /// refill. Whoever finds `wanted` set goes on from there, so no range is lost between two rows.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn want_range(&self, seen: &SlotGroup, line_entry: &str) -> Result<Change> {
        let update = Update::new(Table::Policies, seen.key.key(), "SET want = :want, gs = gs + :one")
            .when("attribute_not_exists(want) AND lf = :zero AND gs = :seen")
            .value(":want", text(line_entry))
            .value(":one", number(1))
            .value(":zero", number(0))
            .value(":seen", number(seen.grant));
        self.change(&seen.key, update).await
    }

    /// Puts the range in place that was taken for grant number `seen.grant`: the last step of a refill. An empty one
    /// (`left` = 0) gives up.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn accept_range(&self, seen: &SlotGroup, run: &RunId, next: u32, left: u32) -> Result<Change> {
        let known = seen.runs.iter().find(|(_, known)| *known == run).map(|(n, _)| *n);
        // A number beyond all in use: the group may have come back to a run with a lower one.
        let highest = seen.runs.keys().copied().max().unwrap_or_default();
        let run_number = known.unwrap_or_else(|| highest.max(seen.range.run_number) + 1);
        let mut e = Expression::default();
        e.when.push("gs = :seen AND attribute_exists(want)".to_owned());
        e.value(":seen".to_owned(), number(seen.grant));
        e.remove.push("want".to_owned());
        if left > 0 {
            e.set.push(format!("rn = :rn, nx = :nx, lf = :lf, x{run_number} = :run"));
            e.value(":rn".to_owned(), number(run_number));
            e.value(":nx".to_owned(), number(next));
            e.value(":lf".to_owned(), number(left));
            e.value(":run".to_owned(), text(run.to_string()));
            e.remove.extend(seen.stale_runs().filter(|n| *n != run_number).map(|n| format!("x{n}")));
        }
        self.change(&seen.key, e.into_update(&seen.key)).await
    }

    /// Gives what is left of the group's range back to the line, as an entry of its own: both or neither, once.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn return_range(&self, seen: &SlotGroup, run: &RunId) -> Result<Write> {
        let Range { run_number, next, left } = seen.range;
        let entry = returned_row(&seen.key, seen.grant, run, (next, next + left));
        let update = Update::new(Table::Policies, seen.key.key(), "SET lf = :zero")
            .when("gs = :seen AND rn = :rn AND nx = :nx AND lf = :lf AND attribute_not_exists(want)")
            .value(":zero", number(0))
            .value(":seen", number(seen.grant))
            .value(":rn", number(run_number))
            .value(":nx", number(next))
            .value(":lf", number(left));
        let items = vec![self.update_item_of(update)?, self.put_item_of(Table::Policies, entry)?];
        self.transact(Table::Policies, items).await
    }

    /// Drops what is left of a run's range, if the group serves that run: it was cancelled.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn drop_range(&self, seen: &SlotGroup) -> Result<Write> {
        let update = Update::new(Table::Policies, seen.key.key(), "SET lf = :zero")
            .when("rn = :rn AND lf > :zero")
            .value(":zero", number(0))
            .value(":rn", number(seen.range.run_number));
        Ok(self.update(update).await?.into())
    }

    /// Sets the outcomes of a group apart, to be packed into their runs' history under the next flush number.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn begin_packing(&self, seen: &SlotGroup) -> Result<Change> {
        let changes = "SET pk_oc = oc, oc = :none, fs = fs + :one";
        let update = Update::new(Table::Policies, seen.key.key(), changes)
            .when("fs = :seen AND attribute_not_exists(pk_oc)")
            .value(":none", AttributeValue::L(Vec::new()))
            .value(":one", number(1))
            .value(":seen", number(seen.flush));
        self.change(&seen.key, update).await
    }

    /// Forgets the outcomes that were set apart: they are in their runs' history now.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn end_packing(&self, seen: &SlotGroup) -> Result<Change> {
        let update = Update::new(Table::Policies, seen.key.key(), "REMOVE pk_oc")
            .when("fs = :seen AND attribute_exists(pk_oc)")
            .value(":seen", number(seen.flush));
        self.change(&seen.key, update).await
    }

    /// Removes a group whose policy is gone.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn delete_slot_group(&self, key: &GroupKey) -> Result<()> {
        self.remove(Table::Policies, &key.key()).await
    }

    async fn change(&self, key: &GroupKey, update: Update) -> Result<Change> {
        Ok(match self.update(update).await? {
            Updated::Done(row) => Change::Done(SlotGroup::read(key, &row)?),
            Updated::Refused(row) => Change::Refused(row.map(|row| SlotGroup::read(key, &row)).transpose()?),
        })
    }
}
