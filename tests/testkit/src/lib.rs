//! What tests, the simulator, the fuzz suite and the benchmarks stand on: one deployment on embedded services.
//!
//! | item | for |
//! | --- | --- |
//! | [`Deployment`] | tables and queues of our own, empty |
//! | [`Process`] | what engines of it are started with: clients that something may stand before, randomness, configuration |
//! | [`items_in`] | which items a DynamoDB request names |
//! | [`rows`] | the rows of a table as they are stored |
//! | [`queue`] | queues polled by hand, and the messages of ours handled until there are none |
//! | [`template()`] | `template.yaml`, for tests that compare with it what stands again elsewhere |
//!
//! Deliberately absent: a clock, jobs, consumers and an API. Each suite has a world of its own with what it needs of them.

mod deployment;
mod items;
mod process;
pub mod queue;
pub mod rows;
mod template;

pub use deployment::{DEAD_LETTERS, DEAD_RELEASES, DISPATCH, Deployment, RELEASES, SCAN};
pub use items::{ItemKey, items_in};
pub use process::{PREFIX, Process};
pub use template::template;
