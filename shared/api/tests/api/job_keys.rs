//! Jobs that are called by the keys of other systems, on every route.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, World, at_job, cron_job};

/// Keys, and how they stand in a path.
fn keys() -> Vec<(String, String)> {
    let keys = [
        ("reminder:user@example.com", "reminder%3Auser%40example.com"),
        ("a/b/c", "a%2Fb%2Fc"),
        ("a/pause", "a%2Fpause"),
        ("a/../b", "a%2F..%2Fb"),
        ("v1.2.3", "v1.2.3"),
        ("nightly.3.1795262400", "nightly.3.1795262400"),
        ("nightly.3.1795262400.0", "nightly.3.1795262400.0"),
        ("k=v,w=x+y~z", "k%3Dv%2Cw%3Dx%2By~z"),
        ("bulk/1", "bulk%2F1"),
        ("%2F".trim_start_matches('%'), "2F"),
        ("_x", "_x"),
    ];
    let long = format!("{}@", "x/".repeat(99)) + "y";
    assert_eq!(long.len(), 200);
    let in_path = long.replace('/', "%2F").replace('@', "%40");
    let keys = keys.into_iter().map(|(key, path)| (key.to_owned(), path.to_owned()));
    keys.chain([(long, in_path)]).collect()
}

async fn send(world: &World, method: Method, path: &str, key: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send(method, path, Some(key), &[("content-type", "application/json")], &body).await
}

#[tokio::test]
async fn every_route_of_a_job_takes_them() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (id, in_path) in keys() {
        let path = format!("/v1/jobs/{in_path}");
        let made = send(&world, Method::PUT, &path, &key, &cron_job()).await;
        assert_eq!(
            (made.status, made.header("location")),
            (StatusCode::CREATED, &*path),
            "{id}: {}",
            made.text
        );
        assert_eq!(made.json["job_id"], id);
        assert_eq!(send(&world, Method::PUT, &path, &key, &made.json).await.status, StatusCode::OK, "{id}");
        assert_eq!(world.get(&path, &key).await.json["job_id"], id);
        let posted = send(&world, Method::POST, "/v1/jobs", &key, &made.json).await;
        assert_eq!((posted.status, &posted.json["job_id"]), (StatusCode::OK, &json!(id)), "{}", posted.text);
        let bulk = json!({"jobs": [made.json]});
        let bulk = send(&world, Method::POST, "/v1/jobs/bulk", &key, &bulk).await;
        assert_eq!(bulk.json["results"][0]["status"], 200, "{id}: {}", bulk.text);
        let patched = send(&world, Method::PATCH, &path, &key, &json!({"count": 2})).await;
        assert_eq!((patched.status, &patched.json["revision"]), (StatusCode::OK, &json!(2)), "{id}");
        for call in ["pause", "resume"] {
            let answer = send(&world, Method::POST, &format!("{path}/{call}"), &key, &Value::Null).await;
            assert_eq!(
                (answer.status, &answer.json["job_id"]),
                (StatusCode::OK, &json!(id)),
                "{}",
                answer.text
            );
        }
        let upcoming = world.get(&format!("{path}/upcoming?count=1"), &key).await;
        assert_eq!(upcoming.json["upcoming"].as_array().unwrap().len(), 1, "{id}: {}", upcoming.text);
        let runs = world.get(&format!("{path}/runs"), &key).await;
        assert_eq!((runs.status, &runs.json["runs"]), (StatusCode::OK, &json!([])), "{id}: {}", runs.text);
    }
    let mut listed = Vec::new();
    for job in world.get("/v1/jobs", &key).await.json["jobs"].as_array().unwrap() {
        listed.push(job["job_id"].as_str().unwrap().to_owned());
    }
    let mut expected: Vec<String> = keys().into_iter().map(|(id, _)| id).collect();
    expected.sort();
    assert_eq!(listed, expected);
    for (id, in_path) in keys() {
        let path = format!("/v1/jobs/{in_path}");
        assert_eq!(world.delete(&path, &key).await.status, StatusCode::NO_CONTENT, "{id}");
        assert_eq!(world.get(&path, &key).await.status, StatusCode::NOT_FOUND, "{id}");
    }
}

#[tokio::test]
async fn their_runs_and_events_are_found_by_what_the_consumer_received() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 2})).await;
    for (index, (id, in_path)) in keys().into_iter().enumerate() {
        let mut job = at_job("2026-11-21T12:00:00Z");
        (job["count"], job["job_id"]) = (json!(2), json!(id));
        if index % 2 == 0 {
            job["policy_id"] = json!("small");
        }
        let made = send(&world, Method::POST, "/v1/jobs", &key, &job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{id}: {}", made.text);
        let events = world.receive().await;
        assert_eq!(events.len(), 2, "{id}");
        let path = format!("/v1/jobs/{in_path}");
        for event in &events {
            let (event_id, run_id) = (event["event_id"].as_str().unwrap(), event["run_id"].as_str().unwrap());
            assert_eq!((event["job_id"].as_str(), run_id), (Some(&*id), &*format!("{id}.1.1795262400")));
            let escaped = event_id.replace(&id, &in_path);
            let explained = world.get(&format!("/v1/events/{escaped}/explain"), &key).await;
            assert_eq!(
                (explained.status, &explained.json["event"]["event_id"]),
                (StatusCode::OK, &json!(event_id)),
                "{}",
                explained.text
            );
            let run = format!("{path}/runs/{}", run_id.replace(&id, &in_path));
            let shown = world.get(&run, &key).await;
            assert_eq!(
                (shown.status, &shown.json["run_id"]),
                (StatusCode::OK, &json!(run_id)),
                "{}",
                shown.text
            );
            let listed = world.get(&format!("{run}/events"), &key).await;
            assert_eq!(listed.json["events"].as_array().unwrap().len(), 2, "{}", listed.text);
        }
        let runs = world.get(&format!("{path}/runs"), &key).await;
        assert_eq!(runs.json["runs"].as_array().unwrap().len(), 1, "{}", runs.text);
        let tokens: Vec<&str> = events.iter().filter_map(|event| event["token"].as_str()).collect();
        if !tokens.is_empty() {
            let released =
                send(&world, Method::POST, "/v1/tokens/release", &key, &json!({"tokens": tokens})).await;
            assert_eq!(released.json["results"][1]["status"], "released", "{}", released.text);
        }
    }
}

#[tokio::test]
async fn names_that_cannot_be_are_refused_with_a_sentence() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let allowed = "use letters, digits and - _ . : @ / + ~ = ,";
    let first = "begin with a letter, a digit, '-' or '_'";
    let long = "x".repeat(201);
    for (id, in_path, says) in [
        ("a|b", "a%7Cb", allowed),
        ("a b", "a%20b", allowed),
        ("a\u{1}b", "a%01b", allowed),
        ("a\u{7f}", "a%7F", allowed),
        ("a\nb", "a%0Ab", allowed),
        ("a\"b", "a%22b", allowed),
        ("a\\b", "a%5Cb", allowed),
        ("a%b", "a%25b", allowed),
        ("a#b", "a%23b", allowed),
        ("a?b", "a%3Fb", allowed),
        ("é", "%C3%A9", allowed),
        (".", "%2E", first),
        ("..", "%2E%2E", first),
        ("/etc", "%2Fetc", first),
        ("@home", "%40home", first),
        ("at_noon", "at_noon", "which is kept for generated ids"),
        ("bulk", "bulk", "is the name of a call"),
        (&long, &long, "is 201 bytes long; 200 is the most"),
    ] {
        let put = send(&world, Method::PUT, &format!("/v1/jobs/{in_path}"), &key, &cron_job()).await;
        let mut body = cron_job();
        body["job_id"] = json!(id);
        let post = send(&world, Method::POST, "/v1/jobs", &key, &body).await;
        let answers = if id == "bulk" { vec![post] } else { vec![put, post] };
        for answer in answers {
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{id}: {}", answer.text);
            assert_eq!(answer.json["errors"][0]["field"], "job_id", "{id}");
            assert!(answer.json["detail"].as_str().unwrap().contains(says), "{id}: {}", answer.text);
        }
    }
    assert_eq!(world.everything().await, before);
}
