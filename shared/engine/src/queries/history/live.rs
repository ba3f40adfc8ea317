//! What the slot groups of a policy know of a run, beyond its rows.

use std::collections::BTreeMap;

use tidegate_domain::pack::PackId;
use tidegate_domain::slots::{Ended, Lease, OutcomeEntry, SlotGroup};
use tidegate_store::events::{EventRow, HistoryRow, ReleaseNoteRow};
use tidegate_store::runs::RunRow;

/// What the slot groups of a run's policy know of it.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Its events that are in flight, by their number, with all their deliveries counted.
    pub(crate) held: BTreeMap<u32, Lease>,
    /// Outcomes that are not in its history yet. Those that are being compacted are not among them: they count when they are
    /// in the history.
    pub(crate) outcomes: BTreeMap<u32, Ended>,
    /// Outcomes that are being compacted: they may be in its history, and in its tally.
    pub(super) compacting: BTreeMap<u32, Ended>,
}

impl Live {
    /// What groups know of a run.
    pub(crate) fn of(run: &RunRow, groups: &[SlotGroup]) -> Self {
        let mut live = Self::default();
        let (pack, own) = home(run);
        for group in groups {
            let ours = |number: u32| group.pack(number) == Some(&pack);
            let held = group.leases.values().filter(|lease| ours(lease.id.pack_number));
            let counted = |lease: &Lease| Lease { attempt: group.delivery_at(lease), ..*lease };
            live.held
                .extend(held.filter_map(|lease| Some((number_in(own, lease.id.index)?, counted(lease)))));
            let ended = |entry: &OutcomeEntry| {
                let ends = ours(entry.pack_number).then(|| group.ended(entry)).into_iter().flatten();
                ends.filter_map(|ended| ended_in(own, ended)).map(|ended| (ended.index, ended))
            };
            live.outcomes.extend(group.outcomes.iter().flat_map(ended));
            live.compacting.extend(group.compacting().iter().flat_map(ended));
        }
        live
    }

    /// Whether a group knows of an event: what it knows is later than what the history says.
    pub(super) fn knows(&self, index: u32) -> bool {
        self.held.contains_key(&index)
            || self.outcomes.contains_key(&index)
            || self.compacting.contains_key(&index)
    }

    /// How its events have ended that are not known to be in its history.
    pub(super) fn ends(&self) -> impl Iterator<Item = Ended> {
        self.compacting.values().chain(self.outcomes.values()).copied()
    }
}

/// The pack that the events of a run wait in, and which one of it is the run's own, when there are others' too.
pub(crate) fn home(run: &RunRow) -> (PackId, Option<u32>) {
    match &run.member {
        Some(member) => (PackId::Singles(member.pack), Some(member.index)),
        None => (PackId::Run(run.id.clone()), None),
    }
}

/// The number in its run of an event of a pack; `None` when it is another run's.
fn number_in(own: Option<u32>, index: u32) -> Option<u32> {
    match own {
        None => Some(index),
        Some(own) => (own == index).then_some(0),
    }
}

fn ended_in(own: Option<u32>, ended: Ended) -> Option<Ended> {
    Some(Ended { index: number_in(own, ended.index)?, ..ended })
}

/// What a row of a pack's history says of a run.
pub(super) fn row_in(own: Option<u32>, row: HistoryRow) -> Option<HistoryRow> {
    Some(match row {
        HistoryRow::Event(event) => {
            HistoryRow::Event(EventRow { index: number_in(own, event.index)?, ..event })
        }
        HistoryRow::Part(part) => HistoryRow::Part(part),
        HistoryRow::Packed(ends) => {
            HistoryRow::Packed(ends.into_iter().filter_map(|ended| ended_in(own, ended)).collect())
        }
        HistoryRow::ReleaseNote(said) => {
            HistoryRow::ReleaseNote(ReleaseNoteRow { index: number_in(own, said.index)?, ..said })
        }
    })
}
