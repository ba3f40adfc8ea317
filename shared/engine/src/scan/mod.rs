//! A scan: reads the rows of the index that are eligible in a window, judges their launches, hands them to a sink.
//!
//! The emitter's sink sends and records; a rehearsal's only looks. What is too much for one tick is left as parts, which
//! are rows of their own before the tick says that it is done (I2), and are worked on in parallel. A launch that cannot be
//! judged or emitted is set aside under its job, and the window goes on (I9).

pub(crate) mod judge;
mod part;
mod rehearse;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use futures::stream::{self, StreamExt};
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::ids::{CalendarId, ClientId};
use tidegate_domain::occurrence::NonRun;
use tidegate_domain::time::{Dst, Firing, LocalWindow, Window};
use tidegate_store::index::IndexShape;
use tidegate_store::launch::{Child, Shard};
use tracing::error;

use crate::{Engine, EngineError, contain};
pub use judge::Verdict;
use judge::{Plan, firings, judge};
pub use rehearse::Rehearsal;

/// Shards read at once.
const READS_AT_ONCE: usize = 16;

/// Where the launches of a scan go.
pub(crate) trait Sink {
    /// Whether a shard is read. The emitter reads all of them.
    fn reads(&self, _shard: &Shard) -> bool {
        true
    }

    /// A launch of a row that is made. `repeat` when it may have been before.
    async fn launch(&mut self, row: &Child, launch: &Verdict, repeat: bool) -> Result<(), EngineError>;

    /// Launches of a row that are left out for one reason, in order.
    async fn leave_out(
        &mut self,
        row: &Child,
        left_out: &[Verdict],
        reason: NonRun,
    ) -> Result<(), EngineError>;
}

/// What a scan read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// Rows of the index.
    pub rows_read: u64,
    /// Rows that could not be read; each is in the log.
    pub rows_corrupt: u64,
    /// Launches that were set aside: they cannot be judged or emitted. Each is in the log, and in its job's runs.
    pub set_aside: u64,
    /// Parts that were left to others.
    pub parts: u64,
}

/// How much of each shard a scan reads itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it.
    All,
    /// No more pages than this in all, beside the first of each shard; the rest is left as parts.
    Pages(u32),
}

/// A scan under way.
pub(crate) struct Scan<'e> {
    engine: &'e Engine,
    plan: Plan,
    locals: HashMap<Tz, LocalWindow>,
    calendars: HashMap<(ClientId, CalendarId), Option<Arc<Exclusions>>>,
    firings: Vec<Firing>,
    verdicts: Vec<Verdict>,
    pub(crate) report: ScanReport,
}

type ChildPage = tidegate_store::Page<tidegate_store::Result<Child>>;

impl Engine {
    /// Hands all launches of the plan's window to `sink`.
    pub(crate) async fn scan(
        &self,
        plan: Plan,
        reach: Reach,
        sink: &mut impl Sink,
    ) -> Result<ScanReport, EngineError> {
        let shape = self.store().index_shape().await?;
        let mut scan = Scan::new(self, plan);
        let mut shards = scan.expression_shards(&shape);
        shards.extend(Shard::instants(plan.window));
        shards.retain(|shard| sink.reads(shard));
        // In order: a scan that is repeated cuts the same chunks, whose marks are then found.
        let reads: Vec<_> = shards.into_iter().map(|shard| self.first_page(shard)).collect();
        let mut pages = stream::iter(reads).buffered(READS_AT_ONCE);
        let mut further_pages = 0;
        while let Some(read) = pages.next().await {
            let (shard, mut page) = read?;
            loop {
                scan.page(page.rows, false, sink).await?;
                let Some(next) = page.next else { break };
                if let Reach::Pages(most) = reach
                    && further_pages >= most
                {
                    self.leave_part(&plan, &shard, next).await?;
                    scan.report.parts += 1;
                    break;
                }
                further_pages += 1;
                page = self.store().children(&shard, Some(next)).await?;
            }
        }
        Ok(scan.report)
    }

    async fn first_page(&self, shard: Shard) -> Result<(Shard, ChildPage), EngineError> {
        let page = self.store().children(&shard, None).await?;
        Ok((shard, page))
    }

    /// What the calendars of a job exclude; a calendar that is gone excludes nothing.
    pub(crate) async fn exclusions(
        &self,
        client: &ClientId,
        calendars: &[CalendarId],
    ) -> Result<Vec<Arc<Exclusions>>, EngineError> {
        let mut found = Vec::with_capacity(calendars.len());
        for id in calendars {
            let calendar = self.store().calendar(client, id).await?;
            found.extend(calendar.map(|calendar| Arc::new(calendar.exclusions)));
        }
        Ok(found)
    }
}

impl<'e> Scan<'e> {
    pub(crate) fn new(engine: &'e Engine, plan: Plan) -> Self {
        Self {
            engine,
            plan,
            locals: HashMap::new(),
            calendars: HashMap::new(),
            firings: Vec::new(),
            verdicts: Vec::new(),
            report: ScanReport::default(),
        }
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

    /// Judges the rows of a page. `again` when the page may have been emitted before.
    pub(crate) async fn page(
        &mut self,
        rows: Vec<tidegate_store::Result<Child>>,
        again: bool,
        sink: &mut impl Sink,
    ) -> Result<(), EngineError> {
        for row in rows {
            self.report.rows_read += 1;
            match row {
                Ok(child) => self.row(&child, again, sink).await?,
                Err(corrupt) => {
                    self.report.rows_corrupt += 1;
                    error!(error = %corrupt, "a row of the time index is skipped");
                }
            }
        }
        Ok(())
    }

    async fn row(&mut self, child: &Child, again: bool, sink: &mut impl Sink) -> Result<(), EngineError> {
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
            Ok(()) if self.firings.is_empty() => Ok(()),
            Ok(()) => self.settle(child, again, sink).await,
            Err(panicked) => {
                // When it launches is what cannot be told: the window stands for all of it.
                self.firings = vec![Firing { launch_at: self.plan.window.from(), label: Dst::Plain }];
                self.set_aside_found(child, panicked.into(), sink).await
            }
        }
    }

    /// Judges the launches that were found and hands them on.
    async fn settle(&mut self, child: &Child, again: bool, sink: &mut impl Sink) -> Result<(), EngineError> {
        let judged = contain(|| whose(child), self.judge_found(child, again)).await;
        match judged.map_err(EngineError::from).flatten() {
            Ok(()) => {}
            Err(error) => return self.set_aside_found(child, error, sink).await,
        }
        self.firings.clear();
        let verdicts = std::mem::take(&mut self.verdicts);
        for group in verdicts.chunk_by(|a, b| a.non_run.is_some() && a.non_run == b.non_run) {
            let handed_on = contain(|| whose(child), async {
                match group {
                    [launch @ Verdict { non_run: None, launch_at, .. }] => {
                        let repeat = again || *launch_at < self.plan.repeat_before;
                        sink.launch(child, launch, repeat).await
                    }
                    [Verdict { non_run: Some(reason), .. }, ..] => {
                        sink.leave_out(child, group, *reason).await
                    }
                    _ => Ok(()),
                }
            });
            if let Err(error) = handed_on.await.map_err(EngineError::from).flatten() {
                self.set_aside(child, group, error, sink).await?;
            }
        }
        self.verdicts = verdicts;
        self.verdicts.clear();
        Ok(())
    }

    async fn judge_found(&mut self, child: &Child, again: bool) -> Result<(), EngineError> {
        let calendars = self.exclusions(child).await?;
        judge(child, &self.firings, &calendars, &self.plan, &mut self.verdicts);
        for verdict in &mut self.verdicts {
            // Whoever emitted it before and died may have left its run without a message. Delivery judges its age anyway.
            let is_repeat = again || verdict.launch_at < self.plan.repeat_before;
            verdict.non_run = verdict.non_run.filter(|reason| !(is_repeat && *reason == NonRun::Expired));
        }
        Ok(())
    }

    /// Sets aside the launches that were found and could not be judged.
    async fn set_aside_found(
        &mut self,
        child: &Child,
        error: EngineError,
        sink: &mut impl Sink,
    ) -> Result<(), EngineError> {
        self.verdicts.clear();
        let unjudged = |firing: Firing| Verdict {
            firing,
            launch_at: firing.launch_at,
            non_run: Some(NonRun::NotEmittable),
        };
        let launches: Vec<Verdict> = self.firings.drain(..).map(unjudged).collect();
        self.set_aside(child, &launches, error, sink).await
    }

    /// Sets launches aside whose job is at fault; whatever else went wrong stops the scan, which is then repeated.
    async fn set_aside(
        &mut self,
        child: &Child,
        launches: &[Verdict],
        error: EngineError,
        sink: &mut impl Sink,
    ) -> Result<(), EngineError> {
        if !error.is_of_one_row() {
            return Err(error);
        }
        self.report.set_aside += launches.len() as u64;
        error!(client = %child.client, job = %child.job, launches = launches.len(), %error, "launches are set aside");
        let recorded = sink.leave_out(child, launches, NonRun::NotEmittable).await;
        match recorded {
            Err(error) if error.is_of_one_row() => {
                error!(client = %child.client, job = %child.job, %error, "launches are set aside without a record");
                Ok(())
            }
            recorded => recorded,
        }
    }

    async fn exclusions(&mut self, child: &Child) -> Result<Vec<Arc<Exclusions>>, EngineError> {
        let mut found = Vec::new();
        for id in &child.rules.calendars {
            let key = (child.client.clone(), id.clone());
            if !self.calendars.contains_key(&key) {
                let read = self.engine.exclusions(&child.client, std::slice::from_ref(id)).await?;
                self.calendars.insert(key.clone(), read.into_iter().next());
            }
            found.extend(self.calendars.get(&key).cloned().flatten());
        }
        Ok(found)
    }

    /// Judges launches of a job that were found otherwise than by its rows.
    pub(crate) async fn launches(
        &mut self,
        child: &Child,
        window: Window,
        again: bool,
        sink: &mut impl Sink,
    ) -> Result<(), EngineError> {
        self.firings = child.cadence.firings(window);
        self.settle(child, again, sink).await
    }
}

/// Whose launches are worked on, for the log.
fn whose(child: &Child) -> String {
    format!("client {}, job {}", child.client, child.job)
}

/// What somebody goes by who emits a job's launches at once, whatever their age.
pub(crate) fn plan_at_once(now: DateTime<Utc>) -> Plan {
    let always = DateTime::<Utc>::MIN_UTC;
    Plan {
        window: Window::of_none(now),
        as_of: now,
        repeat_before: always,
        missed_before: always,
        repeat_missed_before: always,
        now,
    }
}
