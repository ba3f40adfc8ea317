//! Throttling: who gets a policy's tokens, and when they come back. Decides, writes, and answers with what follows.
//!
//! | what | where |
//! | --- | --- |
//! | write what waits into the line | `lines` |
//! | look for free slots when something waits | `admit` |
//! | give free slots to events | `serve`, `refill`, `parts`, `turns` |
//! | end leases | `release`, `expire` |
//! | share the limit out to the slot groups | `shares` |
//! | slow or close a policy whose consumer cannot keep up | `strain` |
//! | end the drain of a policy whose client was sidelined | `sideline` |
//! | bring all groups of a policy in order | `reconcile` |
//! | keep the rows of what waits from expiring | `retain` |
//! | decide about runs that overlap; stop a run, or single events | `overlap`, `stop`, `singles` |
//! | set aside what cannot be read | `aside` |
//! | compact outcomes into their runs | `compaction` |
//!
//! The states and transitions of a slot group are `tidegate_domain::slots`. What follows from a write is an
//! [`Effect`](crate::effect::Effect).
//!
//! Deliberately absent: sending, which is an effect, and carrying out effects, which `effect_loop` does. So nothing here can
//! grant and send in one call: `tokens` does, for those who ask.

mod admit;
mod aside;
mod compaction;
mod expire;
pub(crate) mod lines;
mod memory;
mod overlap;
pub(crate) mod parts;
mod reconcile;
mod refill;
pub(crate) mod release;
mod retain;
mod serve;
pub(crate) mod shares;
mod sideline;
mod singles;
pub(crate) mod stop;
mod strain;
mod turns;

use std::sync::Arc;

use tidegate_domain::clock::Clock;
use tidegate_store::Store;

use crate::contents::Contents;
use crate::queues::Queues;
use crate::random::Random;
use memory::Memory;

/// Gives out the tokens of policies.
pub(crate) struct Throttle {
    store: Store,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    queues: Arc<Queues>,
    contents: Arc<Contents>,
    pub(crate) memory: Memory,
}

impl Throttle {
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        queues: Arc<Queues>,
        contents: Arc<Contents>,
    ) -> Self {
        Self { store, clock, random, queues, contents, memory: Memory::new() }
    }
}
