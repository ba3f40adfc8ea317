//! A deployment whose clock stands where it is put and whose requests are timed: stores, queues, and the engine over them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message};
use chrono::{DateTime, Utc};
use tidegate_domain::clock::ManualClock;
use tidegate_domain::job::Job;
use tidegate_embedded::Embedded;
use tidegate_engine::random::SeededRandom;
use tidegate_engine::{Config, Engine, Handled, Parts, TickReport};
use tidegate_store::Store;
use tidegate_store::launch::Shard;
use tidegate_store::tables::{PARTITION_KEY, SORT_KEY, Table};

use crate::crowd::ZONES;
use crate::ledger::Ledger;
use crate::new_queue;
use crate::wire::{self, Spent, processor_time};

const PREFIX: &str = "bench";
/// The dispatch queue.
pub(crate) const DISPATCH: &str = "bench-dispatch";
/// Jobs that are stored in one go.
const IMPORTED_AT_ONCE: usize = 1_000;

/// The deployment.
pub(crate) struct Stage {
    pub(crate) embedded: Embedded,
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) dispatch_url: String,
    /// What each key takes, while it is open.
    pub(crate) ledger: Arc<Ledger>,
    dynamodb: aws_sdk_dynamodb::Client,
    scan_url: String,
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
        let embedded = match folder {
            Some(folder) => Embedded::open(folder, clock.clone())?,
            None => Embedded::in_memory(clock.clone())?,
        };
        let (spent, ledger) = (Arc::new(Spent::default()), Arc::new(Ledger::default()));
        let dynamodb = embedded.dynamodb();
        let inner = dynamodb.config().http_client().context("a client without an HTTP client")?;
        let inner = wire::noted(inner, embedded.clone(), Arc::clone(&ledger));
        let timed = dynamodb.config().to_builder().http_client(wire::timed(inner, Arc::clone(&spent)));
        let dynamodb = aws_sdk_dynamodb::Client::from_conf(timed.build());
        let store = Store::new(dynamodb.clone(), PREFIX);
        let sqs = embedded.sqs();
        let inner = sqs.config().http_client().context("a client without an HTTP client")?;
        let timed = sqs.config().to_builder().http_client(wire::timed(inner, Arc::clone(&spent)));
        let sqs = aws_sdk_sqs::Client::from_conf(timed.build());
        store.create_tables().await?;
        let dispatch_url = new_queue(&sqs, DISPATCH).await?;
        let scan_url = new_queue(&sqs, "bench-scan").await?;
        let config = Config {
            dispatch_queue_url: dispatch_url.clone(),
            scan_queue_url: scan_url.clone(),
            release_queue_url: new_queue(&sqs, "bench-release").await?,
            allow_private_targets: true,
        };
        let (parts_clock, random) = (clock.clone(), Arc::new(SeededRandom::new(1)));
        let engine = Engine::new(Parts { store, sqs: sqs.clone(), clock: parts_clock, random, config });
        for zone in ZONES {
            engine.store().add_zone(zone, now).await?;
        }
        Ok(Self { embedded, engine, clock, sqs, dispatch_url, ledger, dynamodb, scan_url, spent })
    }

    /// Stores jobs: one-time jobs as the API does, as one row; others with all that belongs to them.
    pub(crate) async fn import(&self, jobs: impl Iterator<Item = Result<Job>>) -> Result<()> {
        let (mut one_times, mut others) = (Vec::new(), Vec::new());
        for job in jobs {
            let job = job?;
            let kind = if job.id.one_time_place().is_some() { &mut one_times } else { &mut others };
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
            self.work_on(&self.scan_url).await?;
        }
        Ok(report)
    }

    /// Handles what the dispatch queue has.
    pub(crate) async fn dispatch(&self) -> Result<()> {
        self.work_on(&self.dispatch_url).await
    }

    /// Handles the messages of a queue of ours until there are none.
    async fn work_on(&self, queue_url: &str) -> Result<()> {
        loop {
            let messages = self.receive(queue_url).await?;
            if messages.is_empty() {
                return Ok(());
            }
            let texts: Vec<_> = messages.iter().map(|m| (m.body.as_deref().unwrap_or_default(), 1)).collect();
            if self.engine.handle_all(&texts).await.contains(&Handled::Retry) {
                bail!("a message of a queue of ours failed");
            }
            self.delete(queue_url, messages).await?;
        }
    }

    /// Takes up to ten messages off a queue; they stay there, unseen.
    pub(crate) async fn receive(&self, queue_url: &str) -> Result<Vec<Message>> {
        let receive = self.sqs.receive_message().queue_url(queue_url).max_number_of_messages(10);
        Ok(receive.send().await?.messages.unwrap_or_default())
    }

    /// Deletes what was received together.
    pub(crate) async fn delete(&self, queue_url: &str, messages: Vec<Message>) -> Result<()> {
        let entries = messages.into_iter().enumerate().map(|(id, message)| {
            let receipt = message.receipt_handle.unwrap_or_default();
            DeleteMessageBatchRequestEntry::builder().id(id.to_string()).receipt_handle(receipt).build()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        self.sqs.delete_message_batch().queue_url(queue_url).set_entries(Some(entries)).send().await?;
        Ok(())
    }

    /// Reads the rows of a shard of the index with the SDK alone: what they say is left unread.
    pub(crate) async fn read_plainly(&self, shard: &Shard) -> Result<()> {
        let text = AttributeValue::S;
        let query = self.dynamodb.query().table_name(format!("{PREFIX}-{}", Table::Launch.name()));
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
