//! A deployment whose clock stands where it is put and whose requests are timed: stores, queues, and the engine over them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::clock::ManualClock;
use tidegate_domain::job::Job;
use tidegate_embedded::{ClientOptions, Embedded};
use tidegate_engine::{Engine, TickReport};
use tidegate_store::launch::Shard;
use tidegate_store::tables::{PARTITION_KEY, SORT_KEY, Table};
use tidegate_testkit::{Deployment, PREFIX, Process, queue};

use crate::crowd::ZONES;
use crate::embedded;
use crate::ledger::Ledger;
use crate::wire::{self, Spent, processor_time};

/// Jobs that are stored in one go.
const IMPORTED_AT_ONCE: usize = 1_000;

/// The deployment.
pub(crate) struct Stage {
    pub(crate) embedded: Embedded,
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ManualClock>,
    /// What each key takes, while it is open.
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) deployment: Deployment,
    /// The engine's clients, whose requests are timed.
    process: Process,
    spent: Arc<Spent>,
}

/// The processor time that something took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) total: Duration,
    /// The part of it within requests: the stores' work.
    pub(crate) requests: Duration,
}

impl Took {
    /// The part of it that is not the stores'.
    pub(crate) fn outside(self) -> Duration {
        self.total.saturating_sub(self.requests)
    }
}

impl Stage {
    /// Empty stores, in a folder or in memory, at `now`.
    pub(crate) async fn open(folder: Option<&Path>, now: DateTime<Utc>) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(now));
        let embedded = embedded(folder, clock.clone())?;
        let (spent, ledger) = (Arc::new(Spent::default()), Arc::new(Ledger::default()));
        let deployment = Deployment::on(&embedded, &ClientOptions::default()).await?;
        let process = deployment.process().private_targets().dynamodb_through(|http| {
            let noted = wire::noted(http, embedded.clone(), Arc::clone(&ledger));
            wire::timed(noted, Arc::clone(&spent))
        })?;
        let process = process.sqs_through(|http| wire::timed(http, Arc::clone(&spent)))?;
        let engine = process.start(clock.clone());
        for zone in ZONES {
            engine.store().add_zone(zone, now).await?;
        }
        Ok(Self { embedded, engine, clock, ledger, deployment, process, spent })
    }

    /// The engine's client of the queues.
    pub(crate) fn sqs(&self) -> &aws_sdk_sqs::Client {
        self.process.sqs()
    }

    /// Stores jobs: one-time jobs as the API does, as one row; others with all that belongs to them.
    pub(crate) async fn import(&self, jobs: impl Iterator<Item = Result<Job>>) -> Result<()> {
        let (mut one_times, mut others) = (Vec::new(), Vec::new());
        for job in jobs {
            let job = job?;
            let kind = if job.id.one_time_shard().is_some() { &mut one_times } else { &mut others };
            kind.push(job);
            if one_times.len() + others.len() >= IMPORTED_AT_ONCE {
                self.flush(&mut one_times, &mut others).await?;
            }
        }
        self.flush(&mut one_times, &mut others).await
    }

    async fn flush(&self, one_times: &mut Vec<Job>, others: &mut Vec<Job>) -> Result<()> {
        self.engine.store().create_one_times(one_times).await?;
        self.engine.store().import_jobs(others).await?;
        one_times.clear();
        others.clear();
        Ok(())
    }

    /// A tick, and the parts of the scan that it leaves to others.
    pub(crate) async fn emit(&self) -> Result<TickReport> {
        let report = self.engine.tick().await?;
        if !report.won {
            bail!("the tick did not get the watermark");
        }
        if report.parts > 0 {
            self.work_on(self.deployment.scan_url()).await?;
        }
        Ok(report)
    }

    /// Handles what the dispatch queue has.
    pub(crate) async fn dispatch(&self) -> Result<()> {
        self.work_on(self.deployment.dispatch_url()).await
    }

    /// Handles the messages of a queue of ours until there are none.
    async fn work_on(&self, queue_url: &str) -> Result<()> {
        let pumped = queue::pump(&self.engine, self.process.sqs(), queue_url).await?;
        ensure!(pumped.again == 0, "{} messages of a queue of ours failed", pumped.again);
        Ok(())
    }

    /// Reads the rows of a shard of the index with the SDK alone: what they say is left unread.
    pub(crate) async fn read_plainly(&self, shard: &Shard) -> Result<()> {
        let text = AttributeValue::S;
        let query = self.process.dynamodb().query().table_name(format!("{PREFIX}-{}", Table::Launch.name()));
        let query = query.expression_attribute_values(":pk", text(shard.partition()));
        let query = match shard.range() {
            None => query.key_condition_expression(format!("{PARTITION_KEY} = :pk")),
            Some((first, last)) => query
                .key_condition_expression(format!("{PARTITION_KEY} = :pk AND {SORT_KEY} BETWEEN :a AND :b"))
                .expression_attribute_values(":a", text(first))
                .expression_attribute_values(":b", text(last)),
        };
        let mut pages = query.into_paginator().send();
        while let Some(page) = pages.next().await {
            drop(page?);
        }
        Ok(())
    }

    /// Lets the next tick be the first one again.
    pub(crate) async fn forget_watermark(&self) -> Result<()> {
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let delete = self.embedded.dynamodb().delete_item();
        let delete = delete.table_name(format!("{PREFIX}-{}", Table::Ticker.name()));
        delete.key(PARTITION_KEY, key("watermark")).key(SORT_KEY, key("-")).send().await?;
        Ok(())
    }

    /// Runs some work, and tells the processor time that it took. Only where one thread does everything.
    pub(crate) async fn timed<T>(&self, work: impl Future<Output = Result<T>>) -> Result<(T, Took)> {
        let (began, before) = (processor_time(), self.spent.so_far());
        let out = work.await?;
        Ok((
            out,
            Took { total: processor_time().saturating_sub(began), requests: self.spent.so_far() - before },
        ))
    }
}
