//! The writes on a slot group. Each is one conditional update, and each answers with the row's image.
//!
//! Attributes of the row: `cap`, `held`, `pr` plan number, `ng` groups, `lm` limit, `rt` rated, `fc` next fencing number, `rn` run
//! number, `nx` next index, `lf` how many are left, `rc` their cost when not 1, `dl` their deadline, `gs` grant number,
//! `want` line entry, `oc` outcomes, `pk_oc` those being packed, `fs` flush number, `rx` leases taken back, `x<k>` run of
//! number k; per slot `i` index, `r` run number, `f` fence, `e` lease end, `p` mark of the write, `t` attempt and `w` cost when not 1.

use std::fmt::Write as _;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::flow::Priority;
use tidegate_domain::ids::RunId;
use tidegate_domain::policy::Policy;

use super::image::WATCHED;
use super::{Ended, GroupKey, Outcome, OutcomeEntry, Range, SlotGroup};
use crate::item::{Row, number, text};
use crate::line::returned_row;
use crate::mutant::Mutant;
use crate::rows::{Update, Updated};
use crate::runs::left_out_update;
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
    /// How many tokens the lease takes.
    pub cost: u32,
    /// Which delivery of the event the lease is at, from 1. Recorded with the outcome, and so a condition of the writes
    /// that record it; who extends a lease need not know it.
    pub attempt: u8,
    /// What came of the event.
    pub outcome: Outcome,
}

/// A lease that is to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLease {
    /// When it ends.
    pub end: DateTime<Utc>,
    /// A number that no other write has: the reply to a write can be lost and the client library repeat it, and then only
    /// the row can say that it took place.
    pub mark: u64,
}

/// What a group must know of a range beside its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeTerms {
    /// How many tokens each event takes.
    pub cost: u32,
    /// None is granted from then on.
    pub deadline: Option<DateTime<Utc>>,
    /// Somebody waits for the end of the run.
    pub watched: bool,
}

/// Leases that a group remembers to have taken back.
const RECLAIMED: usize = 8;

impl SlotRelease {
    fn entry(&self) -> OutcomeEntry {
        let ended = Ended { index: self.index, outcome: self.outcome, attempts: self.attempt };
        OutcomeEntry { run_number: self.run_number, ended }
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
        let SlotRelease { slot, fence, run_number, index, cost, .. } = *release;
        let fence = self.value(format!(":f{slot}"), number(fence));
        let run = self.value(format!(":r{slot}"), number(run_number));
        let index = self.value(format!(":i{slot}"), number(index));
        self.when.push(format!("f{slot} = {fence} AND r{slot} = {run} AND i{slot} = {index}"));
        self.costs(&format!("w{slot}"), cost);
    }

    /// Holds when a lease is at the delivery that is recorded with its outcome.
    fn is_at_attempt(&mut self, release: &SlotRelease) {
        self.one_unless_said(&format!("t{}", release.slot), release.attempt.into());
    }

    /// Holds when attribute `name` says `cost`.
    fn costs(&mut self, name: &str, cost: u32) {
        self.one_unless_said(name, cost);
    }

    /// Holds when attribute `name` says `count`; it is absent where that is 1.
    fn one_unless_said(&mut self, name: &str, count: u32) {
        match count {
            1 => self.when.push(format!("attribute_not_exists({name})")),
            _ => {
                let count = self.value(format!(":c{name}"), number(count));
                self.when.push(format!("{name} = {count}"));
            }
        }
    }

    /// Holds while events of the range may be granted at all.
    fn before_deadline(&mut self, now: DateTime<Utc>) {
        let now = self.value(":now".to_owned(), number(now.timestamp_millis()));
        self.when.push(format!("(attribute_not_exists(dl) OR dl > {now})"));
    }

    /// Holds unless a heartbeat moved the end of a lease since it was found to have run out.
    fn ends_at(&mut self, slot: u32, seen_end: DateTime<Utc>) {
        let end = self.value(":seen".to_owned(), number(seen_end.timestamp_millis()));
        self.when.push(format!("e{slot} = {end}"));
    }

    /// Remembers that leases were taken back.
    fn remember(&mut self, seen: &SlotGroup, fence: u64) {
        let known = seen.reclaimed.iter().copied().chain([fence]);
        let list: Vec<u64> = known.collect();
        let list = list.iter().rev().take(RECLAIMED).rev().map(|fence| number(*fence)).collect();
        let list = self.value(":rx".to_owned(), AttributeValue::L(list));
        self.set.push(format!("rx = {list}"));
    }

    fn lease(&mut self, new: NewLease) {
        self.value(":lease".to_owned(), number(new.end.timestamp_millis()));
        self.value(":mark".to_owned(), number(new.mark));
    }

    /// Gives `slot` the event that lies `offset` behind the head of the range.
    fn grant(&mut self, slot: u32, offset: usize) {
        let plus = match offset {
            0 => String::new(),
            _ => format!(" + {}", self.value(format!(":o{offset}"), number(offset as u64))),
        };
        self.set.push(format!(
            "i{slot} = nx{plus}, r{slot} = rn, f{slot} = fc{plus}, e{slot} = :lease, p{slot} = :mark"
        ));
        self.remove.push(format!("t{slot}"));
    }

    fn take_from_range(&mut self, count: usize) {
        let k = self.value(":k".to_owned(), number(count as u64));
        self.set.push(format!("nx = nx + {k}, lf = lf - {k}, fc = fc + {k}"));
        self.when.push(format!("lf >= {k}"));
    }

    fn set_or_remove(&mut self, name: &str, value: Option<AttributeValue>) {
        match value {
            None => self.remove.push(name.to_owned()),
            Some(value) => {
                let value = self.value(format!(":{name}"), value);
                self.set.push(format!("{name} = {value}"));
            }
        }
    }

    fn empty(&mut self, slot: u32) {
        self.remove.push(format!("i{slot}, r{slot}, f{slot}, e{slot}, p{slot}, t{slot}, w{slot}"));
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
        let mut update = Update::new(Table::Policies, key.key(), changes);
        if !self.when.is_empty() {
            update = update.when(self.when.join(" AND "));
        }
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

    /// Creates an empty group with the share that a policy's plan gives it. Its fencing numbers begin at 1.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn create_slot_group(&self, key: &GroupKey, policy: &Policy) -> Result<Create> {
        let mut row = Row::new(&key.key())
            .with("cap", number(policy.plan.cap(key.group)))
            .with("pr", number(policy.plan.number))
            .with("ng", number(policy.plan.groups()))
            .with("lm", number(policy.limit()))
            .with_some("rt", policy.terms.rate().map(|_| AttributeValue::Bool(true)))
            .with("fc", number(1))
            .with("oc", AttributeValue::L(Vec::new()));
        for name in ["held", "rn", "nx", "lf", "gs", "fs"] {
            row = row.with(name, number(0));
        }
        self.put_new(Table::Policies, row).await
    }

    /// Gives a group the share that follows from a later plan of its policy. Acts on the next grant.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn set_share(&self, key: &GroupKey, policy: &Policy) -> Result<Change> {
        let rated = AttributeValue::Bool(policy.terms.rate().is_some());
        let update = Update::new(
            Table::Policies,
            key.key(),
            "SET cap = :cap, pr = :new, ng = :groups, lm = :limit, rt = :rated",
        )
        .when("pr < :new")
        .value(":cap", number(policy.plan.cap(key.group)))
        .value(":groups", number(policy.plan.groups()))
        .value(":limit", number(policy.limit()))
        .value(":rated", rated)
        .value(":new", number(policy.plan.number));
        self.change(key, update).await
    }

    /// Ends the named leases and hands each slot to the next event of the group's range: one write, nothing read.
    ///
    /// Refused when one of the leases is not the present one or is at another delivery, the range has fewer events, or events of another cost, or is
    /// over at `now`, more is held than the share (a lowered limit drains), or the policy has a rate.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn hand_off(
        &self,
        key: &GroupKey,
        releases: &[SlotRelease],
        new: NewLease,
        now: DateTime<Utc>,
    ) -> Result<Change> {
        let mut e = Expression::default();
        for (offset, release) in releases.iter().enumerate() {
            if !self.lacks(Mutant::Release) {
                e.holds(release);
                e.is_at_attempt(release);
            }
            e.grant(release.slot, offset);
        }
        e.lease(new);
        e.take_from_range(releases.len());
        e.costs("rc", releases.first().map_or(1, |release| release.cost));
        e.before_deadline(now);
        let rated = e.value(":true".to_owned(), AttributeValue::Bool(true));
        e.when.push(format!("(attribute_not_exists(rt) OR rt <> {rated})"));
        if !self.lacks(Mutant::TokenWrite) {
            e.when.push("held <= cap".to_owned());
        }
        e.record(releases.iter().map(SlotRelease::entry));
        self.change(key, e.into_update(key)).await
    }

    /// Ends the named leases and leaves their slots free. Refused when one of them is not the present one, or is at another
    /// delivery.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn free(&self, key: &GroupKey, releases: &[SlotRelease]) -> Result<Change> {
        let mut e = Expression::default();
        for release in releases {
            if !self.lacks(Mutant::Release) {
                e.holds(release);
                e.is_at_attempt(release);
            }
            e.empty(release.slot);
        }
        let tokens: u32 = releases.iter().map(|release| release.cost).sum();
        let k = e.value(":k".to_owned(), number(tokens));
        e.set.push(format!("held = held - {k}"));
        e.record(releases.iter().map(SlotRelease::entry));
        self.change(key, e.into_update(key)).await
    }

    /// Ends a lease that ran out at `seen_end`, unless a heartbeat moved its end, and leaves its slot free. `seen` may be
    /// newer than the look that found it so.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn free_expired(
        &self,
        seen: &SlotGroup,
        release: &SlotRelease,
        seen_end: DateTime<Utc>,
    ) -> Result<Change> {
        let mut e = Expression::default();
        e.holds(release);
        e.is_at_attempt(release);
        e.ends_at(release.slot, seen_end);
        e.empty(release.slot);
        e.remember(seen, release.fence);
        let tokens = e.value(":tokens".to_owned(), number(release.cost));
        e.set.push(format!("held = held - {tokens}"));
        e.record(std::iter::once(release.entry()));
        self.change(&seen.key, e.into_update(&seen.key)).await
    }

    /// Grants free slots of `seen` to the next events of its range, as many as `slots` has.
    ///
    /// Refused when a slot was taken, the share or the number of holders changed, or the range has fewer events, others,
    /// or is over at `now`.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn grant(
        &self,
        seen: &SlotGroup,
        slots: &[u32],
        new: NewLease,
        now: DateTime<Utc>,
    ) -> Result<Change> {
        let mut e = Expression::default();
        e.lease(new);
        let weight = seen.weight(seen.range.cost);
        let held = e.value(":weight".to_owned(), number(weight * slots.len() as u32));
        for (offset, slot) in slots.iter().enumerate() {
            if !self.lacks(Mutant::TokenWrite) {
                e.when.push(format!("attribute_not_exists(f{slot})"));
            }
            e.grant(*slot, offset);
            match weight {
                1 => e.remove.push(format!("w{slot}")),
                _ => {
                    let cost = e.value(":cost".to_owned(), number(weight));
                    e.set.push(format!("w{slot} = {cost}"));
                }
            }
        }
        e.take_from_range(slots.len());
        e.costs("rc", seen.range.cost);
        e.before_deadline(now);
        if !self.lacks(Mutant::TokenWrite) {
            let cap = e.value(":cap".to_owned(), number(seen.cap));
            let most = i128::from(seen.cap) - i128::from(weight) * slots.len() as i128;
            let most = e.value(":most".to_owned(), number(most));
            e.when.push(format!("cap = {cap} AND held <= {most}"));
        }
        e.set.push(format!("held = held + {held}"));
        self.change(&seen.key, e.into_update(&seen.key)).await
    }

    /// Ends a lease that ran out at `seen_end`, unless a heartbeat moved its end, and gives the same event a new one,
    /// under a new fencing number.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn renew_expired(
        &self,
        seen: &SlotGroup,
        release: &SlotRelease,
        seen_end: DateTime<Utc>,
        attempt: u8,
        new: NewLease,
    ) -> Result<Change> {
        let slot = release.slot;
        let mut e = Expression::default();
        e.holds(release);
        e.is_at_attempt(release);
        e.ends_at(slot, seen_end);
        e.remember(seen, release.fence);
        e.lease(new);
        e.set.push(format!(
            "f{slot} = fc, e{slot} = :lease, p{slot} = :mark, t{slot} = :attempt, fc = fc + :one"
        ));
        e.value(":attempt".to_owned(), number(attempt));
        e.value(":one".to_owned(), number(1));
        self.change(&seen.key, e.into_update(&seen.key)).await
    }

    /// Notes which delivery of its event a lease is at, from 2. Refused when the lease is not the present one of its slot,
    /// or is at a later delivery already.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn note_attempt(&self, key: &GroupKey, lease: &SlotRelease, attempt: u8) -> Result<Change> {
        let mut e = Expression::default();
        e.holds(lease);
        let name = format!("t{}", lease.slot);
        let attempt = e.value(":attempt".to_owned(), number(attempt));
        e.when.push(format!("(attribute_not_exists({name}) OR {name} <= {attempt})"));
        e.set.push(format!("{name} = {attempt}"));
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
    pub async fn accept_range(
        &self,
        seen: &SlotGroup,
        run: &RunId,
        (next, left): (u32, u32),
        terms: RangeTerms,
    ) -> Result<Change> {
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
            let run = if terms.watched { format!("{run}{WATCHED}") } else { run.to_string() };
            e.value(":run".to_owned(), text(run));
            let cost = (terms.cost > 1).then(|| number(terms.cost));
            e.set_or_remove("rc", cost);
            e.set_or_remove("dl", terms.deadline.map(|at| number(at.timestamp_millis())));
            e.remove.extend(seen.stale_runs().filter(|n| *n != run_number).map(|n| format!("x{n}")));
        }
        self.change(&seen.key, e.into_update(&seen.key)).await
    }

    /// Gives what is left of the group's range back to the line, as an entry of its own: both or neither, once.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn return_range(&self, seen: &SlotGroup, run: &RunId, priority: Priority) -> Result<Write> {
        let Range { next, left, .. } = seen.range;
        let entry = returned_row(&seen.key, seen.grant, (run, priority), (next, next + left));
        let items = vec![self.update_item_of(empty_range(seen))?, self.put_item_of(Table::Policies, entry)?];
        self.transact(Table::Policies, items).await
    }

    /// Drops what is left of the group's range, since its run was stopped, and counts it in the run's row: both or
    /// neither, once.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn drop_range(&self, seen: &SlotGroup, run: &RunId) -> Result<Write> {
        let counted = left_out_update(&seen.key.client, run, seen.range.left);
        let items = vec![self.update_item_of(empty_range(seen))?, self.update_item_of(counted)?];
        if self.transact(Table::Policies, items).await? == Write::Done {
            return Ok(Write::Done);
        }
        match self.run(&seen.key.client, run).await? {
            Some(_) => Ok(Write::Refused),
            // Its time is over: nobody counts any more.
            None => Ok(self.update(empty_range(seen)).await?.into()),
        }
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

    async fn change(&self, key: &GroupKey, update: Update) -> Result<Change> {
        Ok(match self.update(update).await? {
            Updated::Done(row) => Change::Done(SlotGroup::read(key, &row)?),
            Updated::Refused(row) => Change::Refused(row.map(|row| SlotGroup::read(key, &row)).transpose()?),
        })
    }
}

/// Leaves a group without a range, if it still has the one that was seen.
fn empty_range(seen: &SlotGroup) -> Update {
    let Range { run_number, next, left, .. } = seen.range;
    Update::new(Table::Policies, seen.key.key(), "SET lf = :zero")
        .when("gs = :seen AND rn = :rn AND nx = :nx AND lf = :lf AND attribute_not_exists(want)")
        .value(":zero", number(0))
        .value(":seen", number(seen.grant))
        .value(":rn", number(run_number))
        .value(":nx", number(next))
        .value(":lf", number(left))
}
