//! The names of systems and works, as `--only` takes them.

/// The name of ours.
pub const TIDEGATE: &str = "tidegate";
/// The names of all systems; the adapters in `tests/bench/peers` of those that Node plays are called by them.
pub const SYSTEMS: [&str; 5] = [TIDEGATE, "tidegate_rust", "bullmq", "pg_boss", "graphile_worker"];
/// The names of all works.
pub const WORKS: [&str; 11] = [
    "herd",
    "herd_far",
    "crowd",
    "bulk_near",
    "bulk_far",
    "single_near",
    "single_far",
    "batch",
    "singles",
    "tokens",
    "steady",
];
