//! The works. Each answers its figures, and what must hold whatever the speed.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::book::Book;
use crate::figures::{now, per_second, percentile, whole_second};
use crate::servers::usage;
use crate::tidegate::{Consumption, Tidegate};

/// Jobs of one bulk call.
const BULK: usize = 1000;
/// How many times a second a steady load creates jobs.
const TICKS: usize = 10;

/// What to play, as `xtask/src/peers/works.rs` writes it. What a kind does not need is absent.
#[derive(Deserialize)]
pub struct Work {
    kind: Kind,
    pub limit: Option<usize>,
    #[serde(default)]
    count: usize,
    #[serde(default)]
    callers: usize,
    /// Messages of one receive.
    #[serde(default)]
    take: usize,
    /// How long is waited for what does not come, after all should have come.
    #[serde(default)]
    patience_s: f64,
    /// How far ahead jobs are created: one distance, or the nearest and the farthest.
    #[serde(default)]
    ahead_s: Value,
    #[serde(default)]
    one_by_one: bool,
    work_ms: Option<f64>,
    #[serde(default)]
    per_second: usize,
    #[serde(default)]
    for_s: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Herd,
    Batch,
    Creates,
    Steady,
}

impl Work {
    /// Plays it on a server, the process `pid`.
    ///
    /// # Errors
    /// When a call is refused or fails.
    pub async fn play(&self, tidegate: &Tidegate, pid: u32) -> Result<Value> {
        match self.kind {
            Kind::Herd => self.herd(tidegate).await,
            Kind::Batch => self.batch(tidegate).await,
            Kind::Creates => self.creates(tidegate).await,
            Kind::Steady => self.steady(tidegate, pid).await,
        }
    }

    /// One-time jobs of one instant, created in bulk ahead of it and consumed as they come.
    async fn herd(&self, tidegate: &Tidegate) -> Result<Value> {
        let due = whole_second(now() + self.ahead()? * 1e3);
        let book = Arc::new(Book::new(self.count, Some(due)));
        self.create(tidegate, due).await?;
        let created = now();
        let consumer = tidegate.consume(&book, self.consumption());
        consumer.consume_until(book.wait(due + self.patience_s * 1e3)).await?;
        let seen = book.seen();
        let late = |share| percentile(&seen.late, share).map(seconds);
        let figures = json!({
            "p50_late_s": late(0.5), "p99_late_s": late(0.99), "max_late_s": late(1.0),
            "per_second": per_second(seen.late.len(), seen.last - due),
            "from_first_per_second": per_second(seen.late.len(), seen.last - seen.first),
            // Work that was not all created by its instant tells of the creation instead.
            "created_before_due_s": seconds(due - created),
        });
        Ok(json!({"figures": figures, "check": seen.check()}))
    }

    /// A backlog of one batch that is drained under a limit.
    async fn batch(&self, tidegate: &Tidegate) -> Result<Value> {
        let book = Arc::new(Book::new(self.count, None));
        tidegate.create_batch(self.count).await?;
        let until = now() + self.patience_s * 1e3;
        let consumer = tidegate.consume(&book, self.consumption());
        let over = async {
            book.wait(until).await;
            // What came last is still worked on.
            tokio::time::sleep(self.work().unwrap_or_default() * 2).await;
        };
        consumer.consume_until(over).await?;
        let seen = book.seen();
        let arrived = seen.late.len();
        let mut figures = json!({"from_first_per_second": per_second(arrived, seen.last - seen.first)});
        if let (Some(work), Some(limit)) = (self.work_ms, self.limit) {
            figures["share_of_ideal"] =
                json!(arrived as f64 * work / limit as f64 / (seen.ended - seen.first));
        }
        Ok(json!({"figures": figures, "check": seen.check()}))
    }

    /// Creates alone, in bulk or one by one; nothing is consumed.
    async fn creates(&self, tidegate: &Tidegate) -> Result<Value> {
        let due = whole_second(now() + self.ahead()? * 1e3);
        let started = now();
        if self.one_by_one {
            crowd(self.callers, self.count, |n| tidegate.create_one(n, due)).await?;
        } else {
            self.create(tidegate, due).await?;
        }
        Ok(json!({"figures": {"per_second": per_second(self.count, now() - started)}}))
    }

    /// A steady load: so many jobs each tenth of a second, due at the whole seconds of a span ahead, consumed as they come.
    async fn steady(&self, tidegate: &Tidegate, pid: u32) -> Result<Value> {
        let [nearest, farthest]: [usize; 2] =
            serde_json::from_value(self.ahead_s.clone()).context("ahead_s")?;
        let (ticks, each) = (self.for_s * TICKS, self.per_second / TICKS);
        let count = ticks * each;
        let book = Arc::new(Book::new(count, None));
        let consumer = tidegate.consume(&book, self.consumption());
        let before = usage(pid);
        let created = async {
            let started = now();
            let mut calls = JoinSet::new();
            for tick in 0..ticks {
                let next = started + (tick * 1000 / TICKS) as f64;
                tokio::time::sleep(Duration::from_secs_f64((next - now()).max(0.0) / 1e3)).await;
                // Each time another distance ahead: all of them as often.
                let ahead = nearest + (tick * 7) % (farthest - nearest + 1);
                let due = whole_second(now() + (ahead * 1000) as f64);
                book.note_due(tick * each, each, due);
                let tidegate = tidegate.clone();
                calls.spawn(async move { tidegate.create_bulk(tick * each..(tick + 1) * each, due).await });
            }
            while let Some(created) = calls.join_next().await {
                created??;
            }
            anyhow::Ok(())
        };
        let mut refused = None;
        let over = async {
            match created.await {
                Ok(()) => book.wait(now() + (farthest as f64 + self.patience_s) * 1e3).await,
                Err(error) => refused = Some(error),
            }
        };
        consumer.consume_until(over).await?;
        if let Some(error) = refused {
            return Err(error);
        }
        let after = usage(pid);
        let took = before.zip(after.as_ref()).map(|(before, after)| after.processor_ms - before.processor_ms);
        let seen = book.seen();
        let late = |share| percentile(&seen.late, share).map(seconds);
        let figures = json!({
            "p50_late_s": late(0.5), "p99_late_s": late(0.99),
            "memory_mb": after.as_ref().map(|after| after.memory_mb),
            "processor_us_per_job": took.map(|ms| ms * 1e3 / count as f64),
        });
        Ok(json!({"figures": figures, "check": seen.check()}))
    }

    /// Bulk calls of up to a thousand jobs by several callers.
    async fn create(&self, tidegate: &Tidegate, due: f64) -> Result<()> {
        let bulk = BULK.min(self.count.div_ceil(self.callers));
        crowd(self.callers, self.count.div_ceil(bulk), |call| {
            tidegate.create_bulk(call * bulk..self.count.min((call + 1) * bulk), due)
        })
        .await
    }

    fn consumption(&self) -> Consumption {
        Consumption { take: self.take, work: self.work() }
    }

    fn work(&self) -> Option<Duration> {
        self.work_ms.map(|ms| Duration::from_secs_f64(ms / 1e3))
    }

    fn ahead(&self) -> Result<f64> {
        self.ahead_s.as_f64().context("ahead_s is no number")
    }
}

/// `count` calls by `callers` at a time.
async fn crowd<C: Future<Output = Result<()>>>(
    callers: usize,
    count: usize,
    call: impl Fn(usize) -> C,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let caller = async || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return anyhow::Ok(());
            }
            call(number).await?;
        }
    };
    try_join_all((0..callers).map(|_| caller())).await.map(drop)
}

fn seconds(ms: f64) -> f64 {
    ms / 1e3
}
