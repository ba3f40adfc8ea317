//! From a transition to the expressions of one conditional update. One clause is one condition, one change is one part
//! of the update; nothing is decided here.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::slots::{
    Change, Clause, GroupKey, LeaseId, NewLease, OutcomeEntry, PackRef, Range, Share, Transition,
};

use super::key;
use super::outcomes::encode_entry;
use super::row::{attribute as a, pack_text, slot};
use crate::item::{Key, number, text};
use crate::rows::Update;
use crate::tables::Table;

/// The pieces of an update, gathered clause by clause and change by change.
#[derive(Default)]
struct Expression {
    set: Vec<String>,
    remove: Vec<String>,
    when: Vec<String>,
    values: Vec<AttributeValue>,
}

/// What a transition writes: its changes, where its clauses hold.
pub(super) fn update(group: &GroupKey, transition: &Transition) -> Update {
    let mut expression = Expression::default();
    transition.when.iter().for_each(|clause| expression.require(clause));
    transition.then.iter().for_each(|change| expression.make(change));
    expression.into_update(key(group))
}

impl Expression {
    /// A name for a value.
    fn value(&mut self, value: AttributeValue) -> String {
        let known = self.values.iter().position(|known| *known == value);
        let place = known.unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        format!(":v{place}")
    }

    fn set(&mut self, name: impl std::fmt::Display, value: AttributeValue) {
        let value = self.value(value);
        self.set.push(format!("{name} = {value}"));
    }

    /// An attribute that is absent where it would say 1.
    fn set_unless_one(&mut self, name: String, count: u32) {
        match count {
            1 => self.remove.push(name),
            _ => self.set(name, number(count)),
        }
    }

    fn add(&mut self, name: &str, sign: char, count: u32) {
        let count = self.value(number(count));
        self.set.push(format!("{name} = {name} {sign} {count}"));
    }

    fn compare(&mut self, name: impl std::fmt::Display, operator: &str, value: AttributeValue) {
        let value = self.value(value);
        self.when.push(format!("{name} {operator} {value}"));
    }

    /// Compares an attribute that is absent where it would say 1.
    fn compare_unless_one(&mut self, name: String, count: u32) {
        match count {
            1 => self.when.push(format!("attribute_not_exists({name})")),
            _ => self.compare(name, "=", number(count)),
        }
    }

    fn require(&mut self, clause: &Clause) {
        match clause {
            Clause::LeaseIs(id) => self.require_lease(*id),
            Clause::AttemptIs { slot, attempt } => {
                self.compare_unless_one(format!("{}{slot}", slot::ATTEMPT), (*attempt).into());
            }
            Clause::LeaseEndsAt { slot, ends_at } => {
                self.compare(format!("{}{slot}", slot::ENDS_AT), "=", instant(*ends_at));
            }
            Clause::SlotIsFree(slot) => {
                self.when.push(format!("attribute_not_exists({}{slot})", slot::FENCE))
            }
            Clause::RangeHas(events) => self.compare(a::LEFT, ">=", number(*events)),
            Clause::RangeCosts(cost) => self.compare_unless_one(a::COST.to_owned(), *cost),
            Clause::RangeIsOpenAt(now) => {
                let now = self.value(instant(*now));
                let deadline = a::DEADLINE;
                self.when.push(format!("(attribute_not_exists({deadline}) OR {deadline} > {now})"));
            }
            Clause::RangeIs(Range { pack_number, next, left, .. }) => {
                self.compare(a::RUN, "=", number(*pack_number));
                self.compare(a::NEXT, "=", number(*next));
                self.compare(a::LEFT, "=", number(*left));
            }
            Clause::PackIs(number, pack) => {
                self.compare(format!("{}{number}", a::PACK_REF), "=", text(pack_text(pack)));
            }
            Clause::NoRefill => {
                self.when.push(format!("attribute_not_exists({})", a::ENTRY));
                self.compare(a::LEFT, "=", number(0));
            }
            Clause::RefillBegun => self.when.push(format!("attribute_exists({})", a::ENTRY)),
            Clause::RefillsAre(count) => self.compare(a::REFILLS, "=", number(*count)),
            Clause::WithinShare => self.when.push(format!("{} <= {}", a::HELD, a::CAP)),
            Clause::CapIs(cap) => self.compare(a::CAP, "=", number(*cap)),
            Clause::HeldIsAtMost(most) => self.compare(a::HELD, "<=", number(*most)),
            Clause::Unrated => {
                let rated = self.value(AttributeValue::Bool(true));
                self.when.push(format!("(attribute_not_exists({0}) OR {0} <> {rated})", a::RATED));
            }
            Clause::PlanIsBefore(plan) => self.compare(a::PLAN, "<", number(*plan)),
            Clause::NoCompaction => self.when.push(format!("attribute_not_exists({})", a::COMPACTING)),
            Clause::CompactionBegun => self.when.push(format!("attribute_exists({})", a::COMPACTING)),
            Clause::CompactionsAre(count) => self.compare(a::COMPACTIONS, "=", number(*count)),
        }
    }

    fn require_lease(&mut self, id: LeaseId) {
        let LeaseId { slot, fence, pack_number, index, cost } = id;
        self.compare(format!("{}{slot}", slot::FENCE), "=", number(fence));
        self.compare(format!("{}{slot}", slot::RUN), "=", number(pack_number));
        self.compare(format!("{}{slot}", slot::INDEX), "=", number(index));
        self.compare_unless_one(format!("{}{slot}", slot::COST), cost);
    }

    fn make(&mut self, change: &Change) {
        match change {
            Change::SetShare(share) => self.set_share(*share),
            Change::Assign { slot, offset, cost, lease } => self.assign((*slot, *offset), *cost, *lease),
            Change::Advance(events) => {
                self.add(a::NEXT, '+', *events);
                self.add(a::LEFT, '-', *events);
                self.add(a::FENCE, '+', *events);
            }
            Change::Place { slot, offset, event: (pack_number, index), cost, lease } => {
                self.set(format!("{}{slot}", slot::INDEX), number(*index));
                self.set(format!("{}{slot}", slot::RUN), number(*pack_number));
                let plus = self.plus(*offset);
                self.take_slot((*slot, &plus), *cost, *lease);
            }
            Change::TakeFences(events) => self.add(a::FENCE, '+', *events),
            Change::CountRefill => self.add(a::REFILLS, '+', 1),
            Change::Renew { slot, attempt, lease } => {
                self.set.push(format!("{}{slot} = {}", slot::FENCE, a::FENCE));
                self.give(*slot, *lease);
                self.set_unless_one(format!("{}{slot}", slot::ATTEMPT), (*attempt).into());
                self.add(a::FENCE, '+', 1);
            }
            Change::NoteSent(slot) => {
                self.set.push(format!("{0}{slot} = {1}{slot}", slot::SENT, slot::FENCE))
            }
            Change::SetEnd { slot, ends_at } => {
                self.set(format!("{}{slot}", slot::ENDS_AT), instant(*ends_at))
            }
            Change::Empty(slot) => self.empty(*slot),
            Change::Hold(tokens) => self.add(a::HELD, '+', *tokens),
            Change::Free(tokens) => self.add(a::HELD, '-', *tokens),
            Change::Record(entries) => self.record(entries),
            Change::Remember(fences) => {
                self.set(
                    a::RECLAIMED,
                    AttributeValue::L(fences.iter().map(|fence| number(*fence)).collect()),
                );
            }
            Change::BeginRefill { entry } => {
                self.set(a::ENTRY, text(&**entry));
                self.add(a::REFILLS, '+', 1);
            }
            Change::EndRefill => self.remove.push(a::ENTRY.to_owned()),
            Change::Serve(range, pack) => self.serve(*range, pack),
            Change::SetPack(number, pack) => {
                self.set(format!("{}{number}", a::PACK_REF), text(pack_text(pack)));
            }
            Change::ForgetPacks(numbers) => {
                self.remove.extend(numbers.iter().map(|number| format!("{}{number}", a::PACK_REF)));
            }
            Change::DropRange => self.set(a::LEFT, number(0)),
            Change::BeginCompaction => {
                self.set.push(format!("{} = {}", a::COMPACTING, a::OUTCOMES));
                self.set(a::OUTCOMES, AttributeValue::L(Vec::new()));
                self.add(a::COMPACTIONS, '+', 1);
            }
            Change::EndCompaction => self.remove.push(a::COMPACTING.to_owned()),
        }
    }

    fn set_share(&mut self, share: Share) {
        let Share { plan, groups, limit, cap, rated } = share;
        for (name, value) in [(a::GROUPS, groups), (a::LIMIT, limit), (a::CAP, cap)] {
            self.set(name, number(value));
        }
        self.set(a::PLAN, number(plan));
        self.set(a::RATED, AttributeValue::Bool(rated));
    }

    /// Gives a slot the event that lies `offset` behind the head of the range.
    fn assign(&mut self, (slot, offset): (u32, u32), cost: u32, lease: NewLease) {
        let plus = self.plus(offset);
        self.set.push(format!("{}{slot} = {}{plus}", slot::INDEX, a::NEXT));
        self.set.push(format!("{}{slot} = {}", slot::RUN, a::RUN));
        self.take_slot((slot, &plus), cost, lease);
    }

    /// What is added to a number.
    fn plus(&mut self, offset: u32) -> String {
        match offset {
            0 => String::new(),
            _ => format!(" + {}", self.value(number(offset))),
        }
    }

    /// Gives a slot a new lease, under the fencing number that lies `plus` behind the next one.
    fn take_slot(&mut self, (slot, plus): (u32, &str), cost: u32, lease: NewLease) {
        self.set.push(format!("{}{slot} = {}{plus}", slot::FENCE, a::FENCE));
        self.give(slot, lease);
        self.remove.push(format!("{}{slot}", slot::ATTEMPT));
        self.set_unless_one(format!("{}{slot}", slot::COST), cost);
    }

    fn give(&mut self, slot: u32, lease: NewLease) {
        self.set(format!("{}{slot}", slot::ENDS_AT), instant(lease.ends_at));
        self.set(format!("{}{slot}", slot::WRITE_ID), number(lease.write_id));
    }

    fn empty(&mut self, slot: u32) {
        self.remove.extend(slot::ALL.map(|name| format!("{name}{slot}")));
    }

    fn record(&mut self, entries: &[OutcomeEntry]) {
        let list = entries.iter().map(|entry| text(encode_entry(entry))).collect();
        let list = self.value(AttributeValue::L(list));
        self.set.push(format!("{0} = list_append({0}, {list})", a::OUTCOMES));
    }

    fn serve(&mut self, range: Range, pack: &PackRef) {
        let Range { pack_number, next, left, cost, deadline } = range;
        for (name, value) in [(a::RUN, pack_number), (a::NEXT, next), (a::LEFT, left)] {
            self.set(name, number(value));
        }
        self.set(format!("{}{pack_number}", a::PACK_REF), text(pack_text(pack)));
        self.set_unless_one(a::COST.to_owned(), cost);
        match deadline {
            Some(deadline) => self.set(a::DEADLINE, instant(deadline)),
            None => self.remove.push(a::DEADLINE.to_owned()),
        }
    }

    fn into_update(self, key: Key) -> Update {
        let verbs = [("SET", self.set), ("REMOVE", self.remove)];
        let parts = verbs.into_iter().filter(|(_, parts)| !parts.is_empty());
        let changes: Vec<String> =
            parts.map(|(verb, parts)| format!("{verb} {}", parts.join(", "))).collect();
        let mut update = Update::new(Table::Policies, key, changes.join(" "));
        if !self.when.is_empty() {
            update = update.when(self.when.join(" AND "));
        }
        (0..)
            .zip(self.values)
            .fold(update, |update, (place, value)| update.value(format!(":v{place}"), value))
    }
}

fn instant(at: DateTime<Utc>) -> AttributeValue {
    number(at.timestamp_millis())
}
