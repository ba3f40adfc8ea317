//! The throttle, explored exhaustively: every order of the writes of two workers, with crashes, lost replies, leases that
//! run out and changes of the limit.
//!
//! What the workers do stands in `world.rs`: the steps of the engine, each with one write. The writes themselves are the
//! transitions and plans of production.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod model;
mod world;

use model::{Faults, Mutant, Throttle};
use stateright::HasDiscoveries::AnyOf;
use stateright::{Checker, Model};

/// The properties hold in every state that can be reached, and each fault happens on the way.
#[test]
fn no_order_of_writes_and_faults_breaks_the_throttle() {
    for faults in [
        Faults { crashes: 1, ..Faults::NONE },
        Faults { lost_replies: 1, ..Faults::NONE },
        Faults { expiries: 1, ..Faults::NONE },
        Faults { changes: 1, ..Faults::NONE },
        Faults { repeats: 1, ..Faults::NONE },
    ] {
        let checker = Throttle { faults, mutant: None }.checker().threads(2).spawn_bfs().join();
        println!("{faults:?}: {} states", checker.unique_state_count());
        checker.assert_properties();
    }
}

/// A throttle that lacks a clause breaks a property: the model would notice.
#[test]
fn a_throttle_without_a_clause_is_noticed() {
    for (mutant, broken) in [
        (Mutant::GrantsTakenSlots, "I5 a token is a lease"),
        (Mutant::GrantsBeyondItsShare, "I1 never more than the limit"),
        (Mutant::ReleasesAnyLease, "I4 a release acts once"),
        (Mutant::CommitsTwice, "I3 each event begins once"),
    ] {
        let faults = Faults { expiries: 1, lost_replies: 1, repeats: 1, ..Faults::NONE };
        let checker = Throttle { faults, mutant: Some(mutant) }
            .checker()
            .finish_when(AnyOf([broken].into()))
            .spawn_bfs()
            .join();
        assert!(checker.discovery(broken).is_some(), "{mutant:?} goes unnoticed");
    }
}
