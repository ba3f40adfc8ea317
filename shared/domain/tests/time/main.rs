//! Time: the dialect, the launches, and the index, by tables and by properties.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helper functions too")]

mod cadence;
mod closed_days;
mod dialect;
mod expression;
mod foreign;
mod index;
mod launches;
mod masks;
mod oracle;
mod partition;
mod strategies;
mod zones;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::time::{CompiledCron, CronSpec, Dst, Window, parse_zone};

fn cron(text: &str) -> CompiledCron {
    *CronSpec::parse(text).unwrap_or_else(|error| panic!("{text} should parse: {error}")).compiled()
}

fn zone(name: &str) -> Tz {
    parse_zone(name).unwrap()
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text} should be an instant: {error}"))
}

fn window(from: &str, to: &str) -> Window {
    Window::new(instant(from), instant(to)).unwrap()
}

/// The launches of an expression, as text with their labels.
fn launches(text: &str, zone_name: &str, window: Window) -> Vec<String> {
    let word = |label: Dst| if label == Dst::Plain { String::new() } else { format!(" {}", label.as_str()) };
    let firings = cron(text).firings(zone(zone_name), window);
    firings.iter().map(|f| format!("{}{}", f.launch_at.format("%Y-%m-%dT%H:%M:%SZ"), word(f.label))).collect()
}
