//! I2: every occurrence of every job is delivered, or recorded with the reason why not.
//!
//! At the end of a history, each occurrence that the model names has a run whose counts add up to its events, or was
//! delivered whole, or is covered by a record of what was left out; nothing waits in any group or line; and no dispatch
//! message fails once the faults have stopped.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, EventId, RunId};
use tidegate_domain::job::Terms;
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::slots::Refill;
use tidegate_engine::Handled;
use tidegate_store::runs::RunRow;

use super::{Verdict, Violation};
use crate::sim::history::History;
use crate::sim::model::{JobModel, PolicyModel};

/// Everything that is due was delivered or recorded, and has ended. Without `last_too`, the occurrences of policies whose
/// tokens nobody releases yet are left out.
pub(crate) async fn complete(history: &History, until: DateTime<Utc>, last_too: bool) -> Result<()> {
    for occurrence in history.model.jobs.iter().flat_map(|job| job.due(until)) {
        if waits_for_the_last(history, &occurrence) && !last_too {
            continue;
        }
        ended(history, &occurrence).await?;
    }
    Ok(())
}

/// No group has a range that it does not serve, no line an entry that nobody takes.
pub(crate) async fn nothing_waits(history: &History) -> Result<()> {
    for group in history.watch.groups() {
        if group.refill != Refill::Idle {
            let message = format!("{:?}: {:?}", group.key, group.refill);
            return Err(Violation::new("I2", "a group is not served", message).into());
        }
    }
    for policy in &history.model.policies {
        let line = history.stage.store.line(&policy.client, &policy.id, None).await?;
        if let Some(entry) = line.rows.iter().find(|entry| !entry.is_exhausted()) {
            return Err(Violation::new("I2", "an entry is left in the line", format!("{entry:?}")).into());
        }
    }
    Ok(())
}

/// What was handled without any fault is done.
pub(crate) fn handled(outcomes: &[(String, Handled)]) -> Verdict {
    match outcomes.iter().find(|(_, outcome)| *outcome == Handled::Retry) {
        Some((body, _)) => {
            Err(Violation::new("I2", "a dispatch message fails without any fault", format!("{body:.300}")))
        }
        None => Ok(()),
    }
}

/// Whether an occurrence ends only after all others: by its own policy, or by its overlap rule, which makes it wait for the
/// earlier runs of its job, whatever policy they are under.
fn waits_for_the_last(history: &History, occurrence: &Occurrence) -> bool {
    let is_last = |terms: &Terms| {
        let policy = terms.policy.as_ref();
        let policy = policy.and_then(|policy| history.model.policy(&occurrence.client, policy));
        policy.is_some_and(PolicyModel::is_last)
    };
    let of_job =
        |job: &&JobModel| job.client == occurrence.client && job.id.as_ref() == Some(&occurrence.job);
    let mut revisions =
        history.model.jobs.iter().filter(of_job).flat_map(|job| &job.revisions).map(|r| &r.job);
    let is_ruled = occurrence.terms.flow.overlap != Overlap::Allow;
    is_last(&occurrence.terms)
        || (is_ruled && revisions.any(|job| job.revision < occurrence.revision && is_last(&job.terms)))
}

async fn ended(history: &History, occurrence: &Occurrence) -> Result<()> {
    let run = occurrence.run_id();
    let count = occurrence.terms.count.get();
    let row = found(history, &occurrence.client, &run).await?;
    if let Some(row) = row.as_ref().filter(|row| row.stopped.is_some()) {
        return Ok(adds_up(row, count)?);
    }
    let delivered = history.model.delivered.get(&occurrence.client);
    let arrived = |index: u32| delivered.is_some_and(|ids| ids.contains(&run.event(index).to_string()));
    let missing = (0..count).filter(|index| !arrived(*index)).count();
    let of = format!("{missing} of the {count} events of {}/{run}", occurrence.client);
    let Some(row) = row else {
        // A single event whose success is not kept.
        if missing == 0 || is_left_out(history, occurrence).await? {
            return Ok(());
        }
        let skipped = left_out(history, occurrence).await?;
        let message = format!("{of} never came, and there is no run: {skipped}");
        return Err(Violation::new("I2", "an occurrence has neither events nor a run", message).into());
    };
    let Some(policy) = &occurrence.terms.policy else {
        if missing > 0 && !is_recorded(history, occurrence, &arrived).await? {
            let message = format!("{of} never came, and no record says why: {row:?}");
            return Err(Violation::new("I2", "an unthrottled event has no record", message).into());
        }
        return have_letters(history, occurrence, &arrived).await;
    };
    // One that expired came at least once, unless an operator ended a lease that nobody else ends.
    let policy = history.model.policy(&occurrence.client, policy);
    let freed = if policy.is_some_and(PolicyModel::holds) { row.tally.expired } else { 0 };
    if missing as u32 > row.tally.dead + freed {
        let message = format!("{of} never came: {:?}", row.tally);
        return Err(Violation::new("I2", "a throttled event never came", message).into());
    }
    if row.tally.total() != count {
        let message = format!("of {count} events of {}/{run}, {:?} have ended", occurrence.client, row.tally);
        return Err(Violation::new("I2", "the counts of a run do not add up", message).into());
    }
    have_letters(history, occurrence, &arrived).await
}

/// Whether what was redriven has arrived.
pub(crate) fn came(event: &EventId, has_come: bool, is_dead: bool) -> Verdict {
    let kind = match (has_come, is_dead) {
        (true, false) => return Ok(()),
        (_, true) => "what was redriven is dead, though its target is there",
        (false, false) => "what was redriven never came",
    };
    Err(Violation::new("I2", kind, event.to_string()))
}

/// Whether every event that did not arrive has a dead letter, unless somebody discarded it.
async fn have_letters(
    history: &History,
    occurrence: &Occurrence,
    arrived: &(impl Fn(u32) -> bool + Sync),
) -> Result<()> {
    let (client, run) = (&occurrence.client, occurrence.run_id());
    for index in (0..occurrence.terms.count.get()).filter(|index| !arrived(*index)) {
        let event = run.event(index);
        let is_discarded = history.stage.operator.as_ref().is_some_and(|of| of.has_discarded(client, &event));
        if !is_discarded && history.stage.store.dead_letter(client, &event).await?.is_none() {
            let message = format!("{client}/{event}");
            return Err(Violation::new("I2", "an event never came and has no dead letter", message).into());
        }
    }
    Ok(())
}

/// What is known of a run. Of one that is in a pack, its history says what came of it.
async fn found(history: &History, client: &ClientId, run: &RunId) -> Result<Option<RunRow>> {
    let Some(row) = history.stage.store.find_run(client, run).await? else { return Ok(None) };
    if row.member.is_none() {
        return Ok(Some(row));
    }
    let detail = history.engines[0].queries().run_detail(client, run).await?;
    let tally = detail.map(|detail| detail.summary.tally).unwrap_or_default();
    Ok(Some(RunRow { tally, ..row }))
}

/// What of a stopped run was admitted has ended, and the rest is counted as left out.
fn adds_up(row: &RunRow, count: u32) -> Verdict {
    let began = row.terms.policy.is_some() && row.tally.total() > 0;
    if began && row.tally.total() != count {
        let message = format!("of {count} events of the stopped run {}, {:?} are counted", row.id, row.tally);
        return Err(Violation::new("I2", "the counts of a stopped run do not add up", message));
    }
    Ok(())
}

/// What was recorded as left out of an occurrence's job.
async fn left_out(history: &History, occurrence: &Occurrence) -> Result<String> {
    let page = history.stage.store.runs(&occurrence.client, &occurrence.job, None).await?;
    let stopped = page.rows.iter().filter_map(|row| {
        let until = row.skipped.map(|skipped| skipped.until);
        Some(format!("{} {until:?} {}", row.id, row.stopped.as_deref()?))
    });
    Ok(stopped.collect::<Vec<_>>().join(", "))
}

/// Whether a record of several occurrences that were left out covers this one.
async fn is_left_out(history: &History, occurrence: &Occurrence) -> Result<bool> {
    let mut after = None;
    loop {
        let page = history.stage.store.runs(&occurrence.client, &occurrence.job, after).await?;
        let covers = |row: &RunRow| {
            let until = row.skipped.map(|skipped| skipped.until);
            let covered = row.id.launch_at()..=until.unwrap_or(row.id.launch_at());
            row.stopped.is_some()
                && row.id.revision() == occurrence.revision
                && covered.contains(&occurrence.launch_at)
        };
        if page.rows.iter().any(covers) {
            return Ok(true);
        }
        after = page.next;
        if after.is_none() {
            return Ok(false);
        }
    }
}

/// Whether every event that did not arrive has a record of its own.
async fn is_recorded(
    history: &History,
    occurrence: &Occurrence,
    arrived: &(impl Fn(u32) -> bool + Sync),
) -> Result<bool> {
    let (mut recorded, mut after) = (BTreeMap::new(), None);
    let run = occurrence.run_id();
    loop {
        let page = history.engines[0].queries().events(&occurrence.client, &run, after).await?;
        let Some(page) = page else { return Ok(false) };
        recorded.extend(page.rows.into_iter().map(|record| (record.id.index(), record.reason.is_some())));
        after = page.next.and_then(|next| next.parse().ok());
        if after.is_none() {
            break;
        }
    }
    Ok((0..occurrence.terms.count.get()).all(|index| arrived(index) || recorded.get(&index) == Some(&true)))
}
