//! Runs: shown with how they get on, cancelled, and each event explained.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hook::Hook;
use crate::world::{Answer, QUEUE, World, batch};

/// A client with two tokens and a batch `batch` of ten events that is due; its key, and the events in flight.
async fn at_work(world: &World) -> (String, Vec<Value>) {
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let made = world.put("/v1/jobs/batch", &key, &batch(10)).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let events = world.receive().await;
    assert_eq!(events.len(), 2);
    (key, events)
}

fn path(events: &[Value]) -> String {
    format!("/v1/jobs/batch/runs/{}", events[0]["run_id"].as_str().unwrap())
}

async fn post(world: &World, key: &str, path: &str) -> Answer {
    world.send(Method::POST, path, Some(key), &[], "").await
}

#[tokio::test]
async fn a_run_is_shown_with_how_it_gets_on() {
    let world = World::new().await;
    let (key, mut events) = at_work(&world).await;
    let run = path(&events);
    let shown = world.get(&run, &key).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
    assert_eq!((&shown.json["in_flight"], &shown.json["waiting"]), (&json!(2), &json!(8)));
    assert_eq!(
        (&shown.json["rate_per_second"], &shown.json["predicted_finish_at"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!((&shown.json["deadline"], &shown.json["left_out"]), (&Value::Null, &json!(0)));
    for _ in 0..3 {
        world.clock.advance_ms(2_000);
        let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
        world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        events = world.receive().await;
    }
    let shown = world.get(&run, &key).await.json;
    assert_eq!(
        (&shown["state"], &shown["succeeded"], &shown["waiting"]),
        (&json!("running"), &json!(6), &json!(2))
    );
    assert_eq!(shown["started_at"], "2026-11-21T12:00:00Z");
    assert!(shown["rate_per_second"].as_f64().unwrap() > 0.0, "{shown}");
    assert!(shown["predicted_finish_at"].as_str().unwrap() > "2026-11-21T12:00:06", "{shown}");
    assert!(!shown["reasoning"].as_str().unwrap().is_empty(), "{shown}");
}

#[tokio::test]
async fn a_run_under_a_window_shows_its_deadline() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    let mut job = batch(10);
    job["window"] = json!({"seconds": 600});
    world.put("/v1/jobs/batch", &key, &job).await;
    let events = world.receive().await;
    let shown = world.get(&path(&events), &key).await.json;
    assert_eq!(shown["deadline"], "2026-11-21T12:10:00Z");
}

#[tokio::test]
async fn what_is_left_of_a_run_is_cancelled_and_what_is_in_flight_ends_as_it_would() {
    let world = World::new().await;
    let (key, events) = at_work(&world).await;
    let run = path(&events);
    let cancelled = post(&world, &key, &format!("{run}/cancel")).await;
    assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.text);
    assert_eq!(
        (&cancelled.json["state"], &cancelled.json["reason"]),
        (&json!("stopped"), &json!("cancelled"))
    );
    assert_eq!(cancelled.json["waiting"], 0);
    let again = post(&world, &key, &format!("{run}/cancel")).await;
    assert_eq!((again.status, &again.json["reason"]), (StatusCode::OK, &json!("cancelled")));
    let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
    let released = world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await.json;
    assert_eq!(released["results"][0]["status"], "released");
    assert!(world.receive().await.is_empty());
    let shown = world.get(&run, &key).await.json;
    assert_eq!(
        (&shown["succeeded"], &shown["left_out"], &shown["count"]),
        (&json!(2), &json!(8), &json!(10))
    );
}

#[tokio::test]
async fn a_run_that_is_over_is_not_cancelled_and_one_that_there_is_not_is_not_found() {
    let world = World::new().await;
    let (key, mut events) = at_work(&world).await;
    let run = path(&events);
    while !events.is_empty() {
        let tokens: Vec<&Value> = events.iter().map(|event| &event["token"]).collect();
        world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        world.clock.advance_ms(60_000);
        world.engine.tick().await.unwrap();
        events = world.receive().await;
    }
    let over = post(&world, &key, &format!("{run}/cancel")).await;
    assert_eq!(over.status, StatusCode::CONFLICT, "{}", over.text);
    assert_eq!(over.json["type"], "urn:tidegate:problem:run-over");
    let detail = over.json["detail"].as_str().unwrap();
    assert!(detail.ends_with("is finished; there is nothing left to cancel"), "{detail}");
    for path in ["/v1/jobs/batch/runs/batch.9.1790000000", "/v1/jobs/other/runs/batch.1.1795262400"] {
        assert_eq!(world.get(path, &key).await.status, StatusCode::NOT_FOUND, "{path}");
        let cancelled = post(&world, &key, &format!("{path}/cancel")).await;
        assert_eq!(cancelled.status, StatusCode::NOT_FOUND, "{path}");
    }
    let other = world.register("other").await;
    assert_eq!(world.get(&run, &other).await.status, StatusCode::NOT_FOUND);
    assert_eq!(post(&world, &other, &format!("{run}/cancel")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_event_that_waits_is_told_who_holds_the_tokens_and_what_comes_before() {
    let world = World::new().await;
    let (key, events) = at_work(&world).await;
    let run = events[0]["run_id"].as_str().unwrap();
    let explained = world.get(&format!("/v1/events/{run}.7/explain"), &key).await;
    assert_eq!(explained.status, StatusCode::OK, "{}", explained.text);
    let explained = explained.json;
    assert_eq!((&explained["event"]["status"], &explained["event"]["index"]), (&json!("waiting"), &json!(7)));
    assert_eq!(
        (&explained["events_before"], &explained["policy"]["status"]),
        (&json!(5), &json!("2 in flight, limit 2"))
    );
    let holding: Vec<&Value> =
        explained["holders"].as_array().unwrap().iter().map(|holder| &holder["event_id"]).collect();
    assert_eq!(holding.len(), 2, "{explained}");
    assert!(holding.contains(&&events[0]["event_id"]), "{explained}");
    assert!(
        explained["because"].as_str().unwrap().contains("all 2 tokens of its policy are held"),
        "{explained}"
    );
    world.send(Method::POST, "/v1/policies/small/pause", Some(&key), &[], "").await;
    let paused = world.get(&format!("/v1/events/{run}.7/explain"), &key).await.json;
    assert!(paused["because"].as_str().unwrap().contains("its policy is paused"), "{paused}");
    assert_eq!(paused["expected_at"], Value::Null);
}

#[tokio::test]
async fn an_event_in_flight_is_explained_too_and_one_that_there_is_not_is_not_found() {
    let world = World::new().await;
    let (key, events) = at_work(&world).await;
    let id = events[0]["event_id"].as_str().unwrap();
    let explained = world.get(&format!("/v1/events/{id}/explain"), &key).await.json;
    assert_eq!(
        (&explained["event"]["status"], &explained["events_before"]),
        (&json!("in_flight"), &Value::Null)
    );
    let run = events[0]["run_id"].as_str().unwrap();
    for event in [&format!("{run}.10"), "batch.1.5.0", "nonsense"] {
        let answer = world.get(&format!("/v1/events/{event}/explain"), &key).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{event}");
    }
    let other = world.register("other").await;
    assert_eq!(world.get(&format!("/v1/events/{id}/explain"), &other).await.status, StatusCode::NOT_FOUND);
}

/// Statuses, attempts and reasons of the events of a run, and each as its explanation shows it.
async fn listed(world: &World, key: &str, run: &str) -> Vec<Value> {
    let events = world.get(&format!("{run}/events"), key).await.json["events"].as_array().unwrap().clone();
    for event in &events {
        let path = format!("/v1/events/{}/explain", event["event_id"].as_str().unwrap());
        let explained = world.get(&path, key).await.json;
        assert_eq!(explained["event"], *event, "one event is shown alike everywhere");
        if event["status"] == "stopped" {
            let because =
                format!("its run was stopped ({}): it is not delivered", event["reason"].as_str().unwrap());
            assert_eq!(explained["because"], because);
            assert_eq!(explained["expected_at"], Value::Null);
        }
    }
    events
}

fn of_status<'e>(events: &'e [Value], status: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["status"] == status).collect()
}

#[tokio::test]
async fn events_that_a_stopped_run_leaves_out_are_shown_as_stopped_with_the_reason() {
    for (reason, window, max_failures) in [
        ("cancelled", Value::Null, Value::Null),
        ("deadline", json!({"seconds": 30, "on_deadline": "expire"}), Value::Null),
        ("failure_limit", Value::Null, json!(1)),
    ] {
        let world = World::new().await;
        let key = world.register("acme").await;
        world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
        let mut job = batch(10);
        job["window"] = window;
        job["max_failures"] = max_failures;
        assert_eq!(world.put("/v1/jobs/batch", &key, &job).await.status, StatusCode::CREATED);
        let events = world.receive().await;
        let run = path(&events);
        match reason {
            "cancelled" => drop(post(&world, &key, &format!("{run}/cancel")).await),
            "deadline" => world.clock.advance_ms(60_000),
            _ => {
                let failed = json!({"token": events[0]["token"], "outcome": "failed"});
                world.post("/v1/tokens/release", &key, &json!({"tokens": [failed]})).await;
            }
        }
        world.engine.tick().await.unwrap();
        world.dispatch().await;
        let shown = listed(&world, &key, &run).await;
        assert!(of_status(&shown, "waiting").is_empty(), "{reason}: {shown:?}");
        let stopped = of_status(&shown, "stopped");
        let left_out = world.get(&run, &key).await.json["left_out"].as_u64().unwrap();
        assert!(left_out >= 7, "{reason}: {left_out}");
        assert_eq!(stopped.len() as u64, left_out, "{reason}");
        for event in stopped {
            assert_eq!((&event["reason"], &event["attempts"]), (&json!(reason), &json!(0)), "{event}");
        }
    }
}

#[tokio::test]
async fn the_event_of_a_launch_that_was_skipped_is_shown_as_stopped() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.engine.tick().await.unwrap();
    let job = json!({"trigger": {"cron": "* * * * *"}, "target": {"sqs": {"queue_url": QUEUE}}});
    assert_eq!(world.put("/v1/jobs/each", &key, &job).await.status, StatusCode::CREATED);
    assert_eq!(post(&world, &key, "/v1/jobs/each/pause").await.status, StatusCode::OK);
    for _ in 0..4 {
        world.clock.advance_ms(60_000);
        world.engine.tick().await.unwrap();
        world.dispatch().await;
    }
    let runs = world.get("/v1/jobs/each/runs", &key).await.json;
    let run = &runs["runs"][0];
    assert_eq!(run["reason"], "paused", "{runs}");
    let run = format!("/v1/jobs/each/runs/{}", run["run_id"].as_str().unwrap());
    let events = listed(&world, &key, &run).await;
    assert_eq!(
        (events.len(), &events[0]["status"], &events[0]["reason"]),
        (1, &json!("stopped"), &json!("paused"))
    );
}

#[tokio::test]
async fn the_figures_of_a_run_stand_still_once_it_is_finished() {
    for throttled in [false, true] {
        let world = World::new().await;
        let key = world.register("acme").await;
        world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
        // One of three events is tried again after two to three seconds.
        let hook = Hook::answering(&[503]).await;
        let job = if throttled { hook.throttled_job(3) } else { hook.job(3) };
        assert_eq!(world.put("/v1/jobs/batch", &key, &job).await.status, StatusCode::CREATED);
        world.dispatch().await;
        world.clock.advance_ms(3_000);
        world.dispatch().await;
        let runs = world.get("/v1/jobs/batch/runs", &key).await.json;
        let run = format!("/v1/jobs/batch/runs/{}", runs["runs"][0]["run_id"].as_str().unwrap());
        let finished = world.get(&run, &key).await.json;
        assert_eq!(
            (&finished["state"], &finished["rate_per_second"]),
            (&json!("finished"), &json!(1.0)),
            "{finished}"
        );
        assert_eq!(
            finished["reasoning"],
            "all 3 events have ended, from 12:00:00 UTC to 12:00:03 UTC, 1.0 a second"
        );
        let done = if throttled { "succeeded" } else { "delivered" };
        assert_eq!((&finished[done], &finished["dead"]), (&json!(3), &json!(0)), "{finished}");
        world.clock.advance_ms(600_000);
        world.engine.tick().await.unwrap();
        world.dispatch().await;
        assert_eq!(world.get(&run, &key).await.json, finished, "throttled: {throttled}");
    }
}

#[tokio::test]
async fn events_are_listed_by_status() {
    let world = World::new().await;
    let (key, mut events) = at_work(&world).await;
    let run = path(&events);
    while !events.is_empty() {
        let release = |event: &Value| match event["index"].as_u64() {
            Some(index) if index % 4 == 1 => {
                json!({"token": event["token"], "outcome": "failed", "error": "no"})
            }
            _ => json!({"token": event["token"]}),
        };
        let tokens: Vec<Value> = events.iter().map(release).collect();
        world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        events = world.receive().await;
    }
    let listed = async |query: &str| {
        let answer = world.get(&format!("{run}/events?{query}"), &key).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let events = answer.json["events"].as_array().unwrap();
        let shown = |event: &Value| (event["index"].as_u64().unwrap(), event["error"].clone());
        events.iter().map(shown).collect::<Vec<_>>()
    };
    let failed = [1, 5, 9].map(|index| (index, json!("no")));
    assert_eq!(listed("status=failed").await, failed);
    assert_eq!(listed("status=expired,%20failed,dead").await, failed);
    assert_eq!(listed("status=waiting").await, []);
    assert_eq!(listed("status=failed,succeeded").await.len(), 10);
    for (query, word) in [("status=lost", "'lost'"), ("status=failed,", "''"), ("status=", "''")] {
        let refused = world.get(&format!("{run}/events?{query}"), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains(word) && detail.contains("expired, dead, stopped"), "{detail}");
    }
}
