//! Memory while one minute with a great many due occurrences is emitted: half daily jobs in forty zones, half one-time.
//!
//! In a data folder, so that what is stored is not in memory. Nobody takes the messages off the dispatch queue: that is
//! delivery, which has a bound of its own. What the tick leaves as parts of the scan is worked on one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tidegate_domain::limits::EVENTS_PER_CHUNK;
use tidegate_embedded::Embedded;
use tidegate_testkit::DISPATCH;

use crate::crowd::{Maker, Often};
use crate::stage::Stage;
use crate::{Row, midday, ms, per_second};

/// How often the watcher looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What SQLite keeps in memory at the most, by the settings of the embedded stores: 2,000 KiB of pages of the tables, and
/// 8,000 KiB of the queues.
const SQLITE_CACHE_KIB: u64 = 10_000;

/// The memory of this process, in KiB.
#[derive(Debug, Clone, Copy)]
struct Memory {
    resident: u64,
    peak: u64,
}

pub(crate) async fn run(jobs: u32) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let now = midday()?;
    let stage = Stage::open(Some(folder.path()), now).await?;
    let (maker, due_at) = (Maker::new(now)?, now + chrono::Duration::seconds(60));
    let job = |number: u32| match number % 2 {
        0 => maker.cron(number, Often::Daily, due_at),
        _ => Ok(maker.one_time(number, due_at)),
    };
    stage.import((0..jobs).map(job)).await?;

    std::fs::write("/proc/self/clear_refs", "5").context("this benchmark needs Linux")?;
    let before = memory()?;
    let (embedded, done) = (stage.embedded.clone(), Arc::new(AtomicBool::new(false)));
    let watched = Arc::clone(&done);
    let watcher = std::thread::spawn(move || watch(&embedded, jobs, &watched));
    let began = Instant::now();
    let emitted = stage.emit().await;
    let took = began.elapsed();
    done.store(true, Ordering::Release);
    let looks = watcher.join().map_err(|_| anyhow!("the watcher died"))??;
    let parts = emitted?.parts;
    if chunks_sent(&stage.embedded) < u64::from(jobs.div_ceil(EVENTS_PER_CHUNK)) {
        bail!("not all of {jobs} occurrences were emitted");
    }

    let row =
        |name: String, result| (format!("{jobs} occurrences of one minute, in a folder: {name}"), result);
    let mut rows = vec![row("resident before".to_owned(), show(before))];
    rows.extend(looks.into_iter().map(|(percent, look)| row(format!("{percent} % emitted"), show(look))));
    let cache =
        format!("{}; SQLite's caches take up to {} MB of it", show(memory()?), SQLITE_CACHE_KIB / 1_000);
    rows.push(row("after".to_owned(), cache));
    let speed = format!("{} ({}), {parts} parts left to the scan queue", ms(took), per_second(jobs, took));
    rows.push(row("time on one core".to_owned(), speed));
    Ok(rows)
}

/// Looks at the memory as each quarter of the occurrences has been sent.
fn watch(embedded: &Embedded, jobs: u32, done: &AtomicBool) -> Result<Vec<(u64, Memory)>> {
    let mut looks = Vec::new();
    for percent in [25, 50, 75, 100] {
        let chunks = u64::from(jobs) * percent / 100 / u64::from(EVENTS_PER_CHUNK);
        while chunks_sent(embedded) < chunks && !done.load(Ordering::Acquire) {
            std::thread::sleep(LOOK_EVERY);
        }
        looks.push((percent, memory()?));
    }
    Ok(looks)
}

/// The dispatch messages so far: each but the last of its kind is full.
fn chunks_sent(embedded: &Embedded) -> u64 {
    embedded.meter().snapshot().queue(DISPATCH, "SendMessageBatch").messages
}

fn memory() -> Result<Memory> {
    let status = std::fs::read_to_string("/proc/self/status").context("this benchmark needs Linux")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        kib.with_context(|| format!("/proc/self/status has no {name}"))
    };
    Ok(Memory { resident: field("VmRSS")?, peak: field("VmHWM")? })
}

fn show(memory: Memory) -> String {
    let mb = |kib: u64| kib as f64 * 1_024.0 / 1e6;
    format!("{:.1} MB, peak so far {:.1} MB", mb(memory.resident), mb(memory.peak))
}
