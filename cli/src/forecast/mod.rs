//! `tidegate forecast`: what a file of jobs would take of AWS in a window, what it would cost, how late its events would come,
//! and which limit it would meet first.
//!
//! The firings are those of the dry run, which is the production scan over tables in memory. What they take is counted by
//! `tidegate-forecast`, whose table of costs tests hold against the engine. Firings are not kept, however many there are.
//!
//! Deliberately absent: outages, failed deliveries, and whatever else a file of jobs says nothing of. The forecast names what
//! it leaves out.

mod account;
mod columns;
mod facts;
mod json;
mod left_out;
mod numbers;
mod policies;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use chrono::TimeDelta;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::time::Window;
use tidegate_forecast::account::Account;
use tidegate_forecast::load::Load;
use tidegate_forecast::prices::Bill;
use tidegate_forecast::report::{Part, Report};

use crate::args::{ForecastArgs, Output};
use crate::dry_run::intake::{self, Intake, Known};
use crate::dry_run::source::Source;
use crate::dry_run::stage::Stage;
use crate::dry_run::{is_broken_pipe, walk};
use facts::Named;
use json::text as text_of;

/// The longest window, in days: there is a row of figures for each of its minutes.
const WINDOW_DAYS: i64 = 366;

/// What is printed.
struct Forecast {
    window: Window,
    intake: Intake,
    named: Named,
    scale: f64,
    account: Account,
    skipped: BTreeMap<SkipReason, u64>,
    report: Report,
    left_out: Vec<String>,
    /// Jobs that are listed, those that cost most.
    top: usize,
}

/// Prints the forecast of a file of jobs.
pub(crate) async fn run(args: ForecastArgs) -> anyhow::Result<ExitCode> {
    let window = args.window.window()?;
    anyhow::ensure!(
        window.to() - window.from() <= TimeDelta::days(WINDOW_DAYS),
        "the window from --from {} to --to {} is over {WINDOW_DAYS} days; that is the most of a forecast",
        text_of(window.from()),
        text_of(window.to())
    );
    let is_stdin = |path: &Path| path == Path::new("-");
    anyhow::ensure!(
        !(is_stdin(&args.window.jobs) && args.policies.as_deref().is_some_and(is_stdin)),
        "--jobs and --policies are both -: standard input can be only one of them; give the other a file"
    );
    let account = args.account.as_deref().map(account::read).transpose()?.unwrap_or_default();
    let policies = match &args.policies {
        Some(path) => policies::read(path, &args)?,
        None => Vec::new(),
    };
    let source = Source::open(&args.window.jobs)?;
    let stage = Stage::open(args.window.client.clone(), window.from()).await?;
    let known = policies.iter().map(|policy| policy.id.clone()).collect();
    let known = match &args.policies {
        Some(_) => Known::InFile(&known),
        None => Known::None,
    };
    let intake = intake::read(source, &stage, window.from(), known).await?;

    let named = Named::new(&intake.roster, &policies);
    let setting = facts::setting(&args, window, &intake, (&named, policies), account);
    let mut load = Load::new(&setting);
    let mut skipped = BTreeMap::new();
    let from_s = window.from().timestamp();
    walk(&stage, window, &intake, |launches| {
        for due in launches {
            match due.reason() {
                None => load.fire(from_s + i64::from(due.second()), due.rank() as usize),
                Some(reason) => *skipped.entry(reason).or_default() += 1,
            }
        }
        Ok(())
    })
    .await?;
    let left_out = left_out::of(&intake.roster, &skipped);
    let report = Report::of(load, &setting);
    let failed = intake.failed(args.window.strict);
    let forecast = Forecast {
        window,
        intake,
        named,
        scale: args.scale,
        account,
        skipped,
        report,
        left_out,
        top: args.top,
    };
    let text = match args.output {
        Output::Json => json::render(&forecast)?,
        Output::Text => text::render(&forecast),
    };
    let written = io::stdout().lock().write_all(text.as_bytes()).context("failed to write the forecast");
    match written {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ if failed => Ok(ExitCode::FAILURE),
        _ => Ok(ExitCode::SUCCESS),
    }
}

impl Forecast {
    /// By what the window's bill is multiplied for a month like it.
    fn months(&self) -> f64 {
        let window = self.window.to() - self.window.from();
        Bill::months(window.num_milliseconds() as f64 / 1e3)
    }

    /// The jobs that cost most, with their names.
    fn top_jobs(&self) -> impl Iterator<Item = (&str, &Part)> {
        let mut jobs: Vec<_> = self.named.jobs.iter().map(String::as_str).zip(&self.report.jobs).collect();
        jobs.retain(|(_, job)| job.firings > 0.0);
        jobs.sort_by(|(_, a), (_, b)| b.bill.total().total_cmp(&a.bill.total()));
        jobs.into_iter().take(self.top)
    }
}
