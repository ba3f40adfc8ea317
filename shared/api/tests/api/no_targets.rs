//! Queues that are no targets, whether they exist or not: those of Tidegate itself, and those in another partition of AWS.

use http::StatusCode;
use serde_json::json;

use crate::bad_input::with;
use crate::world::{World, cron_job};

/// Asks for a job that sends to a queue, and for one that reports to it. Both must be refused with these words, and leave nothing.
async fn must_be_refused(world: &World, key: &str, queue_url: &str, says: &str) {
    let before = world.everything().await;
    let queue = json!({"sqs": {"queue_url": queue_url}});
    let reporting = with(with(cron_job(), "/policy_id", json!("small")), "/on_completion", queue.clone());
    for (at, job) in [("target", with(cron_job(), "/target", queue)), ("on_completion", reporting)] {
        let answer = world.post("/v1/jobs", key, &job).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{at} {queue_url}: {}", answer.text);
        let error = &answer.json["errors"][0];
        assert_eq!(error["field"], format!("{at}.sqs.queue_url"), "{}", answer.text);
        assert_eq!(error["value"], queue_url, "{}", answer.text);
        assert!(error["message"].as_str().unwrap().contains(says), "{}", answer.text);
    }
    assert_eq!(world.everything().await, before, "{queue_url}");
}

#[tokio::test]
async fn no_job_sends_or_reports_to_a_queue_of_tidegate() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    for own in world.deployment.config().own_queues() {
        must_be_refused(&world, &key, own, "is a queue of Tidegate itself").await;
        // The same queue, as the URL of another host names it.
        let name = own.rsplit('/').next().unwrap();
        let elsewhere = format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
        must_be_refused(&world, &key, &elsewhere, "is a queue of Tidegate itself").await;
    }
}

#[tokio::test]
async fn no_job_sends_or_reports_to_another_partition() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/policies/small", &key, &json!({"max_in_flight": 3})).await;
    for (host, partition) in
        [("sqs.cn-north-1.amazonaws.com.cn", "aws-cn"), ("sqs.us-gov-east-1.amazonaws.com", "aws-us-gov")]
    {
        let queue_url = format!("https://{host}/123456789012/jobs");
        let says = format!("is out of reach: it is in the partition {partition} of AWS");
        must_be_refused(&world, &key, &queue_url, &says).await;
    }
}
