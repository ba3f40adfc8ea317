//! AWS as it is, for the production engine to survive on: latencies, limits, functions that are stopped wherever they are.
//!
//! | module | what it models |
//! | --- | --- |
//! | [`limits`] | all numbers, each with its source: those of `tidegate-forecast`, which counts by the same ones |
//! | [`clock`] | time, which is virtual: an hour of waiting costs nothing |
//! | [`dynamodb`] | latency, what tables and partitions take, transactions that meet, reads that lag |
//! | [`sqs`] | latency, messages that come twice |
//! | [`lambda`] | concurrency, cold starts, time-outs, event sources, the schedule |
//! | `roles` | what each function's role in `template.yaml` allows; all else is refused |
//! | [`version`] | later versions, as far as they may differ |
//! | [`weather`] | services that are slow, throttled or gone |
//! | [`cloud`] | a region with all of it, to which Tidegate is deployed |
//! | [`consumer`] | who works on events and releases their tokens |
//! | [`arrivals`] | what reached consumers, and how late |
//! | [`scenarios`] | what must hold, one file each |
//!
//! The embedded services stand beneath it: the model holds requests back, refuses and loses them, and never answers in
//! their place what they would know. Deliberately absent: sockets, and whatever costs nothing and never fails.

pub mod arrivals;
pub mod clock;
pub mod cloud;
pub mod consumer;
pub mod dice;
pub mod dynamodb;
mod function;
pub mod lambda;
mod processor;
mod region;
mod reply;
mod roles;
pub mod scenarios;
pub mod sqs;
pub mod version;
pub mod weather;

#[cfg(test)]
mod template;

pub use tidegate_forecast::limits;

/// A scenario is millions of requests through the SDK, and much of that is allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
