//! The clauses of what clients take of their quotas, and of the counts of what they have.

use anyhow::{Context as _, Result};
use chrono_tz::Tz;
use tidegate_domain::quota::{
    Ask, Count, Counted, EventsPace, EventsPerMinute, MostJobs, MostOneTimeJobs, MostWaiting, MostZones,
    Quotas, Taken,
};
use tidegate_simulation::World;
use tidegate_simulation::mutants::Mutant;
use tidegate_store::Store;
use tidegate_store::quotas::{CountClaim, Rows};

use super::races::{Race, racing};
use super::rows::{client, take_creates};
use super::{at, cases, take_of_quotas as take};

cases! {
    "creates take: jobs <= :jobs_room" => one_job_too_many,
    "creates take: jobs_counted >= :counted_since" => job_of_a_quota_that_is_newer_than_the_count,
    "creates take: attribute_not_exists(waiting) OR waiting <= :waiting_room" => one_job_too_many_that_waits,
    "creates take: attribute_exists(#zone#)" => zone_that_was_never_taken,
    "creates take: zones_counted >= :counted_since" => zone_of_a_quota_that_is_newer_than_the_count,
    "creates claim count: attribute_not_exists(in_minute)" => claim_over_a_row_that_has_begun,
    "creates claim count: attribute_not_exists(jobs_next)" => first_claim_that_is_a_second,
    "creates claim count: attribute_not_exists(zones_next)" => first_claim_of_zones_that_is_a_second,
    "creates claim count: in_minute = :minute" => claim_of_a_minute_that_is_over,
    "creates claim count: jobs_next <= :now" => claim_of_what_somebody_counts,
    "creates claim count: zones_next <= :now" => claim_of_zones_that_somebody_counts,
    "creates finish count: attribute_not_exists(in_minute)" => nothing_over_a_row_that_has_begun,
    "creates finish count: attribute_not_exists(jobs_counted) OR jobs_counted < :counted_since" => nothing_where_something_was_taken,
    "creates finish count: attribute_not_exists(zones_counted) OR zones_counted < :counted_since" => no_zones_where_one_was_taken,
    "creates finish count: jobs_next = :claim" => count_that_took_too_long,
    "creates finish count: zones_next = :claim" => count_of_zones_that_took_too_long,
    "creates finish count: zones = :zones_seen" => zone_that_was_found_and_taken,
    "creates finish count: #zone# = :zone" => zone_that_is_gone_and_taken,
    "paced give: end_us <= :last" => more_events_than_may_wait,
    "paced give: end_us >= :first" => places_of_a_minute_that_is_over,
}

pub(crate) const RACES: &[Race] = &[
    ("creates begin minute: #passed# = :passed", |world, mutant| {
        Box::pin(job_that_is_taken_as_it_passes(world, mutant))
    }),
    ("creates begin minute: in_minute = :minute_before", |world, mutant| {
        Box::pin(next_minute_that_has_begun(world, mutant))
    }),
    ("creates take: attribute_not_exists(#zone#)", |world, mutant| {
        Box::pin(zone_that_another_takes(world, mutant))
    }),
    ("creates take: zones <= :zones_room", |world, mutant| Box::pin(zone_beyond_the_most(world, mutant))),
    ("paced give: attribute_not_exists(end_us) OR end_us < :first", |world, mutant| {
        Box::pin(places_that_another_begins(world, mutant))
    }),
];

/// Quotas that are there since a second.
fn quotas(second: i64) -> Quotas {
    Quotas {
        jobs: MostJobs::new(2).ok(),
        one_time_jobs: MostOneTimeJobs::new(2).ok(),
        zones: MostZones::new(1).ok(),
        counted_since: Some(at(second)),
        ..Quotas::default()
    }
}

fn job() -> Ask {
    Ask { adds: Some(Counted::Jobs), ..Ask::default() }
}

fn in_zone(zone: Tz) -> Ask {
    Ask { zone: Some(zone), ..Ask::default() }
}

fn waiting(second: i64) -> Ask {
    Ask { waits_until: Some(at(second)), ..Ask::default() }
}

async fn taken(plain: &Store) -> Result<Taken> {
    Ok(plain.taken_of_quotas(&client()?).await?)
}

async fn count(plain: &Store, of: Counted) -> Result<Count> {
    taken(plain).await?.counts.get(&of).copied().context("it was not counted")
}

/// Says that there is nothing, at the first second.
async fn nothing(store: &Store, of: Counted, seen: Taken) -> Result<()> {
    Ok(store.count_nothing(&client()?, of, &quotas(0), seen, at(0)).await?)
}

async fn claim(store: &Store, of: Counted, seen: &Taken, second: i64) -> Result<Option<CountClaim>> {
    Ok(store.claim_count(&client()?, of, seen.clone(), at(second)).await?)
}

async fn finish(store: &Store, claim: &CountClaim, zones: &[Tz], second: i64) -> Result<()> {
    let zones = zones.iter().map(|zone| zone.name().to_owned()).collect();
    let rows = Rows { number: 5, zones, next: None };
    Ok(store.finish_count(&client()?, claim, &rows, &quotas(0), at(second)).await?)
}

async fn one_job_too_many(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    nothing(plain, Counted::Jobs, Taken::default()).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[job(), job()], 0).await? == 2);
    Ok(take(store, &quotas(0), &[job()], 0).await? == 0)
}

/// Nobody took of it when it was counted.
async fn job_of_a_quota_that_is_newer_than_the_count(world: &World, store: &Store) -> Result<bool> {
    nothing(world.engine.store(), Counted::Jobs, Taken::default()).await?;
    Ok(take(store, &quotas(5), &[job()], 6).await? == 0)
}

async fn one_job_too_many_that_waits(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    take_creates(plain, 1, 0).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[waiting(300), waiting(900)], 0).await? == 2);
    Ok(take(store, &quotas(0), &[waiting(300)], 0).await? == 0)
}

/// It would not be counted among the zones.
async fn zone_that_was_never_taken(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    nothing(plain, Counted::Zones, Taken::default()).await?;
    take(store, &quotas(0), &[in_zone(Tz::UTC)], 0).await?;
    Ok(count(plain, Counted::Zones).await?.at_most == 1)
}

async fn zone_of_a_quota_that_is_newer_than_the_count(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    nothing(plain, Counted::Zones, Taken::default()).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[in_zone(Tz::UTC)], 0).await? == 1);
    Ok(take(store, &quotas(5), &[in_zone(Tz::UTC)], 6).await? == 0)
}

/// Of the zones that two calls take at once, more would be there than are counted, or fewer.
async fn zone_beyond_the_most(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    nothing(&plain, Counted::Zones, Taken::default()).await?;
    let meanwhile = async move { take(&plain, &quotas(0), &[in_zone(Tz::UTC)], 0).await.map(drop) };
    Ok(take(&racing(world, mutant, meanwhile)?, &quotas(0), &[in_zone(Tz::Japan)], 0).await? == 0)
}

async fn zone_that_another_takes(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    nothing(&plain, Counted::Zones, Taken::default()).await?;
    let two = Quotas { zones: MostZones::new(2).ok(), ..quotas(0) };
    let meanwhile = async move { take(&plain, &two, &[in_zone(Tz::UTC)], 0).await.map(drop) };
    take(&racing(world, mutant, meanwhile)?, &two, &[in_zone(Tz::UTC)], 0).await?;
    Ok(count(world.engine.store(), Counted::Zones).await?.at_most == 1)
}

/// One that is given back would never be: it was taken by a clock that is behind.
async fn job_that_is_taken_as_it_passes(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    take_creates(&plain, 1, 0).await?;
    anyhow::ensure!(take(&plain, &quotas(0), &[waiting(30)], 0).await? == 1);
    let meanwhile = async move { take(&plain, &quotas(0), &[waiting(40)], 59).await.map(drop) };
    take_creates(&racing(world, mutant, meanwhile)?, 1, 60).await?;
    Ok(taken(world.engine.store()).await?.waiting == 0)
}

/// The minute would begin twice, and what was taken in it be forgotten.
async fn next_minute_that_has_begun(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    take_creates(&plain, 1, 0).await?;
    let meanwhile = async move { take_creates(&plain, 3, 60).await.map(drop) };
    Ok(take_creates(&racing(world, mutant, meanwhile)?, 3, 60).await? == 0)
}

/// What was taken in the minute would be forgotten.
async fn claim_over_a_row_that_has_begun(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    take_creates(plain, 3, 0).await?;
    claim(store, Counted::Jobs, &Taken::default(), 0).await?;
    Ok(take_creates(plain, 1, 0).await? == 0)
}

async fn nothing_over_a_row_that_has_begun(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    take_creates(plain, 3, 0).await?;
    nothing(store, Counted::Jobs, Taken::default()).await?;
    Ok(take_creates(plain, 1, 0).await? == 0)
}

/// Two events a minute, and one that may wait.
fn pace() -> Result<EventsPace> {
    Ok(EventsPace { per_minute: EventsPerMinute::new(2)?, waiting: MostWaiting::new(1).ok() })
}

async fn give(store: &Store, second: i64) -> Result<Option<i64>> {
    Ok(store.give_places(&client()?, pace()?, 1, at(second)).await?)
}

async fn more_events_than_may_wait(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    for _ in 0..3 {
        anyhow::ensure!(give(plain, 0).await?.is_some());
    }
    Ok(give(store, 0).await?.is_none())
}

/// An event would have a place in a minute that is over, and more would go in this one.
async fn places_of_a_minute_that_is_over(world: &World, store: &Store) -> Result<bool> {
    give(world.engine.store(), 0).await?;
    Ok(give(store, 120).await? == Some(pace()?.first_us(at(120))))
}

/// Two events would have the same place.
async fn places_that_another_begins(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    let meanwhile = async move { give(&plain, 0).await.map(drop) };
    Ok(give(&racing(world, mutant, meanwhile)?, 0).await? != Some(pace()?.first_us(at(0))))
}

async fn is_claimed_once(world: &World, store: &Store, of: Counted) -> Result<bool> {
    let plain = world.engine.store();
    let seen = taken(plain).await?;
    claim(plain, of, &seen, 1).await?.context("it is not claimed")?;
    Ok(claim(store, of, &seen, 2).await?.is_none())
}

/// Both would count at once, and each of them pay.
async fn first_claim_that_is_a_second(world: &World, store: &Store) -> Result<bool> {
    take_creates(world.engine.store(), 1, 0).await?;
    is_claimed_once(world, store, Counted::Jobs).await
}

async fn first_claim_of_zones_that_is_a_second(world: &World, store: &Store) -> Result<bool> {
    take_creates(world.engine.store(), 1, 0).await?;
    is_claimed_once(world, store, Counted::Zones).await
}

async fn claim_of_what_somebody_counts(world: &World, store: &Store) -> Result<bool> {
    nothing(world.engine.store(), Counted::Jobs, Taken::default()).await?;
    is_claimed_once(world, store, Counted::Jobs).await
}

async fn claim_of_zones_that_somebody_counts(world: &World, store: &Store) -> Result<bool> {
    nothing(world.engine.store(), Counted::Zones, Taken::default()).await?;
    is_claimed_once(world, store, Counted::Zones).await
}

/// What was taken a moment ago, and may not be written yet, would not be added to what is counted.
async fn claim_of_a_minute_that_is_over(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    nothing(plain, Counted::Jobs, Taken::default()).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[job()], 0).await? == 1);
    let seen = taken(plain).await?;
    take_creates(plain, 1, 60).await?;
    claim(store, Counted::Jobs, &seen, 61).await?.context("it is not claimed")?;
    Ok(count(plain, Counted::Jobs).await?.since == 1)
}

/// What a call begins anew that comes late would be forgotten.
async fn nothing_where_something_was_taken(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    take_creates(plain, 1, 0).await?;
    let seen = taken(plain).await?;
    nothing(plain, Counted::Jobs, seen.clone()).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[job()], 0).await? == 1);
    nothing(store, Counted::Jobs, seen).await?;
    Ok(count(plain, Counted::Jobs).await?.at_most == 1)
}

async fn no_zones_where_one_was_taken(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    take_creates(plain, 1, 0).await?;
    let seen = taken(plain).await?;
    nothing(plain, Counted::Zones, seen.clone()).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[in_zone(Tz::UTC)], 0).await? == 1);
    nothing(store, Counted::Zones, seen).await?;
    Ok(count(plain, Counted::Zones).await?.at_most == 1)
}

/// What is taken since another began to count does not stand in what this one tells.
async fn is_too_late(world: &World, store: &Store, of: Counted) -> Result<bool> {
    let plain = world.engine.store();
    take_creates(plain, 1, 0).await?;
    let late = claim(plain, of, &taken(plain).await?, 0).await?.context("it is not claimed")?;
    claim(plain, of, &taken(plain).await?, 60).await?.context("it is not claimed anew")?;
    finish(store, &late, &[], 61).await?;
    Ok(count(plain, of).await?.counted_ms.is_none())
}

async fn count_that_took_too_long(world: &World, store: &Store) -> Result<bool> {
    is_too_late(world, store, Counted::Jobs).await
}

async fn count_of_zones_that_took_too_long(world: &World, store: &Store) -> Result<bool> {
    is_too_late(world, store, Counted::Zones).await
}

/// It would be there once and counted twice.
async fn zone_that_was_found_and_taken(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    nothing(plain, Counted::Zones, Taken::default()).await?;
    let claim = claim(plain, Counted::Zones, &taken(plain).await?, 20).await?.context("it is not claimed")?;
    anyhow::ensure!(take(plain, &quotas(0), &[in_zone(Tz::UTC)], 21).await? == 1);
    finish(store, &claim, &[Tz::UTC], 22).await?;
    Ok(count(plain, Counted::Zones).await?.at_most == 1)
}

/// Its job is written a moment later, and nobody would know of its zone.
async fn zone_that_is_gone_and_taken(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    nothing(plain, Counted::Zones, Taken::default()).await?;
    anyhow::ensure!(take(plain, &quotas(0), &[in_zone(Tz::UTC)], 0).await? == 1);
    take_creates(plain, 1, 180).await?;
    let claim =
        claim(plain, Counted::Zones, &taken(plain).await?, 180).await?.context("it is not claimed")?;
    anyhow::ensure!(take(plain, &quotas(0), &[in_zone(Tz::UTC)], 181).await? == 1);
    finish(store, &claim, &[], 182).await?;
    Ok(count(plain, Counted::Zones).await?.at_most == 1)
}
