//! Logs go to stderr, so that stdout stays what was asked for.

use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{filter, fmt};

/// A variable that asks every program for text without colours.
const NO_COLOR: &str = "NO_COLOR";

/// Starts logging: by `TIDEGATE_LOG`, otherwise from `level` on. In colour on a terminal.
pub(crate) fn start(level: Level) {
    let no_color = std::env::var_os(NO_COLOR).is_some_and(|value| !value.is_empty());
    let lines =
        fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal() && !no_color);
    let lines = lines.with_filter(filter::filter_fn(tidegate_aws::may_be_logged));
    tracing_subscriber::registry().with(tidegate_aws::asked_for(level)).with(lines).init();
}
