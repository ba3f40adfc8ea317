//! Throttling: who gets a policy's tokens, and when they come back.
//!
//! | what | where |
//! | --- | --- |
//! | look after a policy | `attend` |
//! | give free slots to events | `serve`, `refill` |
//! | share the limit out to the slot groups | `shares` |
//! | decide about runs that overlap; stop a run | `overlap`, `stop` |
//! | end leases | `release`, `release_queue`, `expire`, `free` |
//! | pack outcomes into their runs | `flush` |
//!
//! Deliberately absent: sending. What is granted goes to `deliver`.

mod attend;
mod expire;
mod flush;
mod free;
mod overlap;
mod paced;
mod refill;
pub(crate) mod release;
mod release_queue;
mod serve;
pub(crate) mod shares;
pub(crate) mod stop;
