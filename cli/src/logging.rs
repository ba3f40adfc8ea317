//! Logs go to stderr, so that stdout stays what was asked for.

use tracing_subscriber::EnvFilter;

/// The variable that says what is logged: a level, or directives such as `info,tidegate_engine=debug`.
const VARIABLE: &str = "TIDEGATE_LOG";

/// Starts logging: by `TIDEGATE_LOG`, otherwise from `level` on.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
