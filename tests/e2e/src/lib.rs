//! Using a deployed Tidegate from outside, as its users do: the API through its function URL, queues with an AWS
//! SDK, an HTTP endpoint of one's own.
//!
//! Deliberately absent: any crate of Tidegate. What these tests know of it is what its documentation promises. The
//! deployment itself is the business of `cargo xtask e2e`, which says in the environment where to find it.

pub mod api;
pub mod consumers;
pub mod deployed;
pub mod hook;
pub mod inbox;
pub mod queue;
pub mod worker;
