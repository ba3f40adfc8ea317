//! `docs/messages.md`: what it says of each message is what consumers receive and may send.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_engine::Handled;
use tidegate_protocol::{Completion, Event, LaunchOverdue};
use tokio::net::TcpListener;

use crate::page::Page;
use crate::world::{QUEUE, World, at_job, batch};

const MESSAGES: Page = Page(include_str!("../../../../docs/messages.md"));
const SCHEMAS: [(&str, &str); 4] = [
    ("event.json", include_str!("../../../../docs/schemas/event.json")),
    ("completion.json", include_str!("../../../../docs/schemas/completion.json")),
    ("overdue.json", include_str!("../../../../docs/schemas/overdue.json")),
    ("release.json", include_str!("../../../../docs/schemas/release.json")),
];

fn schema(name: &str) -> Value {
    let (_, text) = SCHEMAS.into_iter().find(|(known, _)| *known == name).unwrap();
    serde_json::from_str(text).unwrap()
}

fn names<'v>(names: impl Iterator<Item = &'v str>) -> BTreeSet<String> {
    names.map(str::to_owned).collect()
}

fn fields(value: &Value) -> BTreeSet<String> {
    names(value.as_object().unwrap().keys().map(String::as_str))
}

fn nulls(value: &Value) -> BTreeSet<String> {
    let object = value.as_object().unwrap();
    names(object.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.as_str()))
}

/// An event with all that one may have.
fn whole_event() -> Event<Box<RawValue>> {
    Event {
        event_id: "a.1.0.0".to_owned(),
        job_id: "a".to_owned(),
        client_id: "acme".to_owned(),
        run_id: "a.1.0".to_owned(),
        index: 0,
        count: 1,
        launch_at: "1970-01-01T00:00:00Z".to_owned(),
        attempt: 1,
        token: Some("tok".to_owned()),
        lease_expires_at: Some("1970-01-01T00:01:00Z".to_owned()),
        payload: RawValue::from_string("{}".to_owned()).unwrap(),
    }
}

/// A completion of which nothing is known that need not be.
fn bare_completion() -> Completion {
    Completion {
        r#type: "run.completed".to_owned(),
        id: "a.1.0.completed".to_owned(),
        run_id: "a.1.0".to_owned(),
        job_id: "a".to_owned(),
        client_id: "acme".to_owned(),
        state: "finished".to_owned(),
        reason: None,
        count: 0,
        succeeded: 0,
        failed: 0,
        expired: 0,
        dead: 0,
        left_out: 0,
        launch_at: "1970-01-01T00:00:00Z".to_owned(),
        started_at: None,
        finished_at: None,
    }
}

/// A schema says of each field what the table of the section says.
fn agrees(section: Page, schema: &Value) {
    let properties = &schema["properties"];
    assert_eq!(section.names(|_| true), fields(properties));
    let required = schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    assert_eq!(section.names(|kind| !kind.contains("may be absent")), names(required));
    for (name, cells) in section.rows() {
        let expected = match cells[0].split(',').next().unwrap() {
            "any JSON" => Value::Null,
            kind => match kind.split_once(" or ") {
                Some((one, other)) => json!([one, other]),
                None => json!(kind),
            },
        };
        assert_eq!(properties[name]["type"], expected, "{name}");
    }
}

#[test]
fn each_field_of_an_event_is_in_the_table_the_schema_and_the_sample_and_no_other() {
    let section = MESSAGES.section("## The event");
    agrees(section, &schema("event.json"));
    let whole = serde_json::to_value(whole_event()).unwrap();
    assert_eq!(section.names(|_| true), fields(&whole));
    let bare = Event { token: None, lease_expires_at: None, ..whole_event() };
    let bare = serde_json::to_value(bare).unwrap();
    assert_eq!(section.names(|kind| !kind.contains("may be absent")), fields(&bare));

    let sample = section.blocks("json")[0];
    let event: Event<Box<RawValue>> = serde_json::from_str(sample).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), sample);
    assert_eq!(fields(&serde_json::from_str(sample).unwrap()), fields(&whole));
}

#[test]
fn each_field_of_a_completion_is_in_the_table_the_schema_and_the_sample_and_no_other() {
    let section = MESSAGES.section("## The completion of a run");
    agrees(section, &schema("completion.json"));
    let bare = serde_json::to_value(bare_completion()).unwrap();
    assert_eq!(section.names(|_| true), fields(&bare));
    assert_eq!(section.names(|kind| kind.contains("or null")), nulls(&bare));

    let sample = section.blocks("json")[0];
    let completion: Completion = serde_json::from_str(sample).unwrap();
    assert_eq!(serde_json::to_string(&completion).unwrap(), sample);
}

#[test]
fn each_field_of_an_alert_is_in_the_table_the_schema_and_the_sample_and_no_other() {
    let section = MESSAGES.section("## The alert of an overdue launch");
    agrees(section, &schema("overdue.json"));
    let sample = section.blocks("json")[0];
    let alert: LaunchOverdue = serde_json::from_str(sample).unwrap();
    assert_eq!(serde_json::to_string(&alert).unwrap(), sample);
    let bare = serde_json::to_value(alert).unwrap();
    assert_eq!(section.names(|_| true), fields(&bare));
    assert_eq!(section.names(|kind| kind.contains("or null")), nulls(&bare));
}

#[tokio::test]
async fn what_arrives_in_a_queue_is_what_is_documented() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let done = QUEUE.replace("jobs", "done");
    let mut throttled = batch(2);
    throttled["on_completion"] = json!({"sqs": {"queue_url": done}});
    world.put("/v1/jobs/throttled", &key, &throttled).await;
    let events = world.receive().await;
    world.put("/v1/jobs/plain", &key, &at_job("2026-11-21T12:00:00Z")).await;
    let plain = world.receive().await;
    assert_eq!((events.len(), plain.len()), (2, 1));

    let section = MESSAGES.section("## The event");
    assert_eq!(fields(&events[0]), section.names(|_| true));
    assert_eq!(fields(&plain[0]), section.names(|kind| !kind.contains("may be absent")));

    // Released by a message of the documented form.
    let sample = MESSAGES.section("## The release queue").blocks("json")[0];
    let message = sample
        .replace(
            "tok.acme.shops.0.0.4.1.3.5f0c8d7a2b914e63a8d1f4077be2960c",
            events[0]["token"].as_str().unwrap(),
        )
        .replace(
            "tok.acme.shops.0.2.5.1.4.5f0c8d7a2b914e63a8d1f4077be2960c",
            events[1]["token"].as_str().unwrap(),
        );
    assert_ne!(message, sample);
    let read: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(fields(&read), fields(&schema("release.json")["properties"]));
    assert_eq!(world.engine.handle_releases(&[(&message, 1)]).await, [Handled::Done]);
    let run = events[0]["run_id"].as_str().unwrap();
    let listed = world.get(&format!("/v1/jobs/throttled/runs/{run}/events"), &key).await.json;
    let statuses: Vec<&Value> = listed["events"].as_array().unwrap().iter().map(|e| &e["status"]).collect();
    assert_eq!(statuses, ["succeeded", "succeeded"], "{listed}");

    // The outcomes are counted when the policy is looked after, and the end of the run is told then.
    world.clock.advance_ms(60_000);
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let completions = world.take_all(&done).await;
    assert_eq!(completions.len(), 1);
    let completion: Value = serde_json::from_str(&completions[0]).unwrap();
    assert_eq!(fields(&completion), MESSAGES.section("## The completion of a run").names(|_| true));
    assert_eq!(completion["id"], format!("{run}.completed"));
}

/// The attributes of a message by name: their types and values.
type Attributes = BTreeMap<String, (String, String)>;

#[tokio::test]
async fn a_message_of_a_queue_has_the_documented_attributes() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    world.put("/v1/jobs/throttled", &key, &batch(2)).await;
    world.put("/v1/jobs/plain", &key, &at_job("2026-11-21T12:00:00Z")).await;
    world.dispatch().await;
    let receive = world.deployment.sqs.receive_message().queue_url(QUEUE).max_number_of_messages(10);
    let messages = receive.message_attribute_names("All").send().await.unwrap().messages.unwrap();
    assert_eq!(messages.len(), 3);
    let told = MESSAGES.section("## The event").0;
    let mut traces: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for message in messages {
        let event: Value = serde_json::from_str(message.body().unwrap()).unwrap();
        let attributes = message.message_attributes.unwrap_or_default();
        let mut attributes: Attributes = attributes
            .into_iter()
            .map(|(name, value)| (name, (value.data_type, value.string_value.unwrap_or_default())))
            .collect();
        let (kind, trace) = attributes.remove("traceparent").unwrap();
        let parts: Vec<&str> = trace.split('-').collect();
        assert_eq!(
            (&*kind, parts.iter().map(|part| part.len()).collect::<Vec<_>>()),
            ("String", vec![2, 32, 16, 2])
        );
        traces.entry(parts[1].to_owned()).or_default().insert(parts[2].to_owned());
        for (name, (kind, value)) in &attributes {
            assert!(told.contains(&format!("`{name}`")), "{name} is not in the document");
            let (expected, number) = match &event[name] {
                Value::Number(number) => (number.to_string(), true),
                text => (text.as_str().unwrap().to_owned(), false),
            };
            assert_eq!((value, &**kind), (&expected, if number { "Number" } else { "String" }), "{name}");
        }
        let unsaid = names(["client_id", "payload"].into_iter());
        let said = names(attributes.keys().map(String::as_str));
        assert_eq!(said, &fields(&event) - &unsaid);
    }
    let spans: Vec<usize> = traces.values().map(BTreeSet::len).collect();
    assert!(spans == [1, 2] || spans == [2, 1], "a trace for each run, a span for each delivery: {traces:?}");
}

type Calls = Arc<Mutex<Vec<(HeaderMap, String)>>>;

/// An endpoint on loopback that answers each call with the status that its path names, and keeps what it was sent.
async fn endpoint() -> (String, Calls) {
    async fn answer(
        State(calls): State<Calls>,
        Path(status): Path<u16>,
        headers: HeaderMap,
        body: String,
    ) -> StatusCode {
        calls.lock().unwrap().push((headers, body));
        StatusCode::from_u16(status).unwrap()
    }
    let calls = Calls::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/{status}", post(answer)).with_state(Arc::clone(&calls));
    tokio::spawn(axum::serve(listener, router).into_future());
    (format!("http://{address}"), calls)
}

#[tokio::test]
async fn a_webhook_has_the_documented_headers_and_an_answer_the_documented_effect() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let (address, calls) = endpoint().await;
    let section = MESSAGES.section("## Webhooks");
    let answers = section.section("### What an answer means");
    let row = |beginning: &str| {
        let line = answers.0.lines().find(|line| line.starts_with(&format!("| {beginning}"))).unwrap();
        line.split('|').nth(2).unwrap().trim().to_owned()
    };
    let retried = answers.0.lines().find(|line| line.ends_with("| retried |")).unwrap();
    for code in (200..=204).chain(300..=308).chain(400..=431).chain(500..=511) {
        // 1xx is no answer, and these two have no name of their own in the table's classes.
        let said = match code {
            200..300 => row("2xx"),
            300..400 => row("3xx"),
            500.. if retried.contains("5xx") => "retried".to_owned(),
            _ if retried.contains(&code.to_string()) => "retried".to_owned(),
            _ => row("any other 4xx"),
        };
        let expected = match said.split([':', '.']).next().unwrap() {
            "delivered" => "delivered",
            "retried" => "waiting",
            "final" => "dead",
            other => panic!("{other}"),
        };
        let mut job = at_job("2026-11-21T12:00:00Z");
        job["target"] = json!({"http": {"url": format!("{address}/{code}")}});
        let id = format!("answered-{code}");
        let made = world.put(&format!("/v1/jobs/{id}"), &key, &job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        world.dispatch().await;
        let run = world.get(&format!("/v1/jobs/{id}/runs"), &key).await.json["runs"][0]["run_id"].clone();
        let event = match run.as_str() {
            Some(run) => {
                let listed = world.get(&format!("/v1/jobs/{id}/runs/{run}/events"), &key).await.json;
                listed["events"][0]["status"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
            }
            // A single event has a row when it has come to its end.
            None => "waiting".to_owned(),
        };
        assert_eq!(event, expected, "{code}: {said}");
    }

    let calls = calls.lock().unwrap();
    let (headers, body) = calls.first().unwrap();
    let transport = ["accept", "host", "content-length"];
    let sent = headers.keys().map(|name| name.as_str()).filter(|name| !transport.contains(name));
    assert_eq!(section.names(|_| true), names(sent));
    let shown = section.blocks("http")[0].split("\n\n").next().unwrap().lines().skip(1);
    assert_eq!(section.names(|_| true), names(shown.map(|line| line.split(':').next().unwrap())));
    let event: Event = serde_json::from_str(body).unwrap();
    assert_eq!(headers["webhook-id"], event.event_id);
    let version = concat!("tidegate/", env!("CARGO_PKG_VERSION"));
    assert_eq!(headers["user-agent"], version);
    assert!(section.blocks("http")[0].contains(version), "the sample is of another version");
}
