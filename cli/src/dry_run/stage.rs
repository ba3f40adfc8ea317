//! A deployment in memory whose clock stands where it is put: stores, and the engine over them.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Context as _;
use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::clock::ManualClock;
use tidegate_domain::ids::{CalendarId, ClientId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::JITTER_SECONDS;
use tidegate_domain::time::{ShardedKey, Window};
use tidegate_embedded::{Embedded, Usage};
use tidegate_engine::random::SeededRandom;
use tidegate_engine::{BusTarget, Config, Engine, JobDraft, Observer, Parts, PrivateTargets, Services};
use tidegate_store::Store;

use super::row::JobRow;

const PREFIX: &str = "dry-run";
/// Nothing is sent to it: a dry run has no queues.
const NO_QUEUE: &str = "http://dry-run.invalid/0/none";

/// The stores, the engine and its clock.
pub(crate) struct Stage {
    embedded: Embedded,
    engine: Engine,
    clock: Arc<ManualClock>,
    client: ClientId,
    opened_at: DateTime<Utc>,
}

impl Stage {
    /// Empty tables, at `now`.
    pub(crate) async fn open(client: ClientId, now: DateTime<Utc>) -> anyhow::Result<Self> {
        let clock = Arc::new(ManualClock::new(now));
        let embedded = Embedded::in_memory(clock.clone())?;
        let store = Store::new(embedded.dynamodb(), PREFIX);
        store.create_tables().await.context("failed to create the tables")?;
        let engine = Engine::new(Parts {
            store,
            sqs: embedded.sqs(),
            way: embedded.way(),
            clock: clock.clone(),
            random: Arc::new(SeededRandom::new(1)),
            config: Config {
                dispatch_queue_url: NO_QUEUE.to_owned(),
                scan_queue_url: NO_QUEUE.to_owned(),
                release_queue_url: NO_QUEUE.to_owned(),
                dead_letter_queue_url: NO_QUEUE.to_owned(),
                release_dead_letter_queue_url: NO_QUEUE.to_owned(),
                private_targets: PrivateTargets::None,
                services: Services::default(),
                bus: BusTarget::Off,
                samples: false,
            },
        });
        Ok(Self { embedded, engine, clock, client, opened_at: now })
    }

    /// A row as the job that it would be, had it been created just before the window.
    pub(crate) fn job(&self, row: JobRow) -> Job {
        let JobDraft { trigger, rules, terms, tags, expect } = row.draft;
        // No LaunchExpression of an empty deployment is split: it has one shard.
        let cadence = trigger.cadence();
        let children = cadence
            .candidates(rules.on_closed_day)
            .children()
            .into_iter()
            .map(|key| ShardedKey { key, shard: 0 });
        Job {
            client: self.client.clone(),
            id: row.id,
            revision: 1,
            children: children.collect(),
            trigger,
            rules,
            paused: row.paused,
            paused_because: None,
            terms,
            tags,
            expect,
            // A launch that its flexible window moves into the window of the run is due before it by its trigger.
            emit_from: self.opened_at - Duration::seconds(JITTER_SECONDS.into()),
            changed_at: self.opened_at,
        }
    }

    /// Stores jobs that are not there, after the zones that scans then look at.
    pub(crate) async fn import(&self, jobs: &[Job], known: &mut HashSet<Tz>) -> anyhow::Result<()> {
        let store = self.engine.store();
        for zone in jobs.iter().filter_map(|job| job.trigger.cadence().index_zone()) {
            if known.insert(zone) {
                store.add_zone(zone, self.opened_at).await.context("failed to store a zone")?;
            }
        }
        store.import_jobs(jobs).await.context("failed to store the jobs")
    }

    /// Stores a calendar that is not there.
    pub(crate) async fn put_calendar(&self, id: CalendarId, exclusions: Exclusions) -> anyhow::Result<()> {
        let put = self.engine.calendars().put(&self.client, id, exclusions, None).await;
        put.map(drop).context("failed to store a calendar")
    }

    /// Runs the emitter's scan over a window that has just begun. Returns how many rows of the index it read.
    pub(crate) async fn dry_run(&self, window: Window, into: &mut impl Observer) -> anyhow::Result<u64> {
        self.clock.set(window.from());
        let report = self.engine.queries().dry_run(window, into).await;
        let report = report.with_context(|| format!("failed to dry-run from {}", window.from()))?;
        // A deployment goes on without such a row and logs it; here the answer would be wrong.
        anyhow::ensure!(report.rows_corrupt == 0, "{} rows of the index cannot be read", report.rows_corrupt);
        Ok(report.rows_read)
    }

    /// What has been consumed so far.
    pub(crate) fn usage(&self) -> Usage {
        self.embedded.meter().snapshot()
    }
}
