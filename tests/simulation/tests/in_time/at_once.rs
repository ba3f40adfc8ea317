//! What lies in many rows is read and written side by side. Each of these was a request after the other.

use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::flow::{Flow, Overlap};
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal};
use tidegate_engine::{Handled, Outcome, Release, Repair, RepairOptions};
use tidegate_simulation::pace::Pace;
use tidegate_testkit::PREFIX;

use super::stage::{POLICY, Stage, client, is_of, wake};

#[tokio::test]
async fn runs_of_several_jobs_are_decided_about_side_by_side() {
    let stage = Stage::paused().await;
    stage.put_runs(20, &Flow { overlap: Overlap::Skip, ..Flow::default() }).await;
    let looks = Pace::of(|operation, body| {
        operation == "Query" && is_of(body, "runs") && body["ScanIndexForward"] == false
    });
    assert_eq!(stage.world.paced(&looks).unwrap().handle(&wake(), 1).await, Handled::Done);
    assert!(looks.seen() == 20 && looks.most_at_once() >= 8, "{} of {}", looks.most_at_once(), looks.seen());
}

#[tokio::test]
async fn the_parts_of_a_run_are_kept_for_longer_side_by_side() {
    let stage = Stage::paused().await;
    stage.put_runs(1, &Flow::default()).await;
    let run = stage.world.runs("job-0").await.unwrap().pop().unwrap().id;
    let dynamodb = stage.world.embedded.dynamodb();
    for part in 0..27 {
        let put = dynamodb.put_item().table_name(format!("{PREFIX}-runs"));
        let sk = format!("{:012}|{:010}|{part:04}", run.launch_at().timestamp(), run.revision());
        let put = put.item("pk", AttributeValue::S(format!("{}|{}|parts", client(), run.job())));
        let put = put.item("sk", AttributeValue::S(sk)).item("expires_at", AttributeValue::N("1".to_owned()));
        put.send().await.unwrap();
    }
    let writes = Pace::of(|operation, body| operation == "UpdateItem" && is_of(body, "runs"));
    let store = stage.world.paced(&writes).unwrap().store().clone();
    store.retain_run(&client(), &run, stage.now()).await.unwrap();
    assert!(
        writes.seen() == 28 && writes.most_at_once() >= 4,
        "{} of {}",
        writes.most_at_once(),
        writes.seen()
    );
}

#[tokio::test]
async fn packs_of_a_line_are_counted_side_by_side() {
    let mut stage = Stage::paused().await;
    // Also those that are few wait in packs.
    stage.world.engine = stage.world.engine.clone().with_few(0);
    for minute in 0..4 {
        stage.put(&format!("single-{minute}"), stage.throttled(60 * minute, 1), Flow::default()).await;
    }
    stage.world.advance(300);
    let reads = Pace::of(|operation, body| operation == "GetItem" && is_of(body, "runs"));
    let engine = stage.world.paced(&reads).unwrap();
    let status = engine.queries().policy(&client(), &POLICY.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((status.load.waiting, reads.seen(), reads.most_at_once()), (4, 4, 4));
}

#[tokio::test]
async fn entries_that_cannot_be_read_are_set_aside_side_by_side() {
    let stage = Stage::paused().await;
    stage.put_runs(6, &Flow::default()).await;
    let bad = AttributeValue::S("written by nobody".to_owned());
    assert_eq!(stage.change("policies", |pk, _| pk.ends_with("|line"), "cur", bad).await, 6);
    let writes = Pace::of(|operation, body| operation == "UpdateItem" && is_of(body, "runs"));
    assert_eq!(stage.world.paced(&writes).unwrap().handle(&wake(), 1).await, Handled::Done);
    assert!(writes.most_at_once() >= 4, "{}", writes.most_at_once());
    let aside = stage.world.engine.store().entries_set_aside(&client(), &POLICY.parse().unwrap()).await;
    assert_eq!(aside.unwrap().len(), 6);
}

#[tokio::test]
async fn parts_that_cannot_be_read_are_set_aside_side_by_side() {
    let stage = Stage::paused().await;
    let dynamodb = stage.world.embedded.dynamodb();
    for number in 0..6 {
        let put = dynamodb.put_item().table_name(format!("{PREFIX}-ticker"));
        let put = put.item("pk", AttributeValue::S("scan".to_owned()));
        let put = put.item("sk", AttributeValue::S(format!("001795262400|001795262460|part {number}")));
        put.item("kind", AttributeValue::S("tides".to_owned())).send().await.unwrap();
    }
    let writes = Pace::of(|_, body| body.to_string().contains("set_aside"));
    stage.world.advance(60);
    stage.world.paced(&writes).unwrap().tick().await.unwrap();
    assert_eq!(stage.world.engine.store().parts_set_aside().await.unwrap().len(), 6);
    assert!(writes.most_at_once() >= 4, "{}", writes.most_at_once());
}

/// What is granted of a run that was stopped gives its tokens back; what the groups still have of it goes in one transaction
/// for 25 of them.
#[tokio::test]
async fn ranges_of_a_stopped_run_are_dropped_together() {
    let stage = Stage::with_ranges_of_a_stopped_run().await;
    let before = stage.world.embedded.meter().snapshot();
    stage.world.advance(3_700);
    assert_eq!(stage.world.engine.handle(&wake(), 1).await, Handled::Done);
    stage.world.pump().await.unwrap();
    let used = stage.world.embedded.meter().snapshot().since(&before);
    let transactions = used.dynamodb_calls.get("TransactWriteItems").copied().unwrap_or_default();
    assert_eq!(stage.load().await.waiting, 0);
    assert!(transactions < 10, "{transactions} transactions for {} groups", super::left::GROUPS);
}

#[tokio::test]
async fn runs_are_repaired_side_by_side() {
    let stage = Stage::paused().await;
    stage.put_runs(12, &Flow::default()).await;
    let line = format!("{}|{POLICY}|line", client());
    let (dynamodb, table) = (stage.world.embedded.dynamodb(), format!("{PREFIX}-policies"));
    for row in dynamodb.scan().table_name(&table).send().await.unwrap().items.unwrap() {
        if row["pk"].as_s().unwrap() == &line {
            let gone = dynamodb.delete_item().table_name(&table);
            gone.key("pk", row["pk"].clone()).key("sk", row["sk"].clone()).send().await.unwrap();
        }
    }
    stage.world.advance(300);
    let writes = Pace::of(|operation, body| {
        operation != "Scan" && body.to_string().contains(&format!("{POLICY}|line"))
    });
    let store = stage.world.paced(&writes).unwrap().store().clone();
    let options = RepairOptions { apply: true, ..RepairOptions::default() };
    Repair::new(store, stage.world.clock.clone()).run(options).await.unwrap();
    assert_eq!(stage.load().await.waiting, 24);
    assert!(writes.most_at_once() >= 4, "{} of {}", writes.most_at_once(), writes.seen());
}

/// Refuses the first call of an operation.
struct RefusesFirst(&'static str, std::sync::atomic::AtomicBool);

impl FaultPlan for RefusesFirst {
    fn on_request(&self, call: &Call) -> Fault {
        let is_first = || !self.1.swap(true, std::sync::atomic::Ordering::Relaxed);
        if call.operation == self.0 && is_first() { Fault::Refuse(Refusal::Throttled) } else { Fault::None }
    }
}

/// A batch of reads of which none is served is no other than one of which some are.
#[tokio::test]
async fn a_batch_of_reads_that_is_throttled_as_a_whole_goes_another_round() {
    let stage = Stage::of(9).await;
    let draft = stage.throttled(30, 1).into_draft();
    let answers = stage.world.engine.jobs().create_all(&client(), vec![(None, draft); 3]).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    stage.world.advance(30);
    let messages = stage.world.receive_dispatched().await.unwrap();
    let bodies: Vec<_> = messages.iter().map(|message| (message.body().unwrap(), 1)).collect();
    stage.world.embedded.inject(RefusesFirst("BatchGetItem", Default::default()));
    let handled = stage.world.engine.handle_all(&bodies).await;
    assert!(handled.iter().all(|handled| *handled == Handled::Done), "{handled:?}");
    let events = stage.world.consume(&stage.queue).await.unwrap();
    assert_eq!(events.len(), 3);
    let releases = events.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Succeeded));
    stage.world.engine.tokens().release(&client(), releases.collect()).await.unwrap();
}
