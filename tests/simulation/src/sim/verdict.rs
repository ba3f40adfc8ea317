//! What must have come of a history: the looks at its end.
//!
//! I2 and I8: every occurrence is delivered or recorded, every event has come to an end once. I3: no event was delivered
//! that is not one of its run's. I5: every bucket is full again.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use tidegate_domain::ids::{EventId, RunId};
use tidegate_domain::occurrence::Occurrence;
use tidegate_store::runs::RunRow;

use super::Violation;
use super::history::History;
use super::model::PolicyModel;

/// I2, I8: everything that is due was delivered or recorded, and has ended.
pub(crate) async fn complete(
    history: &History,
    until: DateTime<Utc>,
    hogs_too: bool,
) -> Result<Result<(), Violation>> {
    for occurrence in history.model.jobs.iter().flat_map(|job| job.due(until)) {
        let policy = occurrence.terms.policy.as_ref();
        let policy = policy.and_then(|policy| history.model.policy(&occurrence.client, policy));
        let hogged = policy.is_some_and(PolicyModel::is_last);
        if hogged && !hogs_too {
            continue;
        }
        if let Err(violation) = ended(history, &occurrence).await? {
            return Ok(Err(match hogged || hogs_too {
                true => violation,
                false if history.model.policies.iter().any(PolicyModel::is_last) => {
                    Violation::new("I2 or I7", violation.message)
                }
                false => violation,
            }));
        }
    }
    Ok(Ok(()))
}

async fn ended(history: &History, occurrence: &Occurrence) -> Result<Result<(), Violation>> {
    let run = occurrence.run_id();
    let count = occurrence.terms.count.get();
    let row = history.stage.store.run(&occurrence.client, &run).await?;
    if let Some(row) = row.as_ref().filter(|row| row.stopped.is_some()) {
        return Ok(adds_up(row, count));
    }
    let delivered = history.model.delivered.get(&occurrence.client);
    let arrived = |index: u32| delivered.is_some_and(|ids| ids.contains(&run.event(index).to_string()));
    let missing = (0..count).filter(|index| !arrived(*index)).count();
    let of = format!("{missing} of the {count} events of {}/{run}", occurrence.client);
    let Some(row) = row else {
        // A single event whose success is not kept.
        return Ok(match missing {
            0 => Ok(()),
            _ if is_left_out(history, occurrence).await? => Ok(()),
            _ => Err(Violation::new(
                "I2",
                format!("{of} never came, and there is no run: {}", left_out(history, occurrence).await?),
            )),
        });
    };
    let dead = row.tally.dead + row.tally.expired;
    if missing as u32 > dead && occurrence.terms.policy.is_some() {
        return Ok(Err(Violation::new("I2", format!("{of} never came: {:?}", row.tally))));
    }
    if occurrence.terms.policy.is_some() && row.tally.total() != count {
        let message = format!("of {count} events of {}/{run}, {:?} have ended", occurrence.client, row.tally);
        return Ok(Err(Violation::new("I2", message)));
    }
    if occurrence.terms.policy.is_none() && missing > 0 && !is_recorded(history, occurrence, &arrived).await?
    {
        return Ok(Err(Violation::new("I2", format!("{of} never came, and no record says why: {row:?}"))));
    }
    Ok(Ok(()))
}

/// What of a stopped run was admitted has ended, and the rest is counted as left out.
fn adds_up(row: &RunRow, count: u32) -> Result<(), Violation> {
    let began = row.terms.policy.is_some() && row.tally.total() > 0;
    if began && row.tally.total() != count {
        let message = format!("of {count} events of the stopped run {}, {:?} are counted", row.id, row.tally);
        return Err(Violation::new("I2", message));
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
        let page = history.engines[0].events(&occurrence.client, &run, after).await?;
        let Some(page) = page else { return Ok(false) };
        recorded.extend(page.rows.into_iter().map(|record| (record.id.index(), record.reason.is_some())));
        after = page.next.and_then(|next| next.parse().ok());
        if after.is_none() {
            break;
        }
    }
    Ok((0..occurrence.terms.count.get()).all(|index| arrived(index) || recorded.get(&index) == Some(&true)))
}

/// I3: whatever was delivered is an event of an occurrence of a job that a client was told of.
pub(crate) fn only_what_was_promised(history: &History) -> Result<(), Violation> {
    for (client, ids) in &history.model.delivered {
        for id in ids {
            let Ok(event) = id.parse::<EventId>() else {
                return Err(Violation::new("I3", format!("'{id}' is no event id")));
            };
            let run: &RunId = event.run();
            // The answer to the creation of a job with a generated id can be lost: then nobody knows it.
            let nameless = run.job().one_time_place().is_some() || run.job().as_str().starts_with("job_");
            let known = history.model.jobs.iter().filter(|job| job.client == *client).any(|job| {
                job.revisions.iter().any(|revision| {
                    revision.job.id == *run.job()
                        && revision.job.revision == run.revision()
                        && revision.may_launch_at(run.launch_at())
                        && event.index() < revision.job.terms.count.get()
                })
            });
            if !known && !nameless {
                return Err(Violation::new("I3", format!("event {client}/{id} was delivered, and is none")));
            }
        }
    }
    Ok(())
}

/// I5: no token is held, nothing is left to be granted.
pub(crate) async fn full_buckets(history: &History) -> Result<Result<(), Violation>> {
    for group in history.watch.groups() {
        if !group.slots.is_empty() || group.held > 0 {
            return Ok(Err(Violation::new(
                "I5",
                format!("tokens are lost in {:?}: {:?}", group.key, group.slots),
            )));
        }
        if group.range.left > 0 || group.wanted.is_some() {
            let message = format!("{:?} is not served: {:?}, {:?}", group.key, group.range, group.wanted);
            return Ok(Err(Violation::new("I2", message)));
        }
    }
    for policy in &history.model.policies {
        let line = history.stage.store.line(&policy.client, &policy.id, None).await?;
        if let Some(entry) = line.rows.iter().find(|entry| !entry.is_exhausted()) {
            return Ok(Err(Violation::new("I2", format!("an entry is left in the line: {entry:?}"))));
        }
    }
    Ok(Ok(()))
}
