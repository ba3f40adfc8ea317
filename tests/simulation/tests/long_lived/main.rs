//! Rows live long: what a newer version stored is kept, and what cannot be read keeps nothing else waiting.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod finished;
mod kept;
mod line;
mod sent;
mod stage;
mod swept;
