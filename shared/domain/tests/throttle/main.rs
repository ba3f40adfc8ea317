//! The throttle, explored exhaustively: every order of the writes of two workers, with crashes, lost replies, leases that
//! run out and changes of the limit.
//!
//! What the workers do stands in `world.rs`: the steps of the engine, each with one write. The writes themselves are the
//! transitions and plans of production.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says its figures"
)]

mod model;
mod world;

use std::ops::Range;

use model::{Faults, Mutant, Throttle};
use stateright::HasDiscoveries::AnyOf;
use stateright::{Checker, Model};
use world::Size;

const WHOLE: Size = Size { events: 5, tokens: 3, portion: 3, arrival: false, ahead: true };
/// Small enough for changes of the limit, which multiply the states.
const CHANGING: Size = Size { events: 4, tokens: 2, portion: 2, arrival: false, ahead: false };
/// Small enough for faults that come together.
const SMALL: Size = Size { events: 3, tokens: 2, portion: 2, arrival: false, ahead: false };
/// Small enough for many refills of one group.
const NARROW: Size = Size { events: 3, tokens: 2, portion: 1, arrival: false, ahead: true };
/// The same with an event that arrives beside those of the run.
const ARRIVING: Size = Size { events: 2, tokens: 2, portion: 2, arrival: true, ahead: false };

fn hold(size: Size, faults: Faults) {
    let checker = Throttle { size, faults, mutant: None }.checker().threads(2).spawn_bfs().join();
    println!("{size:?}, {faults:?}: {} states", checker.unique_state_count());
    checker.assert_properties();
}

/// The properties hold in every state that can be reached, and each fault happens on the way.
#[test]
fn no_order_of_writes_and_faults_breaks_the_throttle() {
    for faults in [
        Faults { crashes: 1, ..Faults::NONE },
        Faults { lost_replies: 1, ..Faults::NONE },
        Faults { expiries: 1, ..Faults::NONE },
        Faults { repeats: 1, ..Faults::NONE },
    ] {
        hold(WHOLE, faults);
    }
    hold(CHANGING, Faults { changes: 1, ..Faults::NONE });
}

/// The same where faults of two kinds come together.
#[test]
fn no_two_faults_together_break_the_throttle() {
    hold_pairs(0..4);
}

/// Pairs of faults of these kinds.
fn hold_pairs(later: Range<usize>) {
    let with = |kind: usize, faults: Faults| match kind {
        0 => Faults { crashes: 1, ..faults },
        1 => Faults { lost_replies: 1, ..faults },
        2 => Faults { expiries: 1, ..faults },
        3 => Faults { repeats: 1, ..faults },
        _ => Faults { changes: 1, ..faults },
    };
    for one in later {
        for other in 0..one {
            hold(SMALL, with(one, with(other, Faults::NONE)));
        }
    }
}

/// Groups that take one event at a time, with a worker that is slow to finish what others finished long before.
#[test]
fn no_order_of_many_refills_loses_an_event() {
    hold(NARROW, Faults::NONE);
    hold(NARROW, Faults { crashes: 1, ..Faults::NONE });
}

/// A single event goes straight to a slot group or into the line, once, whatever happens to the message that it comes in.
#[test]
fn no_order_of_writes_and_faults_loses_an_event_that_arrives() {
    for faults in [
        Faults { crashes: 1, lost_replies: 1, ..Faults::NONE },
        Faults { expiries: 1, ..Faults::NONE },
        Faults { changes: 1, ..Faults::NONE },
    ] {
        hold(ARRIVING, faults);
    }
}

/// The same where an event arrives and more than one thing goes wrong, or the limit changes in the sizes of the others: twelve
/// million states, a quarter of an hour of a processor.
#[test]
#[ignore = "explores for minutes: run it after a change of the throttle"]
fn nothing_breaks_the_throttle_in_any_size() {
    hold(WHOLE, Faults { changes: 1, ..Faults::NONE });
    hold_pairs(4..5);
    for faults in [
        Faults { crashes: 2, ..Faults::NONE },
        Faults { crashes: 1, expiries: 1, ..Faults::NONE },
        Faults { crashes: 1, changes: 1, ..Faults::NONE },
    ] {
        hold(ARRIVING, faults);
    }
}

/// A throttle that lacks a clause breaks a property: the model would notice.
#[test]
fn a_throttle_without_a_clause_is_noticed() {
    for (size, mutant, broken) in [
        (ARRIVING, Mutant::AdmitsAnyTime, "I3 each event begins once"),
        (WHOLE, Mutant::GrantsTakenSlots, "I5 a token is a lease"),
        (WHOLE, Mutant::GrantsBeyondItsShare, "I1 never more than the limit"),
        (WHOLE, Mutant::ReleasesAnyLease, "I4 a release acts once"),
        (WHOLE, Mutant::CommitsTwice, "I3 each event begins once"),
        (NARROW, Mutant::TakesForAnEndedRefill, "I2 and I5 each event ends, and the bucket is full again"),
    ] {
        let faults = Faults { expiries: 1, lost_replies: 1, repeats: 1, ..Faults::NONE };
        let checker = Throttle { size, faults, mutant: Some(mutant) }
            .checker()
            .finish_when(AnyOf([broken].into()))
            .spawn_bfs()
            .join();
        assert!(checker.discovery(broken).is_some(), "{mutant:?} goes unnoticed");
    }
}
