//! What proves the engine: worlds in memory with a clock that is moved by hand.
//!
//! | item | for |
//! | --- | --- |
//! | [`World`] | one deployment for one test: tables, queues and an engine, all of its own |
//! | [`sim::run`] | one seeded history with faults, held against the invariants after every step |
//!
//! Deliberately absent: sleeps, sockets, and anything that another test could see.

pub mod sim;
pub mod world;

pub use world::World;
