//! `tidegate dry-run`: what a file of jobs would launch in a window, without a deployment and in no real time.
//!
//! The jobs are stored in tables in memory as a deployment stores them, and the engine rehearses the window piece by
//! piece with the scan that its ticks use. Only a piece is held at a time, however long the window is.
//!
//! Deliberately absent: when a launch is due and what excludes it (the engine's), what a job is (the API's), and
//! throttling: a launch is shown when it is due, not when a token would be free.

pub(crate) mod intake;
mod occupied;
mod piece;
mod print;
pub(crate) mod roster;
mod row;
mod shape;
pub(crate) mod source;
pub(crate) mod stage;
mod steps;
mod summary;
mod text;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;
use std::vec::Drain;

use anyhow::Context as _;
use tidegate_domain::time::Window;

use crate::args::DryRunArgs;
use intake::Intake;
use piece::{Due, Piece};
use print::{Printer, Tally};
use source::Source;
use stage::Stage;
use steps::Steps;
use summary::{Spent, Summary};

/// What is collected before it is written, in bytes.
const OUTPUT_BYTES: usize = 256 * 1024;

/// Prints the refused rows, every launch and every skipped launch of the window, and a summary.
pub(crate) async fn run(args: DryRunArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let window = args.window()?;
    let source = Source::open(&args.jobs)?;
    let stage = Stage::open(args.client.clone(), window.from()).await?;
    let intake = intake::read(source, &stage, window.from(), intake::Known::Any).await?;
    let stored = stage.usage();

    let mut out = BufWriter::with_capacity(OUTPUT_BYTES, io::stdout().lock());
    let printed = match dry_run(&stage, window, &intake, &mut out).await {
        Ok((rows_read, tally)) => {
            let spent = Spent { stored, scanned: stage.usage(), rows_read, elapsed: began.elapsed() };
            let written = Summary::new(&intake, &tally, &spent).write(&mut out);
            written.and_then(|()| out.flush()).context("failed to write the summary")
        }
        Err(error) => Err(error),
    };
    match printed {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ if intake.failed(args.strict) => Ok(ExitCode::FAILURE),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes all lines but the last. Returns how many rows of the index were read, and what was printed.
async fn dry_run(
    stage: &Stage,
    window: Window,
    intake: &Intake,
    out: &mut impl Write,
) -> anyhow::Result<(u64, Tally)> {
    for refused in &intake.refused {
        refused.write(out).context("failed to write a refused row")?;
    }
    let mut printer = Printer::new(&intake.roster, window.from());
    let rows_read = walk(stage, window, intake, |launches| printer.print(launches, out)).await?;
    Ok((rows_read, printer.into_tally()))
}

/// Goes through a window piece by piece, and hands each on, in order of time and job. Returns how many rows of the index were
/// read.
pub(crate) async fn walk(
    stage: &Stage,
    window: Window,
    intake: &Intake,
    mut take: impl FnMut(Drain<'_, Due>) -> io::Result<()>,
) -> anyhow::Result<u64> {
    let mut piece = Piece::new(&intake.roster, &intake.occupied, window);
    // By their triggers, launches that flexible windows move into the window are due before it.
    let widened = Window::new(window.from() - intake.shape.jitter(), window.to())?;
    let mut steps = Steps::new(widened);
    let mut rows_read = 0;
    while let Some(next) = steps.next() {
        piece.begin(steps.are_shortest());
        rows_read += stage.dry_run(next, &mut piece).await?;
        let Some(found) = piece.found() else {
            steps.shorten();
            continue;
        };
        steps.saw(found);
        // What they move out of this piece comes among the launches of a later one, or after the window.
        take(piece.take_before(next.to())?).context("failed to write launches")?;
    }
    Ok(rows_read)
}

/// Whether whoever read the output has had enough of it, as `head` has.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
