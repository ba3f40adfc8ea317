//! What the table of policies knows: which events wait, are in flight, or have ended and are not compacted yet. The table is
//! of one instant, so this fits together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{OnExpiry, Policy, PolicyRef};
use tidegate_domain::slots::SlotGroup;
use tidegate_store::line::{LineEntry, is_put_back, pack_of_line_key};
use tidegate_store::repair::{PolicyRow, Taken};

use super::RepairError;
use super::report::FindingKind;
use super::session::{Session, done};
use super::spans::Spans;

/// What is known of all policies.
#[derive(Default)]
pub(super) struct Known {
    policies: BTreeMap<PolicyRef, State>,
    /// Packs whose rows are gone: what groups have of them is let go.
    gone: Mutex<BTreeSet<(PolicyRef, PackId)>>,
}

#[derive(Default)]
struct State {
    policy: Option<Policy>,
    groups: Vec<SlotGroup>,
    entries: Vec<(LineEntry, Vec<Taken>)>,
    /// The open events of each pack that something names.
    packs: Mutex<BTreeMap<PackId, Spans>>,
}

impl Known {
    /// Reads the table.
    pub(super) async fn read(session: &Session<'_>) -> Result<Self, RepairError> {
        let (mut known, mut after) = (Self::default(), None);
        loop {
            let page = session.store.all_of_policies(after).await?;
            let (rows, next) = session.readable(page);
            for row in rows {
                match row {
                    PolicyRow::Policy(policy) => {
                        let name = PolicyRef::new(&policy.client, &policy.id);
                        known.policies.entry(name).or_default().policy = Some(*policy);
                    }
                    PolicyRow::Group(group) => {
                        known.policies.entry(PolicyRef::of(&group)).or_default().groups.push(*group);
                    }
                    PolicyRow::Entry(name, entry, taken) => {
                        known.policies.entry(name).or_default().entries.push((entry, taken));
                    }
                    PolicyRow::Other => {}
                }
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        for (name, state) in &mut known.policies {
            state.find_open();
            let lease = state.policy.as_ref().map_or(0, |policy| policy.terms.lease_seconds());
            session.saw_lease(lease);
            let holds = state.policy.as_ref().is_some_and(|p| p.terms.on_expiry() == OnExpiry::Hold);
            for group in state.groups.iter().filter(|_| holds) {
                for lease in group.leases.values() {
                    let (token, pack) = (group.token(lease.id.slot), group.pack(lease.id.pack_number));
                    let subject = token.map(|token| token.to_string()).unwrap_or_default();
                    let pack = pack.map(ToString::to_string).unwrap_or_default();
                    let detail = format!("event {} of {pack}, until {}", lease.id.index, lease.ends_at);
                    session.found(FindingKind::TokenHeld, &name.client, subject, detail);
                }
            }
        }
        Ok(known)
    }

    /// Takes what is open of a pack: what is not taken in the end is of packs without a row.
    pub(super) fn take(&self, policy: &PolicyRef, pack: &PackId) -> Option<Spans> {
        self.policies.get(policy)?.packs().remove(pack)
    }

    /// Gives it back: its pack has a row again.
    pub(super) fn give_back(&self, policy: &PolicyRef, pack: &PackId, open: Spans) {
        if let Some(state) = self.policies.get(policy) {
            state.packs().insert(pack.clone(), open);
        }
    }

    /// What nobody took.
    pub(super) fn take_rest(&self) -> Vec<(PolicyRef, PackId, Spans)> {
        let of = |(name, state): (&PolicyRef, &State)| {
            let packs = std::mem::take(&mut *state.packs());
            packs.into_iter().map(|(pack, open)| (name.clone(), pack, open)).collect::<Vec<_>>()
        };
        self.policies.iter().flat_map(of).collect()
    }

    /// Whether a policy is there.
    pub(super) fn has_policy(&self, name: &PolicyRef) -> bool {
        self.policies.get(name).is_some_and(|state| state.policy.is_some())
    }

    /// Whether an entry without events is in the line, so that somebody looks whether a run has ended.
    pub(super) fn is_looked_after(&self, policy: &PolicyRef, pack: &PackId) -> bool {
        let looks = |(entry, _): &(LineEntry, _)| {
            entry.pack == *pack && entry.is_exhausted() && is_put_back(&entry.line_key)
        };
        self.policies.get(policy).is_some_and(|state| state.entries.iter().any(looks))
    }

    /// Whether a slot group knows a pack.
    pub(super) fn is_in_a_group(&self, policy: &PolicyRef, pack: &PackId) -> bool {
        let knows = |group: &SlotGroup| group.number_of(pack).is_some();
        self.policies.get(policy).is_some_and(|state| state.groups.iter().any(knows))
    }

    /// The entries of a pack.
    pub(super) fn entries_of(&self, policy: &PolicyRef, pack: &PackId) -> Vec<String> {
        let entries = self.policies.get(policy).into_iter().flat_map(|state| &state.entries);
        let of_pack = entries.filter(|(entry, _)| entry.pack == *pack);
        of_pack.map(|(entry, _)| entry.line_key.clone()).collect()
    }

    /// Lets go of what groups have of a pack.
    pub(super) fn let_go(&self, policy: PolicyRef, pack: PackId) {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).insert((policy, pack));
    }

    /// What was let go of.
    fn gone(&self) -> BTreeSet<(PolicyRef, PackId)> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl State {
    fn packs(&self) -> MutexGuard<'_, BTreeMap<PackId, Spans>> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_open(&mut self) {
        let Self { groups, entries, packs, .. } = self;
        let packs = packs.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (entry, taken) in entries.iter() {
            let open = packs.entry(entry.pack.clone()).or_default();
            open.add(entry.cursor, entry.count);
            for taken in taken {
                // The entry gave the range away, and the group has not put it in place.
                let is_under_way = groups.iter().any(|group| {
                    group.key.group == taken.group
                        && group.refills == taken.refill
                        && group.refilling() == Some(&*entry.line_key)
                });
                if is_under_way {
                    open.add(taken.start, taken.end);
                }
            }
        }
        for group in groups.iter() {
            let mut open = |number: u32, from: u32, to: u32| {
                if let Some(pack) = group.pack(number) {
                    packs.entry(pack.clone()).or_default().add(from, to);
                }
            };
            for number in group.packs.keys() {
                open(*number, 0, 0);
            }
            if let Some(range) = group.range() {
                open(range.pack_number, range.next, range.next.saturating_add(range.left));
            }
            for lease in group.leases.values() {
                open(lease.id.pack_number, lease.id.index, lease.id.index.saturating_add(1));
            }
            for entry in group.outcomes.iter().chain(group.compacting()) {
                let numbers = entry.numbers();
                open(entry.pack_number, numbers.start, numbers.end);
            }
        }
    }
}

impl Session<'_> {
    /// Writes every slot group: its numbers begin beyond all that were ever given, and what it has of packs that are gone is
    /// let go.
    pub(super) async fn write_groups(&self, known: &Known) -> Result<(), RepairError> {
        let (store, gone) = (self.store, known.gone());
        let mut writes = Vec::new();
        for (name, state) in &known.policies {
            let is_gone = |pack: &PackId| gone.contains(&(name.clone(), pack.clone()));
            for seen in &state.groups {
                let mut new = seen.clone().without(is_gone).in_epoch(self.epoch);
                let refilling = seen.refilling().and_then(|entry| pack_of_line_key(entry).ok());
                if refilling.is_some_and(|pack| is_gone(&pack)) {
                    new.refill = tidegate_domain::slots::Refill::Idle;
                }
                writes.push(async move {
                    let written = store.repair_slot_group(seen, &new).await?;
                    done(written, || {
                        format!("slot group {} of {}/{}", seen.key.group, name.client, name.policy)
                    })
                });
            }
        }
        self.report().groups = writes.len() as u64;
        self.write_all(writes).await
    }
}
