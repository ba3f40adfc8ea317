//! What must hold of a restored deployment.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Overlap;
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::slots::{GroupKey, SlotGroup};
use tidegate_domain::token::Token;
use tidegate_store::repair::StoredRun;

use super::promised::{POLICIES, Promised};
use super::site::Site;
use crate::world::CLIENT;

async fn groups(site: &Site, policy: &str) -> Result<Vec<SlotGroup>> {
    let (client, mut groups) = (CLIENT.parse::<ClientId>()?, Vec::new());
    for group in 0.. {
        let key = GroupKey { client: client.clone(), policy: policy.parse()?, group };
        match site.store().slot_group(&key).await? {
            Some(found) => groups.push(found),
            None if group > 0 => break,
            None => {}
        }
    }
    Ok(groups)
}

/// I1: no more tokens are held than the limit, by the rows that they exist in.
pub(super) async fn within_limits(site: &Site) -> Result<()> {
    for (policy, limit, _) in POLICIES {
        let groups = groups(site, policy).await?;
        let tokens: u32 =
            groups.iter().flat_map(|group| group.leases.values()).map(|lease| lease.id.cost).sum();
        let held: u32 = groups.iter().map(|group| group.held).sum();
        ensure!(tokens == held, "policy {policy}: {tokens} tokens are held, {held} are counted");
        ensure!(held <= limit, "policy {policy}: {held} tokens are held, {limit} is the limit");
    }
    Ok(())
}

/// The tokens that the tables know.
pub(super) async fn held_tokens(site: &Site) -> Result<BTreeSet<Token>> {
    let mut held = BTreeSet::new();
    for (policy, ..) in POLICIES {
        for group in groups(site, policy).await? {
            held.extend(group.leases.keys().filter_map(|slot| group.token(*slot)));
        }
    }
    Ok(held)
}

/// Everything that was accepted before the first snapshot came true.
pub(super) async fn all_came_true(
    site: &Site,
    promised: &[Promised],
    arrived: &BTreeSet<String>,
) -> Result<()> {
    for promised in promised {
        came_true(site, promised, arrived).await?;
    }
    Ok(())
}

/// Nothing is left open.
pub(super) async fn nothing_is_left(site: &Site) -> Result<()> {
    nothing_is_open(site).await?;
    runs_add_up(site).await
}

/// I2, I3: each occurrence is delivered, or recorded with its reason.
async fn came_true(site: &Site, promised: &Promised, arrived: &BTreeSet<String>) -> Result<()> {
    let job = &promised.job;
    for launch_at in promised.launches() {
        let run = RunId::new(job.id.clone(), job.revision, launch_at);
        let count = job.terms.count.get();
        let missing = (0..count).filter(|index| !arrived.contains(&run.event(*index).to_string())).count();
        if missing == 0 || (job.terms.flow.overlap != Overlap::Allow && is_recorded(site, &run).await?) {
            continue;
        }
        let row = site.store().find_run(&job.client, &run).await?;
        bail!(
            "I2: {missing} of the {count} events of {run} never came (policy {:?}): {row:?}",
            job.terms.policy
        );
    }
    Ok(())
}

async fn is_recorded(site: &Site, run: &RunId) -> Result<bool> {
    let row = site.store().find_run(&CLIENT.parse()?, run).await?;
    Ok(row.is_some_and(|row| row.stopped.is_some()))
}

/// I5: all tokens are back, nothing waits, and no part of an emission or outbox row is left.
async fn nothing_is_open(site: &Site) -> Result<()> {
    let (store, client) = (site.store(), CLIENT.parse()?);
    for (policy, ..) in POLICIES {
        for group in groups(site, policy).await? {
            ensure!(group.is_idle(), "I5: a group of {policy} is not idle: {group:?}");
        }
        let line = store.line(&client, &policy.parse()?, None).await?;
        let open: Vec<_> = line.rows.iter().filter(|entry| !entry.is_exhausted()).collect();
        ensure!(open.is_empty(), "I2: entries are left in the line of {policy}: {open:?}");
    }
    let parts = store.parts(None).await?;
    ensure!(parts.rows.is_empty(), "I2: parts of emissions are left: {:?}", parts.rows);
    for shard in 0..tidegate_domain::limits::OUTBOX_SHARDS {
        let outbox = store.outbox(shard, None).await?;
        ensure!(outbox.rows.is_empty(), "I2: the outbox has {:?}", outbox.rows);
    }
    Ok(())
}

/// No run is open for ever: the counts of each that a policy throttles add up.
async fn runs_add_up(site: &Site) -> Result<()> {
    let (store, mut after) = (site.store(), None);
    loop {
        let page = store.all_of_runs(after).await?;
        for row in page.rows {
            let StoredRun::Run { row, .. } = row else { continue };
            let is_single = tidegate_domain::pack::SinglesKind::fits(&row.terms);
            if row.terms.policy.is_none() || is_single {
                continue;
            }
            let (total, count) = (row.tally.total(), row.terms.count.get());
            ensure!(
                total == count || (row.stopped.is_some() && total == 0),
                "of {count} events of {}, {:?} have ended at {} ({:?})",
                row.id,
                row.tally,
                site.clock.now(),
                row.stopped
            );
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
