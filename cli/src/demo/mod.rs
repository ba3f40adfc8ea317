//! The demonstration: a batch of 20 events under a limit of 3, a cron job every minute, and a consumer of both.
//!
//! Everything goes the way a user's program would go: registration, jobs and releases through the API over loopback HTTP,
//! messages from SQS. What happened is kept in a book of its own, apart from Tidegate's tables, and the summary counts
//! from that book and from the jobs' definitions, so it would show what Tidegate lost. With a data folder the book is a
//! file, and a demonstration that was killed goes on where it was.

mod book;
mod consumer;
mod display;
mod due;
mod look_around;
mod score;
mod setup;
mod summary;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use chrono::Utc;
use tidegate_client::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::args::{LocalArgs, Output};
use crate::stop::StopAsked;
use book::Book;
use consumer::{Consumer, Work};
use display::Display;
use due::Plan;
use look_around::LookAround;
use summary::Summary;

/// The job of the batch.
const BATCH_JOB: &str = "batch-of-twenty";
/// The cron job.
const CRON_JOB: &str = "every-minute";
/// How many events may be in flight at once.
pub(crate) const LIMIT: u32 = 3;
/// Events of the batch.
const BATCH_EVENTS: u32 = 20;
/// How long events that are due at the end may still take to arrive.
const DRAIN: Duration = Duration::from_secs(3);
/// How often the table is drawn anew.
const REDRAW: Duration = Duration::from_millis(200);
/// How often an event that is awaited at the end is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What the demonstration plays on.
pub(crate) struct Stage<'a> {
    pub(crate) api_url: &'a str,
    pub(crate) admin_key: &'a str,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) folder: Option<&'a Path>,
}

/// Plays until `--for` is over or the process is asked to stop, then sums up. The code is not 0 when an event was lost
/// or the limit was passed.
pub(crate) async fn run(args: &LocalArgs, stage: Stage<'_>, mut stop: StopAsked) -> anyhow::Result<ExitCode> {
    let book = Arc::new(Book::open(stage.folder)?);
    let display = Arc::new(Display::new(args.output));
    display.begun(book.read(|score| score.events.len()));
    let work =
        Work::around(Duration::from_millis(args.work_ms), Duration::from_secs(args.lease_seconds.into()));
    let ends_at = args.run_for.map(|time| Instant::now() + time);
    let key = setup::client_key(&stage).await?;
    let client = Client::new(stage.api_url, &key)?;
    let queue_url = setup::queue(&stage.sqs, work.visibility()).await?;
    setup::policy(&client, args.lease_seconds).await?;

    let consumer =
        Consumer::new(stage.sqs.clone(), queue_url.clone(), client.clone(), Arc::clone(&book), work);
    let (stop_consuming, consuming) = consume(consumer, &display);
    let plan = setup::jobs(&client, &queue_url, &book, Utc::now).await?;
    let look_around = LookAround::new(stage.api_url, &key, plan);
    display.told(&look_around);
    let drawing = tokio::spawn(draw(Arc::clone(&display), Arc::clone(&book), plan));
    let left = ends_at.map(|at| at.saturating_duration_since(Instant::now()));
    stop.asked_within(left).await;

    let ended_ms = Utc::now().timestamp_millis();
    drain(&book, plan, ended_ms).await;
    stop_consuming.send_replace(true);
    consuming.await.context("failed to let the consumer finish")?;
    drawing.abort();
    let waiting = setup::waiting(&client, &book).await?;
    let summary = book.read(|score| Summary::new(score, plan, ended_ms, waiting, look_around));
    book.read(|score| display.draw(plan.due(ended_ms), score));
    display.end();
    let mut stdout = std::io::stdout().lock();
    match args.output {
        Output::Text => write!(stdout, "{summary}")?,
        Output::Json => writeln!(stdout, "{}", serde_json::to_string(&summary)?)?,
    }
    stdout.flush()?;
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn consume(consumer: Consumer, display: &Arc<Display>) -> (watch::Sender<bool>, JoinHandle<()>) {
    let (stop, stopped) = watch::channel(false);
    (stop, tokio::spawn(Arc::new(consumer).run(Arc::clone(display), stopped)))
}

async fn draw(display: Arc<Display>, book: Arc<Book>, plan: Plan) {
    loop {
        let due = plan.due(Utc::now().timestamp_millis());
        book.read(|score| display.draw(due, score));
        tokio::time::sleep(REDRAW).await;
    }
}

/// Gives what was due at the end, and has nothing to wait for, a moment to arrive.
async fn drain(book: &Book, plan: Plan, ended_ms: i64) {
    let until = Instant::now() + DRAIN;
    while Instant::now() < until && book.read(|score| plan.is_late(score, ended_ms)) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
