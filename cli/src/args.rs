//! What users type.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A throttled cron and batch scheduler.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run everything on this machine, in one process: API, scheduler, tables and queues. No AWS account is needed.
    Local(LocalArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct LocalArgs {
    /// The folder that keeps all data [default: ./.tidegate; with --demo none, in memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The port of the API on 127.0.0.1; 0 takes any that is free
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// The port of the queues on 127.0.0.1, for any AWS SDK; 0 takes any that is free
    #[arg(long, default_value_t = 9324)]
    pub(crate) sqs_port: u16,
    /// Show what Tidegate does: a batch of 20 events under a limit of 3, a cron job, and a consumer
    #[arg(long)]
    pub(crate) demo: bool,
    /// End after this time, such as 60s, 5m or 500ms; otherwise run until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) run_for: Option<Duration>,
    /// How stdout reads: json is one object, with --demo the summary at the end, otherwise the addresses at the start
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// The key that registers clients [default: made once and kept in the data folder]
    #[arg(long, value_name = "KEY", env = "TIDEGATE_ADMIN_KEY", hide_env_values = true)]
    pub(crate) admin_key: Option<String>,
    /// How long the demo's consumer works on an event, on average, in milliseconds
    #[arg(long, hide = true, default_value_t = 1500)]
    pub(crate) work_ms: u64,
    /// The lease of the demo's policy, in seconds
    #[arg(long, hide = true, default_value_t = 15)]
    pub(crate) lease_seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For scripts.
    Json,
}

/// A number and its unit: `ms`, `s`, `m` or `h`; seconds without one.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("it is a whole number with ms, s, m or h, such as 60s".to_owned()),
    };
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    ms.map(Duration::from_millis).ok_or_else(|| "it begins with a whole number, such as 60s".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("60s", 60_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000), ("7", 7_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "s", "-1s", "1.5s", "1d", "99999999999999999999s", "99999999999999999h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
