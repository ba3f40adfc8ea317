use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::consumer::fakes::{FakeApi, Scripted, at, body, body_with, seconds, without_token};

type Text = Result<Option<String>, String>;

fn consumer<F>(api: &Arc<FakeApi>, work: impl Fn(Event, Lease) -> F + Send + Sync + 'static) -> LambdaConsumer
where
    F: Future<Output = Text> + Send + 'static,
{
    LambdaConsumer::with(api.calls(), Work::new(work))
}

fn sqs_event(bodies: &[Value], receive_count: u32) -> SqsEvent {
    let records = bodies.iter().enumerate().map(|(place, body)| {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        json!({"messageId": format!("message-{place}"), "receiptHandle": "handle", "body": body,
            "attributes": {"ApproximateReceiveCount": receive_count.to_string()}, "eventSource": "aws:sqs"})
    });
    serde_json::from_value(json!({"Records": records.collect::<Vec<_>>()})).unwrap()
}

/// The places of the messages that an invocation of a minute reports.
async fn failures(consumer: &LambdaConsumer, bodies: &[Value]) -> Vec<String> {
    failures_of(consumer.handle_within(sqs_event(bodies, 1), seconds(60)).await)
}

fn failures_of(answer: SqsBatchResponse) -> Vec<String> {
    answer.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
}

fn tokens(api: &FakeApi) -> Vec<String> {
    api.released().iter().map(|entry| entry["token"].as_str().unwrap().to_owned()).collect()
}

async fn done(_: Event, _: Lease) -> Text {
    Ok(None)
}

async fn never(_: Event, _: Lease) -> Text {
    panic!("it was worked on")
}

#[tokio::test(start_paused = true)]
async fn records_are_worked_on_in_order_and_released_together() {
    let api = FakeApi::new();
    let worked_on = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&worked_on);
    let consumer = consumer(&api, move |event, _| {
        noted.lock().unwrap().push(event.index);
        async move {
            sleep(seconds(1)).await;
            match event.index {
                1 => Err("no such shop".to_owned()),
                2 => Ok(Some("9 rows".to_owned())),
                _ => Ok(None),
            }
        }
    });
    assert_eq!(failures(&consumer, &[body(0), body(1), body(2)]).await, [""; 0]);
    assert_eq!(*worked_on.lock().unwrap(), [0, 1, 2]);
    assert_eq!(api.releases(), [(seconds(3), 3)]);
    assert_eq!(
        api.released(),
        [
            json!({"token": "tok.0", "outcome": "succeeded"}),
            json!({"token": "tok.1", "outcome": "failed", "error": "no such shop"}),
            json!({"token": "tok.2", "outcome": "succeeded", "result": "9 rows"}),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_what_lambda_reads() {
    let api = FakeApi::new();
    let consumer = consumer(&api, done);
    let deadline = SystemTime::now() + seconds(60);
    let answer = consumer.handle(sqs_event(&[json!("hello"), body(1), json!("{}")], 1), deadline).await;
    let expected =
        json!({"batchItemFailures": [{"itemIdentifier": "message-0"}, {"itemIdentifier": "message-2"}]});
    assert_eq!((serde_json::to_value(answer).unwrap(), tokens(&api)), (expected, vec!["tok.1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_could_not_be_sent_is_reported_and_sent_again_without_working_again() {
    let api = FakeApi::new();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let consumer = consumer(&api, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(None) }
    });
    api.script([Scripted::Refused(401)]);
    assert_eq!(failures(&consumer, &[body(0), without_token(1)]).await, ["message-0"]);
    let again = consumer.handle_within(sqs_event(&[body(0)], 2), seconds(60)).await;
    assert_eq!(again, SqsBatchResponse::default());
    assert_eq!((count.load(Ordering::SeqCst), tokens(&api)), (2, vec!["tok.0".to_owned(); 2]));
}

#[tokio::test(start_paused = true)]
async fn a_late_release_is_no_failure_and_a_refused_one_is() {
    for (status, is_reported) in [
        ("already_released", false),
        ("accepted", false),
        ("reclaimed", false),
        ("unknown", false),
        ("not_yours", true),
        ("malformed", true),
        ("a later word", true),
    ] {
        let api = FakeApi::new();
        api.status("tok.0", status);
        let reported = failures(&consumer(&api, done), &[body(0), body(1)]).await;
        assert_eq!(reported, vec!["message-0"; usize::from(is_reported)], "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_a_token_is_reported() {
    let api = FakeApi::new();
    let consumer = consumer(&api, |_, _| async { Err("it failed".to_owned()) });
    assert_eq!(failures(&consumer, &[without_token(0)]).await, ["message-0"]);
    assert!(api.releases().is_empty());
}

#[tokio::test(start_paused = true)]
async fn leases_are_extended_also_of_records_that_wait_or_are_done() {
    let api = FakeApi::new();
    let consumer = consumer(&api, |_, _| async {
        sleep(seconds(25)).await;
        Ok(None)
    });
    assert_eq!(failures(&consumer, &[body(0), body(1)]).await, [""; 0]);
    let both = vec!["tok.0".to_owned(), "tok.1".to_owned()];
    assert_eq!(api.extended(), [(seconds(20), both.clone()), (seconds(40), both)]);
    assert_eq!(api.releases(), [(seconds(50), 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_record_whose_lease_is_over_is_neither_begun_nor_reported() {
    let api = FakeApi::new();
    api.status("tok.0", "expired");
    let consumer = consumer(&api, never);
    let late = body_with(0, json!({"lease_expires_at": at(-1)}));
    assert_eq!(failures(&consumer, &[late]).await, [""; 0]);
    let again = consumer.handle_within(sqs_event(&[body(0)], 2), seconds(60)).await;
    assert_eq!((again, tokens(&api)), (SqsBatchResponse::default(), vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_is_finished_is_released_before_the_time_is_over() {
    for (time, margin, works) in [(60, 5, 55), (8, 5, 6), (900, 100, 800)] {
        let api = FakeApi::new();
        let consumer = consumer(&api, |event, _| async move {
            if event.index > 0 {
                sleep(seconds(10_000)).await;
            }
            Ok(None)
        });
        let far = json!({"lease_expires_at": at(36_000)});
        let bodies = [0, 1, 2].map(|index| body_with(index, far.clone()));
        let consumer = consumer.margin(seconds(margin));
        let answer = consumer.handle_within(sqs_event(&bodies, 1), seconds(time)).await;
        assert_eq!(failures_of(answer), ["message-1", "message-2"]);
        assert_eq!((api.releases(), tokens(&api)), (vec![(seconds(works), 1)], vec!["tok.0".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn the_release_is_not_repeated_beyond_the_time() {
    let api = FakeApi::new();
    api.script([Scripted::Refused(503); 6]);
    let consumer = consumer(&api, done);
    let answer = consumer.handle_within(sqs_event(&[body(0)], 1), seconds(4)).await;
    assert_eq!(failures_of(answer), ["message-0"]);
    // A further attempt would come when only half of the margin is left.
    let times: Vec<u128> = api.releases().into_iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [0, 500, 1_500]);
}

#[tokio::test(start_paused = true)]
async fn several_records_may_be_worked_on_at_once_and_a_hundred_released() {
    let api = FakeApi::new();
    let consumer = consumer(&api, |_, _| async {
        sleep(seconds(1)).await;
        Ok(None)
    });
    let bodies: Vec<Value> = (0..101).map(body).collect();
    assert_eq!(failures(&consumer.concurrency(51), &bodies).await, [""; 0]);
    assert_eq!(api.releases(), [(seconds(2), 100), (seconds(2), 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_invocation_without_time_reports_everything() {
    let api = FakeApi::new();
    let consumer = consumer(&api, done);
    let answer = consumer.handle(sqs_event(&[body(0), body(1)], 1), SystemTime::now() - seconds(1)).await;
    assert_eq!(
        (failures_of(answer), tokens(&api)),
        (vec!["message-0".to_owned(), "message-1".to_owned()], vec![])
    );
}
