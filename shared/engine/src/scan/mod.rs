//! A scan: reads the rows of the index that are eligible in a window, decides about their launches, hands them to a sink.
//!
//! The emitter's sink (`emit`) sends and records; a dry run's (`queries`) only looks. A launch that cannot be evaluated or
//! emitted, or a row that cannot be read, is set aside under its job, and the window goes on (I9).

pub(crate) mod evaluate;
mod rows;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::calendar::{Exclusions, OpenDays};
use tidegate_domain::ids::{CalendarId, ClientId};
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::quota::DeliveryShare;
use tidegate_domain::time::{Dst, Firing, LocalWindow, Window};
use tidegate_store::Store;
use tidegate_store::index::IndexShape;
use tidegate_store::launch::{Child, IndexRow, Shard};
use tracing::error;

use crate::contents::Contents;
use crate::figures::ROWS_SET_ASIDE;
use crate::{EngineError, contain};
pub use evaluate::Decision;
use evaluate::{Plan, evaluate, firings};
pub(crate) use rows::{Rows, rows_of};

/// Where the launches of a scan go.
pub(crate) trait Sink {
    /// Whether a shard is read. The emitter reads all of them.
    fn reads(&self, _shard: &Shard) -> bool {
        true
    }

    /// The rows that come next are of this partition of the index.
    fn enter(&mut self, _partition: &str) {}

    /// A row of the index comes next.
    fn begin_row(&mut self, _row: &IndexRow) {}

    /// Whether it takes nothing more before it is emptied.
    fn is_full(&self) -> bool {
        false
    }

    /// A launch of a row that is made.
    async fn launch(&mut self, row: &Child, launch: &Decision) -> Result<(), EngineError>;

    /// Launches of a row that are skipped for one reason, in order.
    async fn skip(
        &mut self,
        row: &Child,
        skipped: &[Decision],
        reason: SkipReason,
    ) -> Result<(), EngineError>;

    /// A row that cannot be read, which was eligible from `at` on.
    async fn unreadable(&mut self, _row: &IndexRow, _at: DateTime<Utc>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Where the evaluation of a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowEnd {
    /// All of it is handed on.
    Done,
    /// The sink is full: the launches up to this one, before jitter, are handed on.
    Cut(DateTime<Utc>),
}

/// What a scan read, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// Rows of the index that were read, those that did not launch included.
    pub rows_read: u64,
    /// Rows that could not be read; each is in the log, and in its job's runs.
    pub rows_corrupt: u64,
    /// Launches that were set aside: they cannot be evaluated or emitted. Each is in the log, and in its job's runs.
    pub set_aside: u64,
    /// Parts that were left to other workers.
    pub parts: u64,
}

/// A scan under way.
pub(crate) struct Scan<'e> {
    store: &'e Store,
    contents: &'e Contents,
    plan: Plan,
    locals: HashMap<Tz, LocalWindow>,
    calendars: HashMap<(ClientId, CalendarId), Option<Arc<Exclusions>>>,
    firings: Vec<Firing>,
    decisions: Vec<Decision>,
    pub(crate) report: ScanReport,
    /// The clients that are being deleted, as the shape of the index says.
    pub(crate) deleting: Vec<ClientId>,
    /// Whether there may be watches, as it says as well.
    pub(crate) watched: bool,
    /// The clients whose messages have more turns than one, the same.
    pub(crate) shares: BTreeMap<ClientId, DeliveryShare>,
}

impl<'e> Scan<'e> {
    pub(crate) fn new(store: &'e Store, contents: &'e Contents, plan: Plan) -> Self {
        Self {
            store,
            contents,
            plan,
            locals: HashMap::new(),
            calendars: HashMap::new(),
            firings: Vec::new(),
            decisions: Vec::new(),
            report: ScanReport::default(),
            deleting: Vec::new(),
            watched: false,
            shares: BTreeMap::new(),
        }
    }

    /// The shards that are eligible in the window. In the order of their names: who repeats a scan cuts the same chunks, and
    /// a name says which shards are done.
    pub(crate) async fn shards(&mut self, sink: &impl Sink) -> Result<Vec<Shard>, EngineError> {
        let shape = self.store.index_shape().await?;
        self.deleting.clone_from(&shape.deleting);
        self.watched = shape.watched;
        self.shares.clone_from(&shape.shares);
        for zone in &shape.unreadable {
            error!(zone, "the jobs of a zone do not launch: this version does not know it");
        }
        let mut shards = self.expression_shards(&shape);
        shards.extend(Shard::instants(self.plan.window, self.store.spread()));
        shards.retain(|shard| sink.reads(shard));
        shards.sort_by_cached_key(Shard::name);
        Ok(shards)
    }

    fn expression_shards(&mut self, shape: &IndexShape) -> Vec<Shard> {
        let mut shards = Vec::new();
        for (zone, _) in &shape.zones {
            for range in self.local(*zone).eligible() {
                let count = shape.shards_of(*zone, &range.launch_expression);
                let of_range = |shard| Shard::Expression { zone: *zone, range: range.clone(), shard };
                shards.extend((0..count).map(of_range));
            }
        }
        shards
    }

    fn local(&mut self, zone: Tz) -> &LocalWindow {
        self.locals.entry(zone).or_insert_with(|| LocalWindow::new(zone, self.plan.window))
    }

    /// Decides about the launches of a row, those after `after` where a part of them is done.
    pub(crate) async fn row(
        &mut self,
        row: IndexRow,
        after: Option<DateTime<Utc>>,
        sink: &mut impl Sink,
    ) -> Result<RowEnd, EngineError> {
        self.report.rows_read += 1;
        sink.begin_row(&row);
        let child = match &row.child {
            Ok(child) => child,
            Err(corrupt) => {
                self.report.rows_corrupt += 1;
                error!(error = %corrupt, { ROWS_SET_ASIDE } = 1_u64, "a row of the time index is set aside");
                sink.unreadable(&row, self.plan.window.from()).await?;
                return Ok(RowEnd::Done);
            }
        };
        let found = contain(|| whose(child), async {
            let zone = child.cadence.index_zone();
            if let Some(zone) = zone {
                self.local(zone);
            }
            let local = zone.and_then(|zone| self.locals.get(&zone));
            firings(child, local, self.plan.window, &mut self.firings);
            self.firings.retain(|firing| firing.launch_at >= child.emit_from);
        });
        match found.await {
            Ok(()) if self.firings.is_empty() => Ok(RowEnd::Done),
            Ok(()) => self.resolve(child, after, sink).await,
            Err(panicked) => {
                // When it launches is what cannot be told: the window stands for all of it.
                self.firings =
                    vec![Firing { launch_at: self.plan.window.from(), label: Dst::Plain, moved_from: None }];
                self.set_aside_found(child, panicked.into(), sink).await?;
                Ok(RowEnd::Done)
            }
        }
    }

    /// Decides about the launches that were found and hands them on.
    async fn resolve(
        &mut self,
        child: &Child,
        after: Option<DateTime<Utc>>,
        sink: &mut impl Sink,
    ) -> Result<RowEnd, EngineError> {
        let decided = contain(|| whose(child), self.evaluate_found(child)).await;
        if let Err(error) = decided.map_err(EngineError::from).flatten() {
            self.set_aside_found(child, error, sink).await?;
            return Ok(RowEnd::Done);
        }
        self.firings.clear();
        let mut decisions = std::mem::take(&mut self.decisions);
        decisions.retain(|decision| after.is_none_or(|after| decision.firing.launch_at > after));
        let mut end = RowEnd::Done;
        let mut groups =
            decisions.chunk_by(|a, b| a.skip_reason.is_some() && a.skip_reason == b.skip_reason).peekable();
        while let Some(group) = groups.next() {
            let handed_on = contain(|| whose(child), async {
                match group {
                    [launch @ Decision { skip_reason: None, .. }] => sink.launch(child, launch).await,
                    [Decision { skip_reason: Some(reason), .. }, ..] => {
                        sink.skip(child, group, *reason).await
                    }
                    _ => Ok(()),
                }
            });
            if let Err(error) = handed_on.await.map_err(EngineError::from).flatten() {
                self.set_aside(child, group, error, sink).await?;
            }
            if let Some(last) = group.last()
                && groups.peek().is_some()
                && sink.is_full()
            {
                end = RowEnd::Cut(last.firing.launch_at);
                break;
            }
        }
        self.decisions = decisions;
        self.decisions.clear();
        Ok(end)
    }

    async fn evaluate_found(&mut self, child: &Child) -> Result<(), EngineError> {
        let days = self.open_days(child).await?;
        days.settle(&child.cadence, &mut self.firings);
        evaluate(child, &self.firings, &days, &self.plan, &mut self.decisions);
        for decision in &mut self.decisions {
            // Whoever emitted it before and died may have left its run without a message. Delivery looks at its age anyway.
            decision.skip_reason =
                decision.skip_reason.filter(|reason| !(self.plan.repeat && *reason == SkipReason::Expired));
        }
        Ok(())
    }

    /// Sets aside the launches that were found and could not be evaluated.
    async fn set_aside_found(
        &mut self,
        child: &Child,
        error: EngineError,
        sink: &mut impl Sink,
    ) -> Result<(), EngineError> {
        self.decisions.clear();
        let undecided = |firing: Firing| Decision {
            firing,
            launch_at: firing.launch_at,
            skip_reason: Some(SkipReason::NotEmittable),
            moved_to: None,
        };
        let launches: Vec<Decision> = self.firings.drain(..).map(undecided).collect();
        self.set_aside(child, &launches, error, sink).await
    }

    /// Sets launches aside whose job is at fault; whatever else went wrong stops the scan, which is then repeated.
    async fn set_aside(
        &mut self,
        child: &Child,
        launches: &[Decision],
        error: EngineError,
        sink: &mut impl Sink,
    ) -> Result<(), EngineError> {
        if !error.is_of_one_row() {
            return Err(error);
        }
        self.report.set_aside += launches.len() as u64;
        error!(client = %child.client, job = %child.job, launches = launches.len(), { ROWS_SET_ASIDE } = launches.len() as u64, %error, "launches are set aside");
        let recorded = sink.skip(child, launches, SkipReason::NotEmittable).await;
        match recorded {
            Err(error) if error.is_of_one_row() => {
                error!(client = %child.client, job = %child.job, %error, "launches are set aside without a record");
                Ok(())
            }
            recorded => recorded,
        }
    }

    /// The days on which a row's job may launch. Each calendar is read once in a scan.
    async fn open_days(&mut self, child: &Child) -> Result<OpenDays, EngineError> {
        let key = |id: &CalendarId| (child.client.clone(), id.clone());
        for id in child.rules.all_calendars() {
            if !self.calendars.contains_key(&key(id)) {
                let listed = self.contents.listed(&child.client, id).await?;
                self.calendars.insert(key(id), listed);
            }
        }
        Ok(OpenDays::of(&child.rules, |id| self.calendars.get(&key(id)).cloned().flatten()))
    }

    /// Decides about launches of a job that were found otherwise than by its rows, those after `after`. Returns up to which one
    /// they were handed on, when the sink is full before the last.
    pub(crate) async fn launches(
        &mut self,
        child: &Child,
        window: Window,
        after: Option<DateTime<Utc>>,
        sink: &mut impl Sink,
    ) -> Result<Option<DateTime<Utc>>, EngineError> {
        self.firings = child.candidates().firings(window);
        Ok(match self.resolve(child, after, sink).await? {
            RowEnd::Done => None,
            RowEnd::Cut(to) => Some(to),
        })
    }
}

/// Whose launches are worked on, for the log.
fn whose(child: &Child) -> String {
    format!("client {}, job {}", child.client, child.job)
}

/// What somebody goes by who emits a job's launches at once, whatever their age. With `repeat`, they may have been emitted
/// before.
pub(crate) fn plan_at_once(now: DateTime<Utc>, repeat: bool) -> Plan {
    let missed_before = DateTime::<Utc>::MIN_UTC;
    Plan { window: Window::of_none(now), as_of: now, repeat, missed_before, now }
}
