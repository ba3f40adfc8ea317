//! The loops that stand in for AWS: what EventBridge, the event source mappings and the TTL of a deployment do.
//!
//! [`Runtime`] opens the embedded services, takes over what a former process left half done, and runs the engine: a tick
//! at each minute, handlers that long-poll the dispatch queue, the scan queue and the release queue, a look after expired
//! leases, the sweep of expired rows.
//! All of them are tasks of one Tokio runtime; each gives way after every message, so that none keeps the others waiting.
//!
//! It serves no API, opens no port and prints nothing: `tidegate local` does.

// Values from outside come here: nothing may panic on them.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::string_slice)
)]

mod consumer_queue;
mod handling;
mod queues;
mod runtime;
mod stop;
mod tending;
mod ticking;

pub use consumer_queue::{BadQueueName, ConsumerQueue};
pub use queues::QueueError;
pub use runtime::{Options, Place, Runtime, StartError, tables_in};
pub use tidegate_embedded::Durability;

#[cfg(test)]
mod tests;
