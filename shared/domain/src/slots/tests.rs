//! State by event: what each transition does in each state of a group.

use crate::job::HistoryDays;
use crate::limits::OUTCOMES_PER_COMPACTION;
use chrono::{DateTime, Utc};

use super::*;
use states::{Edges, drawn};

#[path = "../../../../docs/states.rs"]
mod states;

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 0).unwrap()
}

fn share(cap: u32) -> Share {
    Share { plan: 1, groups: 1, limit: 4, cap, rated: false }
}

fn range(left: u32) -> Range {
    Range { pack_number: 1, next: 10, left, cost: 1, deadline: None }
}

fn run() -> PackRef {
    PackRef {
        pack: "job.1.1795262640".parse().unwrap(),
        watched: false,
        recheck: false,
        history_days: HistoryDays::DEFAULT,
        tries: None,
    }
}

const NEW: NewLease = NewLease { ends_at: DateTime::<Utc>::MAX_UTC, write_id: 9 };

/// A group of four tokens that was never used.
fn idle() -> SlotGroup {
    let key = GroupKey { client: "acme".parse().unwrap(), policy: "small".parse().unwrap(), group: 0 };
    SlotGroup::new(key, share(4))
}

fn begun() -> SlotGroup {
    idle().after(&Transition::begin_refill(&idle(), "5|entry")).unwrap()
}

/// With five events left to grant.
fn serving() -> SlotGroup {
    let begun = begun();
    begun.after(&Transition::commit_refill(&begun, Some((range(5), run())))).unwrap()
}

/// With two of them granted, in slots 0 and 1.
fn holding() -> SlotGroup {
    let serving = serving();
    serving.after(&Transition::grant(&serving, &[0, 1], NEW, at(0))).unwrap()
}

/// With all four tokens held, and one event left.
fn full() -> SlotGroup {
    let holding = holding();
    holding.after(&Transition::grant(&holding, &[2, 3], NEW, at(0))).unwrap()
}

/// Full, after the limit fell.
fn draining() -> SlotGroup {
    full().after(&Transition::set_share(Share { plan: 2, limit: 2, ..share(2) })).unwrap()
}

fn rated() -> SlotGroup {
    full().after(&Transition::set_share(Share { plan: 2, rated: true, ..share(4) })).unwrap()
}

/// With its range used up and slot 0 released.
fn spent() -> SlotGroup {
    let handed = full().after(&Transition::hand_off(&[end(&full(), 1)], NEW, at(0))).unwrap();
    let ended = Transition::free(&[end(&handed, 0)]);
    handed.after(&ended).unwrap()
}

fn compacting() -> SlotGroup {
    let spent = spent();
    spent.after(&Transition::begin_compaction(&spent)).unwrap()
}

/// The end of a slot's lease; of one that never was, when the slot is free.
fn end(group: &SlotGroup, slot: u32) -> LeaseEnd {
    let never = LeaseId { slot, fence: 900, pack_number: 1, index: 0, cost: 1 };
    let lease = group.leases.get(&slot).map_or(never, |lease| lease.id);
    LeaseEnd { lease, attempt: 1, outcome: Outcome::Succeeded }
}

/// The lease of a slot as whoever ends or renews it has seen it.
fn seen(group: &SlotGroup, slot: u32) -> Lease {
    Lease { id: end(group, slot).lease, ends_at: NEW.ends_at, write_id: 0, attempt: 1, sent: false }
}

fn expire(group: &SlotGroup, slot: u32) -> Transition {
    Transition::expire(group, &seen(group, slot), end(group, slot))
}

fn renew(group: &SlotGroup, slot: u32) -> Transition {
    Transition::renew(group, &seen(group, slot), NewLease { ends_at: at(9), write_id: 3 })
}

type Event = (&'static str, fn(&SlotGroup) -> Transition);

const EVENTS: [Event; 15] = [
    ("grant slot 3", |group| Transition::grant(group, &[3], NEW, at(0))),
    ("hand off slot 0", |group| Transition::hand_off(&[end(group, 0)], NEW, at(0))),
    ("hand off slots 0 and 1", |group| Transition::hand_off(&[end(group, 0), end(group, 1)], NEW, at(0))),
    ("free slot 1", |group| Transition::free(&[end(group, 1)])),
    ("expire slot 1", |group| expire(group, 1)),
    ("renew slot 1", |group| renew(group, 1)),
    ("requeue slot 1", |group| Transition::requeue(&[end(group, 1).lease])),
    ("note slots 0 and 1 as sent", |group| {
        Transition::note_sent(&[end(group, 0).lease, end(group, 1).lease])
    }),
    ("extend slot 1", |group| Transition::extend(end(group, 1).lease, at(7))),
    ("begin a refill", |group| Transition::begin_refill(group, "5|other")),
    ("commit a refill", |group| Transition::commit_refill(group, Some((range(2), run())))),
    ("drop the range", |group| Transition::drop_range(group, group.range().copied().unwrap_or(range(1)))),
    ("set an earlier share", |_| Transition::set_share(share(4))),
    ("begin a compaction", Transition::begin_compaction),
    ("end a compaction", Transition::end_compaction),
];

/// Which events take place in which state: `x` in the order of [`EVENTS`].
#[test]
fn each_event_takes_place_in_the_states_that_admit_it() {
    #[rustfmt::skip]
    let table: [(&str, SlotGroup, &str); 9] = [
        ("idle",       idle(),       ".........x...x."),
        ("begun",      begun(),      "..........x..x."),
        ("serving",    serving(),    "x..........x.x."),
        ("holding",    holding(),    "xxxxxxxxx..x.x."),
        ("full",       full(),       ".x.xxxxxx..x.x."),
        ("draining",   draining(),   "...xxxxxx..x.x."),
        ("rated",      rated(),      "...xxxxxx..x.x."),
        ("spent",      spent(),      "...xxxx.xx...x."),
        ("compacting", compacting(), "...xxxx.xx....x"),
    ];
    for (name, group, expected) in table {
        let takes_place: String =
            EVENTS.iter().map(|(_, event)| if group.admits(&event(&group)) { 'x' } else { '.' }).collect();
        assert_eq!(takes_place, expected, "{name}: {group:?}");
    }
}

/// Whatever takes place: `held` is the sum of the leases, and no event or fencing number is given twice.
#[test]
fn no_event_breaks_what_always_holds() {
    let states = [idle(), begun(), serving(), holding(), full(), draining(), rated(), spent(), compacting()];
    for before in states {
        for (name, event) in EVENTS {
            let Some(after) = before.after(&event(&before)) else { continue };
            let costs: u32 = after.leases.values().map(|lease| lease.id.cost).sum();
            assert_eq!(after.held, costs, "{name}: {after:?}");
            assert!(after.held <= before.held.max(after.share.cap), "{name}: {after:?}");
            assert!(after.next_fence >= before.next_fence, "{name}");
            for lease in after.leases.values() {
                let is_known = before.leases.values().any(|known| known.id == lease.id);
                assert!(is_known || lease.id.fence >= before.next_fence, "{name}: {lease:?}");
            }
        }
    }
}

#[test]
fn each_event_changes_what_it_says() {
    let group = full();
    let handed = group.after(&Transition::hand_off(&[end(&group, 1)], NEW, at(0))).unwrap();
    let lease = handed.leases.get(&1).unwrap().id;
    assert_eq!((lease.index, lease.fence), (14, group.next_fence));
    assert_eq!((handed.refill.clone(), handed.outcomes.len()), (Refill::Idle, 1));
    let seen = *group.leases.get(&1).unwrap();
    let renewed = group.after(&Transition::renew(&group, &seen, NEW)).unwrap();
    let lease = renewed.leases.get(&1).unwrap();
    assert_eq!((lease.id.index, lease.attempt, lease.id.fence), (seen.id.index, 2, group.next_fence));
    assert_eq!(renewed.reclaimed, [seen.id.fence]);
    let expired = group.after(&Transition::expire(&group, &seen, end(&group, 1))).unwrap();
    assert_eq!((expired.held, expired.leases.len(), &expired.reclaimed), (3, 3, &vec![seen.id.fence]));
    let spent = spent();
    let begun = spent.after(&Transition::begin_refill(&spent, "5|other")).unwrap();
    let other = PackRef {
        pack: "other.1.1795262640".parse().unwrap(),
        watched: true,
        recheck: false,
        history_days: HistoryDays::DEFAULT,
        tries: None,
    };
    let committed = begun.after(&Transition::commit_refill(&begun, Some((range(2), other)))).unwrap();
    // The number of the first run is still in use; the other one gets the next.
    assert_eq!(committed.range().map(|range| range.pack_number), Some(2));
    assert_eq!(committed.packs.keys().copied().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_ends_together_is_recorded_as_few_outcomes_as_say_it() {
    let ended = |index, outcome, attempt| LeaseEnd {
        lease: LeaseId { slot: index, fence: 1, pack_number: 1, index, cost: 1 },
        attempt,
        outcome,
    };
    let (done, failed) = (Outcome::Succeeded, Outcome::Failed);
    let ends = [(14, done, 1), (11, done, 1), (12, done, 1), (13, failed, 1), (15, done, 2), (10, done, 1)];
    let ends = ends.map(|(index, outcome, attempt)| ended(index, outcome, attempt));
    let recorded = Transition::free(&ends).then.into_iter().find_map(|change| match change {
        Change::Record(entries) => Some(entries),
        _ => None,
    });
    let entries = recorded.unwrap();
    let numbers: Vec<_> = entries.iter().map(OutcomeEntry::numbers).collect();
    assert_eq!(numbers, [10..13, 13..14, 14..15, 15..16]);
    let mut all: Vec<Ended> = entries.iter().flat_map(OutcomeEntry::each).collect();
    let mut given: Vec<Ended> = ends.iter().map(|end| end.entry().first).collect();
    all.sort_by_key(|ended| ended.index);
    given.sort_by_key(|ended| ended.index);
    assert_eq!(all, given);
}

#[test]
fn outcomes_are_compacted_when_they_are_many_entries_or_of_many_events() {
    let outcome = |events| OutcomeEntry {
        pack_number: 1,
        first: Ended { index: 0, outcome: Outcome::Succeeded, attempts: 1 },
        events,
    };
    let mut group = full();
    for (outcomes, is_due) in [
        (vec![outcome(1); OUTCOMES_PER_COMPACTION - 1], false),
        (vec![outcome(1); OUTCOMES_PER_COMPACTION], true),
        (vec![outcome(10); 11], false),
        (vec![outcome(10); 12], true),
    ] {
        group.outcomes = outcomes;
        assert_eq!(group.is_compaction_due(), is_due, "{:?}", group.outcomes);
    }
}

#[test]
fn a_deadline_and_a_cost_are_part_of_the_admission_rule() {
    let begun = begun();
    let late = Range { deadline: Some(at(100)), cost: 3, ..range(5) };
    let group = begun.after(&Transition::commit_refill(&begun, Some((late, run())))).unwrap();
    let grant = |now| Transition::grant(&group, &group.grantable(), NEW, now);
    // Four tokens hold one event of three.
    assert_eq!(group.grantable(), [0]);
    assert!(!group.admits(&grant(at(100))));
    let held = group.after(&grant(at(99))).unwrap();
    assert_eq!((held.held, held.grantable()), (3, vec![]));
    assert!(!held.admits(&Transition::hand_off(&[end(&held, 0)], NEW, at(100))));
    assert!(held.admits(&Transition::hand_off(&[end(&held, 0)], NEW, at(99))));
    // Slots of another cost are not handed on.
    let other = LeaseEnd { lease: LeaseId { cost: 1, ..end(&held, 0).lease }, ..end(&held, 0) };
    assert!(!held.admits(&Transition::hand_off(&[other], NEW, at(99))));
}

/// What may be granted is granted, and one more is refused.
#[test]
fn as_many_as_are_grantable_are_admitted() {
    for (cap, cost, left) in [(4, 1, 9), (4, 1, 2), (4, 2, 9), (3, 2, 9), (4, 4, 1), (0, 1, 5), (12, 1, 30)] {
        let mut begun = begun();
        begun.share = Share { limit: cap, ..share(cap) };
        let ranged = Range { cost, ..range(left) };
        let group = begun.after(&Transition::commit_refill(&begun, Some((ranged, run())))).unwrap();
        let slots = group.grantable();
        let more: Vec<u32> = group.free_slots().take(slots.len() + 1).collect();
        assert!(slots.is_empty() || group.admits(&Transition::grant(&group, &slots, NEW, at(0))));
        assert!(more.len() == slots.len() || !group.admits(&Transition::grant(&group, &more, NEW, at(0))));
    }
}

#[test]
fn what_follows_is_said_by_the_transition() {
    let follows =
        |group: &SlotGroup, transition: Transition| transition.follows(&group.after(&transition).unwrap());
    let mut full = full();
    let hand_off = |group: &SlotGroup| Transition::hand_off(&[end(group, 2)], NEW, at(0));
    // It uses up the range.
    assert_eq!(follows(&full, hand_off(&full)), [Follow::Send(vec![2]), Follow::Serve]);
    full.refill = Refill::Serving(range(2));
    assert_eq!(follows(&full, hand_off(&full)), [Follow::Send(vec![2])]);
    assert_eq!(follows(&full, Transition::free(&[end(&full, 2)])), [Follow::Serve]);
    let watched = PackRef { watched: true, ..run() };
    let mut group = full.clone();
    group.packs.insert(1, watched);
    let failed = LeaseEnd { outcome: Outcome::Failed, ..end(&group, 2) };
    let both = [Follow::Send(vec![2]), Follow::Compact];
    assert_eq!(follows(&group, Transition::hand_off(&[failed], NEW, at(0))), both);
}

/// What the transitions of slot 0 and of its group do, by the names of the diagrams.
const STEPS: [Event; 14] = [
    ("grant", |group| Transition::grant(group, &[0], NEW, at(0))),
    ("hand off", |group| Transition::hand_off(&[end(group, 0)], NEW, at(0))),
    ("free", |group| Transition::free(&[end(group, 0)])),
    ("expire", |group| expire(group, 0)),
    ("renew", |group| renew(group, 0)),
    ("requeue", |group| Transition::requeue(&[end(group, 0).lease])),
    ("note sent", |group| Transition::note_sent(&[end(group, 0).lease])),
    ("extend", |group| Transition::extend(end(group, 0).lease, at(7))),
    ("begin refill", |group| Transition::begin_refill(group, "5|other")),
    ("commit refill", |group| Transition::commit_refill(group, Some((range(2), run())))),
    ("commit nothing", |group| Transition::commit_refill(group, None)),
    ("drop range", |group| Transition::drop_range(group, group.range().copied().unwrap_or(range(1)))),
    ("begin compaction", Transition::begin_compaction),
    ("end compaction", Transition::end_compaction),
];

/// The edges that the named steps make between what `state` calls the states.
fn made(steps: &[&str], state: impl Fn(&SlotGroup) -> &'static str) -> Edges {
    // Full, after slot 0 was freed: one event left, for one free slot.
    let almost = full().after(&Transition::free(&[end(&full(), 0)])).unwrap();
    let groups =
        [idle(), begun(), serving(), holding(), full(), almost, draining(), rated(), spent(), compacting()];
    let mut edges = Edges::new();
    for before in groups {
        for (name, step) in STEPS.iter().filter(|(name, _)| steps.contains(name)) {
            if let Some(after) = before.after(&step(&before)) {
                edges.insert((state(&before).to_owned(), state(&after).to_owned(), (*name).to_owned()));
            }
        }
    }
    edges
}

#[test]
fn the_diagrams_show_what_the_transitions_do() {
    let slot = ["grant", "hand off", "free", "expire", "renew", "requeue", "note sent", "extend"];
    let slot_state = |group: &SlotGroup| if group.leases.contains_key(&0) { "held" } else { "free" };
    assert_eq!(drawn("Slot of a slot group"), made(&slot, slot_state));
    let refill = ["begin refill", "commit refill", "commit nothing", "grant", "hand off", "drop range"];
    let refill_state = |group: &SlotGroup| match group.refill {
        Refill::Idle => "idle",
        Refill::Begun { .. } => "begun",
        Refill::Serving(_) => "serving",
    };
    assert_eq!(drawn("Refill of a slot group"), made(&refill, refill_state));
    let compaction_state = |group: &SlotGroup| match group.compaction {
        Compaction::Idle => "idle",
        Compaction::Begun(_) => "begun",
    };
    let compaction = ["begin compaction", "end compaction"];
    assert_eq!(drawn("Compaction of a slot group"), made(&compaction, compaction_state));
}
