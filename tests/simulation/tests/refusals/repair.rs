//! The clauses of a repair: what moved since it was looked at is left alone.

use anyhow::{Context as _, Result, bail};
use tidegate_domain::slots::Epoch;
use tidegate_simulation::World;
use tidegate_simulation::world::JobSpec;
use tidegate_store::Store;
use tidegate_store::repair::IndexKind;
use tidegate_store::runs::{RunRow, Tally};

use super::rows::{client, run, waiting};
use super::runs::straight;
use super::slots::serving;
use super::ticker::{part, taken, won};
use super::{URL, at, cases, is_refused, tamper};

cases! {
    "child delete: rev = :rev" => index_row_of_a_later_revision,
    "epoch begin: attribute_not_exists(epoch_ms) OR epoch_ms <= :epoch" => earlier_epoch,
    "pack queue: #to = :to" => pack_that_waits,
    "run set tally: attribute_not_exists(last_at)" => run_whose_first_outcome_came,
    "run set tally: last_at = :seen" => run_whose_next_outcome_came,
    "scan begin anew: fence = :fence" => part_that_a_worker_took,
    "slots rewrite: fc = :fence" => group_that_gave_a_lease,
    "slots rewrite: gs = :refills" => group_that_took_a_range,
    "slots rewrite: held = :held" => group_that_let_go_of_a_lease,
    "watermark set back: fence = :fence" => watermark_of_another_tick,
    "watermark set back: scanned_to = :seen" => watermark_that_moved,
}

async fn index_row_of_a_later_revision(world: &World, store: &Store) -> Result<bool> {
    world.create(JobSpec::cron("0 3 * * *", "UTC", URL)?.named("report")).await?;
    let index = world.engine.store().all_of_index(None).await?.rows;
    let is_child = |kind: &IndexKind| matches!(kind, IndexKind::Child(..));
    let seen = index.iter().find(|row| is_child(&row.kind)).context("no child")?;
    world.engine.jobs().pause(&client()?, &"report".parse()?, true, None).await?;
    Ok(is_refused(store.drop_index_row(seen).await?))
}

/// Of two repairs side by side the later one counts.
async fn earlier_epoch(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().begin_epoch(Epoch::from_millis(2_000)).await?;
    Ok(is_refused(store.begin_epoch(Epoch::from_millis(1_000)).await?))
}

async fn pack_that_waits(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, policy) = (world.engine.store(), client()?, "small".parse()?);
    let (pack, _) = straight(plain).await?;
    let to = pack.straight.context("it goes nowhere")?;
    plain.queue_pack(&client, &policy, &pack, to).await?;
    Ok(is_refused(store.forget_straight(&client, &policy, &pack).await?))
}

/// A run that a repair looks at, and outcomes that are counted before it writes.
async fn counted_meanwhile(store: &Store, plain: &Store, seen: &RunRow) -> Result<bool> {
    let tally = Tally { succeeded: 1, ..Tally::default() };
    plain.add_outcomes(&client()?, &run()?, (0, 2), tally, at(60)).await?;
    Ok(is_refused(store.set_tally(&client()?, seen, Tally::default()).await?))
}

async fn run_whose_first_outcome_came(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    let plain = world.engine.store();
    let seen = plain.run(&client()?, &run()?).await?.context("no run")?;
    counted_meanwhile(store, plain, &seen).await
}

async fn run_whose_next_outcome_came(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    let (plain, tally) = (world.engine.store(), Tally { succeeded: 1, ..Tally::default() });
    plain.add_outcomes(&client()?, &run()?, (0, 1), tally, at(0)).await?;
    let seen = plain.run(&client()?, &run()?).await?.context("no run")?;
    counted_meanwhile(store, plain, &seen).await
}

async fn part_that_a_worker_took(world: &World, store: &Store) -> Result<bool> {
    let (plain, seen) = (world.engine.store(), part()?);
    plain.put_part(&seen).await?;
    taken(plain, &seen.id, 0).await?;
    Ok(is_refused(store.begin_part_anew(&seen).await?))
}

/// A group that a repair looks at, and that changes before it writes.
async fn group_changed_by(world: &World, store: &Store, change: &str) -> Result<bool> {
    let seen = serving(world.engine.store(), 0).await?;
    tamper(world, "policies", ("acme|small|0000", "slots"), change).await?;
    Ok(is_refused(store.repair_slot_group(&seen, &seen).await?))
}

async fn group_that_gave_a_lease(world: &World, store: &Store) -> Result<bool> {
    group_changed_by(world, store, "SET fc = :99").await
}

async fn group_that_took_a_range(world: &World, store: &Store) -> Result<bool> {
    group_changed_by(world, store, "SET gs = :99").await
}

async fn group_that_let_go_of_a_lease(world: &World, store: &Store) -> Result<bool> {
    group_changed_by(world, store, "SET held = :0").await
}

async fn watermark_of_another_tick(world: &World, store: &Store) -> Result<bool> {
    let (plain, seen) = (world.engine.store(), won(world.engine.store(), 0, 120).await?);
    let now = won(plain, 60, 180).await?;
    if now.scanned_to != seen.scanned_to {
        bail!("the other tick moved it: {now:?}");
    }
    Ok(is_refused(store.set_watermark_back(&seen, (at(-60), at(0)), at(0)).await?))
}

async fn watermark_that_moved(world: &World, store: &Store) -> Result<bool> {
    let seen = won(world.engine.store(), 0, 120).await?;
    world.engine.store().finish_scan(seen.fence, at(120)).await?;
    Ok(is_refused(store.set_watermark_back(&seen, (at(-60), at(0)), at(0)).await?))
}
