//! Throttling: who gets a policy's tokens, and when they come back.
//!
//! | what | where |
//! | --- | --- |
//! | bring a whole policy in order | `reconcile` |
//! | let events in that did not wait in the line | `arrive` |
//! | look for free slots when something waits | `admit`, `paced` |
//! | give free slots to events | `serve`, `refill` |
//! | share the limit out to the slot groups | `shares` |
//! | decide about runs that overlap; stop a run | `overlap`, `stop` |
//! | stop single events that wait in packs | `singles` |
//! | set aside what cannot be read | `aside` |
//! | end leases | `release`, `release_queue`, `expire`, `free` |
//! | compact outcomes into their runs | `compaction` |
//!
//! The states and transitions of a slot group are `tidegate_domain::slots`. What follows from a write is an
//! [`Effect`](crate::effect::Effect).
//!
//! Deliberately absent: sending. What is granted is an effect.

pub(crate) mod admit;
mod arrive;
mod aside;
mod compaction;
mod expire;
mod free;
mod overlap;
mod paced;
mod parts;
pub(crate) mod reconcile;
mod refill;
pub(crate) mod release;
mod release_queue;
mod serve;
pub(crate) mod shares;
mod singles;
pub(crate) mod stop;
