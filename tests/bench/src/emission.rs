//! Emission: the processor time of one tick with everything due in its window, taken apart into the stores' part, the
//! SDK's and ours.
//!
//! What is ours (decide, expand, encode) cannot be timed by itself, since it runs between requests. So the same rows are
//! read and the same messages are sent without the engine, and what that takes is subtracted.

use std::time::Duration;

use anyhow::{Result, bail};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::limits::{LOOK_AHEAD_SECONDS, SQS_BATCH};
use tidegate_domain::time::{LocalWindow, Window};
use tidegate_engine::message::Message;
use tidegate_engine::{Decision, Observer};
use tidegate_store::Spread;
use tidegate_store::launch::{Child, Shard};
use tidegate_testkit::queue;

use crate::crowd::{Maker, Often, ZONES};
use crate::stage::{Stage, Took};
use crate::wire::processor_time;
use crate::{Row, client, midday, ms, per_second};

/// Measured rounds, after one that is not; the median counts.
const ROUNDS: usize = 5;
/// Batch calls under way at once, as in the engine.
const CALLS_AT_ONCE: usize = 8;

/// What lies in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cron,
    OneTime,
}

/// What one round took.
#[derive(Debug, Clone, Copy)]
struct Round {
    tick: Took,
    fetch: Took,
    read: Took,
    decide: Took,
    send: Took,
    encode: Duration,
}

impl Round {
    /// Tick less requests, less what SDK and row parsing take, less what the SDK takes to send.
    fn ours(&self) -> Duration {
        self.tick.outside().saturating_sub(self.read.outside() + self.send.outside())
    }

    /// What the rows say, once the SDK has them.
    fn parse(&self) -> Duration {
        self.read.outside().saturating_sub(self.fetch.outside())
    }

    /// The part of ours until it is known what becomes of each launch.
    fn decide(&self) -> Duration {
        self.decide.outside().saturating_sub(self.read.outside())
    }
}

pub(crate) async fn run(jobs: u32) -> Result<Vec<Row>> {
    Ok([measure(Kind::Cron, jobs).await?, measure(Kind::OneTime, jobs).await?].concat())
}

async fn measure(kind: Kind, jobs: u32) -> Result<Vec<Row>> {
    let now = midday()?;
    let stage = Stage::open(None, now).await?;
    let (maker, due_at) = (Maker::new(now)?, now + chrono::Duration::seconds(60));
    let job = |number| match kind {
        Kind::Cron => maker.cron(number, Often::Daily, due_at),
        Kind::OneTime => Ok(maker.one_time(number, due_at)),
    };
    stage.import((0..jobs).map(job)).await?;

    let aside_url = queue::create(stage.sqs(), "aside").await?;
    stage.emit().await?;
    let bodies = emitted(&stage, due_at).await?;
    let messages = bodies.iter().map(|body| Ok(Message::decode(body)?)).collect::<Result<Vec<_>>>()?;
    let items = messages.iter().map(|message| match message {
        Message::Chunk(chunk) => chunk.items.len(),
        _ => 0,
    });
    if items.sum::<usize>() != jobs as usize {
        bail!("the tick did not emit each of {jobs} occurrences once");
    }

    let window = Window::new(now, now + chrono::Duration::seconds(LOOK_AHEAD_SECONDS.into()))?;
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        stage.clock.set(now);
        stage.forget_watermark().await?;
        let (_, fetch) = stage.timed(fetch(&stage, window)).await?;
        let (_, read) = stage.timed(read(&stage, window)).await?;
        let (_, decide) = stage.timed(decide(&stage, window, jobs)).await?;
        let (_, tick) = stage.timed(stage.emit()).await?;
        let copies = bodies.clone();
        let (_, send) = stage.timed(send(&stage, &aside_url, copies)).await?;
        let began = processor_time();
        let bytes: usize = messages.iter().map(|message| message.encode().len()).sum();
        let encode = processor_time().saturating_sub(began);
        if bytes == 0 {
            bail!("nothing was encoded");
        }
        rounds.push(Round { tick, fetch, read, decide, send, encode });
    }
    Ok(rows(kind, jobs, &rounds[1..]))
}

/// What the scan of a window reads.
fn shards(window: Window) -> Vec<Shard> {
    let expressions = |zone| {
        let ranges = LocalWindow::new(zone, window).eligible().into_iter();
        ranges.map(move |range| Shard::Expression { zone, range, shard: 0 })
    };
    ZONES.into_iter().flat_map(expressions).chain(Shard::instants(window, Spread::default())).collect()
}

/// Reads them with the SDK alone.
async fn fetch(stage: &Stage, window: Window) -> Result<()> {
    for shard in shards(window) {
        stage.read_plainly(&shard).await?;
    }
    Ok(())
}

/// Reads them and the rows on them.
async fn read(stage: &Stage, window: Window) -> Result<()> {
    for shard in shards(window) {
        let mut after = None;
        loop {
            after = stage.engine.store().children(&shard, after).await?.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// Reads them and decides.
async fn decide(stage: &Stage, window: Window, jobs: u32) -> Result<()> {
    let mut counted = Counted(0);
    stage.engine.queries().dry_run(window, &mut counted).await?;
    if counted.0 != jobs {
        bail!("{} launches were decided of {jobs}", counted.0);
    }
    Ok(())
}

struct Counted(u32);

impl Observer for Counted {
    fn decided(&mut self, _: &Child, launch: &Decision) {
        self.0 += u32::from(launch.skip_reason.is_none());
    }
}

/// What the tick sent.
async fn emitted(stage: &Stage, due_at: DateTime<Utc>) -> Result<Vec<String>> {
    stage.clock.set(due_at + chrono::Duration::seconds(1));
    let mut bodies = Vec::new();
    loop {
        let messages = queue::receive(stage.sqs(), stage.deployment.dispatch_url()).await?;
        if messages.is_empty() {
            return Ok(bodies);
        }
        bodies.extend(messages.into_iter().filter_map(|message| message.body));
    }
}

/// Sends the same messages, as the engine does.
async fn send(stage: &Stage, queue_url: &str, bodies: Vec<String>) -> Result<()> {
    let (mut batches, mut bodies) = (Vec::new(), bodies.into_iter().peekable());
    while bodies.peek().is_some() {
        batches.push(bodies.by_ref().take(SQS_BATCH).collect::<Vec<_>>());
    }
    let group = client()?;
    let calls = batches.into_iter().map(|batch| async {
        let mut call = stage.sqs().send_message_batch().queue_url(queue_url);
        for (index, body) in batch.into_iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body);
            call = call.entries(entry.message_group_id(group.as_str()).delay_seconds(60).build()?);
        }
        call.send().await?;
        anyhow::Ok(())
    });
    stream::iter(calls).buffer_unordered(CALLS_AT_ONCE).try_collect().await
}

fn rows(kind: Kind, jobs: u32, rounds: &[Round]) -> Vec<Row> {
    let median = |part: &dyn Fn(&Round) -> Duration| {
        let mut all: Vec<Duration> = rounds.iter().map(part).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let what = match kind {
        Kind::Cron => "daily jobs in 40 zones",
        Kind::OneTime => "one-time jobs",
    };
    let total = median(&|round| round.tick.total);
    let ours = median(&Round::ours);
    let (decide, encode) = (median(&Round::decide), median(&|round| round.encode));
    let (fetch, send) = (median(&|round| round.fetch.outside()), median(&|round| round.send.outside()));
    let parse = median(&Round::parse);
    let row = |name: &str, result: String| (format!("{jobs} {what} due in one minute: {name}"), result);
    vec![
        row("a tick, processor time", format!("{} ({})", ms(total), per_second(jobs, total))),
        row("within the embedded stores", ms(median(&|round| round.tick.requests))),
        row("within the SDK", format!("{} to read, {} to send", ms(fetch), ms(send))),
        row("parsing the rows (the store's)", ms(parse)),
        row(
            "decide, expand and encode (ours)",
            format!("{}, **{} and core**", ms(ours), per_second(jobs, ours)),
        ),
        row(
            "of which",
            format!(
                "decide {}, expand {}, encode {}",
                ms(decide),
                ms(ours.saturating_sub(decide + encode)),
                ms(encode)
            ),
        ),
    ]
}
