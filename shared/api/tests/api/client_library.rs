//! What the client library calls beside releasing and extending, over a real socket.

use serde_json::{Value, json};
use tidegate_client::{
    Backfill, BatchWindow, Calendar, Client, DeadLetterFilter, DeadLetterStatus, Event, ExpectationCode,
    ForecastCode, FreeStatus, Interval, Job, OnDeadline, OnExpiry, Outcome, Pace, Per, Policy, PreviewQuery,
    Rate, ReasonCode, Release, ReleaseStatus, RunOverlap, Target, Trigger,
};

use crate::world::{QUEUE, World};

async fn client(world: &World) -> Client {
    let url = world.serve().await;
    let admin = Client::new(&url, &world.admin_key).unwrap();
    let acme = admin.register_client("acme", &[]).await.unwrap();
    Client::new(&url, acme.api_key).unwrap()
}

async fn receive(world: &World) -> Vec<Event> {
    world.receive().await.iter().map(|event| event.to_string().parse().unwrap()).collect()
}

/// A job of five events that is due now.
fn batch() -> Job {
    Job::new(Trigger::at("2026-11-21T12:00:00Z"), Target::sqs(QUEUE)).count(5).policy("small")
}

#[tokio::test]
async fn policies_with_all_their_fields() {
    let world = World::new().await;
    let client = client(&world).await;
    let policy = Policy {
        lease_seconds: Some(10),
        on_expiry: OnExpiry::Hold,
        rate: Some(Rate::per_minute(600).burst(50)),
        max_waiting_runs: Some(9),
        ..Policy::new(2)
    };
    let made = client.create_policy("small", &policy).await.unwrap();
    assert_eq!((made.on_expiry, made.max_waiting_runs, made.paused), (OnExpiry::Hold, Some(9), false));
    assert_eq!(made.rate, Some(Rate { events: 600, per: Per::Minute, burst: Some(50) }));
    let paused = client.pause_policy("small", Some(made.revision)).await.unwrap();
    assert!(paused.paused);
    let shown = client.policy("small").await.unwrap();
    assert_eq!((shown.policy.revision, shown.status.as_str()), (2, "paused, 0 in flight, limit 2"));
    assert!(!client.resume_policy("small", None).await.unwrap().paused);
    let closed = client.close_policy("small", "2026-11-21T13:00:00Z", Some("repairs"), None).await.unwrap();
    let backpressure = closed.backpressure.unwrap();
    assert_eq!(
        (backpressure.closed_until.as_deref(), &*backpressure.because),
        (Some("2026-11-21T13:00:00Z"), "repairs")
    );
    assert_eq!(client.open_policy("small", None).await.unwrap().backpressure, None);
    let sidelined = client.sideline(Some("repairs")).await.unwrap().client.unwrap();
    assert_eq!((&*sidelined.sideline.because, sidelined.sideline.per_second), ("repairs", None));
    assert!(client.sidelines().await.unwrap().client.is_some());
    assert_eq!(client.drain(9).await.unwrap().client.unwrap().sideline.per_second, Some(9));
    world.dispatch().await;
    assert!(client.sidelines().await.unwrap().client.is_none());
    assert!(client.sideline_job("none", None).await.is_err());
    assert!(client.drain_job("none", 9).await.unwrap().jobs.is_empty());
    assert!(client.strained_targets(None).await.unwrap().rows.is_empty());
    assert!(client.failed_deliveries("none.1.1795262400.0").await.unwrap().is_empty());
    let rotated = client.rotate_webhook_secret(Some(60)).await.unwrap();
    assert_eq!(rotated.former_until.as_deref(), Some("2026-11-21T12:01:00Z"));
    let wider = client.patch_policy("small", &json!({"max_in_flight": 6}), None).await.unwrap();
    assert_eq!((wider.max_in_flight, wider.rate), (6, made.rate));
    let plain = client.put_policy("small", &Policy::new(2), None).await.unwrap();
    assert_eq!((plain.on_expiry, plain.rate), (OnExpiry::Reclaim, None));
}

#[tokio::test]
async fn dead_letters_are_found_sent_again_and_forgotten() {
    let world = World::new().await;
    let client = client(&world).await;
    client.put_policy("small", &Policy::new(200), None).await.unwrap();
    client.put_job("batch", &batch().count(130), None).await.unwrap();
    let first = receive(&world).await;
    let failed: Vec<(&str, Outcome)> =
        first.iter().filter_map(|event| Some((event.token.as_deref()?, Outcome::Failed))).collect();
    for some in failed.chunks(100) {
        client.release_with_outcome(some).await.unwrap();
    }
    world.engine.tick().await.unwrap();
    world.dispatch().await;
    let of_job = DeadLetterFilter { job_id: Some("batch".into()), ..DeadLetterFilter::default() };
    assert_eq!(client.count_dead_letters(&of_job).await.unwrap().by_status["failed"], 130);
    let page = client.dead_letters(&of_job, None).await.unwrap();
    let next = client.dead_letters(&of_job, page.next_cursor.as_deref()).await.unwrap();
    assert_eq!((page.rows.len(), next.rows.len()), (100, 30));
    let (one, other) = (&page.rows[0].event_id, &page.rows[1].event_id);
    assert_eq!(client.dead_letter(one).await.unwrap().dead_letter, page.rows[0]);
    assert_eq!(client.redrive(&[one]).await.unwrap()[0].status, DeadLetterStatus::Redriven);
    assert_eq!(client.discard(&[other]).await.unwrap()[0].status, DeadLetterStatus::Discarded);
    let rest = client.redrive_where(&of_job, Some(50)).await.unwrap();
    assert_eq!(rest.len(), 128);
    // The second hundred goes on at the pace of the first.
    assert_eq!(rest[127].not_before.as_deref(), Some("2026-11-21T12:00:02.540Z"));
    assert!(client.discard_where(&of_job).await.unwrap().is_empty());
    assert!(client.dead_letter(one).await.is_err());
}

#[tokio::test]
async fn jobs_with_all_their_fields() {
    let world = World::new().await;
    let client = client(&world).await;
    client.put_policy("small", &Policy::new(4), None).await.unwrap();
    let job = Job {
        cost: Some(2),
        priority: Some(0),
        fair_by: Some("/c".to_owned()),
        overlap: RunOverlap::Skip,
        window: Some(BatchWindow::seconds(600).expiring().paced()),
        max_failures: Some(3),
        on_completion: Some(Target::http("https://acme.example/done")),
        heartbeat_url: Some("https://hc-ping.com/uuid".to_owned()),
        target: Target::http_released_on_response("https://acme.example/hook"),
        ..batch()
    };
    let made =
        client.put_job("heavy", &job.clone().payload_template(json!({"c": 7, "n": "{{index}}"})), None).await;
    let made = made.unwrap();
    assert_eq!((made.cost, made.priority, made.overlap), (2, 0, RunOverlap::Skip));
    assert_eq!(made.fair_by.as_deref(), Some("/c"));
    assert_eq!((&made.target, &made.on_completion), (&job.target, &job.on_completion));
    assert_eq!(made.heartbeat_url, job.heartbeat_url);
    let window = made.window.unwrap();
    assert_eq!(
        (window.seconds, window.on_deadline, window.pace),
        (Some(600), OnDeadline::Expire, Pace::Even)
    );
    assert_eq!((made.max_failures, &made.payload), (Some(3), &Value::Null));
    assert_eq!(made.payload_template, Some(json!({"c": 7, "n": "{{index}}"})));
    let list = vec![json!(1), json!("two")];
    let made = client.put_job("listed", &batch().payloads(list.clone()), None).await.unwrap();
    assert_eq!((made.count, made.payloads), (2, Some(list)));
    let until = Job { window: Some(BatchWindow::until("2026-11-21T13:00:00Z")), ..batch() };
    let made = client.put_job("until", &until, None).await.unwrap();
    assert_eq!(made.window, until.window);
    let paused = client.pause_job("until", Some(made.revision)).await.unwrap();
    assert!(paused.paused);
    assert!(!client.resume_job("until", None).await.unwrap().paused);
    let once = client.create_job_once("a-key", &batch()).await.unwrap();
    assert_eq!(client.create_job_once("a-key", &batch()).await.unwrap().job_id, once.job_id);
    let bulk = client.create_jobs_once("a-key", &[(None, batch())]).await.unwrap();
    assert_eq!(client.create_jobs_once("a-key", &[(None, batch())]).await.unwrap()[0].job_id, bulk[0].job_id);
    let triggered = client.trigger_job("until", Some("by-hand")).await.unwrap();
    assert_eq!(triggered.job_id, "until");
    assert_eq!(client.trigger_job("until", Some("by-hand")).await.unwrap(), triggered);
}

#[tokio::test]
async fn a_run_from_its_first_event_to_its_cancellation() {
    let world = World::new().await;
    let client = client(&world).await;
    let held = Policy { on_expiry: OnExpiry::Hold, lease_seconds: Some(10), ..Policy::new(2) };
    client.put_policy("small", &held, None).await.unwrap();
    client.create_job(Some("batch"), &batch()).await.unwrap();
    let events = receive(&world).await;
    let tokens: Vec<&str> = events.iter().filter_map(|event| event.token.as_deref()).collect();
    let holders = client.holders("small").await.unwrap();
    assert_eq!((holders.len(), holders[0].cost, holders[0].expired), (2, 1, false));
    let last = client.explain(&format!("{}.4", events[0].run_id)).await.unwrap();
    assert_eq!((last.events_before, last.holders.len()), (Some(2), 2));
    assert_eq!(last.policy.unwrap().status, "2 in flight, limit 2");
    assert_eq!(last.because_code, ReasonCode::TokensHeld);
    assert_eq!(last.reasoning_codes, [ExpectationCode::EventsBefore, ExpectationCode::SpeedUnknown]);
    let entry = Release::failed(tokens[0]).error("no disk");
    let released = client.release_each(&[entry, Release::succeeded("nonsense")]).await.unwrap();
    assert_eq!((released[0].status, &released[0].detail), (ReleaseStatus::Released, &None));
    assert_eq!(released[1].status, ReleaseStatus::Malformed);
    assert!(released[1].detail.is_some());
    let failed = client.explain(&events[0].event_id).await.unwrap().event;
    assert_eq!((failed.status.as_str(), failed.error.as_deref()), ("failed", Some("no disk")));
    let detail = client.run("batch", &events[0].run_id).await.unwrap();
    assert_eq!((detail.run.failed, detail.in_flight, detail.waiting), (1, 2, 2));
    assert_eq!(detail.reasoning_codes, [ForecastCode::Speed]);
    let cancelled = client.cancel_run("batch", &events[0].run_id).await.unwrap();
    assert_eq!((cancelled.run.reason.as_deref(), cancelled.run.left_out), (Some("cancelled"), 2));
    world.clock.advance_ms(60_000);
    let freed = client.free(&[tokens[1], "nonsense"], false).await.unwrap();
    assert_eq!((freed[0].status, freed[1].status), (FreeStatus::Freed, FreeStatus::Malformed));
}

#[tokio::test]
async fn previews_upcoming_firings_bulk_calls_and_calendars() {
    let world = World::new().await;
    let client = client(&world).await;
    let daily = Trigger::cron("30 2 * * *", "Europe/Berlin");
    let query = PreviewQuery { count: Some(2), jitter_seconds: Some(60), ..PreviewQuery::of(daily.clone()) };
    let preview = client.preview(&query).await.unwrap();
    assert_eq!((preview.firings.len(), preview.canonical.as_deref()), (2, Some("30 2 * * *")));
    assert_eq!(preview.firings[0].latest_at.as_deref(), Some("2026-11-22T01:31:00Z"));
    let interval =
        Interval { from: "2026-11-23T00:00:00Z".to_owned(), to: "2026-11-24T00:00:00Z".to_owned() };
    let calendar = Calendar { intervals: vec![interval], ..Calendar::of_dates(["2026-12-24", "12-25"]) };
    let made = client.put_calendar("holidays", &calendar, None).await.unwrap();
    assert_eq!((made.revision, &made.dates, &made.intervals), (1, &calendar.dates, &calendar.intervals));
    assert_eq!(client.calendar("holidays").await.unwrap(), made);
    assert_eq!(client.calendars(None).await.unwrap().rows, [made]);
    let job = Job { calendars: vec!["holidays".to_owned()], ..Job::new(daily, Target::sqs(QUEUE)) };
    let broken = Job::new(Trigger::cron("61 * * * *", "UTC"), Target::sqs(QUEUE));
    let results = client.create_jobs(&[(Some("nightly"), job), (None, broken)]).await.unwrap();
    assert_eq!((results[0].status, results[0].job_id.as_deref()), (201, Some("nightly")));
    assert_eq!((results[1].status, results[1].errors[0].field.as_str()), (422, "trigger.cron"));
    let upcoming = client.upcoming("nightly", Some(2)).await.unwrap();
    let skipped: Vec<Option<&str>> = upcoming.upcoming.iter().map(|next| next.skipped.as_deref()).collect();
    assert_eq!((upcoming.zone.as_str(), skipped), ("Europe/Berlin", vec![None, Some("excluded")]));
    assert_eq!(client.upcoming("nightly", None).await.unwrap().upcoming.len(), 10);
    let only_on = vec!["holidays".to_owned()];
    let only = Job {
        only_on: only_on.clone(),
        ..Job::new(Trigger::cron("30 2 * * *", "Europe/Berlin"), Target::sqs(QUEUE))
    };
    client.put_job("nightly", &only, None).await.unwrap();
    assert_eq!(client.job("nightly").await.unwrap().only_on, only_on);
    let night = client.jobs_that_begin_with("night", None).await.unwrap().rows;
    assert_eq!(night.iter().map(|job| &*job.job_id).collect::<Vec<_>>(), ["nightly"]);
    assert!(client.jobs_that_begin_with("day", None).await.unwrap().rows.is_empty());
    let next = client.upcoming("nightly", Some(1)).await.unwrap().upcoming[0].launch_at.clone();
    let left_out = client.skip_launch("nightly", Some(&next), Some(2)).await.unwrap();
    assert_eq!((left_out.launch_at, left_out.revision), (next.clone(), 3));
    assert_eq!(client.job("nightly").await.unwrap().skip, [next]);
    let mut week = Backfill::all("2026-11-14T00:00:00Z", "2026-11-21T00:00:00Z");
    week.dry_run = true;
    let told = client.backfill_job("nightly", &week, Some(3)).await.unwrap();
    // Of the days of the calendar, none lies in that week.
    assert_eq!((told.revision, told.launches.len(), told.dry_run), (3, 0, true));
    assert!(client.delete_calendar("holidays", None).await.is_err());
    client.delete_job("nightly", None).await.unwrap();
    client.delete_calendar("holidays", Some(1)).await.unwrap();
}

#[tokio::test]
async fn secrets_are_put_listed_and_deleted() {
    let world = World::new().await;
    let client = client(&world).await;
    let made = client.put_secret("shop-token", "k-1", None).await.unwrap();
    assert_eq!((&*made.secret_id, made.revision), ("shop-token", 1));
    assert!(client.put_secret("shop-token", "k-2", Some(7)).await.is_err());
    let changed = client.put_secret("shop-token", "k-2", Some(1)).await.unwrap();
    assert_eq!(client.secrets(None).await.unwrap().rows, [changed]);
    client.delete_secret("shop-token", Some(2)).await.unwrap();
    assert!(client.secrets(None).await.unwrap().rows.is_empty());
    assert!(client.delete_secret("shop-token", None).await.is_err());
}
