//! The clauses of what ticks write: the watermark, the shape of the time index, parts of large scans.

use anyhow::{Result, bail};
use tidegate_domain::time::{LaunchExpression, Window, parse_zone};
use tidegate_simulation::World;
use tidegate_store::Store;
use tidegate_store::scans::{Cursor, Part, PartPlan, TakePart, Task};
use tidegate_store::ticker::{Advance, Terms, Watermark};

use super::{at, cases, is_refused, is_there};

cases! {
    "index add or remove zone: #zone < :before" => zone_that_was_added_again,
    "index raise shards: attribute_not_exists(#shards) OR #shards < :shards" => fewer_shards,
    "scan delete: fence = :fence" => part_that_was_taken_over_and_is_done,
    "scan put: attribute_not_exists(pk)" => second_part,
    "scan take: lease_end <= :now" => part_that_somebody_has,
    "scan move: fence = :fence" => part_that_was_taken_over,
    "watermark advance: attribute_not_exists(pk) OR (scanned_to = planned_to AND planned_to < :to) OR (planned_to <= :to AND scanned_to < planned_to AND scanned_to >= taken_over_to AND lease_end < :now)" => tick_beside_another,
    "watermark advance: lease_end < :now in (planned_to <= :to AND scanned_to < planned_to AND scanned_to >= taken_over_to AND lease_end < :now)" => tick_beside_another,
    "watermark advance: planned_to < :to in (scanned_to = planned_to AND planned_to < :to)" => tick_that_is_repeated,
    "watermark advance: scanned_to < planned_to in (planned_to <= :to AND scanned_to < planned_to AND scanned_to >= taken_over_to AND lease_end < :now)" => late_tick_that_is_repeated,
    "watermark advance: scanned_to = planned_to in (scanned_to = planned_to AND planned_to < :to)" => tick_beside_another,
    "watermark put: attribute_not_exists(pk)" => second_first_watermark,
    "watermark take over again: lease_end < :now" => second_take_over_beside_a_living_tick,
    "watermark advance: planned_to <= :to in (planned_to <= :to AND scanned_to < planned_to AND scanned_to >= taken_over_to AND lease_end < :now)" => tick_behind_one_that_died,
    "watermark advance: scanned_to >= taken_over_to in (planned_to <= :to AND scanned_to < planned_to AND scanned_to >= taken_over_to AND lease_end < :now)" => take_over_of_what_was_taken_over,
    "watermark break lease: attribute_exists(pk)" => lease_before_the_first_tick,
    "watermark finish scan: :to <= planned_to" => scan_beyond_the_plan,
    "watermark finish scan: fence = :fence" => scan_of_a_former_tick,
    "watermark finish scan: scanned_to <= :to" => scan_that_is_finished_twice,
    "watermark keep woken to: fence = :fence" => waking_of_a_former_tick,
    "watermark take over again: planned_to <= :to" => second_take_over_behind_the_plan,
}

/// A tick at a second, which plans to another. It has the row for 30 s.
pub(crate) async fn tick(store: &Store, now: i64, to: i64) -> Result<Advance> {
    let terms = Terms { lease_end: at(now + 30), missed_before: at(0) };
    Ok(store.advance_watermark(at(0), at(to), at(now), terms).await?)
}

pub(crate) async fn won(store: &Store, now: i64, to: i64) -> Result<Watermark> {
    match tick(store, now, to).await? {
        Advance::Won(watermark) => Ok(watermark),
        Advance::Lost(_) => bail!("the tick lost"),
    }
}

pub(crate) fn is_lost(advance: &Advance) -> bool {
    matches!(advance, Advance::Lost(_))
}

/// The clock of a tick that takes over from a dead one may be behind: the plan never goes back.
async fn tick_behind_one_that_died(world: &World, store: &Store) -> Result<bool> {
    won(world.engine.store(), 0, 120).await?;
    Ok(is_lost(&tick(store, 60, 90).await?))
}

async fn tick_beside_another(world: &World, store: &Store) -> Result<bool> {
    won(world.engine.store(), 0, 120).await?;
    Ok(is_lost(&tick(store, 20, 180).await?))
}

/// All is done up to where it would plan.
async fn repeated(world: &World, store: &Store, now: i64) -> Result<bool> {
    let watermark = won(world.engine.store(), 0, 120).await?;
    world.engine.store().finish_scan(watermark.fence, at(120)).await?;
    Ok(is_lost(&tick(store, now, 120).await?))
}

async fn tick_that_is_repeated(world: &World, store: &Store) -> Result<bool> {
    repeated(world, store, 0).await
}

async fn late_tick_that_is_repeated(world: &World, store: &Store) -> Result<bool> {
    repeated(world, store, 60).await
}

async fn second_first_watermark(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().begin_watermark(at(60)).await?;
    Ok(is_there(store.begin_watermark(at(0)).await?))
}

async fn second_take_over_beside_a_living_tick(world: &World, store: &Store) -> Result<bool> {
    two_died(world.engine.store()).await?;
    Ok(is_lost(&tick(store, 80, 200).await?))
}

/// Two ticks that died, one after the other: what the second had taken over is not all repeated yet.
async fn two_died(store: &Store) -> Result<()> {
    won(store, 0, 120).await?;
    won(store, 60, 180).await?;
    Ok(())
}

/// Launches before 120 s stay those that the first of the dead ticks had planned: they are judged as they were at first.
async fn take_over_of_what_was_taken_over(world: &World, store: &Store) -> Result<bool> {
    two_died(world.engine.store()).await?;
    Ok(won(store, 120, 240).await?.taken_over_to == at(120))
}

async fn second_take_over_behind_the_plan(world: &World, store: &Store) -> Result<bool> {
    two_died(world.engine.store()).await?;
    Ok(is_lost(&tick(store, 120, 150).await?))
}

async fn scan_of_a_former_tick(world: &World, store: &Store) -> Result<bool> {
    let former = won(world.engine.store(), 0, 120).await?;
    won(world.engine.store(), 60, 180).await?;
    Ok(is_refused(store.finish_scan(former.fence, at(60)).await?))
}

/// A request that was held up on its way and arrives behind a later one of the same tick.
async fn scan_that_is_finished_twice(world: &World, store: &Store) -> Result<bool> {
    let watermark = won(world.engine.store(), 0, 120).await?;
    world.engine.store().finish_scan(watermark.fence, at(120)).await?;
    Ok(is_refused(store.finish_scan(watermark.fence, at(60)).await?))
}

async fn scan_beyond_the_plan(world: &World, store: &Store) -> Result<bool> {
    let watermark = won(world.engine.store(), 0, 120).await?;
    Ok(is_refused(store.finish_scan(watermark.fence, at(180)).await?))
}

async fn waking_of_a_former_tick(world: &World, store: &Store) -> Result<bool> {
    let former = won(world.engine.store(), 0, 120).await?;
    won(world.engine.store(), 60, 180).await?;
    Ok(is_refused(store.keep_woken_to(former.fence, Some("3|acme")).await?))
}

/// It would create a row that no tick can read.
async fn lease_before_the_first_tick(_: &World, store: &Store) -> Result<bool> {
    store.break_tick_lease().await?;
    Ok(matches!(store.watermark().await, Ok(None)))
}

async fn zone_that_was_added_again(world: &World, store: &Store) -> Result<bool> {
    let berlin = parse_zone("Europe/Berlin")?;
    world.engine.store().add_zone(berlin, at(60)).await?;
    Ok(is_refused(store.remove_zone(berlin, at(30)).await?))
}

async fn fewer_shards(world: &World, store: &Store) -> Result<bool> {
    let (berlin, class) = (parse_zone("Europe/Berlin")?, "H:03".parse::<LaunchExpression>()?);
    world.engine.store().raise_shards(berlin, &class, 4).await?;
    Ok(is_refused(store.raise_shards(berlin, &class, 2).await?))
}

pub(crate) fn part() -> Result<Part> {
    let plan =
        PartPlan { window: Window::new(at(0), at(60))?, repeat: false, missed_before: at(0), as_of: at(0) };
    let task = Task::Rows { plan, partition: "UTC|H03|0".to_owned(), range: None, cursor: Cursor::default() };
    Ok(Part::new(task, at(0)))
}

pub(crate) async fn taken(store: &Store, id: &str, now: i64) -> Result<Part> {
    match store.take_part(id, at(now), at(now + 30)).await? {
        TakePart::Taken(part) => Ok(*part),
        other => bail!("the part is {other:?}"),
    }
}

async fn part_that_was_taken_over(world: &World, store: &Store) -> Result<bool> {
    let (plain, part) = (world.engine.store(), part()?);
    anyhow::ensure!(!is_there(plain.put_part(&part).await?), "there was a part");
    let former = taken(plain, &part.id, 0).await?;
    taken(plain, &part.id, 60).await?;
    Ok(is_refused(store.move_part(&former, at(90)).await?))
}

async fn part_that_was_taken_over_and_is_done(world: &World, store: &Store) -> Result<bool> {
    let (plain, part) = (world.engine.store(), part()?);
    plain.put_part(&part).await?;
    let former = taken(plain, &part.id, 0).await?;
    taken(plain, &part.id, 60).await?;
    Ok(is_refused(store.finish_part(&former).await?))
}

async fn part_that_somebody_has(world: &World, store: &Store) -> Result<bool> {
    let (plain, part) = (world.engine.store(), part()?);
    plain.put_part(&part).await?;
    taken(plain, &part.id, 0).await?;
    Ok(store.take_part(&part.id, at(20), at(50)).await? == TakePart::Busy)
}

/// It would begin anew what a worker has come through.
async fn second_part(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().put_part(&part()?).await?;
    Ok(is_there(store.put_part(&part()?).await?))
}
