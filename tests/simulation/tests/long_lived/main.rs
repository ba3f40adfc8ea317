//! Rows live long: what a newer version stored is kept.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kept;
mod stage;
