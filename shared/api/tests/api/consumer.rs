//! The whole way of a throttled batch, as a consumer with the client library goes it, over a real socket.

use chrono::{SecondsFormat, TimeDelta};
use serde_json::json;
use tidegate_client::{
    At, Client, Dst, Event, Every, ExtendStatus, Gap, History, Job, Misfire, Outcome, Overlap, Policy,
    ReleaseStatus, Target, Trigger, TriggerView,
};
use tidegate_domain::clock::Clock as _;

use crate::world::{QUEUE, World};

/// A registered client with a policy of two tokens and a batch of five events that is due now.
async fn client_with_a_batch(world: &World) -> Client {
    let url = world.serve().await;
    let admin = Client::new(&url, &world.admin_key).unwrap();
    let acme = admin.register_client("acme", &[]).await.unwrap();
    assert_eq!(acme.client.allowed_targets, ["*"]);
    let client = Client::new(&url, acme.api_key).unwrap();
    let policy = client.put_policy("small", &Policy::new(2), None).await.unwrap();
    assert_eq!((policy.revision, policy.lease_seconds), (1, 60));
    let job = Job::new(Trigger::at("2026-11-21T12:00:00Z"), Target::sqs(QUEUE)).count(5).policy("small");
    let job = client.create_job(Some("batch"), &job.payload(json!({"shop": 7}))).await.unwrap();
    assert_eq!((job.count, job.history, job.target), (5, History::All, Target::sqs(QUEUE)));
    client
}

fn token(event: &Event) -> &str {
    event.token.as_deref().unwrap()
}

#[tokio::test]
async fn a_batch_is_consumed_two_at_a_time_to_its_end() {
    let world = World::new().await;
    let client = client_with_a_batch(&world).await;
    let mut seen = Vec::new();
    loop {
        world.dispatch().await;
        let events: Vec<Event> =
            world.take_all(QUEUE).await.iter().map(|body| body.parse().unwrap()).collect();
        let status = client.policy("small").await.unwrap();
        assert_eq!(status.in_flight, events.len() as u32);
        if events.is_empty() {
            break;
        }
        assert!(events.len() <= 2, "{events:?}");
        let extended = client.extend(&[token(&events[0])], Some(90)).await.unwrap();
        assert_eq!(extended[0].status, ExtendStatus::Extended);
        let lease_end = world.clock.now() + TimeDelta::seconds(90);
        let lease_end = lease_end.to_rfc3339_opts(SecondsFormat::Secs, true);
        assert_eq!(extended[0].lease_expires_at, Some(lease_end));
        for event in events {
            assert_eq!((event.count, &event.payload["shop"]), (5, &json!(7)));
            let outcome = if event.index == 3 { Outcome::Failed } else { Outcome::Succeeded };
            let released = client.release_with_outcome(&[(token(&event), outcome)]).await.unwrap();
            assert_eq!(released[0].status, ReleaseStatus::Released, "{event:?}");
            world.clock.advance_ms(1_000);
            let again = client.release(&[token(&event)]).await.unwrap();
            assert_eq!(again[0].status, ReleaseStatus::AlreadyReleased, "{event:?}");
            let extended = client.extend(&[token(&event)], None).await.unwrap();
            assert_eq!((extended[0].status, &extended[0].lease_expires_at), (ExtendStatus::Expired, &None));
            seen.push(event.index);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    let runs = client.runs("batch", None).await.unwrap();
    let run = &runs.rows[0];
    assert_eq!(
        (runs.rows.len(), run.state.as_str(), run.launch_at.as_str()),
        (1, "finished", "2026-11-21T12:00:00Z")
    );
    assert_eq!((run.count, run.succeeded, run.failed, run.dead), (5, 4, 1, 0));
    let events = client.events("batch", &run.run_id, None).await.unwrap();
    let statuses: Vec<&str> = events.rows.iter().map(|event| event.status.as_str()).collect();
    assert_eq!(statuses, ["succeeded", "succeeded", "succeeded", "failed", "succeeded"]);
    assert_eq!(events.rows[3].event_id, format!("{}.3", run.run_id));
    assert_eq!(events.next_cursor, None);
    let failed = client.events_that_are("batch", &run.run_id, &["failed", "dead"], None).await.unwrap();
    assert_eq!(failed.rows, events.rows[3..4]);
    let after = client.events_that_are("batch", &run.run_id, &["failed"], Some("NA")).await.unwrap();
    assert_eq!((after.rows.len(), after.next_cursor), (0, None));
}

#[tokio::test]
async fn rules_and_every_kind_of_trigger_go_through_the_library() {
    let world = World::new().await;
    let client = client_with_a_batch(&world).await;
    let beat = Job {
        start_at: Some("2026-12-01T00:00:00Z".to_owned()),
        end_at: Some("2027-12-01T00:00:00Z".to_owned()),
        jitter_seconds: Some(30),
        misfire: Some(Misfire::latest()),
        relevancy_seconds: Some(600),
        ..Job::new(Trigger::every_seconds(300), Target::sqs(QUEUE))
    };
    let made = client.put_job("beat", &beat, None).await.unwrap();
    let anchor = Some("2026-11-21T12:05:00Z".to_owned());
    let rate = Some(Every { every_seconds: 300 });
    assert_eq!(made.trigger, TriggerView { rate, anchor, ..TriggerView::default() });
    assert_eq!((made.start_at, made.end_at), (beat.start_at.clone(), beat.end_at.clone()));
    assert_eq!(
        (made.misfire, made.jitter_seconds, made.relevancy_seconds),
        (Misfire::latest(), 30, Some(600))
    );
    let set = ["2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"];
    let made = client.put_job("set", &Job::new(Trigger::at_each(set), Target::sqs(QUEUE)), None).await;
    let at = Some(At::Many(set.map(str::to_owned).to_vec()));
    assert_eq!(made.unwrap().trigger, TriggerView { at, ..TriggerView::default() });
}

#[tokio::test]
async fn what_is_refused_comes_back_as_its_problem() {
    let world = World::new().await;
    let client = client_with_a_batch(&world).await;
    let missing = client.job("nightly").await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "the API refused the call: there is no job 'nightly' among those of this client (404)"
    );
    assert!(!missing.is_retryable());
    let job = Job::new(Trigger::cron("61 * * * *", "Europe/London"), Target::sqs(QUEUE));
    let invalid = client.create_job(None, &job).await.unwrap_err();
    assert_eq!(invalid.problem().unwrap().errors[0].field, "trigger.cron");
    let stale = client.put_policy("small", &Policy::new(3), Some(9)).await.unwrap_err();
    assert_eq!(stale.problem().unwrap().status, 412);
    let used = client.delete_policy("small", None).await.unwrap_err();
    assert_eq!(used.problem().unwrap().kind, "urn:tidegate:problem:in-use");
    world.cut_off();
    let unavailable = client.jobs(None).await.unwrap_err();
    assert!(unavailable.is_retryable(), "{unavailable}");
}

#[tokio::test]
async fn lists_and_deletions_go_through_the_library_too() {
    let world = World::new().await;
    let client = client_with_a_batch(&world).await;
    let cron = Job::new(Trigger::cron("@daily", "Asia/Tokyo"), Target::http("https://acme.example/hook"));
    let made = client.create_job(None, &cron).await.unwrap();
    assert!(made.job_id.starts_with("job_"), "{made:?}");
    let dst = Some(Dst { gap: Some(Gap::NextValid), overlap: Some(Overlap::First) });
    let (cron_text, zone) = (Some("0 0 * * *".to_owned()), Some("Asia/Tokyo".to_owned()));
    assert_eq!(made.trigger, TriggerView { cron: cron_text, zone, dst, ..TriggerView::default() });
    assert_eq!((made.misfire, made.jitter_seconds, made.paused), (Misfire::all(100), 0, false));
    let jobs = client.jobs(None).await.unwrap();
    let ids: Vec<&str> = jobs.rows.iter().map(|job| job.job_id.as_str()).collect();
    assert_eq!(ids, ["batch", &made.job_id]);
    let replaced = client.put_job(&made.job_id, &cron.clone().count(2), Some(made.revision)).await.unwrap();
    assert_eq!((replaced.revision, replaced.count), (2, 2));
    client.delete_job(&made.job_id, Some(2)).await.unwrap();
    assert_eq!(client.job(&made.job_id).await.unwrap_err().problem().unwrap().status, 404);
    let policies = client.policies(None).await.unwrap();
    assert_eq!((policies.rows.len(), policies.rows[0].policy_id.as_str()), (1, "small"));
    let created = client.create_policy("other", &Policy { lease_seconds: Some(30), ..Policy::new(1) }).await;
    assert_eq!(created.unwrap().lease_seconds, 30);
    client.delete_policy("other", Some(1)).await.unwrap();
}
