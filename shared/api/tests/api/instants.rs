//! Sets of instants: sent again, they take the place of the former set. Beats: sent again, they go on.

use http::StatusCode;
use serde_json::{Value, json};

use tidegate_domain::clock::Clock as _;
use tidegate_embedded::OwnQueues;

use crate::world::{World, at_job, cron_job};

fn set(at: Value) -> Value {
    let mut body = cron_job();
    body["trigger"] = json!({"at": at});
    body
}

#[tokio::test]
async fn a_set_sent_again_may_hold_what_has_passed_since() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let first = json!(["2026-11-21T13:00:00Z", "2026-11-21T14:00:00Z", "2026-11-22T12:00:00Z"]);
    assert_eq!(world.put("/v1/jobs/set", &key, &set(first.clone())).await.status, StatusCode::CREATED);
    world.clock.advance_ms(3 * 3_600_000);
    let same = world.put("/v1/jobs/set", &key, &set(first.clone())).await;
    assert_eq!((same.status, same.header("etag")), (StatusCode::OK, "\"1\""), "{}", same.text);
    let mut posted = set(first.clone());
    posted["job_id"] = json!("set");
    assert_eq!(world.post("/v1/jobs", &key, &posted).await.status, StatusCode::OK);
    let longer = json!(["2026-11-21T13:00:00Z", "2026-11-21T14:00:00Z", "2026-11-23T12:00:00Z"]);
    let replaced = world.put("/v1/jobs/set", &key, &set(longer.clone())).await;
    assert_eq!((replaced.status, replaced.header("etag")), (StatusCode::OK, "\"2\""), "{}", replaced.text);
    assert_eq!(replaced.json["trigger"]["at"], longer);
    assert_eq!(
        replaced.json["description"],
        "3 times, the first at 2026-11-21T13:00:00Z and the last at 2026-11-23T12:00:00Z"
    );
    // An instant that is past and new is refused, wherever the others come from.
    let sneaked = json!(["2026-11-21T13:00:00Z", "2026-11-21T13:30:00Z", "2026-11-23T12:00:00Z"]);
    let refused = world.put("/v1/jobs/set", &key, &set(sneaked)).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.json["errors"].as_array().unwrap().len(), 1, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "trigger.at[1]");
    let elsewhere = world.put("/v1/jobs/other", &key, &set(first)).await;
    assert_eq!(elsewhere.json["errors"].as_array().unwrap().len(), 2, "{}", elsewhere.text);
}

#[tokio::test]
async fn a_set_that_is_over_is_not_stored_anew() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let at = json!(["2026-11-21T13:00:00Z", "2026-11-21T14:00:00Z"]);
    world.put("/v1/jobs/set", &key, &set(at.clone())).await;
    world.clock.advance_ms(3 * 3_600_000);
    assert_eq!(world.put("/v1/jobs/set", &key, &set(at)).await.status, StatusCode::OK);
    let refused = world.put("/v1/jobs/set", &key, &set(json!(["2026-11-21T13:00:00Z"]))).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "trigger.at");
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("every instant of 'at' is past, so the trigger never fires again"),
        "{detail}"
    );
}

#[tokio::test]
async fn past_instants_fire_at_once_when_the_job_says_so() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["trigger"] = json!({"at": ["2026-11-20T12:00:00Z", "2026-11-22T12:00:00Z"], "past": "fire"});
    let answer = world.put("/v1/jobs/set", &key, &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    world.dispatch().await;
    let runs = world.get("/v1/jobs/set/runs", &key).await;
    let runs = runs.json["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((&runs[0]["launch_at"], &runs[0]["delivered"]), (&json!("2026-11-20T12:00:00Z"), &json!(1)));
}

#[tokio::test]
async fn a_local_time_in_a_change_of_the_clocks_is_taken_with_a_warning() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (given, zone, at, says) in [
        (
            "2027-03-28T02:30",
            "Europe/Berlin",
            "2027-03-28T01:00:00Z",
            "at '2027-03-28T02:30' does not exist in Europe/Berlin: the clocks jump over it, so the first instant after, 2027-03-28T03:00:00+02:00, is taken",
        ),
        (
            "2027-10-31T02:30:00",
            "Europe/Berlin",
            "2027-10-31T00:30:00Z",
            "at '2027-10-31T02:30:00' happens twice in Europe/Berlin: the first, 2027-10-31T02:30:00+02:00, is taken; write its offset to mean the other",
        ),
    ] {
        let mut body = cron_job();
        body["trigger"] = json!({"at": given, "zone": zone});
        let answer = world.post("/v1/jobs", &key, &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        assert_eq!(answer.json["trigger"], json!({"at": at}), "{given}");
        assert_eq!(answer.json["warnings"], json!([says]), "{given}");
    }
}

#[tokio::test]
async fn a_beat_that_is_sent_again_keeps_its_anchor() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    body["trigger"] = json!({"rate": "5 minutes"});
    let first = world.put("/v1/jobs/beat", &key, &body).await;
    world.clock.advance_ms(61_000);
    let again = world.put("/v1/jobs/beat", &key, &body).await;
    assert_eq!((again.status, &again.json), (StatusCode::OK, &first.json), "{}", again.text);
    body["trigger"] = json!({"rate": "6 minutes"});
    let changed = world.put("/v1/jobs/beat", &key, &body).await;
    assert_eq!(changed.json["trigger"]["anchor"], "2026-11-21T12:07:01Z", "{}", changed.text);
}

/// Delays of SQS count whole seconds, from an instant that is none; those of the embedded queues end at a millisecond.
#[tokio::test]
async fn a_job_that_is_created_seconds_ahead_comes_within_50_ms_after_its_instant_and_never_before() {
    for (created_ms, ahead_s) in [(0, 3), (350, 3), (999, 2), (1, 30), (500, 61)] {
        for policy in [None, Some("small")] {
            let world = World::new().await;
            // As on one machine, where nobody else sees them.
            let own = world.deployment.config().own_queues();
            let hidden = own.iter().filter_map(|url| url.rsplit('/').next()).map(str::to_owned).collect();
            world.embedded.hide_queues(OwnQueues { hidden, send_only: None });
            let key = world.register("acme").await;
            world.put("/v1/policies/small", &key, &json!({"max_in_flight": 1})).await;
            world.clock.advance_ms(created_ms);
            let at = world.clock.now() + chrono::TimeDelta::milliseconds(ahead_s * 1_000 - created_ms);
            let mut job = at_job(&at.to_rfc3339());
            job["policy_id"] = json!(policy);
            let made = world.post("/v1/jobs", &key, &job).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
            let left_ms = |world: &World| (at - world.clock.now()).num_milliseconds();
            // As the loops of one machine do: what is due is taken when it is.
            world.dispatch().await;
            world.clock.advance_ms(left_ms(&world) - 1);
            assert!(
                world.receive().await.is_empty(),
                "a millisecond early: {created_ms} {ahead_s} {policy:?}"
            );
            world.clock.advance_ms(51);
            let came = world.receive().await;
            assert_eq!(came.len(), 1, "{created_ms} {ahead_s} {policy:?}");
            assert_eq!(came[0]["launch_at"], at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
        }
    }
}

#[tokio::test]
async fn a_fraction_of_a_second_is_rounded_up_to_the_next_whole_one() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let made = world.post("/v1/jobs", &key, &at_job("2026-11-21T12:00:03.001Z")).await;
    assert_eq!(made.json["trigger"]["at"], "2026-11-21T12:00:04Z", "{}", made.text);
}
