//! The end of a history: the faults have stopped, time moves on, and everything that was promised must come true.
//!
//! What must hold by then stands in the checkers of I2, I3, I5, I6 and I7. First everybody else's work must come to its end
//! while nobody releases the tokens of the policies that are last, then theirs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::Result;
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::slots::SlotGroup;
use tidegate_domain::token::Token;
use tidegate_engine::{Outcome, Release, Released};
use tidegate_testkit::queue;

use super::checkers::i2_nothing_lost::{self, complete};
use super::checkers::{Violation, i3_exact_ids, i5_tokens_return, i6_times, i7_no_waiting, i8_accepted};
use super::coverage::CoveredFault;
use super::history::History;
use super::model::{PendingCall, PendingPolicyCall, PolicyModel};
use super::pending_calls::backfilled;
use super::processes::{Done, Treatment, poll_round};
use crate::world::Received;

/// Rounds in which everything must come to its end: a policy with one token and a rate without a burst serves about two
/// dozen events in a minute, and thousands may wait; an event that no target takes holds its tokens for two rounds.
const ROUNDS: i64 = 1_000;
/// The least and the most minutes in which jobs fire on that do so for ever.
const BEATS: RangeInclusive<i64> = 1..=12;
/// How long a round is, in milliseconds.
const ROUND_MS: i64 = 60_000;
/// The longest that a round may be: when no job launches any more, rounds in which nothing comes are followed by longer ones.
const LONGEST_ROUND_MS: i64 = 300_000;
/// How long the first part of a round is in which something waits for a rate, in milliseconds.
const STEP_MS: i64 = 10_000;
/// Minutes in which every message that was received and not deleted comes again.
const LEAST: i64 = 4;
/// How long a message may be under way, in minutes: the longest delay, and its retries. A clock that was behind takes
/// messages for early.
const SENT_BACK_MINUTES: i64 = 18;
/// How long a rate may be used up that a clock which was ahead has granted by, and how long a retry may wait that it has put off.
const JUMP_MINUTES: i64 = 65;
/// How often everything is redriven at last: what no target takes dies again each time.
const REDRIVES: u32 = 2;
/// Rounds of a poller within one instant.
const POLLS: u32 = 200;

/// Brings a history to its end and looks at what became of it.
pub(crate) async fn finish(history: &mut History) -> Result<()> {
    keep_promises(history).await?;
    let last_launch = history.model.jobs.iter().filter_map(|job| job.last_instant()).max();
    // What clocks that were ahead have left behind is as it should be when its time has come.
    let far = last_launch.into_iter().chain(left_ahead(history).await?).max();
    let minutes = far.map_or(0, |at| (at - history.now()).num_minutes().max(0));
    let minutes = if history.jumps { minutes.max(JUMP_MINUTES) } else { minutes };
    let_pass(history, BEATS, false).await?;
    let until = history.now().max(last_launch.unwrap_or_default());
    end_jobs(history).await?;
    // Everybody but the starved policies first: nothing of theirs may be waited for.
    let least = LEAST + minutes;
    let_pass(history, least..=least.max(ROUNDS), false).await?;
    let complete = complete_in_time(history, until, false).await;
    complete.map_err(|error| i7_no_waiting::beside_held(&history.model, error))?;
    end_the_endless(history).await?;
    if history.model.policies.iter().any(|policy| policy.is_last()) {
        history.stage.clock.advance_ms(7_200_000);
        let_pass(history, LEAST..=ROUNDS, true).await?;
        complete_in_time(history, until, true).await?;
    }
    if history.stage.operator.is_some() {
        redrive_at_last(history, until).await?;
    }
    i3_exact_ids::delivered(&history.model)?;
    i6_times::delivered(&history.model)?;
    i5_tokens_return::all_returned(history.watch.groups())?;
    in_time(history, true, async |history| i2_nothing_lost::nothing_waits(history).await).await
}

/// The operator redrives whatever is dead, after the queues are there that were missing.
async fn redrive_at_last(history: &mut History, until: DateTime<Utc>) -> Result<()> {
    history.create_what_is_missing().await?;
    for _ in 0..REDRIVES {
        if !history.redrive_all().await? {
            break;
        }
        let_pass(history, LEAST..=ROUNDS, true).await?;
    }
    complete_in_time(history, until, true).await?;
    history.all_redriven_came().await
}

/// Every call that got no answer is made again until it gets one.
async fn keep_promises(history: &mut History) -> Result<()> {
    let engine = history.engines[0].clone();
    for job in 0..history.model.jobs.len() {
        let model = &history.model.jobs[job];
        let (Some(pending_call), client, id) =
            (model.pending_call.clone(), model.client.clone(), model.id.clone())
        else {
            continue;
        };
        let replaces = !model.revisions.is_empty();
        history.model.jobs[job].asked(engine.clock().now());
        let done = match (pending_call, id) {
            (PendingCall::Put(draft), Some(id)) if replaces => {
                Done::Put { answers: vec![(job, engine.jobs().replace(&client, id, draft.job, None).await)] }
            }
            (PendingCall::Put(draft), id) => {
                Done::Put { answers: vec![(job, engine.jobs().create(&client, id, draft.job).await)] }
            }
            (PendingCall::Pause(paused), Some(id)) => {
                let result = engine.jobs().pause(&client, &id, paused, None).await;
                Done::Put { answers: vec![(job, result)] }
            }
            (PendingCall::Backfill { window, expected }, Some(id)) => {
                let result = backfilled(&engine, &client, &id, window, expected).await;
                Done::Put { answers: vec![(job, result)] }
            }
            (PendingCall::Delete, Some(id)) => {
                Done::Deleted { job, result: engine.jobs().delete(&client, &id, None).await }
            }
            (PendingCall::Pause(_) | PendingCall::Backfill { .. } | PendingCall::Delete, None) => continue,
        };
        history.ended(&format!("the last call for job {job}"), done)?;
        i8_accepted::written(job, history.model.jobs[job].pending_call.is_none())?;
    }
    for policy in 0..history.model.policies.len() {
        // A paused or closed one goes on: what waits must come.
        let resumes = history.model.policies[policy].paused.then_some(PendingPolicyCall::Pause(false));
        let opens = Some(PendingPolicyCall::Close(None));
        let pending_calls = [history.model.policies[policy].pending_call, resumes, opens];
        for (number, pending_call) in pending_calls.into_iter().enumerate() {
            let Some(pending_call) = pending_call else { continue };
            if number > 0 {
                history.model.policies[policy].ask(pending_call)?;
            }
            let call = history.model.policies[policy].call(engine.clone(), pending_call);
            let done = Done::Changed { policy, result: call.await };
            history.ended("the last change of a policy", done)?;
        }
    }
    history.drain_all().await?;
    history.look().await
}

/// Until when what clocks that are right again have written ahead of its time holds: leases, the watermark, and the entries
/// of lines.
async fn left_ahead(history: &History) -> Result<Option<DateTime<Utc>>> {
    let watermark = history.stage.store.watermark().await?.map(|watermark| watermark.planned_to);
    let groups = history.watch.groups().filter(|group| !is_last(history, group));
    let leases = groups.flat_map(|group| group.leases.values().map(|lease| lease.ends_at));
    let mut last = leases.chain(watermark).max();
    for policy in &history.model.policies {
        let line = history.stage.store.line(&policy.client, &policy.id, None).await?;
        // The events of a pack launch within a minute.
        let due = line.rows.iter().filter(|entry| entry.sidelined_job().is_none());
        last = last.max(due.map(|entry| entry.launch_at + Duration::minutes(1)).max());
    }
    Ok(last)
}

/// What would never end is cancelled, after everything else has ended beside it.
async fn end_the_endless(history: &mut History) -> Result<()> {
    for job in 0..history.model.jobs.len() {
        let model = &history.model.jobs[job];
        let policy = model.revisions.last().and_then(|last| last.job.terms.policy.clone());
        let policy = policy.and_then(|policy| history.model.policy(&model.client, &policy));
        let (Some(_), Some(id)) = (policy.filter(|policy| policy.endless), model.id.clone()) else {
            continue;
        };
        history.count(CoveredFault::MillionBesideTen);
        let (client, now) = (model.client.clone(), history.now());
        history.model.jobs[job].pending_call(PendingCall::Delete, now);
        let done = Done::Deleted { job, result: history.engines[0].jobs().delete(&client, &id, None).await };
        history.ended("the end of a million", done)?;
    }
    history.look().await
}

/// Cron jobs and rates fire for ever: they are deleted, so that an end can come.
async fn end_jobs(history: &mut History) -> Result<()> {
    let engine = history.engines[0].clone();
    for job in 0..history.model.jobs.len() {
        let model = &history.model.jobs[job];
        let Some(last) = model.revisions.last().filter(|_| model.is_live()) else { continue };
        if matches!(last.job.trigger, tidegate_domain::job::Trigger::At(_)) {
            continue;
        }
        let (client, id) = (model.client.clone(), last.job.id.clone());
        // Its process's clock may be behind.
        let now = history.now().min(engine.clock().now());
        history.model.jobs[job].pending_call(PendingCall::Delete, now);
        let done = Done::Deleted { job, result: engine.jobs().delete(&client, &id, None).await };
        history.ended("the end of a job", done)?;
    }
    history.look().await
}

/// Lets time pass, for at least so many minutes and at most so many rounds of a minute or more: ticks, pollers, and consumers
/// that release everything at once.
async fn let_pass(history: &mut History, times: RangeInclusive<i64>, starved_too: bool) -> Result<()> {
    let (began_at, mut round_ms) = (history.now(), ROUND_MS);
    for _ in 0..*times.end() {
        let passed = (history.now() - began_at).num_minutes();
        history.step += 1;
        let (engine, received) = (history.engines[0].clone(), history.received);
        let report = engine.tick().await;
        history.ended("a last tick", Done::Ticked(report))?;
        poll_dry(history, starved_too).await?;
        // A rate lets a few through each second.
        let (mut left_ms, mut step_ms) = (round_ms, STEP_MS);
        while left_ms > step_ms && is_rate_waited_for(history, starved_too) {
            let received = history.received;
            left_ms -= step_ms;
            history.stage.clock.advance_ms(step_ms);
            poll_dry(history, starved_too).await?;
            step_ms = if history.received > received { STEP_MS } else { step_ms * 2 };
        }
        if passed >= *times.start() && is_quiet(history, starved_too) {
            return Ok(());
        }
        if free_held(history, starved_too).await? {
            // What their tokens went on to travels at once: a round is longer than many a lease.
            poll_dry(history, starved_too).await?;
        }
        history.stage.clock.advance_ms(left_ms);
        round_ms = match history.received > received || history.model.may_launch_after(history.now()) {
            true => ROUND_MS,
            false => (round_ms * 2).min(LONGEST_ROUND_MS),
        };
    }
    Ok(())
}

/// Whether everything that was due has ended, once nothing is under way any more.
async fn complete_in_time(history: &mut History, until: DateTime<Utc>, starved_too: bool) -> Result<()> {
    in_time(history, starved_too, async |history| complete(history, until, starved_too).await).await
}

/// Whether something holds in the end. A delivery that is tried again may still be hidden in its queue, or wait in its line, when
/// all groups are idle, so what does not hold yet gets the time that a message may take.
async fn in_time(
    history: &mut History,
    starved_too: bool,
    holds: impl AsyncFn(&History) -> Result<()>,
) -> Result<()> {
    let mut outcome = holds(history).await;
    for _ in 0..SENT_BACK_MINUTES {
        if !outcome.as_ref().is_err_and(|error| error.is::<Violation>()) {
            break;
        }
        let_pass(history, 1..=LEAST, starved_too).await?;
        outcome = holds(history).await;
    }
    outcome
}

/// Handles and releases whatever there is within one instant.
async fn poll_dry(history: &mut History, starved_too: bool) -> Result<()> {
    let engine = history.engines[0].clone();
    for _ in 0..POLLS {
        let mut none = true;
        let deployment = &history.stage.deployment;
        for url in [deployment.scan_url(), deployment.dispatch_url()].map(str::to_owned) {
            let treatment = Treatment { times: 1, undeleted: false };
            let done = poll_round(engine.clone(), history.stage.deployment.sqs.clone(), url, treatment).await;
            let Done::Pumped { handled, .. } = &done else { continue };
            none &= handled.is_empty();
            let handled = i2_nothing_lost::handled(handled);
            history.ended("a last poll", done)?;
            handled?;
        }
        let released = release_all(history, starved_too).await?;
        history.look().await?;
        if none && !released {
            break;
        }
    }
    Ok(())
}

/// Whether events wait for the rate of a policy.
fn is_rate_waited_for(history: &History, starved_too: bool) -> bool {
    let mut groups = history.watch.groups().filter(|group| starved_too || !is_last(history, group));
    groups.any(|group| group.share.rated && group.range().is_some())
}

/// An operator frees the tokens of silent consumers that nobody else takes back. Whether there were any.
async fn free_held(history: &mut History, starved_too: bool) -> Result<bool> {
    let mut tokens = Vec::new();
    for group in history.watch.groups().filter(|group| starved_too || !is_last(history, group)) {
        let policy = history.model.policy(&group.key.client, &group.key.policy);
        if policy.is_some_and(PolicyModel::holds) {
            let over = group.leases.values().filter(|lease| lease.ends_at <= history.now());
            tokens.extend(over.filter_map(|lease| group.token(lease.id.slot)));
        }
    }
    let any = !tokens.is_empty();
    for token in tokens {
        history.watch.releases.ask(&token);
        let (client, redeliver) = (token.client().clone(), history.dice.chance(300));
        let freed = history.engines[0].tokens().free_held(&client, vec![token], redeliver).await?;
        if freed.iter().any(|(_, answer)| *answer == Released::Released) {
            history.count(CoveredFault::Freed);
        }
        history.note(format!("an operator frees, to be delivered again: {redeliver}: {freed:?}"));
    }
    history.look().await?;
    Ok(any)
}

/// Whether nothing is held or left in any slot group that is not starved.
fn is_quiet(history: &History, starved_too: bool) -> bool {
    history.watch.groups().filter(|group| starved_too || !is_last(history, group)).all(SlotGroup::is_idle)
}

fn is_last(history: &History, group: &SlotGroup) -> bool {
    history.model.policy(&group.key.client, &group.key.policy).is_some_and(PolicyModel::is_last)
}

fn is_released_last(history: &History, token: &Token) -> bool {
    history.model.policy(token.client(), &token.group.policy).is_some_and(PolicyModel::is_last)
}

/// Consumers release everything at once. Whether any event came.
async fn release_all(history: &mut History, starved_too: bool) -> Result<bool> {
    let mut any = false;
    let mut releases: BTreeMap<ClientId, Vec<Release>> = BTreeMap::new();
    for url in history.stage.queue_urls.clone() {
        let messages = queue::receive(&history.stage.deployment.sqs, &url).await?;
        queue::delete(&history.stage.deployment.sqs, &url, &messages).await?;
        any |= !messages.is_empty();
        for message in &messages {
            let event = Received::read(message.body().unwrap_or_default())?;
            history.arrived("the last consumer", &event)?;
            let Some(token) = event.token else { continue };
            if is_released_last(history, &token) && !starved_too {
                continue;
            }
            history.watch.releases.ask(&token);
            releases.entry(token.client().clone()).or_default().push(Release::new(token, Outcome::Succeeded));
        }
    }
    for event in history.take_calls()? {
        any = true;
        let Some(token) = event.token else { continue };
        if is_released_last(history, &token) && !starved_too {
            continue;
        }
        history.watch.releases.ask(&token);
        releases.entry(token.client().clone()).or_default().push(Release::new(token, Outcome::Succeeded));
    }
    for (client, releases) in releases {
        history.engines[0].tokens().release(&client, releases).await?;
    }
    Ok(any)
}
