//! What cannot be read or written keeps nothing else waiting: it is set aside with its reason, or left for later.

use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_testkit::PREFIX;

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// Minutes with a tick each, and everything that follows from it.
async fn minutes(world: &World, minutes: usize) {
    for _ in 0..minutes {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
    }
}

#[tokio::test]
async fn a_row_of_the_index_that_cannot_be_read_is_recorded_under_its_job() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    for id in ["broken", "sound"] {
        world.create(JobSpec::cron("* * * * *", "Europe/Berlin", &queue).unwrap().named(id)).await.unwrap();
    }
    let (dynamodb, table) = (world.embedded.dynamodb(), format!("{PREFIX}-launch"));
    let rows = dynamodb.scan().table_name(&table).send().await.unwrap().items.unwrap();
    for mut row in rows {
        if row["sk"].as_s().unwrap().ends_with("|broken") {
            row.insert("cron".to_owned(), text("written by a version to come"));
            dynamodb.put_item().table_name(&table).set_item(Some(row)).send().await.unwrap();
        }
    }
    minutes(&world, 8).await;
    // The first launches were the master's, who needs no row of the index.
    let runs = world.runs("broken").await.unwrap();
    let reasons: Vec<String> = runs.into_iter().filter_map(|run| run.stopped).collect();
    // One record a day says enough.
    assert_eq!(reasons, ["not_emittable"]);
    assert!(world.consume(&queue).await.unwrap().len() >= 3);
}

#[tokio::test]
async fn a_zone_that_this_version_does_not_know_stops_no_other() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.create(JobSpec::cron("* * * * *", "Europe/Berlin", &queue).unwrap().named("sound")).await.unwrap();
    let update = world.embedded.dynamodb().update_item().table_name(format!("{PREFIX}-ticker"));
    let update = update.key("pk", text("index")).key("sk", text("-")).update_expression("SET #zone = :now");
    let update = update.expression_attribute_names("#zone", "zone|Mars/Olympus_Mons");
    update.expression_attribute_values(":now", AttributeValue::N("1".to_owned())).send().await.unwrap();
    minutes(&world, 8).await;
    assert!(world.consume(&queue).await.unwrap().len() >= 3);
    let shape = world.engine.index().shape().await.unwrap();
    assert_eq!(shape.unreadable, ["Mars/Olympus_Mons"]);
}

#[tokio::test]
async fn a_part_that_cannot_be_read_is_set_aside_with_its_reason() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.create(JobSpec::cron("* * * * *", "Europe/Berlin", &queue).unwrap().named("sound")).await.unwrap();
    let id = "001795262400|001795262460|of a version to come";
    let put = world.embedded.dynamodb().put_item().table_name(format!("{PREFIX}-ticker"));
    let put = put.item("pk", text("scan")).item("sk", text(id)).item("kind", text("tides"));
    put.send().await.unwrap();
    minutes(&world, 8).await;
    let store = world.engine.store();
    assert!(store.parts(None).await.unwrap().rows.is_empty());
    let aside = store.parts_set_aside().await.unwrap();
    assert_eq!(aside.len(), 1);
    assert!(aside[0].0 == id && aside[0].1.contains("tides"), "{aside:?}");
    assert!(world.consume(&queue).await.unwrap().len() >= 3);
}

/// Refuses one transaction.
struct Refuses(AtomicBool);

impl FaultPlan for Refuses {
    fn on_request(&self, call: &Call) -> Fault {
        let refuses = call.operation == "TransactWriteItems" && !self.0.swap(true, Ordering::Relaxed);
        if refuses { Fault::Refuse(Refusal::Throttled) } else { Fault::None }
    }
}

#[tokio::test]
async fn a_write_that_fails_stops_no_other_and_is_made_later() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 10, 600).await.unwrap();
    world.engine.tick().await.unwrap();
    let launch_at = world.clock.now() + Duration::minutes(30);
    for number in 0..6 {
        let job = JobSpec::at(launch_at, &queue).unwrap().of(2).unwrap().under("small").unwrap();
        world.create(job.named(&format!("job-{number}"))).await.unwrap();
    }
    world.advance(29 * 60);
    world.embedded.inject(Refuses(AtomicBool::new(false)));
    let report = world.engine.tick().await.unwrap();
    assert_eq!(report.occurrences, 6);
    let (client, policy) = (CLIENT.parse().unwrap(), "small".parse().unwrap());
    let store = world.engine.store();
    assert_eq!(store.line(&client, &policy, None).await.unwrap().rows.len(), 5);
    assert_eq!(store.parts(None).await.unwrap().rows.len(), 1);
    world.advance(60);
    world.engine.tick().await.unwrap();
    world.pump_scans().await.unwrap();
    assert_eq!(store.line(&client, &policy, None).await.unwrap().rows.len(), 6);
    assert!(store.parts(None).await.unwrap().rows.is_empty());
}
