//! Dead letters: what did not succeed is listed, counted, shown, sent again and forgotten.

use http::StatusCode;
use serde_json::{Value, json};

use crate::hook::Hook;
use crate::world::{World, batch};

async fn client(world: &World, tokens: u32) -> String {
    let key = world.register("acme").await;
    let policy = json!({"max_in_flight": tokens, "lease_seconds": 10});
    assert_eq!(world.put("/v1/policies/small", &key, &policy).await.status, StatusCode::CREATED);
    key
}

async fn put(world: &World, key: &str, name: &str, job: &Value) {
    let made = world.put(&format!("/v1/jobs/{name}"), key, job).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    world.dispatch().await;
}

async fn letters(world: &World, key: &str, query: &str) -> Vec<Value> {
    let listed = world.get(&format!("/v1/dead-letters{query}"), key).await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text);
    listed.json["dead_letters"].as_array().unwrap().clone()
}

async fn redrive(world: &World, key: &str, body: &Value) -> Value {
    let redriven = world.post("/v1/dead-letters/redrive", key, body).await;
    assert_eq!(redriven.status, StatusCode::OK, "{}", redriven.text);
    redriven.json
}

/// The only run of a job.
async fn run(world: &World, key: &str, job: &str) -> Value {
    world.get(&format!("/v1/jobs/{job}/runs"), key).await.json["runs"][0].clone()
}

async fn statuses(world: &World, key: &str, job: &str) -> Vec<(Value, Value)> {
    let run = run(world, key, job).await["run_id"].as_str().unwrap().to_owned();
    let listed = world.get(&format!("/v1/jobs/{job}/runs/{run}/events"), key).await.json;
    let shown = |event: &Value| (event["status"].clone(), event["attempts"].clone());
    listed["events"].as_array().unwrap().iter().map(shown).collect()
}

/// A job for the endpoint, with or without a policy.
fn job(hook: &Hook, count: u32, is_throttled: bool) -> Value {
    let mut job = if is_throttled { hook.throttled_job(count) } else { hook.job(count) };
    job["payload_template"] = json!({"page": "{{index}}"});
    job.as_object_mut().unwrap().remove("payload");
    job
}

#[tokio::test]
async fn what_an_endpoint_refused_is_a_dead_letter_until_it_is_sent_again() {
    for (is_throttled, count) in [(true, 1), (true, 3), (false, 1), (false, 3)] {
        let world = World::new().await;
        let key = client(&world, 1).await;
        let hook = Hook::answering(&[410]).await;
        put(&world, &key, "sync", &job(&hook, count, is_throttled)).await;
        world.dispatch().await;
        world.minutes(1).await;
        let found = letters(&world, &key, "").await;
        assert_eq!(found.len(), 1, "throttled: {is_throttled}, {count}: {found:?}");
        let letter = &found[0];
        let (status, reason, attempts) = (&letter["status"], &letter["reason"], &letter["attempts"]);
        assert_eq!(
            (status, reason, attempts),
            (&json!("dead"), &json!("the endpoint answered 410 Gone"), &json!(1))
        );
        let policy = if is_throttled { json!("small") } else { Value::Null };
        assert_eq!((&letter["job_id"], &letter["policy_id"]), (&json!("sync"), &policy));
        let event = letter["event_id"].as_str().unwrap().to_owned();
        let shown = world.get(&format!("/v1/dead-letters/{event}"), &key).await.json;
        assert_eq!(shown["payload"], json!({"page": letter["index"]}), "{shown}");
        assert_eq!(shown["target"]["http"]["url"], json!(hook.url));

        let answer = redrive(&world, &key, &json!({"event_ids": [event, event, "no event"]})).await;
        let told: Vec<&Value> =
            answer["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
        assert_eq!(told.iter().filter(|status| **status == "redriven").count(), 1, "{answer}");
        assert_eq!(told[2], "no_event");
        world.clock.advance_ms(1_000);
        world.dispatch().await;
        assert!(letters(&world, &key, "").await.is_empty());
        let calls = hook.calls();
        let again: Vec<&Value> = calls.iter().filter(|call| call["event_id"] == json!(event)).collect();
        assert_eq!(again.len(), 2, "{calls:?}");
        assert_eq!((&again[1]["attempt"], &again[1]["payload"]), (&json!(2), &again[0]["payload"]));
        world.engine.tick().await.unwrap();
        world.dispatch().await;
        let ended = if is_throttled { "succeeded" } else { "delivered" };
        let run = run(&world, &key, "sync").await;
        assert_eq!(
            (&run["state"], &run["dead"], &run[ended]),
            (&json!("finished"), &json!(0), &json!(count))
        );
        let shown = statuses(&world, &key, "sync").await;
        let index = letter["index"].as_u64().unwrap() as usize;
        assert!(shown.iter().all(|(status, _)| status == ended), "{shown:?}");
        assert_eq!(shown[index].1, 2, "{shown:?}");
    }
}

#[tokio::test]
async fn what_a_consumer_failed_or_left_is_sent_again_under_its_limit_and_at_a_pace() {
    let world = World::new().await;
    let key = client(&world, 2).await;
    let mut job = batch(4);
    job["max_attempts"] = json!(1);
    put(&world, &key, "batch", &job).await;
    let first = world.receive().await;
    let release = |events: &[Value]| {
        let failed: Vec<Value> =
            events.iter().map(|event| json!({"token": event["token"], "outcome": "failed"})).collect();
        json!({ "tokens": failed })
    };
    world.post("/v1/tokens/release", &key, &release(&first)).await;
    // Nobody releases the other two.
    assert_eq!(world.receive().await.len(), 2);
    world.minutes(1).await;
    let counts = world.get("/v1/dead-letters/count", &key).await.json;
    assert_eq!((&counts["total"], &counts["by_status"]), (&json!(4), &json!({"expired": 2, "failed": 2})));
    assert_eq!((&counts["by_job"], &counts["by_policy"]), (&json!({"batch": 4}), &json!({"small": 4})));
    let run_before = run(&world, &key, "batch").await;
    assert_eq!((&run_before["failed"], &run_before["expired"]), (&json!(2), &json!(2)));

    let answer = redrive(&world, &key, &json!({"where": {}, "per_second": 1})).await;
    let due: Vec<&str> =
        answer["results"].as_array().unwrap().iter().map(|r| r["not_before"].as_str().unwrap()).collect();
    assert_eq!(
        due,
        ["2026-11-21T12:01:00Z", "2026-11-21T12:01:01Z", "2026-11-21T12:01:02Z", "2026-11-21T12:01:03Z"]
    );
    assert!(letters(&world, &key, "").await.is_empty());
    let open = run(&world, &key, "batch").await;
    assert_eq!(
        (&open["state"], &open["failed"], &open["expired"]),
        (&json!("running"), &json!(0), &json!(0))
    );
    let mut came = Vec::new();
    for second in 0..6 {
        let now = world.receive().await;
        assert!(now.len() <= 2, "{now:?}");
        if second == 0 {
            assert_eq!(now.len(), 1, "one a second");
        }
        let tokens: Vec<&Value> = now.iter().map(|event| &event["token"]).collect();
        if !tokens.is_empty() {
            world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
        }
        came.extend(now);
        world.clock.advance_ms(1_000);
    }
    assert_eq!(came.len(), 4);
    assert!(came.iter().all(|event| event["attempt"] == 2), "{came:?}");
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let ended = run(&world, &key, "batch").await;
    assert_eq!((&ended["state"], &ended["succeeded"]), (&json!("finished"), &json!(4)));
    assert_eq!(statuses(&world, &key, "batch").await, vec![(json!("succeeded"), json!(2)); 4]);
}

#[tokio::test]
async fn letters_are_chosen_by_what_they_have_in_common_and_forgotten() {
    let world = World::new().await;
    let key = client(&world, 4).await;
    let gone = Hook::answering(&[410; 300]).await;
    put(&world, &key, "many", &job(&gone, 130, false)).await;
    let missing = Hook::answering(&[404]).await;
    put(&world, &key, "one", &job(&missing, 1, true)).await;
    for _ in 0..3 {
        world.dispatch().await;
    }
    world.minutes(1).await;
    for (query, count) in [
        ("?job_id=one", 1),
        ("?policy_id=small", 1),
        ("?status=dead&reason=404", 1),
        ("?status=failed", 0),
        ("?since=2026-11-22T00:00:00Z", 0),
        ("?until=2026-11-22T00:00:00Z&job_id=one", 1),
        ("?job_id=nobody", 0),
    ] {
        assert_eq!(letters(&world, &key, query).await.len(), count, "{query}");
    }
    let counts = world.get("/v1/dead-letters/count?reason=410", &key).await.json;
    assert_eq!((&counts["total"], &counts["has_more"]), (&json!(130), &json!(false)), "{counts}");
    // All of them, a page at a time, each once.
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    loop {
        let page = world.get(&format!("/v1/dead-letters?cursor={cursor}"), &key).await.json;
        seen.extend(page["dead_letters"].as_array().unwrap().iter().map(|l| l["event_id"].to_string()));
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (131, 131));

    let mut body = json!({"where": {"job_id": "many"}});
    let mut discarded = 0;
    loop {
        let answer = world.post("/v1/dead-letters/discard", &key, &body).await.json;
        let results = answer["results"].as_array().unwrap();
        assert!(results.iter().all(|result| result["status"] == "discarded"), "{answer}");
        discarded += results.len();
        match &answer["next_cursor"] {
            Value::Null => break,
            next => body["cursor"] = next.clone(),
        }
    }
    assert_eq!((discarded, letters(&world, &key, "").await.len()), (130, 1));
    assert_eq!(run(&world, &key, "many").await["dead"], 130, "the records stay");
}

#[tokio::test]
async fn what_cannot_be_sent_again_says_why_and_stays() {
    let world = World::new().await;
    let key = client(&world, 4).await;
    let hook = Hook::answering(&[410; 9]).await;
    let mut too_old = job(&hook, 1, true);
    too_old["relevancy_seconds"] = json!(60);
    put(&world, &key, "late", &too_old).await;
    put(&world, &key, "stopped", &job(&hook, 2, true)).await;
    for _ in 0..3 {
        world.dispatch().await;
    }
    let found = letters(&world, &key, "").await;
    assert_eq!(found.len(), 3, "{found:?}");
    world.clock.advance_ms(61_000);
    let answer = redrive(&world, &key, &json!({"where": {"job_id": "late"}})).await;
    assert_eq!(answer["results"][0]["status"], "too_old");
    assert_eq!(letters(&world, &key, "?job_id=late").await.len(), 1);
    world.delete("/v1/jobs/stopped", &key).await;
    world.delete("/v1/jobs/late", &key).await;
    let gone = world.delete("/v1/policies/small", &key).await;
    assert!(gone.status.is_success(), "{}", gone.text);
    let answer = redrive(&world, &key, &json!({"where": {"job_id": "stopped"}})).await;
    assert_eq!(answer["results"][0]["status"], "policy_deleted", "{answer}");
    assert_eq!(hook.calls().len(), 3);
}

#[tokio::test]
async fn nobody_reaches_the_letters_of_another_client() {
    let world = World::new().await;
    let key = client(&world, 1).await;
    let hook = Hook::answering(&[410]).await;
    put(&world, &key, "sync", &job(&hook, 1, true)).await;
    world.dispatch().await;
    world.minutes(1).await;
    let event = letters(&world, &key, "").await[0]["event_id"].as_str().unwrap().to_owned();
    let other = world.register("beta").await;
    assert!(letters(&world, &other, "").await.is_empty());
    assert_eq!(world.get(&format!("/v1/dead-letters/{event}"), &other).await.status, StatusCode::NOT_FOUND);
    for path in ["/v1/dead-letters/redrive", "/v1/dead-letters/discard"] {
        let answer = world.post(path, &other, &json!({"event_ids": [event]})).await.json;
        assert_eq!(answer["results"][0]["status"], "absent", "{answer}");
    }
    assert_eq!(letters(&world, &key, "").await.len(), 1);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_named() {
    let world = World::new().await;
    let key = client(&world, 1).await;
    for (body, field, message) in [
        (json!({}), "event_ids", "names no events"),
        (json!({"event_ids": []}), "event_ids", "name 1 to 100"),
        (json!({"event_ids": ["a.1.2.3"], "where": {}}), "where", "both 'event_ids' and 'where'"),
        (json!({"where": {"status": "delivered"}}), "where.status", "give dead, expired or failed"),
        (json!({"where": {"since": "monday"}}), "where.since", "is no instant"),
        (json!({"where": {}, "per_second": 0}), "per_second", "it must lie between 1 and 1000"),
    ] {
        let answer = world.post("/v1/dead-letters/redrive", &key, &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
        let error = &answer.json["errors"][0];
        assert_eq!(error["field"], field, "{}", answer.text);
        assert!(error["message"].as_str().unwrap().contains(message), "{}", answer.text);
    }
    for query in ["?status=delivered", "?since=monday", "?cursor=%21", "?job_id=a%20b"] {
        let answer = world.get(&format!("/v1/dead-letters{query}"), &key).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_large_run_lists_what_failed_until_it_succeeds_when_it_is_sent_again() {
    let world = World::new().await;
    let key = client(&world, 700).await;
    put(&world, &key, "batch", &batch(600)).await;
    let events = world.receive().await;
    assert_eq!(events.len(), 600);
    let end = |event: &Value| {
        let outcome = if event["index"] == 550 { "failed" } else { "succeeded" };
        json!({"token": event["token"], "outcome": outcome})
    };
    for some in events.chunks(100) {
        let tokens: Vec<Value> = some.iter().map(end).collect();
        world.post("/v1/tokens/release", &key, &json!({ "tokens": tokens })).await;
    }
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let run = run(&world, &key, "batch").await["run_id"].as_str().unwrap().to_owned();
    let failed = async || {
        let path = format!("/v1/jobs/batch/runs/{run}/events?status=failed,expired,dead");
        let listed = world.get(&path, &key).await.json["events"].as_array().unwrap().clone();
        listed.into_iter().map(|event| event["index"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(failed().await, [json!(550)]);
    redrive(&world, &key, &json!({"where": {}})).await;
    let again = world.receive().await;
    assert_eq!((again.len(), &again[0]["index"]), (1, &json!(550)));
    assert!(failed().await.is_empty(), "it is in flight");
    world.post("/v1/tokens/release", &key, &json!({"tokens": [again[0]["token"]]})).await;
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    assert!(failed().await.is_empty(), "it succeeded");
}
