//! The row of a slot group: its attributes, and how it is read.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::limits::SLOTS_PER_GROUP;
use tidegate_domain::slots::{
    Compaction, GroupKey, Lease, LeaseId, OutcomeEntry, PackRef, Range, Refill, Share, SlotGroup,
};

use super::outcomes::{decode_entry, encode_entry};
use crate::Result;
use crate::item::{Attributes, Item, Row, number, text};
use crate::line::{read_tries, tries_text};
use crate::tables::Table;

/// Attributes of the group. Short, since the row must stay within one write unit.
pub(super) mod attribute {
    /// Its share, in tokens.
    pub(crate) const CAP: &str = "cap";
    /// Tokens that are held.
    pub(crate) const HELD: &str = "held";
    /// The number of the plan.
    pub(crate) const PLAN: &str = "pr";
    /// How many groups the plan has.
    pub(crate) const GROUPS: &str = "ng";
    /// The limit of the policy.
    pub(crate) const LIMIT: &str = "lm";
    /// Whether the policy has a rate.
    pub(crate) const RATED: &str = "rt";
    /// The next fencing number.
    pub(crate) const FENCE: &str = "fc";
    /// The pack number of the range.
    pub(crate) const RUN: &str = "rn";
    /// The next event of the range.
    pub(crate) const NEXT: &str = "nx";
    /// How many events are left of the range; 0: there is none.
    pub(crate) const LEFT: &str = "lf";
    /// The cost of its events, when it is not 1.
    pub(crate) const COST: &str = "rc";
    /// Its deadline, if it has one.
    pub(crate) const DEADLINE: &str = "dl";
    /// How many refills have begun.
    pub(crate) const REFILLS: &str = "gs";
    /// The entry of the line that a range is being taken from.
    pub(crate) const ENTRY: &str = "want";
    /// Outcomes.
    pub(crate) const OUTCOMES: &str = "oc";
    /// Outcomes that are being compacted.
    pub(crate) const COMPACTING: &str = "pk_oc";
    /// How many compactions have begun.
    pub(crate) const COMPACTIONS: &str = "fs";
    /// Fencing numbers of leases that were taken back.
    pub(crate) const RECLAIMED: &str = "rx";
    /// Before the number of a pack: its id.
    pub(crate) const PACK_REF: &str = "x";
    /// Behind the id of a pack whose end somebody waits for.
    pub(crate) const WATCHED: char = '!';
    /// Behind the id of a pack whose events are looked up before they are sent.
    pub(crate) const RECHECK: char = '?';
    /// Behind the id of a pack, before the days that what becomes of its events is kept, where that is not as by default.
    pub(crate) const HISTORY_DAYS: char = '&';
    /// Behind the id of a pack, before how often the event was delivered that is sent again.
    pub(crate) const TRIES: char = '^';
}

/// Attributes of a lease: each stands before the number of its slot.
pub(super) mod slot {
    /// The event's number in its pack.
    pub(crate) const INDEX: &str = "i";
    /// The number of its pack.
    pub(crate) const RUN: &str = "r";
    /// The fencing number; absent: the slot is free.
    pub(crate) const FENCE: &str = "f";
    /// When the lease ends.
    pub(crate) const ENDS_AT: &str = "e";
    /// The number of the write that gave it.
    pub(crate) const WRITE_ID: &str = "p";
    /// The delivery that it is at, when it is not the first.
    pub(crate) const ATTEMPT: &str = "t";
    /// Its cost, when it is not 1.
    pub(crate) const COST: &str = "w";
    /// The fencing number of the lease under which a delivery is known to have been sent. One of an earlier lease may be left.
    pub(crate) const SENT: &str = "d";

    /// All of them.
    pub(crate) const ALL: [&str; 8] = [INDEX, RUN, FENCE, ENDS_AT, WRITE_ID, ATTEMPT, COST, SENT];
}

use attribute as a;

/// The row of a group that was never used.
pub(super) fn new_row(group: &SlotGroup) -> Row {
    let Share { plan, groups, limit, cap, rated } = group.share;
    let row = Row::new(&super::key(&group.key))
        .with(a::CAP, number(cap))
        .with(a::PLAN, number(plan))
        .with(a::GROUPS, number(groups))
        .with(a::LIMIT, number(limit))
        .with_some(a::RATED, rated.then_some(AttributeValue::Bool(true)))
        .with(a::FENCE, number(group.next_fence))
        .with(a::OUTCOMES, AttributeValue::L(Vec::new()));
    [a::HELD, a::RUN, a::NEXT, a::LEFT, a::REFILLS]
        .into_iter()
        .fold(row.with(a::COMPACTIONS, number(group.compactions)), |row, name| row.with(name, number(0)))
}

/// What a repair changes of a group: numbers that rise, and what it lets go of.
pub(crate) fn changes(seen: &SlotGroup, new: &SlotGroup) -> Row {
    let entries = |entries: &[OutcomeEntry]| {
        AttributeValue::L(entries.iter().map(|entry| text(encode_entry(entry))).collect())
    };
    let compacting = (new.compaction != Compaction::Idle).then(|| entries(new.compacting()));
    let mut row = Row::new(&super::key(&seen.key))
        .with(a::FENCE, number(new.next_fence))
        .with(a::COMPACTIONS, number(new.compactions))
        .with(a::HELD, number(new.held))
        .with(a::OUTCOMES, entries(&new.outcomes))
        .with_some(a::COMPACTING, compacting);
    if seen.refill != new.refill {
        row = row.with(a::LEFT, number(0)).with_some(a::ENTRY, None);
    }
    for slot in seen.leases.keys().filter(|slot| !new.leases.contains_key(slot)) {
        row = slot::ALL.into_iter().fold(row, |row, name| row.with_some(&format!("{name}{slot}"), None));
    }
    let gone = seen.packs.keys().filter(|number| !new.packs.contains_key(number));
    gone.fold(row, |row, number| row.with_some(&format!("{}{number}", a::PACK_REF), None))
}

pub(super) fn read(key: &GroupKey, row: &Attributes) -> Result<SlotGroup> {
    let item = Item::read(Table::Policies, row)?;
    let entries = |name| {
        let decoded =
            |text: &str| decode_entry(text).ok_or_else(|| item.corrupt(format!("outcome '{text}'")));
        item.texts(name).into_iter().map(decoded).collect::<Result<Vec<_>>>()
    };
    let compacting = row.contains_key(a::COMPACTING).then(|| entries(a::COMPACTING)).transpose()?;
    Ok(SlotGroup {
        key: key.clone(),
        share: Share {
            plan: item.number(a::PLAN)?,
            groups: item.number(a::GROUPS)?,
            limit: item.number(a::LIMIT)?,
            cap: item.number(a::CAP)?,
            rated: item.flag(a::RATED),
        },
        held: item.number(a::HELD)?,
        leases: read_leases(item)?,
        refill: read_refill(item)?,
        refills: item.number(a::REFILLS)?,
        last_pack: item.number(a::RUN)?,
        packs: read_packs(item)?,
        outcomes: entries(a::OUTCOMES)?,
        compaction: compacting.map_or(Compaction::Idle, Compaction::Begun),
        compactions: item.number(a::COMPACTIONS)?,
        next_fence: item.number(a::FENCE)?,
        reclaimed: item.numbers(a::RECLAIMED),
    })
}

fn read_leases(item: Item<'_>) -> Result<BTreeMap<u32, Lease>> {
    let mut leases = BTreeMap::new();
    for slot in 0..SLOTS_PER_GROUP {
        let of_slot = |attribute: &str| format!("{attribute}{slot}");
        let Some(fence) = item.find_number(&of_slot(slot::FENCE))? else { continue };
        let id = LeaseId {
            slot,
            fence,
            pack_number: item.number(&of_slot(slot::RUN))?,
            index: item.number(&of_slot(slot::INDEX))?,
            cost: item.number_or(&of_slot(slot::COST), 1)?,
        };
        let lease = Lease {
            id,
            ends_at: item.instant_ms(&of_slot(slot::ENDS_AT))?,
            write_id: item.number_or(&of_slot(slot::WRITE_ID), 0)?,
            attempt: item.number_or(&of_slot(slot::ATTEMPT), 1)?,
            sent: item.find_number(&of_slot(slot::SENT))? == Some(fence),
        };
        leases.insert(slot, lease);
    }
    Ok(leases)
}

fn read_refill(item: Item<'_>) -> Result<Refill> {
    if let Some(entry) = item.find_text(a::ENTRY) {
        return Ok(Refill::Begun { entry: entry.to_owned() });
    }
    let left = item.number(a::LEFT)?;
    if left == 0 {
        return Ok(Refill::Idle);
    }
    Ok(Refill::Serving(Range {
        pack_number: item.number(a::RUN)?,
        next: item.number(a::NEXT)?,
        left,
        cost: item.number_or(a::COST, 1)?,
        deadline: item.find_instant_ms(a::DEADLINE)?,
    }))
}

fn read_packs(item: Item<'_>) -> Result<BTreeMap<u32, PackRef>> {
    let mut packs = BTreeMap::new();
    for name in item.names() {
        let Some(number) = name.strip_prefix(a::PACK_REF).and_then(|n| n.parse().ok()) else { continue };
        let id = item.text(name)?;
        let (id, tries) = match id.split_once(a::TRIES) {
            Some((id, tries)) => {
                let read =
                    read_tries(tries).ok_or_else(|| item.corrupt(format!("'{name}' has '{tries}'")))?;
                (id, Some(read))
            }
            None => (id, None),
        };
        let (id, kept) = id.rsplit_once(a::HISTORY_DAYS).map_or((id, None), |(id, kept)| (id, Some(kept)));
        let kept = kept.map(|kept| item.parsed(name, kept)).transpose()?;
        let history_days = HistoryDays::read(kept).map_err(|e| item.corrupt(format!("'{name}': {e}")))?;
        let (id, recheck) = id.strip_suffix(a::RECHECK).map_or((id, false), |id| (id, true));
        let (id, watched) = id.strip_suffix(a::WATCHED).map_or((id, false), |id| (id, true));
        packs.insert(number, PackRef { pack: item.parsed(name, id)?, watched, recheck, history_days, tries });
    }
    Ok(packs)
}

/// A pack as a group names it.
pub(super) fn pack_text(PackRef { pack, watched, recheck, history_days, tries }: &PackRef) -> String {
    let marks = [(*watched, a::WATCHED), (*recheck, a::RECHECK)];
    let marks: String = marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| mark).collect();
    let tries = tries.map_or_else(String::new, |tries| format!("{}{}", a::TRIES, tries_text(tries)));
    let is_default = *history_days == HistoryDays::DEFAULT;
    let kept = if is_default { String::new() } else { format!("{}{}", a::HISTORY_DAYS, history_days.get()) };
    format!("{pack}{marks}{kept}{tries}")
}
