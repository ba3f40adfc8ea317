//! The clauses of runs and packs.

use anyhow::{Context as _, Result, ensure};
use tidegate_domain::limits::GROUPS_PER_PART;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::pack::{Singles, SinglesKind, Straight};
use tidegate_simulation::World;
use tidegate_store::Store;
use tidegate_store::runs::{Announced, Skipped, Tally};

use super::rows::{client, occurrence, run, waiting};
use super::slots::serving;
use super::{at, cases, is_refused, is_there};

cases! {
    "pack transact put: attribute_not_exists(pk)" => second_pack,
    "pack put: attribute_not_exists(pk)" => second_pack_that_goes_straight,
    "pack transact queue: #to = :to" => pack_that_waits_already,
    "run add outcomes: attribute_not_exists(q#) OR q# < :flush" => outcomes_that_were_counted,
    "run announce: attribute_not_exists(announced)" => second_announcement,
    "run grow skipped: attribute_not_exists(skipped_to) OR skipped_to < :until" => record_of_fewer,
    "run grow skipped: stopped = :reason" => record_of_another_reason,
    "pack retain: expires_at < :until" => pack_that_is_kept_for_longer,
    "run retain: expires_at < :until" => retention_of_a_run_that_has_expired,
    "part count: attribute_not_exists(q#) OR q# < :flush" => outcomes_that_were_counted_in_a_part,
    "run tell part: attribute_exists(pk)" => part_of_a_run_that_has_expired,
    "run put: attribute_not_exists(pk)" => record_of_a_run,
    "run start: attribute_not_exists(started)" => second_start,
    "run stop: attribute_not_exists(stopped)" => second_end,
    "run transact put: attribute_not_exists(pk)" => second_run,
    "run transact add left out: attribute_exists(pk)" => rest_of_a_run_that_has_expired,
    "run add outcomes: attribute_exists(pk)" => outcomes_of_a_run_that_has_expired,
    "run announce failure: attribute_exists(pk)" => failed_announcement_of_a_run_that_has_expired,
    "run announce failure: attribute_not_exists(announced)" => failure_after_the_announcement,
    "run announce: attribute_exists(pk)" => announcement_of_a_run_that_has_expired,
    "run start: attribute_exists(pk)" => start_of_a_run_that_has_expired,
    "run stop: attribute_exists(pk)" => end_of_a_run_that_has_expired,
}

async fn second_pack(world: &World, store: &Store) -> Result<bool> {
    let member = occurrence(1)?;
    let kind = SinglesKind::of(&member).context("it is a pack by itself")?;
    let pack = Singles { id: kind.number(0), as_of: None, straight: None, members: vec![member] };
    let (client, policy) = (client()?, "small".parse()?);
    world.engine.store().append_pack(&client, &policy, &pack, at(0)).await?;
    Ok(is_there(store.append_pack(&client, &policy, &pack, at(0)).await?))
}

pub(crate) async fn straight(store: &Store) -> Result<(Singles, bool)> {
    let member = occurrence(1)?;
    let kind = SinglesKind::of(&member).context("it is a pack by itself")?;
    let straight = Some(Straight { group: 0, refills: 0 });
    let pack = Singles { id: kind.number(0), as_of: None, straight, members: vec![member] };
    let written = store.put_pack(&client()?, &"small".parse()?, &pack, at(0)).await?;
    Ok((pack, is_there(written)))
}

async fn second_pack_that_goes_straight(world: &World, store: &Store) -> Result<bool> {
    straight(world.engine.store()).await?;
    Ok(straight(store).await?.1)
}

/// Its entry is gone, and it would come back.
async fn pack_that_waits_already(world: &World, store: &Store) -> Result<bool> {
    let (pack, _) = straight(world.engine.store()).await?;
    let (client, policy) = (client()?, "small".parse()?);
    let to = Straight { group: 0, refills: 0 };
    world.engine.store().queue_pack(&client, &policy, &pack, to).await?;
    Ok(is_refused(store.queue_pack(&client, &policy, &pack, to).await?))
}

/// It would bring back events that were emitted long ago.
async fn second_run(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    Ok(is_there(store.enqueue_run(&occurrence(4)?, (&"small".parse()?, 1), at(0)).await?))
}

async fn record_of_a_run(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    Ok(is_there(store.record_skip(&occurrence(4)?, "cancelled", at(0)).await?))
}

async fn skipped(store: &Store, reason: SkipReason, count: u32) -> Result<()> {
    let skipped = Skipped { until: at(i64::from(count) * 60), count };
    store.record_skips(&occurrence(1)?, reason, skipped, at(0)).await?;
    Ok(())
}

/// What a dead tick had found may be more than what its successor finds.
async fn record_of_fewer(world: &World, store: &Store) -> Result<bool> {
    skipped(world.engine.store(), SkipReason::Paused, 5).await?;
    skipped(store, SkipReason::Paused, 3).await?;
    let row = store.run(&client()?, &run()?).await?.context("no record")?;
    Ok(row.skipped.is_some_and(|skipped| skipped.count == 5))
}

async fn record_of_another_reason(world: &World, store: &Store) -> Result<bool> {
    skipped(world.engine.store(), SkipReason::Paused, 3).await?;
    skipped(store, SkipReason::Excluded, 5).await?;
    let row = store.run(&client()?, &run()?).await?.context("no record")?;
    Ok(row.skipped.is_some_and(|skipped| skipped.count == 3))
}

async fn second_start(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    world.engine.store().run_started(&client()?, &run()?, at(0)).await?;
    Ok(is_refused(store.run_started(&client()?, &run()?, at(60)).await?))
}

async fn second_end(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    world.engine.store().stop_run(&client()?, &run()?, "cancelled").await?;
    Ok(is_refused(store.stop_run(&client()?, &run()?, "deadline").await?))
}

async fn second_announcement(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    world.engine.store().mark_announced(&client()?, &run()?, &announced(None)).await?;
    Ok(is_refused(store.mark_announced(&client()?, &run()?, &announced(None)).await?))
}

/// A compaction that is repeated after its reply was lost.
async fn outcomes_that_were_counted(world: &World, store: &Store) -> Result<bool> {
    count_again(world, store, 0).await
}

async fn outcomes_that_were_counted_in_a_part(world: &World, store: &Store) -> Result<bool> {
    count_again(world, store, GROUPS_PER_PART).await
}

async fn count_again(world: &World, store: &Store, group: u32) -> Result<bool> {
    waiting(world).await?;
    let (client, run, tally) = (client()?, run()?, Tally { succeeded: 2, ..Tally::default() });
    world.engine.store().add_outcomes(&client, &run, (group, 1), tally, at(0)).await?;
    let again = store.add_outcomes(&client, &run, (group, 1), tally, at(0)).await?;
    let counted = again.row.context("no run")?.tally.succeeded;
    ensure!(counted == if again.counted { 4 } else { 2 }, "{counted} succeeded");
    Ok(!again.counted)
}

/// Whether the run has no row, not even a part of one.
async fn is_absent(store: &Store) -> Result<bool> {
    Ok(matches!(store.run(&client()?, &run()?).await, Ok(None)))
}

async fn rest_of_a_run_that_has_expired(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    let group = serving(plain, 0).await?;
    let range = *group.range().context("no range")?;
    store.drop_range(&group, range, &run()?).await?;
    is_absent(plain).await
}

async fn outcomes_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    count_too_late(store, 0).await
}

async fn part_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    count_too_late(store, GROUPS_PER_PART).await
}

async fn count_too_late(store: &Store, group: u32) -> Result<bool> {
    let tally = Tally { succeeded: 2, ..Tally::default() };
    // What was written cannot be read as a run.
    let added = store.add_outcomes(&client()?, &run()?, (group, 1), tally, at(0)).await;
    Ok(added.is_ok() && is_absent(store).await?)
}

fn announced(failure: Option<&str>) -> Announced {
    Announced { at: at(0), failure: failure.map(str::to_owned) }
}

async fn announcement_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.mark_announced(&client()?, &run()?, &announced(None)).await?))
}

async fn failed_announcement_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.mark_announced(&client()?, &run()?, &announced(Some("denied"))).await?))
}

async fn failure_after_the_announcement(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    world.engine.store().mark_announced(&client()?, &run()?, &announced(None)).await?;
    Ok(is_refused(store.mark_announced(&client()?, &run()?, &announced(Some("denied"))).await?))
}

async fn start_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.run_started(&client()?, &run()?, at(0)).await?))
}

/// What has expired is not kept for longer: there is nothing to keep.
async fn retention_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.retain_run(&client()?, &run()?, at(0)).await?))
}

/// A look at it that was held up on its way does not have it expire earlier.
async fn pack_that_is_kept_for_longer(world: &World, store: &Store) -> Result<bool> {
    let (pack, _) = straight(world.engine.store()).await?;
    let (client, policy) = (client()?, "small".parse()?);
    Ok(is_refused(store.retain_pack(&client, &policy, pack.id, at(-86_400)).await?))
}

async fn end_of_a_run_that_has_expired(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.stop_run(&client()?, &run()?, "cancelled").await?))
}
