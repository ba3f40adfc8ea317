//! The main job, end to end, on a deployed stack. Ignored where there is none: `cargo xtask e2e` deploys one.

mod batches;
mod consumers;
mod dead_letters;
mod far_queues;
mod launches;
mod refusals;
mod schedules;
mod services;
mod sidelining;
mod throttled;
