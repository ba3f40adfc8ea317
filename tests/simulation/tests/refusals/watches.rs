//! The clauses of watches, and of the records of launches that were not over in time.

use anyhow::{Context as _, Result};
use tidegate_domain::job::HistoryDays;
use tidegate_simulation::World;
use tidegate_store::Store;
use tidegate_store::overdue::{Overdue, OverdueState};
use tidegate_store::runs::Announced;
use tidegate_store::watches::Watch;

use super::rows::{client, run};
use super::{at, cases, is_refused, is_there};

cases! {
    "overdue put: attribute_not_exists(pk)" => second_record_of_a_launch,
    "overdue tell: attribute_exists(pk)" => launch_without_a_record_is_told,
    "overdue tell: attribute_not_exists(told_at)" => launch_that_was_told_is_told,
    "watch delete: rev = :rev" => watch_that_a_change_put_in_the_same_place,
    "watch put: attribute_not_exists(pk) OR rev < :rev" => watch_of_a_call_that_was_overtaken,
    "watch put: attribute_not_exists(pk)" => next_watch_where_a_change_put_one,
}

/// A watch of a revision, due at a second.
fn watch(revision: u32, due: i64) -> Result<Watch> {
    Ok(Watch { client: client()?, job: "report".parse()?, revision, from: at(0), due: at(due) })
}

async fn revision_at(store: &Store, due: i64) -> Result<u32> {
    let found = store.watch(&client()?, &"report".parse()?, at(due)).await?;
    Ok(found.context("the watch is gone")?.revision)
}

async fn watch_that_a_change_put_in_the_same_place(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().put_watch(&watch(2, 60)?).await?;
    store.move_watch(&watch(1, 60)?, None).await?;
    Ok(world.engine.store().watch(&client()?, &"report".parse()?, at(60)).await?.is_some())
}

async fn watch_of_a_call_that_was_overtaken(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().put_watch(&watch(2, 60)?).await?;
    store.put_watch(&watch(1, 60)?).await?;
    Ok(revision_at(world.engine.store(), 60).await? == 2)
}

async fn next_watch_where_a_change_put_one(world: &World, store: &Store) -> Result<bool> {
    world.engine.store().put_watch(&watch(2, 120)?).await?;
    store.move_watch(&watch(1, 60)?, Some(&watch(1, 120)?)).await?;
    Ok(revision_at(world.engine.store(), 120).await? == 2)
}

fn overdue(state: OverdueState) -> Result<Overdue> {
    let (run, seen_at) = (run()?, at(60));
    Ok(Overdue { run, within_seconds: 60, state, reason: None, seen_at, told: None })
}

async fn second_record_of_a_launch(world: &World, store: &Store) -> Result<bool> {
    let (client, kept) = (client()?, HistoryDays::DEFAULT);
    world.engine.store().record_overdue(&client, &overdue(OverdueState::Waiting)?, kept).await?;
    Ok(is_there(store.record_overdue(&client, &overdue(OverdueState::Running)?, kept).await?))
}

async fn launch_without_a_record_is_told(_: &World, store: &Store) -> Result<bool> {
    Ok(is_refused(store.mark_told(&client()?, &run()?, &Announced { at: at(60), failure: None }).await?))
}

async fn launch_that_was_told_is_told(world: &World, store: &Store) -> Result<bool> {
    let (plain, client) = (world.engine.store(), client()?);
    plain.record_overdue(&client, &overdue(OverdueState::Waiting)?, HistoryDays::DEFAULT).await?;
    plain.mark_told(&client, &run()?, &Announced { at: at(60), failure: None }).await?;
    Ok(is_refused(store.mark_told(&client, &run()?, &Announced { at: at(120), failure: None }).await?))
}
