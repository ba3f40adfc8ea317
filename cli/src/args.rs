//! What users type.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, Utc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tidegate_domain::ids::ClientId;
use tidegate_domain::time::Window;
use tidegate_engine::{BusTarget, HeartbeatUrl};
use tidegate_runtime::ConsumerQueue;

/// Where data lies when nobody says.
pub(crate) const DEFAULT_FOLDER: &str = ".tidegate";
/// The longest window of a dry run, in days. The seconds since its beginning have room for more.
const WINDOW_DAYS: i64 = 100 * 366;
/// The years that a dry run can begin and end in.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=9998;

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
    /// Copy the data folder of tidegate local, while it runs or when it is stopped: what was answered before is in the copy.
    ///
    /// The copy is of one instant and is a data folder itself: start it with tidegate local --data FOLDER in the place of the
    /// original, not beside it, since both deliver. When the original went on after the backup, run tidegate repair --apply
    /// --data FOLDER first, so that no token is given twice. The copy holds webhook secrets and payloads in clear, as the
    /// original does. What is left when it is killed halfway is called .NAME.unfinished-* and may be deleted.
    Backup(BackupArgs),
    /// Tell what a file of jobs would take of AWS in a window: units, requests, dollars, peaks, lateness, limits.
    ///
    /// The rows and the window are those of dry-run. --policies names the policies of the jobs, one JSON object to a line, as
    /// the API takes them, each with "policy_id", and with "work_seconds" and "released_together" where they differ from --work
    /// and --released-together. A row that cannot be read is refused with its line and the reason, and the others are counted;
    /// the exit status is 1 when no job is left.
    Forecast(ForecastArgs),
    /// Print what a file of jobs would launch in a window, as JSON lines. Nothing is sent and no time passes.
    ///
    /// A row of the file is {"id", "expression", "zone"}, or a job or calendar as the API takes it. The window is from
    /// --from up to but not including --to, and the jobs are taken as created when it begins: a rate without an anchor
    /// counts from there. A row that cannot be read is refused with its line and the reason, and the others are computed;
    /// the exit status is 1 when no job is left.
    DryRun(DryRunArgs),
    /// Bring tables together again that were restored from snapshots of different instants: say what is to be done, and
    /// with --apply do it.
    ///
    /// Nobody else may use the tables meanwhile: turn every function off, or stop tidegate local. What is not known to
    /// have ended is delivered again under the same id, and what cannot be known is listed. It may be killed anywhere and
    /// run again. Credentials and region are found as the AWS CLI finds them; AWS_ENDPOINT_URL names an emulator.
    Repair(RepairArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct LocalArgs {
    /// The folder that keeps all data [default: ./.tidegate; with --demo none, in memory]
    #[arg(long, value_name = "DIR", env = "TIDEGATE_DATA", hide_env_values = true)]
    pub(crate) data: Option<PathBuf>,
    /// Wait for the disk before anything is answered: a power cut loses nothing then; otherwise it may take back the last
    /// moments, and nothing else does. Several times slower
    #[arg(long, env = "TIDEGATE_SYNCHRONOUS", hide_env_values = true)]
    pub(crate) synchronous: bool,
    /// The port of the API on 127.0.0.1; 0 takes any that is free
    #[arg(long, default_value_t = 8080, env = "TIDEGATE_PORT", hide_env_values = true)]
    pub(crate) port: u16,
    /// The port of the queues on 127.0.0.1, for any AWS SDK; 0 takes any that is free
    #[arg(long, default_value_t = 9324, env = "TIDEGATE_SQS_PORT", hide_env_values = true)]
    pub(crate) sqs_port: u16,
    /// A queue for your consumer, created if missing; may be given more than once, and a name that ends in .fifo makes
    /// a FIFO queue
    #[arg(long = "queue", value_name = "NAME")]
    pub(crate) queues: Vec<ConsumerQueue>,
    /// Show what Tidegate does: a batch of 20 events under a limit of 3, a cron job, and a consumer
    #[arg(long)]
    pub(crate) demo: bool,
    /// End after this time, such as 60s, 5m or 500ms; otherwise run until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) run_for: Option<Duration>,
    /// How stdout reads: json is one object, with --demo the summary at the end, otherwise the addresses at the start
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// The file that holds the key which registers clients, at least 16 characters; the variable TIDEGATE_ADMIN_KEY may
    /// hold the key instead [default: a key is made once and kept in the data folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_key_file: Option<PathBuf>,
    /// Refuse to call HTTP targets on this machine and in its network; only public addresses remain
    #[arg(long)]
    pub(crate) deny_private_targets: bool,
    /// An address that is called each minute, and with /fail behind it when something is wrong, such as a check of
    /// Healthchecks: whoever watches it notices when this machine is off
    #[arg(long, value_name = "URL", env = "TIDEGATE_HEARTBEAT_URL", hide_env_values = true)]
    pub(crate) heartbeat: Option<HeartbeatUrl>,
    /// Where what runs and events came to is published for reports: off, log (lines of JSON on stdout), sqs: with the URL of a
    /// queue behind it, or the address of an endpoint
    #[arg(long, value_name = "BUS", default_value = "off", env = "TIDEGATE_BUS", hide_env_values = true)]
    pub(crate) bus: BusTarget,
    /// How long the demo's consumer works on an event, on average, in milliseconds
    #[arg(long, hide = true, default_value_t = 1500)]
    pub(crate) work_ms: u64,
    /// The lease of the demo's policy, in seconds, 10 at the least
    #[arg(long, hide = true, default_value_t = 15)]
    pub(crate) lease_seconds: u32,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BackupArgs {
    /// The folder that becomes the copy: it must not exist, or be empty
    #[arg(value_name = "FOLDER")]
    pub(crate) to: PathBuf,
    /// The data folder to copy
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER, env = "TIDEGATE_DATA", hide_env_values = true)]
    pub(crate) data: PathBuf,
    /// How stdout reads: json is one object
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DryRunArgs {
    /// The file, a JSON object to a line; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) jobs: PathBuf,
    /// When the window begins: ISO 8601 with an offset, or a date for its midnight in UTC
    #[arg(long, value_name = "T", value_parser = instant)]
    pub(crate) from: DateTime<Utc>,
    /// When it ends: the first instant that is no longer part of it
    #[arg(long, value_name = "T", value_parser = instant)]
    pub(crate) to: DateTime<Utc>,
    /// Exit with 1 when any row was refused
    #[arg(long)]
    pub(crate) strict: bool,
    /// Whose jobs they are: where a launch lies in its flexible window follows from client and job
    #[arg(long, value_name = "ID", default_value = "dry-run")]
    pub(crate) client: ClientId,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ForecastArgs {
    #[command(flatten)]
    pub(crate) window: DryRunArgs,
    /// The policies that jobs name, a JSON object to a line
    #[arg(long, value_name = "FILE")]
    pub(crate) policies: Option<PathBuf>,
    /// What the account may take and pays, as TOML, such as lambda_concurrency = 5000; docs/forecast.md lists the names
    #[arg(long, value_name = "FILE")]
    pub(crate) account: Option<PathBuf>,
    /// How long a consumer works on an event, such as 500ms or 2m
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub(crate) work: Duration,
    /// How many tokens a consumer releases in one call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) released_together: u32,
    /// How many one-time jobs are created in one call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) created_together: u32,
    /// The most one-time jobs that are created in a second [default: those of the busiest minute, evenly]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) creates_per_second: Option<f64>,
    /// For how many jobs like it each stands: what is counted so is marked as extrapolated
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = positive)]
    pub(crate) scale: f64,
    /// How many jobs are listed, those that cost most
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// How stdout reads: json is one object
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

impl DryRunArgs {
    /// The window.
    pub(crate) fn window(&self) -> anyhow::Result<Window> {
        let (from, to) = (self.from, self.to);
        anyhow::ensure!(from < to, "--to {} is not after --from {}", text(to), text(from));
        anyhow::ensure!(
            (to - from).num_days() <= WINDOW_DAYS,
            "the window from {} to {} is over {} years; that is the most",
            text(from),
            text(to),
            WINDOW_DAYS / 366
        );
        Ok(Window::new(from, to)?)
    }
}

#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("tables").required(true).args(["table_prefix", "data"]))]
pub(crate) struct RepairArgs {
    /// What the names of the tables on AWS begin with, before the dash
    #[arg(long, value_name = "PREFIX")]
    pub(crate) table_prefix: Option<String>,
    /// The folder of a tidegate local that is not running
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Do it; otherwise nothing is written
    #[arg(long)]
    pub(crate) apply: bool,
    /// The first instant that a table was restored to: ISO 8601 with an offset [default: a minute before the last tick
    /// that the tables know]
    #[arg(long, value_name = "T", value_parser = instant)]
    pub(crate) restored_to: Option<DateTime<Utc>>,
    /// How long before that launches are emitted again whose messages may be lost, such as 15m or 2h
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "15m")]
    pub(crate) look_back: Duration,
    /// Go on although the emitter seems to be on: when you know that everything is off
    #[arg(long)]
    pub(crate) while_running: bool,
    /// How stdout reads
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
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

/// A number from 1 on.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (1.0..=1e9).contains(&number) => Ok(number),
        _ => Err("it is a number from 1 to a thousand million".to_owned()),
    }
}

fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// An instant in ISO 8601 with its offset, or a date: its midnight in UTC.
fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let forms = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M:%S%.f%#z"];
    let with_offset = forms.iter().find_map(|form| DateTime::parse_from_str(text, form).ok());
    let date =
        NaiveDate::parse_from_str(text, "%Y-%m-%d").map(|date| date.and_time(NaiveTime::MIN).and_utc());
    let without_offset = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f"];
    match with_offset.map(|at| at.to_utc()).or(date.ok()) {
        Some(at) if YEARS.contains(&at.year()) => Ok(at),
        Some(_) => Err(format!("the year must lie between {} and {}", YEARS.start(), YEARS.end())),
        None if without_offset.iter().any(|form| NaiveDateTime::parse_from_str(text, form).is_ok()) => {
            Err(format!("it has no offset: write {text}Z for UTC, or an offset such as {text}+01:00"))
        }
        None => Err("write an instant such as 2026-03-29T01:00:00Z, or a date such as 2026-03-29".to_owned()),
    }
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

    #[test]
    fn instants_have_an_offset_or_are_dates() {
        for text in [
            "2026-03-29T01:00:00Z",
            "2026-03-29T03:00:00+02:00",
            "2026-03-29T03:00:00.000+0200",
            "2026-03-29T01:00Z",
            "2026-03-29 03:00:00+02",
        ] {
            assert_eq!(instant(text).map(super::text).as_deref(), Ok("2026-03-29T01:00:00Z"), "{text}");
        }
        assert_eq!(instant("2026-03-29").map(super::text).as_deref(), Ok("2026-03-29T00:00:00Z"));
        assert!(instant("2026-03-29T01:00:00").unwrap_err().contains("no offset"));
        for bad in [
            "",
            "yesterday",
            "2026-02-30",
            "2026-03-29T25:00:00Z",
            "29.03.2026",
            "1900-01-01",
            "+10000-01-01",
        ] {
            assert!(instant(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_window_ends_after_it_begins() {
        let window = |from: &str, to: &str| {
            let args = ["tidegate", "dry-run", "--jobs", "-", "--from", from, "--to", to];
            let Command::DryRun(args) = Cli::try_parse_from(args).unwrap().command else {
                panic!("no dry run")
            };
            args.window().map_err(|error| error.to_string())
        };
        assert!(window("2026-01-01", "2026-02-01").is_ok());
        let backward = window("2026-02-01", "2026-02-01").unwrap_err();
        assert_eq!(backward, "--to 2026-02-01T00:00:00Z is not after --from 2026-02-01T00:00:00Z");
        assert!(window("1970-01-01", "2200-01-01").unwrap_err().contains("over 100 years"));
    }
}
