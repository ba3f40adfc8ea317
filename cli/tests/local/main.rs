//! The real binary: what it shows, what it keeps over a kill, how it refuses.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a helper cannot do is a failed test")]

mod backup;
mod demo;
mod endpoint;
mod hostile;
mod process;
mod start;
