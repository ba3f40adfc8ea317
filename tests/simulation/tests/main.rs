//! What the engine must do, each file or folder one of its duties, in a world of its own for each test.
//!
//! They are one program, since each more would link the engine, the SDK and the embedded services once again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking; budgets, forecasts and mutants print their figures"
)]

mod ahead;
mod budgets;
mod catch_up;
mod completion;
mod duplicates;
mod emission;
mod explain;
mod forecast;
mod histories;
mod in_time;
mod index_shape;
mod interleavings;
mod isolation;
mod long_lived;
mod main_path;
mod mutants;
mod own_messages;
mod packs;
mod progress;
mod reference;
mod refusals;
mod repairs;
mod restored;
mod slot_groups;
mod throttling;
