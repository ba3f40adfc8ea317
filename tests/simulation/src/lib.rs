//! What proves the engine: worlds in memory with a clock that is moved by hand, on the deployments of `tidegate-testkit`.
//!
//! | item | for |
//! | --- | --- |
//! | [`World`] | one deployment for one test: tables, queues and an engine, all of its own |
//! | [`Gate`](gate::Gate) | processes whose requests a test lets through one by one |
//! | [`Pace`](pace::Pace) | a process whose requests take time, and how many of them are under way at once |
//! | [`Account`] | what was delivered or recorded, held against what should have been |
//! | [`Mutant`](mutants::Mutant) | requests that lack a clause of a condition |
//! | [`restore::play`] | one seeded load whose tables are restored from snapshots of different instants, repaired, and goes on |
//! | [`sim::run`] | one seeded history with faults, held against the invariants after every step |
//!
//! Deliberately absent: sleeps, sockets, and anything that another test could see.

pub mod gate;
pub mod mutants;
pub mod pace;
pub mod restore;
pub mod sim;
pub mod world;

pub use world::{Account, World};

/// Most of a history is requests through the SDK, and a quarter of those is allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
