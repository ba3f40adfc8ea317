//! The zones and shards of the time index, as jobs come and go.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tidegate_domain::clock::Clock;
use tidegate_domain::job::Job;
use tidegate_domain::limits::EXPRESSION_SHARDS;
use tidegate_domain::shard::shard_of;
use tidegate_domain::time::{LaunchExpression, ShardedKey, seconds, shifted};
use tidegate_store::Store;
use tidegate_store::index::IndexShape;
use tracing::info;

use crate::EngineError;
use crate::contain::locked;

/// Zones that are looked at at once.
const ZONES_AT_ONCE: usize = 16;
/// How long a zone stays after a job was last written in it, in seconds, whether it still has jobs or not: as long as a
/// master believes that it is there, and then as long as its call may take.
const ZONE_KEPT_SECONDS: i64 = ZONE_BELIEF_SECONDS + 300;
/// How long the shape of the index is believed, in seconds.
const SHAPE_BELIEF_SECONDS: i64 = 30;
/// How long the index is believed to have a zone that was added to it, in seconds. Shorter than zones are kept.
const ZONE_BELIEF_SECONDS: i64 = 300;

/// The time index: which zones and shards it has.
pub struct Index {
    store: Store,
    clock: Arc<dyn Clock>,
    /// When this process added which zone.
    zones: Mutex<HashMap<Tz, DateTime<Utc>>>,
    /// The shape, and when it was read. One that is out of date has fewer shards: they are all read.
    shape: Mutex<Option<(DateTime<Utc>, Arc<IndexShape>)>>,
    /// Whether this process has said that there are watches.
    watched: AtomicBool,
}

impl Index {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            zones: Mutex::default(),
            shape: Mutex::default(),
            watched: AtomicBool::new(false),
        }
    }

    /// Makes sure that scans look at a zone. Before the children are written: a scan reads the zones before it reads them.
    pub(crate) async fn use_zone(&self, zone: Tz) -> Result<(), EngineError> {
        let now = self.clock.now();
        let added_at = locked(&self.zones).get(&zone).copied();
        if added_at.is_some_and(|at| (now - at).num_seconds().abs() < ZONE_BELIEF_SECONDS) {
            return Ok(());
        }
        self.store.add_zone(zone, now).await?;
        locked(&self.zones).insert(zone, now);
        Ok(())
    }

    /// Makes sure that ticks look for watches. Before the first is written.
    pub(crate) async fn use_watches(&self) -> Result<(), EngineError> {
        if !self.watched.load(Ordering::Relaxed) {
            self.store.add_watches().await?;
            self.watched.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes the zones off the list that no job is left in.
    pub(crate) async fn sweep_zones(&self, now: DateTime<Utc>) -> Result<(), EngineError> {
        let before = shifted(now, -seconds(ZONE_KEPT_SECONDS));
        let zones = self.store.index_shape().await?.zones;
        let old = zones.into_iter().filter(|(_, added_at)| *added_at < before);
        let sweeps: Vec<_> = old.map(|(zone, _)| self.sweep_zone(zone, before)).collect();
        let swept: Vec<_> = stream::iter(sweeps).buffer_unordered(ZONES_AT_ONCE).collect().await;
        swept.into_iter().collect()
    }

    async fn sweep_zone(&self, zone: Tz, before: DateTime<Utc>) -> Result<(), EngineError> {
        if !self.store.is_zone_used(zone).await? {
            let removed = self.store.remove_zone(zone, before).await?;
            info!(%zone, ?removed, "no job is left in a zone");
        }
        Ok(())
    }

    /// Where the children of a job go: each to a shard of its LaunchExpression by the job's name. Where launches are moved, they
    /// are those of the times of every day.
    pub(crate) async fn places(&self, job: &Job) -> Result<Vec<ShardedKey>, EngineError> {
        let cadence = job.trigger.cadence();
        let cadence = cadence.candidates(job.rules.on_closed_day);
        let Some(zone) = cadence.index_zone() else { return Ok(Vec::new()) };
        let shape = self.recent_shape().await?;
        let place = |key: tidegate_domain::time::ChildKey| {
            let shards = shape.shards_of(zone, &key.launch_expression());
            ShardedKey { key, shard: shard_of(job.id.as_str(), shards) }
        };
        Ok(cadence.children().into_iter().map(place).collect())
    }

    async fn recent_shape(&self) -> Result<Arc<IndexShape>, EngineError> {
        let now = self.clock.now();
        let known = locked(&self.shape).clone();
        if let Some((read_at, shape)) = known
            && (now - read_at).num_seconds().abs() < SHAPE_BELIEF_SECONDS
        {
            return Ok(shape);
        }
        let shape = Arc::new(self.store.index_shape().await?);
        *locked(&self.shape) = Some((now, Arc::clone(&shape)));
        Ok(shape)
    }

    /// The shape of the index, read consistently: zones in use, and LaunchExpressions that are split.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses the call or does not answer, or the row is of a newer format.
    pub fn shape(&self) -> BoxFuture<'_, Result<IndexShape, EngineError>> {
        Box::pin(async move { Ok(self.store.index_shape().await?) })
    }

    /// Splits a LaunchExpression of a zone into more shards, while everything runs. Jobs that are written from now on
    /// are spread over them; scans read them in parallel. `shards` beyond 1 to [`EXPRESSION_SHARDS`] counts as the
    /// nearest bound, and the number never falls. Returns the shape as it is now.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the row is of a newer format.
    /// Repeating the call is safe.
    pub fn raise_shards<'a>(
        &'a self,
        zone: Tz,
        expression: &'a LaunchExpression,
        shards: u32,
    ) -> BoxFuture<'a, Result<IndexShape, EngineError>> {
        Box::pin(async move {
            let shards = shards.clamp(1, EXPRESSION_SHARDS);
            self.store.raise_shards(zone, expression, shards).await?;
            self.shape().await
        })
    }
}
