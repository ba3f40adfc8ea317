//! `tidegate dry-run`, the real binary: what it prints, what it refuses, and that it agrees with the reference.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a helper cannot do is a failed test")]

mod output;
mod process;
mod reference;
mod refusals;
