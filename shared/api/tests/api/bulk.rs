//! Bulk calls: each job has its own answer, in the order of the call.

use http::StatusCode;
use serde_json::{Value, json};

use crate::world::{QUEUE, World, at_job, cron_job};

fn named(mut job: Value, id: &str) -> Value {
    job["job_id"] = json!(id);
    job
}

#[tokio::test]
async fn each_job_gets_the_answer_that_it_would_get_alone() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/jobs/taken", &key, &cron_job()).await;
    let mut unknown_policy = cron_job();
    unknown_policy["policy_id"] = json!("none");
    let mut wrong_form = cron_job();
    wrong_form["colour"] = json!("red");
    let mut faulty = cron_job();
    faulty["count"] = json!(0);
    let jobs = json!({"jobs": [
        named(cron_job(), "one"),
        wrong_form,
        at_job("2026-12-01T00:00:00Z"),
        faulty,
        named(at_job("2026-12-01T00:00:00Z"), "taken"),
        named(cron_job(), "taken"),
        unknown_policy,
        5,
        named(cron_job(), "one"),
        at_job("2026-11-20T00:00:00Z"),
        {"trigger": {"cron": "0 0 1-7 * 1"}, "target": {"sqs": {"queue_url": QUEUE}}},
        at_job("2026-11-21T12:00:00Z"),
    ]});
    let answer = world.post("/v1/jobs/bulk", &key, &jobs).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let results = answer.json["results"].as_array().unwrap();
    let statuses: Vec<u64> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 422, 201, 422, 409, 422, 422, 422, 422, 422, 201, 201], "{}", answer.text);
    assert_eq!(results[0], json!({"status": 201, "job_id": "one", "revision": 1}));
    let fields: Vec<&Value> = results.iter().map(|result| &result["errors"][0]["field"]).collect();
    assert_eq!(
        [1, 3, 4, 5, 6, 7, 8, 9].map(|index| fields[index].as_str().unwrap()),
        ["colour", "count", "job_id", "job_id", "policy_id", "(body)", "job_id", "trigger.at"]
    );
    let detail = results[8]["detail"].as_str().unwrap();
    assert_eq!(detail, "job_id 'one' is in this call twice; the first one counts");
    assert!(
        results[10]["warnings"][0].as_str().unwrap().contains("days that match either one"),
        "{}",
        answer.text
    );
    for index in [0, 2, 10, 11] {
        let id = results[index]["job_id"].as_str().unwrap();
        assert_eq!(world.get(&format!("/v1/jobs/{id}"), &key).await.status, StatusCode::OK, "{id}");
    }
    world.dispatch().await;
    assert_eq!(world.take_all(QUEUE).await.len(), 1, "the job that is due now is delivered");
    let again = world.post("/v1/jobs/bulk", &key, &json!({"jobs": [named(cron_job(), "one")]})).await;
    assert_eq!(again.json["results"], json!([{"status": 200, "job_id": "one", "revision": 1}]));
}

#[tokio::test]
async fn a_thousand_jobs_of_more_than_a_single_body_are_taken_and_no_more() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut job = at_job("2026-12-01T00:00:00Z");
    job["payload"] = json!("x".repeat(1_000));
    let jobs = json!({"jobs": vec![job.clone(); 1_000]});
    assert!(jobs.to_string().len() > 1_000_000);
    let answer = world.post("/v1/jobs/bulk", &key, &jobs).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", &answer.text[..answer.text.len().min(500)]);
    let results = answer.json["results"].as_array().unwrap();
    assert_eq!(results.len(), 1_000);
    assert!(results.iter().all(|result| result["status"] == 201));
    let ids: std::collections::BTreeSet<&str> =
        results.iter().map(|result| result["job_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 1_000);
    let before = world.everything().await;
    for (body, field, says) in [
        (
            json!({"jobs": vec![json!(1); 1_001]}),
            "jobs",
            "jobs holds 1001; 1000 is the most, so send several calls",
        ),
        (json!({"jobs": []}), "jobs", "jobs is empty; give one job or more"),
        (json!({"job": []}), "job", "the body has no field 'job': did you mean 'jobs'?"),
    ] {
        let answer = world.post("/v1/jobs/bulk", &key, &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
        assert_eq!(answer.json["errors"][0]["field"], field);
        assert!(answer.json["detail"].as_str().unwrap().contains(says), "{}", answer.text);
    }
    job["payload"] = json!("x".repeat(4 * 1024 * 1024));
    let large = world.post("/v1/jobs/bulk", &key, &json!({"jobs": [job]})).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(large.json["detail"], "the body is over 4194304 bytes, the most that is read; send less");
    assert_eq!(world.everything().await, before);
}
