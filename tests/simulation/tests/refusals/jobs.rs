//! The clauses of jobs and of the time index.

use anyhow::{Context as _, Result};
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::time::{Window, parse_zone};
use tidegate_simulation::World;
use tidegate_simulation::world::JobSpec;
use tidegate_store::Store;
use tidegate_store::jobs::JobRow;
use tidegate_store::launch::{Child, OutboxEntry, Part};

use super::rows::changed;
use super::{URL, at, cases, is_refused, is_there};

cases! {
    "at transact rewrite: rev = :seen" => one_time_job_that_was_replaced,
    "index add or remove zone: attribute_not_exists(#zone) OR #zone < :now" => zone_that_was_added_before,
    "outbox delete: rev = :rev" => launches_that_are_owed_of_a_later_revision,
    "jobs put: attribute_not_exists(pk)" => second_one_time_job,
    "jobs transact put: attribute_not_exists(pk)" => second_job,
    "jobs transact put: rev = :seen" => job_over_a_tombstone_that_is_gone,
    "jobs transact rewrite: rev = :seen" => job_that_was_replaced,
    "triggered transact put: attribute_not_exists(pk)" => second_launch_of_an_instant,
}

fn next(job: &Job) -> Job {
    Job { revision: job.revision + 1, ..job.clone() }
}

async fn one_time_job(world: &World) -> Result<Job> {
    let id = world.create(JobSpec::at(at(3_600), URL)?).await?.parse()?;
    let job = world.engine.store().one_time(&"acme".parse()?, &id).await?.context("no job")?;
    world.engine.store().replace_one_time(&next(&job), &job, None, &changed()).await?;
    Ok(job)
}

/// Another call replaced the revision that this one saw.
async fn one_time_job_that_was_replaced(world: &World, store: &Store) -> Result<bool> {
    let seen = one_time_job(world).await?;
    Ok(is_refused(store.replace_one_time(&next(&seen), &seen, None, &changed()).await?))
}

/// Two calls create a job under one id, for different instants.
async fn second_one_time_job(world: &World, store: &Store) -> Result<bool> {
    let second = Job { trigger: Trigger::at(at(7_200)), ..report(world).await? };
    Ok(is_there(store.create_keyed_at(&second).await?))
}

/// The same in a transaction.
async fn second_job(world: &World, store: &Store) -> Result<bool> {
    let second = Job { trigger: Trigger::at(at(7_200)), ..report(world).await? };
    Ok(is_refused(store.write_job(&second, None, &[], None).await?))
}

async fn report(world: &World) -> Result<Job> {
    world.create(JobSpec::at(at(3_600), URL)?.named("report")).await?;
    match world.engine.store().job(&"acme".parse()?, &"report".parse()?).await? {
        Some(JobRow::Live(job)) => Ok(job),
        _ => anyhow::bail!("no job"),
    }
}

async fn job_that_was_replaced(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    world.create(JobSpec::cron("0 3 * * *", "UTC", URL)?.named("report")).await?;
    let seen = plain.job(&"acme".parse()?, &"report".parse()?).await?;
    let Some(JobRow::Live(job)) = &seen else { anyhow::bail!("no job") };
    plain.write_job(&next(job), seen.as_ref(), &[], None).await?;
    Ok(is_refused(store.write_job(&next(job), seen.as_ref(), &[], None).await?))
}

/// Two calls use the id of a deleted job again.
async fn job_over_a_tombstone_that_is_gone(world: &World, store: &Store) -> Result<bool> {
    let plain = world.engine.store();
    world.create(JobSpec::cron("0 3 * * *", "UTC", URL)?.named("report")).await?;
    let (client, id) = ("acme".parse()?, "report".parse()?);
    let Some(JobRow::Live(job)) = plain.job(&client, &id).await? else { anyhow::bail!("no job") };
    plain.delete_job(&job, &changed()).await?;
    let tombstone = plain.job(&client, &id).await?;
    let again = next(&next(&job));
    plain.write_job(&again, tombstone.as_ref(), &[], None).await?;
    Ok(is_refused(store.write_job(&again, tombstone.as_ref(), &[], None).await?))
}

/// A request that was held up on its way: whoever looks for unused zones sees the latest use.
async fn zone_that_was_added_before(world: &World, store: &Store) -> Result<bool> {
    let (berlin, plain) = (parse_zone("Europe/Berlin")?, world.engine.store());
    plain.add_zone(berlin, at(60)).await?;
    store.add_zone(berlin, at(0)).await?;
    Ok(is_refused(plain.remove_zone(berlin, at(30)).await?))
}

/// Two calls trigger a job in one second: the later one takes the next.
async fn second_launch_of_an_instant(world: &World, store: &Store) -> Result<bool> {
    let once = one_time_job(world).await?;
    let child = Child { part: Part::Triggered, ..Child::of(&once) };
    let owed = OutboxEntry { child, window: Window::new(at(3_600), at(3_601))?, written_at: at(0) };
    world.engine.store().trigger(&owed, None).await?;
    Ok(is_refused(store.trigger(&owed, None).await?))
}

async fn launches_that_are_owed_of_a_later_revision(world: &World, store: &Store) -> Result<bool> {
    let former = one_time_job(world).await?;
    let child = Child::of(&next(&former));
    let outbox = OutboxEntry { child, window: Window::new(at(0), at(60))?, written_at: at(0) };
    world.engine.store().put_outbox(&outbox).await?;
    Ok(is_refused(store.ack_outbox(&Child::of(&former)).await?))
}
