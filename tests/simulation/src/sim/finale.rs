//! The end of a history: the faults have stopped, time moves on, and everything that was promised must come true.
//!
//! I2 and I8: every occurrence of every job that a client was told of is delivered or recorded, every event has come to
//! an end once. I3: no event was delivered that is not one of its run's. I5: every bucket is full again. I7: what
//! others wait for came while one policy's tokens were held.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use tidegate_domain::ids::{EventId, RunId};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::policy::PolicyTerms;
use tidegate_engine::{Handled, Outcome, Release};
use tidegate_store::runs::RunRow;

use super::Violation;
use super::history::History;
use super::model::Wish;
use super::processes::{Done, Treatment, poll_round};
use crate::world::{Received, pump_delete, pump_receive};

/// Rounds of half a minute in which everything must come to its end.
const ROUNDS: u64 = 60;
/// Rounds in which every message that was received and not deleted comes again.
const LEAST: u64 = 8;
/// Rounds of a poller within one instant.
const POLLS: u32 = 200;

/// Brings a history to its end and looks at what became of it.
pub(crate) async fn finish(history: &mut History) -> Result<Result<(), Violation>> {
    macro_rules! hold {
        ($checked:expr) => {
            if let Err(violation) = $checked {
                return Ok(Err(violation));
            }
        };
    }
    hold!(keep_promises(history).await?);
    let last_launch = history.model.jobs.iter().filter_map(|job| job.last_instant()).max();
    let minutes = last_launch.map_or(0, |at| (at - history.now()).num_minutes().max(0)).unsigned_abs();
    hold!(settle(history, LEAST + 2 * minutes, false).await?);
    let until = history.now();
    hold!(end_jobs(history).await?);
    // Everybody but the hogged policies first: nothing of theirs may be waited for.
    hold!(settle(history, LEAST, false).await?);
    hold!(complete(history, until, false).await?);
    if history.model.policies.iter().any(|policy| policy.hogged) {
        history.stage.clock.advance_ms(7_200_000);
        hold!(settle(history, LEAST, true).await?);
        hold!(complete(history, until, true).await?);
    }
    hold!(only_what_was_promised(history));
    full_buckets(history).await
}

/// Every call that got no answer is made again until it gets one.
async fn keep_promises(history: &mut History) -> Result<Result<(), Violation>> {
    let engine = history.engines[0].clone();
    for job in 0..history.model.jobs.len() {
        let model = &history.model.jobs[job];
        let (Some(wish), client, id) = (model.wish.clone(), model.client.clone(), model.id.clone()) else {
            continue;
        };
        let replaces = !model.revisions.is_empty();
        let done = match (wish, id) {
            (Wish::Put(draft), Some(id)) if replaces => {
                Done::Put { job, result: Box::new(engine.replace_job(&client, id, *draft, None).await) }
            }
            (Wish::Put(draft), id) => {
                Done::Put { job, result: Box::new(engine.create_job(&client, id, *draft).await) }
            }
            (Wish::Pause(paused), Some(id)) => {
                let result = engine.pause_job(&client, &id, paused, None).await;
                Done::Put { job, result: Box::new(result) }
            }
            (Wish::Delete, Some(id)) => {
                Done::Deleted { job, result: engine.delete_job(&client, &id, None).await }
            }
            (Wish::Pause(_) | Wish::Delete, None) => continue,
        };
        if let Err(violation) = history.ended(&format!("the last call for job {job}"), done)? {
            return Ok(Err(violation));
        }
        if history.model.jobs[job].wish.is_some() {
            return Ok(Err(Violation::new("I8", format!("job {job} cannot be written without any fault"))));
        }
    }
    for policy in 0..history.model.policies.len() {
        let model = &history.model.policies[policy];
        if model.wish.is_none() {
            continue;
        }
        let terms = PolicyTerms::new(model.limit(), model.lease_seconds)?;
        let (client, id) = (model.client.clone(), model.id.clone());
        let done = Done::Changed { policy, result: engine.replace_policy(&client, &id, terms, None).await };
        if let Err(violation) = history.ended("the last change of a policy", done)? {
            return Ok(Err(violation));
        }
    }
    history.look().await
}

/// Cron jobs and rates fire for ever: they are deleted, so that an end can come.
async fn end_jobs(history: &mut History) -> Result<Result<(), Violation>> {
    let engine = history.engines[0].clone();
    for job in 0..history.model.jobs.len() {
        let model = &history.model.jobs[job];
        let Some(last) = model.revisions.last().filter(|_| model.is_live()) else { continue };
        if matches!(last.job.trigger, tidegate_domain::job::Trigger::At(_)) {
            continue;
        }
        let (client, id) = (model.client.clone(), last.job.id.clone());
        let now = history.now();
        history.model.jobs[job].wish(Wish::Delete, now);
        let done = Done::Deleted { job, result: engine.delete_job(&client, &id, None).await };
        if let Err(violation) = history.ended("the end of a job", done)? {
            return Ok(Err(violation));
        }
    }
    history.look().await
}

/// Lets time pass, for at least so many rounds: ticks, pollers, and consumers that release everything at once.
async fn settle(history: &mut History, least: u64, hogs_too: bool) -> Result<Result<(), Violation>> {
    for round in 0..least.max(ROUNDS) {
        history.step += 1;
        let engine = history.engines[0].clone();
        let report = engine.tick().await;
        if let Err(violation) = history.ended("a last tick", Done::Ticked(report))? {
            return Ok(Err(violation));
        }
        let mut again = 0;
        for _ in 0..POLLS {
            let treatment = Treatment { twice: false, undeleted: false };
            let (sqs, url) = (history.stage.sqs.clone(), history.stage.site.dispatch_url.clone());
            let done = poll_round(engine.clone(), sqs, url, treatment).await;
            let Done::Pumped(handled) = &done else { break };
            let (none, failed) =
                (handled.is_empty(), handled.iter().filter(|(_, h)| *h == Handled::Again).count());
            again += failed;
            if let Err(violation) = history.ended("a last poll", done)? {
                return Ok(Err(violation));
            }
            let released = release_all(history, hogs_too).await?;
            if let Err(violation) = history.look().await? {
                return Ok(Err(violation));
            }
            if none && !released {
                break;
            }
        }
        if again > 0 {
            return Ok(Err(Violation::new("I2", "a dispatch message fails without any fault")));
        }
        if round >= least && is_quiet(history, hogs_too) {
            break;
        }
        history.stage.clock.advance_ms(30_000);
    }
    Ok(Ok(()))
}

/// Whether nothing is held or left in any slot group that is not hogged.
fn is_quiet(history: &History, hogs_too: bool) -> bool {
    let hogged = |group: &tidegate_store::slots::SlotGroup| {
        history.model.policy(&group.key.client, &group.key.policy).is_some_and(|policy| policy.hogged)
    };
    history.watch.groups().filter(|group| hogs_too || !hogged(group)).all(|group| group.is_idle())
}

async fn release_all(history: &mut History, hogs_too: bool) -> Result<bool> {
    let mut any = false;
    for url in history.stage.queue_urls.clone() {
        let messages = pump_receive(&history.stage.sqs, &url).await?;
        pump_delete(&history.stage.sqs, &url, &messages).await?;
        any |= !messages.is_empty();
        for message in &messages {
            let event = Received::read(message.body().unwrap_or_default())?;
            history
                .note(format!("the last consumer receives {} {:?}", event.body.event_id, event.body.token));
            let client: tidegate_domain::ids::ClientId = event.body.client_id.parse()?;
            history.model.delivered.entry(client.clone()).or_default().insert(event.body.event_id.clone());
            let Some(token) = event.token else { continue };
            let hogged = history.model.policy(&client, &token.policy).is_some_and(|policy| policy.hogged);
            if hogged && !hogs_too {
                continue;
            }
            history.watch.asks(&token);
            let release = Release { token, outcome: Outcome::Succeeded };
            history.engines[0].clone().release(&client, vec![release]).await?;
        }
    }
    Ok(any)
}

/// I2, I8: everything that is due was delivered or recorded, and has ended.
async fn complete(history: &History, until: DateTime<Utc>, hogs_too: bool) -> Result<Result<(), Violation>> {
    for occurrence in history.model.jobs.iter().flat_map(|job| job.due(until)) {
        let policy = occurrence.terms.policy.as_ref();
        let policy = policy.and_then(|policy| history.model.policy(&occurrence.client, policy));
        let hogged = policy.is_some_and(|policy| policy.hogged);
        if hogged && !hogs_too {
            continue;
        }
        if let Err(violation) = ended(history, &occurrence).await? {
            return Ok(Err(match hogged || hogs_too {
                true => violation,
                false if history.model.policies.iter().any(|p| p.hogged) => {
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
    if row.as_ref().is_some_and(|row| row.stopped.is_some()) {
        return Ok(Ok(()));
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
            _ => Err(Violation::new("I2", format!("{of} never came, and there is no run"))),
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
        return Ok(Err(Violation::new("I2", format!("{of} never came, and no record says why"))));
    }
    Ok(Ok(()))
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
fn only_what_was_promised(history: &History) -> Result<(), Violation> {
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
async fn full_buckets(history: &History) -> Result<Result<(), Violation>> {
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
        if let Some(entry) = line.rows.first() {
            return Ok(Err(Violation::new("I2", format!("an entry is left in the line: {entry:?}"))));
        }
    }
    Ok(Ok(()))
}
