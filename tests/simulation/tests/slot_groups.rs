//! A slot group in DynamoDB is the slot group in memory: whatever transition is performed in whatever state, the image
//! that comes back is the one that the transition says.

use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::slots::{
    GroupKey, Lease, LeaseEnd, LeaseId, NewLease, Outcome, PackRef, Range, Share, SlotGroup, Transition,
};
use tidegate_simulation::World;
use tidegate_store::Store;
use tidegate_store::slots::Written;

/// A step: which transition, of what is seen now or was seen some steps ago, and two numbers to make up the rest.
type Step = (u8, usize, u32, u32);

const KINDS: u8 = 19;
/// More than the steps of a case give.
const NOBODYS_FENCE: u64 = 10_000;

fn at(number: u32) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(i64::from(number % 50)).unwrap()
}

fn outcome(number: u32) -> Outcome {
    [Outcome::Succeeded, Outcome::Failed, Outcome::Expired, Outcome::Dead][number as usize % 4]
}

/// A lease that the group has, when it has any; a made-up one otherwise, and now and then.
fn lease(seen: &SlotGroup, a: u32, b: u32) -> Lease {
    // Its fencing number is nobody's: with a real one comes a real event and cost, since tokens are signed.
    let fence = NOBODYS_FENCE + u64::from(b % 9);
    let made_up = LeaseId { slot: a % 12, fence, pack_number: 1, index: b % 5, cost: 1 + a % 3 };
    let made_up = Lease { id: made_up, ends_at: at(b), write_id: 0, attempt: 1, sent: false };
    let known = seen.leases.values().nth(a as usize % seen.leases.len().max(1)).copied();
    known.filter(|_| !b.is_multiple_of(7)).unwrap_or(made_up)
}

fn ends(seen: &SlotGroup, a: u32, b: u32) -> Vec<LeaseEnd> {
    let mut ends: Vec<LeaseEnd> = Vec::new();
    for more in 0..=b % 3 {
        let Lease { id, attempt, .. } = lease(seen, a.wrapping_add(more), b);
        if ends.iter().all(|end| end.lease.slot != id.slot) {
            ends.push(LeaseEnd { lease: id, attempt, outcome: outcome(b.wrapping_add(more)) });
        }
    }
    ends
}

/// Those that the first lets go with it: leases that are handed on together are of one cost.
fn ends_of_one_cost(seen: &SlotGroup, a: u32, b: u32) -> Vec<LeaseEnd> {
    let mut ends = ends(seen, a, b);
    let cost = ends.first().map(|end| end.lease.cost);
    ends.retain(|end| Some(end.lease.cost) == cost);
    ends
}

fn range(a: u32, b: u32) -> (Range, PackRef) {
    let deadline = (a.is_multiple_of(4)).then(|| at(b));
    let range = Range { pack_number: 0, next: b % 50, left: a % 9, cost: 1 + b % 3, deadline };
    let pack = match a % 4 {
        3 => format!("~29921044.5.1.{}", a % 5),
        job => format!("job{job}.1.1795262640"),
    };
    let (watched, recheck) = (b.is_multiple_of(2), b.is_multiple_of(3));
    (
        range,
        PackRef {
            pack: pack.parse().unwrap(),
            watched,
            recheck,
            history_days: HistoryDays::DEFAULT,
            tries: None,
        },
    )
}

fn transition(kind: u8, seen: &SlotGroup, a: u32, b: u32) -> Transition {
    let new = NewLease { ends_at: at(a), write_id: u64::from(b) };
    match kind {
        0 | 1 => {
            let grantable = seen.grantable();
            let slots = if grantable.is_empty() || a.is_multiple_of(5) {
                vec![a % 12, 11 - a % 6]
            } else {
                grantable
            };
            let slots = if slots.first() == slots.last() { vec![a % 12] } else { slots };
            Transition::grant(seen, &slots, new, at(b))
        }
        2 | 3 => Transition::hand_off(&ends_of_one_cost(seen, a, b), new, at(b)),
        4 => Transition::free(&ends(seen, a, b)),
        5 => {
            let lease = lease(seen, a, b);
            let end = LeaseEnd { lease: lease.id, attempt: lease.attempt, outcome: outcome(a) };
            Transition::expire(seen, &lease, end)
        }
        6 => Transition::renew(seen, &lease(seen, a, b), new),
        7 => Transition::requeue(&[lease(seen, a, b).id]),
        8 => Transition::extend(lease(seen, a, b).id, at(b)),
        9 => Transition::begin_refill(seen, &format!("5|{a}")),
        10 => Transition::commit_refill(seen, (!b.is_multiple_of(5)).then(|| range(a, b))),
        // Something is left of whatever range anybody saw.
        11 => {
            Transition::drop_range(seen, seen.range().copied().unwrap_or(Range { left: 1, ..range(a, b).0 }))
        }
        12 => {
            let share = Share {
                plan: seen.share.plan + 1 - u64::from(a.is_multiple_of(4)),
                rated: b.is_multiple_of(5),
                ..share(b)
            };
            Transition::set_share(share)
        }
        13 => {
            let known = seen.packs.iter().nth(a as usize % seen.packs.len().max(1));
            let (number, pack) = known.map_or((1, range(a, b).1), |(number, pack)| (*number, pack.clone()));
            Transition::mark_for_recheck(number, &pack)
        }
        14 | 15 => {
            let (range, pack) = range(a, b);
            let slots = seen.slots_for(1 + a % 4, range.cost);
            Transition::admit(seen, if slots.is_empty() { &[3] } else { &slots }, range.cost, pack, new)
        }
        16 => Transition::bar_admission(seen.refills),
        17 => {
            let leases: Vec<_> = ends(seen, a, b).iter().map(|end| end.lease).collect();
            Transition::note_sent(&leases)
        }
        _ if a.is_multiple_of(2) => Transition::begin_compaction(seen),
        _ => Transition::end_compaction(seen),
    }
}

fn share(number: u32) -> Share {
    Share { plan: 1, groups: 1, limit: number % 14, cap: number % 13, rated: false }
}

/// Plays steps on a group of its own; returns how many took place.
async fn play(store: &Store, number: u32, steps: &[Step]) -> Result<u32, TestCaseError> {
    let key = GroupKey { client: "acme".parse().unwrap(), policy: "small".parse().unwrap(), group: number };
    let mut group = SlotGroup::new(key.clone(), share(12));
    store.create_slot_group(&group).await.unwrap();
    let (mut seen, mut done) = (vec![group.clone()], 0);
    for (kind, ago, a, b) in steps {
        let known = &seen[seen.len().saturating_sub(1 + ago)];
        let transition = transition(*kind, known, *a, *b);
        let written = store.perform(&key, &transition).await;
        let unreadable = |e| TestCaseError::fail(format!("{transition:?} of {group:?}: {e}"));
        match (group.after(&transition), written.map_err(unreadable)?) {
            (Some(expected), Written::Done(image)) => {
                prop_assert_eq!(&image, &expected, "{:?}", transition);
                (group, done) = (image, done + 1);
                seen.push(group.clone());
            }
            (None, Written::Refused(Some(image))) => prop_assert_eq!(&image, &group, "{:?}", transition),
            (expected, written) => {
                let message = format!("{transition:?} of {group:?}: {expected:?}, but {written:?}");
                return Err(TestCaseError::fail(message));
            }
        }
    }
    prop_assert_eq!(store.slot_group(&key).await.unwrap(), Some(group));
    Ok(done)
}

#[test]
fn each_write_leaves_the_image_that_its_transition_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::new()).unwrap();
    let (number, done) = (AtomicU32::new(0), AtomicU32::new(0));
    // The latest image most of the time.
    let ago = prop_oneof![6 => Just(0_usize), 1 => 1_usize..4];
    let steps = prop::collection::vec((0..KINDS, ago, any::<u32>(), any::<u32>()), 1..60);
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() });
    runner
        .run(&steps, |steps| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            let played = runtime.block_on(play(world.engine.store(), number, &steps))?;
            done.fetch_add(played, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    let done = done.into_inner();
    assert!(done > 500, "only {done} transitions took place");
}
