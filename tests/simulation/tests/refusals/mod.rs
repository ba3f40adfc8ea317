//! What each condition is there for: the write that it refuses. Every case is tried with its condition, and is refused; and without
//! one clause of it (a mutant of `mutants.txt`), and takes place.

mod jobs;
mod letters;
mod quotas;
mod races;
mod repair;
mod rows;
mod runs;
mod slots;
mod ticker;
mod watches;

use std::future::Future;
use std::pin::Pin;

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::quota::{Ask, Quotas};
use tidegate_simulation::World;
use tidegate_simulation::mutants::{Fate, Mutant};
use tidegate_store::{Create, Store, Write};
use tidegate_testkit::PREFIX;

/// Whether a write is refused that `store` makes in the world.
type Refused<'a> = Pin<Box<dyn Future<Output = Result<bool>> + 'a>>;
type Case = (&'static str, for<'a> fn(&'a World, &'a Store) -> Refused<'a>);

/// Lists cases: the name of the mutant, and the function that tries it.
macro_rules! cases {
    ($($mutant:literal => $case:expr,)*) => {
        pub(crate) const CASES: &[$crate::refusals::Case] = &[$(($mutant, |world, store| Box::pin($case(world, store)))),*];
    };
}
use cases;

/// A queue that nobody reads.
const URL: &str = "https://sqs.eu-west-1.amazonaws.com/1/jobs";

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_262_640 + second, 0).unwrap()
}

fn is_refused(write: Write) -> bool {
    write == Write::Refused
}

fn is_there(create: Create) -> bool {
    create == Create::Exists
}

/// Takes what is asked for of the quotas of the client, at a second: how many are granted.
async fn take_of_quotas(store: &Store, quotas: &Quotas, asks: &[Ask], second: i64) -> Result<usize> {
    let asks: Vec<&Ask> = asks.iter().collect();
    let (refused, _) = store.take_of_quotas(&rows::client()?, quotas, &asks, at(second)).await?;
    Ok(refused.iter().filter(|refused| refused.is_none()).count())
}

/// Changes a row as no process does.
async fn tamper(world: &World, table: &str, (pk, sk): (&str, &str), update: &str) -> Result<()> {
    let values = [
        (":0", AttributeValue::N("0".to_owned())),
        (":2", AttributeValue::N("2".to_owned())),
        (":99", AttributeValue::N("99".to_owned())),
        (":true", AttributeValue::Bool(true)),
        (":entry", AttributeValue::S("5|other".to_owned())),
        (":pack", AttributeValue::S("other.1.1795262640".to_owned())),
    ];
    let used = values.into_iter().filter(|(name, _)| update.ends_with(name));
    let values: std::collections::HashMap<_, _> =
        used.map(|(name, value)| (name.to_owned(), value)).collect();
    let call = world.embedded.dynamodb().update_item().table_name(format!("{PREFIX}-{table}"));
    let call = call.key("pk", AttributeValue::S(pk.to_owned())).key("sk", AttributeValue::S(sk.to_owned()));
    let values = Some(values).filter(|values| !values.is_empty());
    call.update_expression(update).set_expression_attribute_values(values).send().await?;
    Ok(())
}

fn all_cases() -> impl Iterator<Item = &'static Case> {
    jobs::CASES
        .iter()
        .chain(letters::CASES)
        .chain(quotas::CASES)
        .chain(rows::CASES)
        .chain(runs::CASES)
        .chain(ticker::CASES)
        .chain(watches::CASES)
        .chain(repair::CASES)
}

/// What is wrong with a clause, if anything is: its write must be refused, and take place without the clause.
fn wrong(name: &str, with: Result<bool>, without: Result<bool>) -> Option<String> {
    match (with, without) {
        (Ok(true), Ok(false)) => None,
        (with, without) => Some(format!("{name}: refused {with:?}, without the clause {without:?}")),
    }
}

#[tokio::test]
async fn each_clause_refuses_what_it_is_there_for() {
    let mut failed = Vec::new();
    for (name, case) in all_cases() {
        let world = World::new().await.unwrap();
        let with = case(&world, world.engine.store()).await;
        let world = World::new().await.unwrap();
        let store = world.store_without(Mutant::named(name).unwrap()).unwrap();
        failed.extend(wrong(name, with, case(&world, &store).await));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test]
async fn each_clause_refuses_what_comes_between_two_requests_of_a_call() {
    let mut failed = Vec::new();
    for (name, race) in races::RACES.iter().chain(quotas::RACES) {
        let world = World::new().await.unwrap();
        let with = race(&world, None).await;
        let world = World::new().await.unwrap();
        failed.extend(wrong(name, with, race(&world, Some(Mutant::named(name).unwrap())).await));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test]
async fn each_clause_of_a_slot_group_refuses_what_it_is_there_for() {
    let (world, mut failed) = (World::new().await.unwrap(), Vec::new());
    for (mutant, number) in Mutant::all().iter().zip((0..).step_by(2)) {
        let Some(case) = slots::Case::of(mutant) else { continue };
        let with = case.is_refused(&world, number, world.engine.store()).await;
        let store = world.store_without(mutant).unwrap();
        failed.extend(wrong(&mutant.name, with, case.is_refused(&world, number + 1, &store).await));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The table says of no clause that it is tried here which is not.
#[test]
fn what_the_table_says_is_tried_is_tried() {
    for mutant in Mutant::all() {
        let is_tried = slots::Case::of(mutant).is_some()
            || all_cases()
                .map(|(name, _)| name)
                .chain(races::RACES.iter().chain(quotas::RACES).map(|(name, _)| name))
                .any(|name| *name == mutant.name);
        assert!(is_tried || mutant.fate != Fate::Refusal, "{}", mutant.name);
    }
}
