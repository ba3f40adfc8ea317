//! I4: a release acts once, on its own lease only.
//!
//! A lease goes only by its own release, after its end, with its run, or because no target takes its event: for good, or until
//! it is sent again, and then the event is in the line. Fencing numbers only rise. A forged token is answered as what it is.

use std::collections::BTreeSet;

use anyhow::Result;
use chrono::{DateTime, Utc};
use tidegate_domain::slots::{Ended, GroupKey, Lease, Outcome, OutcomeEntry, PackRef, SlotGroup};
use tidegate_domain::token::Token;
use tidegate_engine::Released;
use tidegate_store::Store;
use tidegate_store::events::{HistoryOf, HistoryRow};

use super::{Verdict, Violation};
use crate::sim::chaos::Chaos;
use crate::sim::coverage::CoveredFault;
use crate::sim::model::{Model, PolicyModel};
use crate::sim::setup::is_poison;
use crate::sim::watch::Change;

/// What consumers have asked for.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    asked: BTreeSet<Token>,
}

impl Releases {
    /// A consumer asks for the release of a token.
    pub(crate) fn ask(&mut self, token: &Token) {
        self.asked.insert(token.clone());
    }

    /// Whether a consumer has asked for the release of the lease that has this slot and fencing number.
    fn is_asked(&self, token: &Token) -> bool {
        let lease = |token: &Token| (token.group.clone(), token.lease.slot, token.lease.fence);
        self.asked.iter().any(|asked| lease(asked) == lease(token))
    }

    /// Holds the leases that ended against what may end them. `latest` is the latest instant that any process goes by.
    pub(crate) async fn ended(
        &self,
        store: &Store,
        model: &Model,
        chaos: &Chaos,
        change: &Change<'_>,
        latest: DateTime<Utc>,
    ) -> Result<()> {
        let Some(before) = change.before else { return Ok(()) };
        let policy = model.policy(&change.key.client, &change.key.policy);
        for lease in change.ended() {
            if before.token(lease.id.slot).is_some_and(|token| self.asked.contains(&token)) {
                continue;
            }
            if lease.ends_at <= latest && !policy.is_some_and(PolicyModel::holds) {
                chaos.count(CoveredFault::Reclaimed);
                continue;
            }
            let run = match change.ended_event_of(lease) {
                Some(event) => store.find_run(&change.key.client, event.run()).await?,
                None => None,
            };
            let undeliverable = is_undeliverable(change, lease) || is_dead(store, before, lease).await?;
            if undeliverable && run.as_ref().is_some_and(|run| is_poison(&run.terms.target)) {
                chaos.count(CoveredFault::PoisonFreed);
            }
            let stopped = run.is_some_and(|run| run.stopped.is_some() || run.tally.dead > 0);
            if !stopped && !undeliverable && is_requeued(store, before, lease).await? {
                chaos.count(CoveredFault::Requeued);
                continue;
            }
            if !stopped && !undeliverable {
                let message = format!("{:?} lost {lease:?}", change.key);
                return Err(
                    Violation::new("I4", "a live lease was lost that nobody released", message).into()
                );
            }
        }
        Ok(())
    }

    /// What a call with a forged token was answered. In the instant in which the lease that it imitates is released, its
    /// answer may be that one's; what the rows say is held against the real tokens only.
    pub(crate) fn forged(&self, answers: &[(Token, Released)]) -> Verdict {
        let taken_in =
            |(token, answer): &&(Token, Released)| *answer == Released::Released && !self.is_asked(token);
        match answers.iter().find(taken_in) {
            Some((token, answer)) => {
                let message = format!("{token} was answered {answer:?}");
                Err(Violation::new("I4", "a forged token was taken for a real one", message))
            }
            None => Ok(()),
        }
    }
}

/// Fencing numbers only rise.
pub(crate) fn fences(change: &Change<'_>) -> Verdict {
    let Some(after) = change.after else { return Ok(()) };
    let next_before = change.before.map_or(1, |before| before.next_fence);
    if after.next_fence < next_before {
        let message = format!("{:?}: from {next_before} to {}", change.key, after.next_fence);
        return Err(Violation::new("I4", "a group's fencing number fell", message));
    }
    match change.began().find(|lease| lease.id.fence < next_before) {
        Some(lease) => {
            let message = format!("{:?}: {lease:?}", change.key);
            Err(Violation::new("I4", "a new lease has an old fencing number", message))
        }
        None => Ok(()),
    }
}

/// Whether the history of a lease's pack tells of its event that it is dead.
async fn is_dead(store: &Store, group: &SlotGroup, lease: &Lease) -> Result<bool> {
    let Some(pack) = group.pack(lease.id.pack_number) else { return Ok(false) };
    let of = HistoryOf::pack(&group.key.policy, pack);
    let page = store.history(&group.key.client, &of, None).await?;
    let dead = |ended: &Ended| ended.index == lease.id.index && ended.outcome == Outcome::Dead;
    Ok(page.rows.iter().any(|row| matches!(row, HistoryRow::Packed(ends) if ends.iter().any(dead))))
}

/// Whether the event of a lease went back to the line, or from there to a group again.
async fn is_requeued(store: &Store, group: &SlotGroup, lease: &Lease) -> Result<bool> {
    let Some(pack) = group.pack(lease.id.pack_number) else { return Ok(false) };
    let key = &group.key;
    let by_it = format!(".{:04}.{:010}|", key.group, lease.id.fence);
    let mut after = None;
    loop {
        let page = store.line(&key.client, &key.policy, after).await?;
        if page.rows.iter().any(|entry| entry.pack == *pack && entry.line_key.contains(&by_it)) {
            return Ok(true);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for number in 0..group.share.groups.max(1) {
        let key = GroupKey { group: number, ..key.clone() };
        let Some(other) = store.slot_group(&key).await? else { continue };
        let has_it = |known: &PackRef| known.pack == *pack && known.tries.is_some();
        if other.packs.values().any(has_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the group tells of a lease's event that it is dead.
fn is_undeliverable(change: &Change<'_>, lease: &Lease) -> bool {
    let dead = |entry: &OutcomeEntry| {
        (entry.pack_number, entry.first.outcome) == (lease.id.pack_number, Outcome::Dead)
            && entry.numbers().contains(&lease.id.index)
    };
    change.after.is_some_and(|after| after.outcomes.iter().chain(after.compacting()).any(dead))
}
