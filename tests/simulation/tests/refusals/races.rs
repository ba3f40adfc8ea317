//! Clauses that refuse what comes between two requests of one call.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, HttpConnectorFuture, SharedHttpConnector};
use tidegate_domain::fair::Rank;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::GROUPS_PER_PART;
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_embedded::around;
use tidegate_simulation::World;
use tidegate_simulation::mutants::Mutant;
use tidegate_simulation::world::JobSpec;
use tidegate_store::runs::Tally;
use tidegate_store::tables::Table;
use tidegate_store::{Create, Store, Write};
use tidegate_testkit::{PREFIX, rows};

use super::rows::{api_key, changed, client, registered, run, take, take_creates, waiting};
use super::ticker::{is_lost, part, tick, won};
use super::{Refused, URL, at};

pub(crate) type Race = (&'static str, for<'a> fn(&'a World, Option<&'static Mutant>) -> Refused<'a>);

pub(crate) const RACES: &[Race] = &[
    ("at delete: rev = :rev", |world, mutant| Box::pin(place_of_a_later_revision(world, mutant))),
    ("creates begin minute: attribute_not_exists(in_minute)", |world, mutant| {
        Box::pin(minute_that_has_begun(world, mutant))
    }),
    ("keys transact delete: attribute_exists(pk)", |world, mutant| {
        Box::pin(key_that_was_revoked(world, mutant))
    }),
    ("line transact exhaust: cur = :cur", |world, mutant| Box::pin(rest_that_is_taken(world, mutant))),
    ("pace take rate: attribute_not_exists(arrival_us) OR arrival_us = :seen", |world, mutant| {
        Box::pin(rate_that_is_taken(world, mutant))
    }),
    ("run set tally: attribute_exists(pk)", |world, mutant| Box::pin(run_that_expires(world, mutant))),
    ("run tell part: attribute_not_exists(t#) OR t# < :sum", |world, mutant| {
        Box::pin(sum_that_is_out_of_date(world, mutant))
    }),
    ("scan break lease: attribute_exists(pk)", |world, mutant| Box::pin(part_that_is_done(world, mutant))),
    ("secret put: attribute_not_exists(pk)", |world, mutant| Box::pin(second_secret(world, mutant))),
    ("watermark take over again: scanned_to < taken_over_to", |world, mutant| {
        Box::pin(tick_that_comes_alive(world, mutant))
    }),
];

/// The tables as a process sees them when something happens between its first request and its second.
pub(crate) fn racing<F>(world: &World, mutant: Option<&'static Mutant>, meanwhile: F) -> Result<Store>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    racing_after(1, world, mutant, meanwhile)
}

/// The tables as a process sees them when something happens after so many of its requests.
fn racing_after<F>(first: u32, world: &World, mutant: Option<&'static Mutant>, meanwhile: F) -> Result<Store>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let requests = AtomicU32::new(0);
    let meanwhile = Mutex::new(Some(Box::pin(meanwhile) as Pin<Box<dyn Future<Output = Result<()>> + Send>>));
    let hook = move |inner: &SharedHttpConnector, request| {
        let is_next = requests.fetch_add(1, Ordering::Relaxed) == first;
        let meanwhile = meanwhile.lock().unwrap().take_if(|_| is_next);
        let inner = inner.clone();
        HttpConnectorFuture::new(async move {
            if let Some(meanwhile) = meanwhile {
                meanwhile.await.unwrap();
            }
            inner.call(request).await
        })
    };
    let process = world.deployment.process().dynamodb_through(|http| match mutant {
        Some(mutant) => around(mutant.before(http), hook),
        None => around(http, hook),
    })?;
    Ok(process.store())
}

/// Of two calls that revoke a key at once, the second would count a key away that is there.
async fn key_that_was_revoked(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let (plain, acme) = (world.engine.store().clone(), client()?);
    plain.create_client(&registered("whsec_AAAA")?, &api_key("first")?, &changed()).await?;
    let id = api_key("first")?.hash.id().to_owned();
    let (other, same) = (acme.clone(), id.clone());
    let meanwhile = async move { Ok(plain.revoke_key(&other, &same, &changed()).await.map(drop)?) };
    Ok(racing(world, mutant, meanwhile)?.revoke_key(&acme, &id, &changed()).await?.is_none())
}

/// A run is stopped, and a group takes events of it at the same time: they are not counted as left out.
async fn rest_that_is_taken(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let (line_key, plain) = (waiting(world).await?, world.engine.store().clone());
    let meanwhile = async move { take(&plain, &line_key, None).await.map(drop) };
    let store = racing(world, mutant, meanwhile)?;
    store.exhaust(&client()?, &"small".parse()?, (&run()?, Rank::of_all(5))).await?;
    let row = store.run(&client()?, &run()?).await?.context("no run")?;
    ensure!([3, 4].contains(&row.tally.left_out), "{:?}", row.tally);
    Ok(row.tally.left_out == 3)
}

/// A repair counts a run whose row is deleted after it was read: it would come back as one that nobody can read.
async fn run_that_expires(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    waiting(world).await?;
    let seen = world.engine.store().run(&client()?, &run()?).await?.context("no run")?;
    let db = world.embedded.dynamodb();
    let meanwhile = async move { rows::replace_all(&db, Table::Runs, Vec::new()).await };
    // The parts of its counts are looked for, and its row is read.
    let store = racing_after(2, world, mutant, meanwhile)?;
    Ok(store.set_tally(&client()?, &seen, Tally::default()).await? == Write::Refused)
}

/// Two groups of a part count their outcomes, and the first to count is the last to tell.
async fn sum_that_is_out_of_date(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    waiting(world).await?;
    let (plain, tally) = (world.engine.store().clone(), Tally { succeeded: 1, ..Tally::default() });
    let (client, run) = (client()?, run()?);
    let other = (client.clone(), run.clone());
    let meanwhile = async move {
        let group = (GROUPS_PER_PART + 1, 1);
        Ok(plain.add_outcomes(&other.0, &other.1, group, tally, at(0)).await.map(drop)?)
    };
    let store = racing(world, mutant, meanwhile)?;
    let added = store.add_outcomes(&client, &run, (GROUPS_PER_PART, 1), tally, at(0)).await?;
    Ok(added.row.context("no run")?.tally.succeeded == 2)
}

/// The tick that had taken over was late, not dead: it finishes after the one that takes over from it has looked.
async fn tick_that_comes_alive(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    won(&plain, 0, 120).await?;
    let late = won(&plain, 60, 180).await?;
    let meanwhile = async move {
        ensure!(plain.finish_scan(late.fence, at(180)).await? == Write::Done, "it had lost the row");
        Ok(())
    };
    Ok(is_lost(&tick(&racing(world, mutant, meanwhile)?, 120, 240).await?))
}

async fn rate_that_is_taken(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let (rate, plain) = (RateLimit::new(10, Per::Minute, Some(10))?, world.engine.store().clone());
    let (client, policy) = (client()?, "small".parse()?);
    let first = (client.clone(), PolicyId::clone(&policy));
    let meanwhile =
        async move { Ok(plain.take_rate((&first.0, &first.1), rate, 10, at(0)).await.map(drop)?) };
    let store = racing(world, mutant, meanwhile)?;
    Ok(store.take_rate((&client, &policy), rate, 10, at(0)).await?.events == 0)
}

/// What another call has taken of the minute would be forgotten.
async fn minute_that_has_begun(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    let meanwhile = async move { take_creates(&plain, 3, 0).await.map(drop) };
    Ok(take_creates(&racing(world, mutant, meanwhile)?, 3, 0).await? == 0)
}

/// It would leave a part that nobody can read.
async fn part_that_is_done(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let (plain, part) = (world.engine.store().clone(), part()?);
    plain.put_part(&part).await?;
    let meanwhile = async move { Ok(plain.finish_part(&part).await.map(drop)?) };
    racing(world, mutant, meanwhile)?.break_part_leases().await?;
    Ok(world.engine.store().parts(None).await?.rows.is_empty())
}

/// Tokens that were signed with the first would be forged ones from now on.
async fn second_secret(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    let meanwhile = async move { Ok(plain.secret("tokens", "first").await.map(drop)?) };
    Ok(racing(world, mutant, meanwhile)?.secret("tokens", "second").await? == "first")
}

/// A call that loses against another job of its id takes back its line_key in the time index, unless that job has it by then.
async fn place_of_a_later_revision(world: &World, mutant: Option<&'static Mutant>) -> Result<bool> {
    let plain = world.engine.store().clone();
    world.create(JobSpec::cron("0 3 * * *", "UTC", URL)?.named("report")).await?;
    let id = world.create(JobSpec::at(at(3_600), URL)?).await?.parse()?;
    let of_another = plain.one_time(&client()?, &id).await?.context("no job")?;
    plain.delete_one_time(&of_another, &changed()).await?;
    let job = Job { id: "report".parse()?, ..of_another };
    let later = Job { revision: job.revision + 1, ..job.clone() };
    let seen = job.clone();
    let meanwhile =
        async move { Ok(plain.replace_one_time(&later, &seen, None, &changed()).await.map(drop)?) };
    let created = racing(world, mutant, meanwhile)?.create_keyed_at(&job).await?;
    ensure!(created == Create::Exists, "there was no job of this id");
    let rows = world.embedded.dynamodb().scan().table_name(format!("{PREFIX}-launch")).send().await?;
    let is_place = |row: &HashMap<String, AttributeValue>| {
        let is_at = row.get("pk").and_then(|pk| pk.as_s().ok()).is_some_and(|pk| pk.starts_with("AT|"));
        is_at && !row.contains_key("void")
    };
    Ok(rows.items().iter().any(is_place))
}
