//! How a job's events go through their policy: what is sent comes back, in all forms.

use http::StatusCode;
use serde_json::{Value, json};
use tidegate_api::documents;
use tidegate_domain::job::Payload;

use crate::bad_input::with;
use crate::world::{QUEUE, World, batch, cron_job};

async fn acme(world: &World) -> String {
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 8})).await;
    key
}

#[tokio::test]
async fn every_field_of_the_flow_comes_back() {
    let world = World::new().await;
    let key = acme(&world).await;
    let done = json!({"sqs": {"queue_url": QUEUE.replace("jobs", "done")}});
    let mut body = with(cron_job(), "/policy_id", json!("small"));
    for (field, value) in [
        ("cost", json!(3)),
        ("priority", json!(0)),
        ("fair_by", json!("/report")),
        ("overlap", json!("buffer_one")),
        ("window", json!({"seconds": 3_600, "on_deadline": "expire", "pace": "even"})),
        ("max_failures", json!(10)),
        ("on_completion", done),
        ("heartbeat_url", json!("https://acme.example/beat")),
        ("target", json!({"http": {"url": "https://acme.example/hook", "release": "on_response"}})),
    ] {
        body[field] = value;
    }
    let made = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let read = world.get("/v1/jobs/nightly", &key).await.json;
    for field in [
        "cost",
        "priority",
        "fair_by",
        "overlap",
        "window",
        "max_failures",
        "on_completion",
        "heartbeat_url",
        "target",
    ] {
        assert_eq!(read[field], body[field], "{field}");
    }
    let same = world.put("/v1/jobs/nightly", &key, &body).await;
    assert_eq!((same.status, &same.json["revision"]), (StatusCode::OK, &json!(1)));
    let plain = world.put("/v1/jobs/nightly", &key, &with(cron_job(), "/policy_id", json!("small"))).await;
    assert_eq!((&plain.json["revision"], &plain.json["window"]), (&json!(2), &Value::Null));
}

#[tokio::test]
async fn a_window_may_end_at_an_instant_after_every_launch() {
    let world = World::new().await;
    let key = acme(&world).await;
    let window = json!({"until": "2026-11-21T15:30:00+01:00", "on_deadline": "continue", "pace": "none"});
    let made = world.post("/v1/jobs", &key, &with(batch(5), "/window", window)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let shown = json!({"until": "2026-11-21T14:30:00Z", "on_deadline": "continue", "pace": "none"});
    assert_eq!(made.json["window"], shown);
}

#[tokio::test]
async fn what_a_job_without_a_policy_has_anyway_may_be_sent() {
    let world = World::new().await;
    let key = acme(&world).await;
    let mut body = cron_job();
    for (field, value) in [
        ("cost", json!(1)),
        ("priority", json!(5)),
        ("fair_by", Value::Null),
        ("overlap", json!("allow")),
        ("window", Value::Null),
        ("on_completion", Value::Null),
        ("heartbeat_url", Value::Null),
    ] {
        body[field] = value;
    }
    body["target"]["sqs"]["release"] = json!("by_consumer");
    assert_eq!(world.post("/v1/jobs", &key, &body).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn each_event_of_a_list_gets_its_own_payload() {
    let world = World::new().await;
    let key = acme(&world).await;
    let mut body = batch(1);
    body.as_object_mut().unwrap().remove("count");
    let list = json!([{"shop": 7}, null, "three"]);
    let made = world.post("/v1/jobs", &key, &with(body, "/payloads", list.clone())).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!((&made.json["count"], &made.json["payloads"]), (&json!(3), &list));
    assert_eq!(made.json["payload"], Value::Null);
    let mut carried: Vec<(u64, Value)> = Vec::new();
    for event in world.receive().await {
        carried.push((event["index"].as_u64().unwrap(), event["payload"].clone()));
    }
    carried.sort_by_key(|(index, _)| *index);
    assert_eq!(carried, [(0, json!({"shop": 7})), (1, Value::Null), (2, json!("three"))]);
}

#[tokio::test]
async fn a_template_is_filled_in_for_each_event() {
    let world = World::new().await;
    let key = acme(&world).await;
    let template = json!({"page": "{{index1}}", "of": "page {{index1}} of {{count}}", "id": "{{event_id}}"});
    let made =
        world.put("/v1/jobs/pages", &key, &with(batch(2), "/payload_template", template.clone())).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    assert_eq!((&made.json["payload_template"], made.json.get("payloads")), (&template, None));
    let events = world.receive().await;
    assert_eq!(events.len(), 2, "{events:?}");
    for event in events {
        let number = event["index"].as_u64().unwrap() + 1;
        let expected = json!({"page": number, "of": format!("page {number} of 2"), "id": event["event_id"]});
        assert_eq!(event["payload"], expected);
    }
}

#[test]
fn documents_take_the_fields_too() {
    let now = chrono::DateTime::UNIX_EPOCH;
    let mut document = with(cron_job(), "/policy_id", json!("small"));
    document["cost"] = json!(2);
    document["window"] = json!({"seconds": 60});
    let list = with(document.clone(), "/payload", Value::Null);
    let (_, draft) = documents::read_job(with(list, "/payloads", json!([1, {"a": [2]}])), now).unwrap();
    assert_eq!((draft.terms.flow.cost.get(), draft.terms.count.get()), (2, 2));
    assert_eq!(draft.terms.payload, Payload::List(r#"[1,{"a":[2]}]"#.to_owned()));
    let faults = documents::read_job(with(document, "/cost", json!(0)), now).unwrap_err();
    assert_eq!(faults, ["cost is 0; it must lie between 1 and 10"]);
    let bare = with(with(cron_job(), "/payload", Value::Null), "/payloads", json!([]));
    assert!(documents::read_job(bare, now).unwrap_err()[0].starts_with("payloads is empty"));
}
