//! The clauses of dead letters.

use anyhow::Result;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::slots::Outcome;
use tidegate_simulation::World;
use tidegate_store::Store;
use tidegate_store::dead_letters::DeadLetter;
use tidegate_store::events::Record;

use super::rows::{client, run, waiting};
use super::{at, cases, is_refused};

cases! {
    "letter put: attribute_not_exists(pk) OR tries < :tries" => letter_that_is_settled,
    "letter put: done_at = :at" => letter_of_another_instant_is_discarded,
    "letter put: tries = :tries" => letter_of_a_later_delivery_is_discarded,
    "letter transact put: done_at = :at" => letter_of_another_instant_is_redriven,
    "letter transact put: tries = :tries" => letter_of_a_later_delivery_is_redriven,
    "run transact count redriven: attribute_exists(pk)" => letter_of_a_run_that_has_expired,
}

/// The letter of an event that ended after so many deliveries, at a second.
fn letter(attempts: u8, second: i64) -> Result<DeadLetter> {
    let (event, outcome, at) = (run()?.event(0), Outcome::Dead, at(second));
    Ok(DeadLetter { event, outcome, attempts, at, reason: None, waited: None })
}

async fn keep(store: &Store, letter: &DeadLetter) -> Result<()> {
    let (client, letter, kept) = (client()?, letter.clone(), HistoryDays::default());
    Ok(store.keep(&[Record::DeadLetter { client, letter, kept }]).await?)
}

/// What comes late does not bring back what was discarded; a later end does.
async fn letter_that_is_settled(world: &World, store: &Store) -> Result<bool> {
    let (plain, client, first) = (world.engine.store(), client()?, letter(1, 0)?);
    keep(plain, &first).await?;
    plain.discard_dead_letter(&client, &first, at(60)).await?;
    keep(store, &letter(2, 120)?).await?;
    anyhow::ensure!(plain.dead_letter(&client, &first.event).await?.is_some(), "a later end has no letter");
    plain.discard_dead_letter(&client, &letter(2, 120)?, at(180)).await?;
    keep(store, &first).await?;
    Ok(plain.dead_letter(&client, &first.event).await?.is_none())
}

/// Nobody counts beyond 255 deliveries.
async fn letter_of_another_instant_is_discarded(world: &World, store: &Store) -> Result<bool> {
    keep(world.engine.store(), &letter(u8::MAX, 60)?).await?;
    Ok(is_refused(store.discard_dead_letter(&client()?, &letter(u8::MAX, 0)?, at(120)).await?))
}

async fn letter_of_a_later_delivery_is_discarded(world: &World, store: &Store) -> Result<bool> {
    keep(world.engine.store(), &letter(2, 0)?).await?;
    Ok(is_refused(store.discard_dead_letter(&client()?, &letter(1, 0)?, at(120)).await?))
}

async fn letter_of_another_instant_is_redriven(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    keep(world.engine.store(), &letter(u8::MAX, 60)?).await?;
    Ok(is_refused(store.forget_redriven(&client()?, &letter(u8::MAX, 0)?, true, at(120)).await?))
}

async fn letter_of_a_later_delivery_is_redriven(world: &World, store: &Store) -> Result<bool> {
    waiting(world).await?;
    keep(world.engine.store(), &letter(2, 0)?).await?;
    Ok(is_refused(store.forget_redriven(&client()?, &letter(1, 0)?, true, at(120)).await?))
}

/// Of what has expired nothing would be counted but what is redriven.
async fn letter_of_a_run_that_has_expired(world: &World, store: &Store) -> Result<bool> {
    keep(world.engine.store(), &letter(1, 0)?).await?;
    Ok(is_refused(store.forget_redriven(&client()?, &letter(1, 0)?, true, at(120)).await?))
}
