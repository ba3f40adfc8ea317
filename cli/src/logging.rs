//! Logs go to stderr, so that stdout stays what was asked for.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{self, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The variable that says what is logged: a level, or directives such as `info,tidegate_engine=debug`.
const VARIABLE: &str = "TIDEGATE_LOG";
/// A variable that asks every program for text without colours.
const NO_COLOR: &str = "NO_COLOR";

/// Starts logging: by `TIDEGATE_LOG`, otherwise from `level` on. In colour on a terminal.
pub(crate) fn start(level: Level) {
    let asked_for = std::env::var(VARIABLE).ok().and_then(|targets| targets.parse::<Targets>().ok());
    let filter = asked_for.unwrap_or_else(|| Targets::new().with_default(level));
    let no_color = std::env::var_os(NO_COLOR).is_some_and(|value| !value.is_empty());
    let lines =
        fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal() && !no_color);
    let lines = lines.with_filter(filter::filter_fn(may_be_logged));
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// Below `info` only Tidegate's own crates are heard: the AWS SDK and the HTTP libraries write whole requests and rows
/// there, with keys and webhook secrets in them.
fn may_be_logged(of: &Metadata<'_>) -> bool {
    *of.level() <= Level::INFO || of.target().starts_with("tidegate")
}
