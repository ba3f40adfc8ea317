//! Runs, by job: occurrences that were materialised, and those that were not, with the reason.

pub(crate) mod part;
mod retain;
mod tally;

use chrono::{DateTime, Utc};
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, JobId, PolicyId, RunId};
use tidegate_domain::job::Terms;
use tidegate_domain::limits::{HISTORY_DAYS, PAGE_ROWS};
use tidegate_domain::occurrence::{Occurrence, SkipReason};
use tidegate_domain::pack::{SinglesId, SinglesKind};
use tidegate_domain::slots::Outcome;
use tidegate_domain::time::{Window, days, shifted};

use crate::doc::TermsDoc;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::journal::{Entry, Step};
use crate::rows::{Query, Sorted, Update, Updated};
use crate::tables::Table;
use crate::{Create, Page, PageOf, Result, Store, StoreError, Write};

pub use tally::Tally;

/// Runs before another that are looked at first: most often the last of them says all.
const FIRST_LOOK_BACK: i32 = 4;

/// A run as it is stored: an occurrence that was materialised, or was skipped with a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Which run.
    pub id: RunId,
    /// What it delivers.
    pub terms: Terms,
    /// Why nothing of it (or nothing more) is delivered, as the word of a [`SkipReason`] or a
    /// [`StopReason`](tidegate_domain::occurrence::StopReason); `None` for a run that takes its course.
    pub stopped: Option<String>,
    /// How many of its events have come to which end, without those that are sent again since.
    pub tally: Tally,
    /// How many ends were taken back, since their events are sent again.
    pub redriven: Tally,
    /// The occurrences that the row stands for when several were skipped for the same reason; `None` when it stands for
    /// its own alone.
    pub skipped: Option<Skipped>,
    /// What happened to the event of a run of one; `None` for other runs, for throttled ones, and before it was
    /// delivered.
    pub single: Option<EventRow>,
    /// Where its event waits or waited, when it is a single one in a pack of many; `None` otherwise. Only
    /// [`Store::find_run`] fills it in.
    pub member: Option<PackMember>,
    /// When the first of its events was granted a token, to the millisecond; `None` before that, and where nothing
    /// throttles.
    pub started_at: Option<DateTime<Utc>>,
    /// When outcomes were last added to the tally, to the millisecond; `None` before the first.
    pub last_outcome_at: Option<DateTime<Utc>>,
    /// How its client was told that it has come to its end; `None` when it was not, or is not to be.
    pub announced: Option<Announced>,
}

/// What happened to one event that is not throttled, or that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its number in the run or pack, from 0.
    pub index: u32,
    /// Whether the consumer got it: its queue or endpoint took it.
    pub delivered: bool,
    /// How often delivery was tried.
    pub attempts: u8,
    /// When the last attempt ended, to the millisecond.
    pub at: DateTime<Utc>,
    /// Why it was not delivered: what the target answered; `None` when it was.
    pub reason: Option<String>,
}

/// Where a single event waits or waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackMember {
    /// The policy of the pack.
    pub policy: PolicyId,
    /// The pack, among those of that policy.
    pub pack: SinglesId,
    /// The event's number in the pack, from 0.
    pub index: u32,
}

/// How a client was told that a run has come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// When, to the millisecond.
    pub at: DateTime<Utc>,
    /// Why the client could not be told; `None` when it was.
    pub failure: Option<String>,
}

/// What came of adding outcomes to a run's tally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The run as it is now; `None` when there is none any more, or its row cannot be read.
    pub row: Option<RunRow>,
    /// Whether this call counted them; otherwise an earlier one did.
    pub counted: bool,
}

/// Occurrences that were skipped together: the row's own is the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// The launch of the last of them, in whole seconds.
    pub until: DateTime<Utc>,
    /// How many they are, the first included.
    pub count: u32,
}

impl RunRow {
    /// A run of a pack, of which nothing is known but that it was put there.
    pub fn waiting(occurrence: &Occurrence) -> Self {
        Self {
            id: occurrence.run_id(),
            terms: occurrence.terms.clone(),
            stopped: None,
            tally: Tally::default(),
            redriven: Tally::default(),
            skipped: None,
            single: None,
            member: None,
            started_at: None,
            last_outcome_at: None,
            announced: None,
        }
    }

    /// The occurrence that it is, of a job of `client`: rows do not repeat whose they are.
    pub fn occurrence(&self, client: &ClientId) -> Occurrence {
        let (job, revision, launch_at) = (self.id.job().clone(), self.id.revision(), self.id.launch_at());
        Occurrence { client: client.clone(), job, revision, launch_at, terms: self.terms.clone() }
    }

    /// Whether all its events have come to an end, those that were skipped included.
    pub fn has_ended(&self) -> bool {
        self.tally.total() >= self.terms.count.get()
    }

    /// Whether something of it is still at work, or will be. One that was stopped before it began has nothing, and how much
    /// is left of one that was set aside is not known.
    fn is_open(&self) -> bool {
        let is_aside = self.stopped.as_deref() == Some(SkipReason::NotEmittable.as_str());
        let has_begun = self.stopped.is_none() || (self.started_at.is_some() && !is_aside);
        // Of what nothing throttles, the end is not known here.
        self.terms.policy.is_some() && has_begun && !self.has_ended()
    }

    /// Whether it is over, and began only when no earlier run of its job was open.
    fn was_alone(&self) -> bool {
        self.started_at.is_some() && self.has_ended() && self.terms.flow.overlap != Overlap::Allow
    }

    /// Whether it says that occurrences up to `until` were skipped for a reason.
    fn covers(&self, reason: SkipReason, until: DateTime<Utc>) -> bool {
        self.stopped.as_deref() == Some(reason.as_str())
            && self.skipped.is_some_and(|skipped| until <= skipped.until)
    }
}

/// The place of a run in the list of its job's runs: what the next page is asked with.
pub fn list_key(run: &RunId) -> String {
    format!("{:012}|{:010}", run.launch_at().timestamp(), run.revision())
}

/// When the run launched that a place in a list is of; `None` when the text is no such place.
pub fn launch_of_list_key(key: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(key.split('|').next()?.parse().ok()?, 0)
}

/// The run of a job that is at a place in the list of its runs; `None` when the text is no such place.
///
/// ```
/// use tidegate_store::runs::{list_key, run_of_list_key};
///
/// let run: tidegate_domain::ids::RunId = "nightly.3.1790000000".parse()?;
/// assert_eq!(run_of_list_key(run.job(), &list_key(&run)), Some(run.clone()));
/// assert_eq!(run_of_list_key(run.job(), "elsewhere"), None);
/// # Ok::<(), tidegate_domain::ids::IdError>(())
/// ```
pub fn run_of_list_key(job: &JobId, key: &str) -> Option<RunId> {
    let revision = key.split('|').nth(1)?.parse().ok()?;
    Some(RunId::new(job.clone(), revision, launch_of_list_key(key)?))
}

pub(crate) fn key(client: &ClientId, run: &RunId) -> Key {
    Key::new(format!("{client}|{}", run.job()), list_key(run))
}

/// What a run's row says when the terms of its job cannot be read.
const UNREADABLE_TERMS: &str = r#"{"n":1,"q":"https://sqs.invalid/0/unreadable","m":1}"#;

/// Terms as rows keep them.
pub(crate) fn terms_json(terms: &Terms) -> Result<String> {
    serde_json::to_string(&TermsDoc::from(terms)).map_err(|e| StoreError::Corrupt {
        table: Table::Runs,
        key: String::new(),
        reason: e.to_string(),
    })
}

/// The row of a run that is over, with what it came to: a record.
pub(crate) fn record_row(occurrence: &Occurrence, tally: Tally, now: DateTime<Utc>) -> Result<Row> {
    let row = row(occurrence, tally, now)?;
    Ok(row.expiring(occurrence.terms.history_days.from(now.max(occurrence.launch_at))))
}

/// The row of a run that has come to `tally` so far.
pub(crate) fn row(occurrence: &Occurrence, tally: Tally, now: DateTime<Utc>) -> Result<Row> {
    let kept = occurrence.terms.history_days.at_least_default();
    let run = occurrence.run_id();
    let row = Row::new(&key(&occurrence.client, &run))
        .with("run", text(run.to_string()))
        .with("terms", text(terms_json(&occurrence.terms)?))
        .expiring(kept.from(now.max(occurrence.launch_at)));
    Ok(tally
        .counts()
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .fold(row, |row, (name, n)| row.with(name, number(n))))
}

pub(crate) fn read(row: &Attributes) -> Result<RunRow> {
    let item = Item::read(Table::Runs, row)?;
    let doc: TermsDoc = serde_json::from_str(item.text("terms")?).map_err(|e| item.corrupt(e.to_string()))?;
    let own = Tally {
        delivered: item.number_or("delivered", 0)?,
        succeeded: item.number_or("succeeded", 0)?,
        failed: item.number_or("failed", 0)?,
        expired: item.number_or("expired", 0)?,
        dead: item.number_or("dead", 0)?,
        left_out: item.number_or("left_out", 0)?,
    };
    let redriven = read_redriven(item)?;
    Ok(RunRow {
        id: item.id("run")?,
        terms: doc.read().map_err(|e| item.corrupt(format!("'terms': {e}")))?,
        stopped: item.find_text("stopped").map(str::to_owned),
        skipped: read_skipped(item)?,
        single: read_single(item)?,
        member: None,
        tally: part::sum_in(item)?.into_iter().fold(own, Tally::plus).without(redriven),
        redriven,
        started_at: item.find_instant_ms("started")?,
        last_outcome_at: item.find_instant_ms("last_at")?,
        announced: read_announced(item)?,
    })
}

fn read_announced(item: Item<'_>) -> Result<Option<Announced>> {
    let failure = item.find_text("announce_failure").map(str::to_owned);
    Ok(item.find_instant_ms("announced")?.map(|at| Announced { at, failure }))
}

fn read_skipped(item: Item<'_>) -> Result<Option<Skipped>> {
    let Some(count) = item.find_number("skipped")? else { return Ok(None) };
    Ok(Some(Skipped { until: item.instant_s("skipped_to")?, count }))
}

fn read_single(item: Item<'_>) -> Result<Option<EventRow>> {
    let Some(attempts) = item.find_number("tries")? else { return Ok(None) };
    Ok(Some(EventRow {
        index: 0,
        delivered: item.number_or("delivered", 0_u32)? > 0,
        attempts,
        at: item.instant_ms("done_at")?,
        reason: item.find_text("reason").map(str::to_owned),
    }))
}

impl Store {
    /// Materialises an occurrence, kept for its `history_days`, and at least [`HISTORY_DAYS`], from its launch or from `now`,
    /// whichever is later.
    /// Repeating it changes nothing: `Exists`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn create_run(&self, occurrence: &Occurrence, now: DateTime<Utc>) -> Result<Create> {
        let created = self.put_new(Table::Runs, row(occurrence, Tally::default(), now)?).await?;
        Ok(self.noting(created, || Entry::launched(occurrence, now)))
    }

    /// Records that an occurrence is not materialised, and why (the word of a [`SkipReason`]). What is known of it
    /// already stays: `Exists`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn record_skip(
        &self,
        occurrence: &Occurrence,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let row = record_row(occurrence, Tally::none_of(occurrence), now)?.with("stopped", text(reason));
        let recorded = self.put_new(Table::Runs, row).await?;
        let step = Step::Skipped { launches: 1, until: occurrence.launch_at };
        Ok(self.noting(recorded, || Entry::of(occurrence, step, now).because(reason)))
    }

    /// Records under a job that its launches at an instant cannot be read from the index. What is known of a run at
    /// that instant stays. The run has revision 0, which no job has: its own cannot be read either.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn record_unreadable(
        &self,
        client: &ClientId,
        job: &JobId,
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        // Its revision cannot be read either; there is no revision 0.
        self.record_unreadable_run(client, &RunId::new(job.clone(), 0, at), now).await
    }

    /// Records of a run that it cannot be emitted, since nobody can read what it delivers. What is known of it stays:
    /// `Exists`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn record_unreadable_run(
        &self,
        client: &ClientId,
        run: &RunId,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let row = Row::new(&key(client, run))
            .with("run", text(run.to_string()))
            .with("terms", text(UNREADABLE_TERMS))
            .with("stopped", text(SkipReason::NotEmittable.as_str()))
            .with("left_out", number(1))
            .expiring(shifted(now.max(run.launch_at()), days(HISTORY_DAYS)));
        let recorded = self.put_new(Table::Runs, row).await?;
        Ok(self.noting(recorded, || Entry {
            client: client.clone(),
            run: run.clone(),
            policy: None,
            step: Step::Skipped { launches: 1, until: run.launch_at() },
            reason: Some(SkipReason::NotEmittable.as_str().to_owned()),
            at: Some(now),
        }))
    }

    /// Records that several occurrences of a job, of which `first` is the first, are not materialised, and why. A
    /// record that says the same of fewer of them grows. `Exists` when something else became of the first: the others
    /// are then not recorded.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn record_skips(
        &self,
        first: &Occurrence,
        reason: SkipReason,
        skipped: Skipped,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let row = record_row(first, Tally::none_of(first), now)?
            .with("stopped", text(reason.as_str()))
            .with("skipped", number(skipped.count))
            .with("skipped_to", number(skipped.until.timestamp()));
        let step = Step::Skipped { launches: skipped.count, until: skipped.until };
        let entry = || Entry::of(first, step, now).because(reason.as_str());
        if self.put_new(Table::Runs, row).await? == Create::Done {
            self.note(entry);
            return Ok(Create::Done);
        }
        // Whoever died before it said how far it came may have found fewer of them.
        let changes = "SET skipped = :count, skipped_to = :until";
        let update = Update::new(Table::Runs, key(&first.client, &first.run_id()), changes)
            .when("stopped = :reason AND (attribute_not_exists(skipped_to) OR skipped_to < :until)")
            .value(":reason", text(reason.as_str()))
            .value(":count", number(skipped.count))
            .value(":until", number(skipped.until.timestamp()));
        Ok(match self.update(update).await? {
            Updated::Done(_) => self.noting(Create::Done, entry),
            Updated::Refused(Some(seen)) if read(&seen)?.covers(reason, skipped.until) => Create::Done,
            Updated::Refused(_) => Create::Exists,
        })
    }

    /// Says that nothing more of a run is delivered, and why (the word of a `StopReason`). The first reason stays:
    /// `Refused` when there is one, or no such run.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn stop_run(&self, client: &ClientId, run: &RunId, reason: &str) -> Result<Write> {
        let update = Update::new(Table::Runs, key(client, run), "SET stopped = :reason")
            .when("attribute_exists(pk) AND attribute_not_exists(stopped)")
            .value(":reason", text(reason));
        let stopped = self.update(update).await?.into();
        if stopped == Write::Done {
            self.note(|| Entry {
                client: client.clone(),
                run: run.clone(),
                policy: None,
                step: Step::Stopped,
                reason: Some(reason.to_owned()),
                at: None,
            });
        }
        Ok(stopped)
    }

    /// A run by its id, whether it has a row or is one of a pack of single events; `None` when it has neither. Read
    /// consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read. A pack that cannot be read counts as if the run were not in it.
    pub async fn find_run(&self, client: &ClientId, run: &RunId) -> Result<Option<RunRow>> {
        let row = self.run(client, run).await?;
        if row.as_ref().is_some_and(|row| !SinglesKind::fits(&row.terms)) {
            return Ok(row);
        }
        let Some((member, occurrence)) = self.pack_with(client, run).await? else { return Ok(row) };
        let row = row.unwrap_or_else(|| RunRow::waiting(&occurrence));
        Ok(Some(RunRow { member: Some(member), ..row }))
    }

    /// Records that a single event of a pack is not delivered, and why (the word of a `StopReason`). A first reason
    /// stays: `Exists`. What came of its token, if it held one, is in the history of its pack.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn stop_single(
        &self,
        occurrence: &Occurrence,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<Create> {
        let row = row(occurrence, Tally::default(), now)?.with("stopped", text(reason));
        let recorded = self.put_new(Table::Runs, row).await?;
        Ok(self.noting(recorded, || Entry::of(occurrence, Step::Stopped, now).because(reason)))
    }

    /// A run by its id, where it has a row; `None` where it has none, such as while it waits in a pack of single
    /// events. Read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn run(&self, client: &ClientId, run: &RunId) -> Result<Option<RunRow>> {
        self.get(Table::Runs, &key(client, run), true).await?.as_ref().map(read).transpose()
    }

    /// The throttled runs of the same job that launched before a run and are not finished, the latest first; at least
    /// two of more. Read consistently. A run whose row cannot be read is passed over: nobody could tell when it ends.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn unfinished_before(&self, client: &ClientId, run: &RunId) -> Result<Vec<RunId>> {
        let Key { pk, sk } = key(client, run);
        let (mut open, mut after, mut limit) = (Vec::new(), None, FIRST_LOOK_BACK);
        loop {
            let query = Query {
                sorted: Sorted::Between("0".to_owned(), sk.clone()),
                limit: Some(limit),
                descending: true,
                consistent: true,
                after,
                ..Query::of(Table::Runs, &*pk)
            };
            let page = self.query(query).await?;
            // One that cannot be read is not waited for: nobody could tell when it ends.
            let page = page.read(Table::Runs, read);
            for row in page.rows {
                if row.was_alone() {
                    return Ok(open);
                }
                if row.id != *run && row.is_open() {
                    open.push(row.id);
                }
            }
            (after, limit) = (page.next, PAGE_ROWS);
            if after.is_none() || open.len() > 1 {
                return Ok(open);
            }
        }
    }

    /// A page of a job's runs, the latest launch first. Runs that still wait in packs of single events have no row here.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn runs(
        &self,
        client: &ClientId,
        job: &JobId,
        page: impl Into<PageOf>,
    ) -> Result<Page<RunRow>> {
        let query = Query { descending: true, ..Query::of(Table::Runs, format!("{client}|{job}")) };
        Ok(self.query(query.page(page.into())).await?.read(Table::Runs, read))
    }

    /// A page of a job's runs that launched in a window, the earliest first. Runs that still wait in packs of single events have
    /// no row here, and one row of skipped occurrences stands at the first of them.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn runs_within(
        &self,
        client: &ClientId,
        job: &JobId,
        window: Window,
        page: impl Into<PageOf>,
    ) -> Result<Page<RunRow>> {
        let place = |at: DateTime<Utc>| format!("{:012}|", at.timestamp());
        let sorted = Sorted::Between(place(window.from()), place(window.to()));
        let query = Query { sorted, ..Query::of(Table::Runs, format!("{client}|{job}")) };
        Ok(self.query(query.page(page.into())).await?.read(Table::Runs, read))
    }

    /// Says when the first event of a run was granted a token. The first instant stays: `Refused` when there is one, or
    /// no such run.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn run_started(&self, client: &ClientId, run: &RunId, now: DateTime<Utc>) -> Result<Write> {
        let update = Update::new(Table::Runs, key(client, run), "SET started = :now")
            .when("attribute_exists(pk) AND attribute_not_exists(started)")
            .value(":now", number(now.timestamp_millis()));
        Ok(self.update(update).await?.into())
    }

    /// Says that the client was told of a run's end, or why that cannot be done. What was said first stays: `Refused`
    /// when something was, or there is no such run.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn mark_announced(
        &self,
        client: &ClientId,
        run: &RunId,
        announced: &Announced,
    ) -> Result<Write> {
        let changes = match announced.failure {
            Some(_) => "SET announced = :at, announce_failure = :failure",
            None => "SET announced = :at",
        };
        let mut update = Update::new(Table::Runs, key(client, run), changes)
            .when("attribute_exists(pk) AND attribute_not_exists(announced)")
            .value(":at", number(announced.at.timestamp_millis()));
        if let Some(failure) = &announced.failure {
            update = update.value(":failure", text(&**failure));
        }
        Ok(self.update(update).await?.into())
    }

    /// Adds the outcomes of compaction number `flush` of slot group `group` to a run's tally. Each compaction counts
    /// once, however often it is repeated. A row that cannot be read counts them too, and is not answered.
    ///
    /// The run's row counts those of a policy's first groups itself. Those of the others are counted in parts, and the
    /// row knows the sum of each.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. `StoreError::Corrupt` when the counts of a
    /// part cannot be read.
    pub async fn add_outcomes(
        &self,
        client: &ClientId,
        run: &RunId,
        (group, flush): (u32, u64),
        tally: Tally,
        now: DateTime<Utc>,
    ) -> Result<Added> {
        let part = self.spread.part_of(group);
        if part > 0 {
            return self.add_to_part(client, run, (part, group, flush), tally, now).await;
        }
        let update = part::count_once(key(client, run), "last_at = :now", (group, flush), tally)
            .when(format!("attribute_exists(pk) AND {}", part::is_not_counted(group)))
            .value(":now", number(now.timestamp_millis()));
        Ok(match self.update(update).await? {
            Updated::Done(row) => Added { row: read(&row).ok(), counted: true },
            Updated::Refused(row) => Added { row: row.and_then(|row| read(&row).ok()), counted: false },
        })
    }
}

/// Counts events of a run that nobody is granted any more, beside the write that takes them out of the line or of a slot
/// group. Refused when the run's row is gone.
/// Counts that an event of a run that had come to an end is sent again.
pub(crate) fn redriven_update(client: &ClientId, run: &RunId, ended: Outcome) -> Update {
    Update::new(Table::Runs, key(client, run), format!("ADD {} :n", redriven_name(ended)))
        .when("attribute_exists(pk)")
        .value(":n", number(1))
}

fn redriven_name(ended: Outcome) -> &'static str {
    match ended {
        Outcome::Succeeded => "redriven_succeeded",
        Outcome::Failed => "redriven_failed",
        Outcome::Expired => "redriven_expired",
        Outcome::Dead => "redriven_dead",
    }
}

/// How many events that had come to which end were sent again.
fn read_redriven(item: Item<'_>) -> Result<Tally> {
    let of = |outcome| item.number_or(redriven_name(outcome), 0);
    Ok(Tally {
        failed: of(Outcome::Failed)?,
        expired: of(Outcome::Expired)?,
        dead: of(Outcome::Dead)?,
        ..Tally::default()
    })
}

pub(crate) fn left_out_update(client: &ClientId, run: &RunId, count: u32) -> Update {
    Update::new(Table::Runs, key(client, run), "ADD left_out :n")
        .when("attribute_exists(pk)")
        .value(":n", number(count))
}
