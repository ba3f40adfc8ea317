//! Why an event is where it is, how its run gets on, and what it carries.

use chrono::Duration;
use tidegate_api::sentences::{because, expectation, forecast};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::{BatchWindow, Deadline, Flow, OnDeadline, Overlap};
use tidegate_domain::ids::{ClientId, EventId, RunId};
use tidegate_domain::job::Payload;
use tidegate_domain::policy::{OnExpiry, PolicyTerms};
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_engine::{
    EventStatus, Explanation, Outcome, Release, Released, RunCancel, RunDetail, RunState, Written,
};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec, Received};

fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

async fn start(world: &World, name: &str, job: JobSpec, flow: Flow) -> RunId {
    let mut draft = job.under("small").unwrap().into_draft();
    draft.terms.flow = flow;
    let id = Some(name.parse().unwrap());
    let written = world.engine.jobs().create(&client(), id, draft).await.unwrap();
    assert!(matches!(written, Written::Created(_)), "{written:?}");
    world.pump().await.unwrap();
    last_run(world, name).await
}

async fn last_run(world: &World, job: &str) -> RunId {
    world.engine.queries().runs(&client(), &job.parse().unwrap(), None).await.unwrap().rows.remove(0).id
}

async fn batch(world: &World, name: &str, queue: &str, count: u64, flow: Flow) -> RunId {
    let job = JobSpec::at(world.clock.now(), queue).unwrap().of(count).unwrap();
    start(world, name, job, flow).await
}

/// One-time jobs of one event each, for now; their runs, in their order.
async fn singles(world: &World, queue: &str, count: u32) -> Vec<RunId> {
    let mut runs = Vec::new();
    for number in 0..count {
        let name = format!("job-{number:03}");
        let job = JobSpec::at(world.clock.now(), queue).unwrap().under("small").unwrap().named(&name);
        world.create(job).await.unwrap();
    }
    world.pump().await.unwrap();
    for number in 0..count {
        runs.push(last_run(world, &format!("job-{number:03}")).await);
    }
    runs
}

async fn explain(world: &World, event: &EventId) -> Explanation {
    world.engine.queries().explain(&client(), event).await.unwrap().unwrap()
}

async fn detail(world: &World, run: &RunId) -> RunDetail {
    world.engine.queries().run_detail(&client(), run).await.unwrap().unwrap()
}

async fn release(world: &World, events: Vec<Received>, text: Option<&str>) {
    let release = |event: Received| Release {
        token: event.token.unwrap(),
        outcome: Outcome::Succeeded,
        text: text.map(str::to_owned),
    };
    let answers =
        world.engine.tokens().release(&client(), events.into_iter().map(release).collect()).await.unwrap();
    assert!(answers.iter().all(|(_, answer)| *answer == Released::Released), "{answers:?}");
    world.pump().await.unwrap();
}

#[tokio::test]
async fn an_event_is_explained_from_its_place_in_line_to_its_end() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 4, 600).await.unwrap();
    let run = batch(&world, "nightly", &queue, 100, Flow::default()).await;

    let waiting = explain(&world, &run.event(50)).await;
    assert_eq!(waiting.record.status, EventStatus::Waiting);
    assert_eq!(
        because(&waiting),
        format!("all 4 tokens of its policy are held by {run}.0, {run}.1, {run}.2 and another")
    );
    assert_eq!(waiting.events_before, Some(46), "{waiting:?}");
    assert_eq!(waiting.expected_at, None);
    assert!(expectation(&waiting).contains("their speed is not known"), "{}", expectation(&waiting));
    let mut held: Vec<u32> = waiting.holders.iter().map(|holder| holder.event.index()).collect();
    held.sort_unstable();
    assert_eq!(held, [0, 1, 2, 3]);
    assert_eq!(
        world.engine.queries().holders(&client(), &"small".parse().unwrap()).await.unwrap(),
        Some(waiting.holders)
    );

    let in_flight = explain(&world, &run.event(2)).await;
    assert_eq!(in_flight.record.status, EventStatus::InFlight);
    assert_eq!(
        because(&in_flight),
        "its consumer has it, delivery 1: granted or last extended at 12:00:00 UTC, lease until 12:10:00 UTC"
    );
    assert_eq!((in_flight.events_before, in_flight.expected_at), (None, None));

    // Four end every two seconds: two a second.
    for _ in 0..5 {
        world.advance(2);
        let events = world.consume(&queue).await.unwrap();
        release(&world, events, Some("fine")).await;
    }
    let ended = explain(&world, &run.event(2)).await;
    assert_eq!(ended.record.status, EventStatus::Succeeded);
    assert_eq!(ended.record.text.as_deref(), Some("fine"));
    assert_eq!(because(&ended), "its consumer released it as succeeded at 12:00:02 UTC: fine");

    let waiting = explain(&world, &run.event(50)).await;
    assert_eq!(waiting.events_before, Some(26));
    let expected_in = waiting.expected_at.unwrap() - world.clock.now();
    assert_eq!(expected_in, Duration::milliseconds(13_500), "{}", expectation(&waiting));
    assert!(
        expectation(&waiting).contains("20 of 100 events have ended since 12:00:00 UTC, 2.0 a second"),
        "{}",
        expectation(&waiting)
    );

    let detail = detail(&world, &run).await;
    assert_eq!((detail.summary.tally.succeeded, detail.in_flight, detail.waiting), (20, 4, 76));
    assert_eq!(detail.rate_per_second, Some(2.0));
    assert_eq!(detail.predicted_finish_at, Some(world.clock.now() + Duration::seconds(40)));
    assert_eq!(
        forecast(&detail),
        "20 of 100 events have ended since 12:00:00 UTC, 2.0 a second; 80 are left, so about 40 s more"
    );
}

#[tokio::test]
async fn what_is_ahead_in_the_line_counts() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 4, 600).await.unwrap();
    let first = batch(&world, "first", &queue, 1_000, Flow::default()).await;
    world.advance(1);
    let second = batch(&world, "second", &queue, 10, Flow::default()).await;
    assert_eq!(explain(&world, &second.event(3)).await.events_before, Some(999));
    let detail = detail(&world, &second).await;
    assert_eq!((detail.summary.state, detail.started_at), (RunState::Waiting, None));

    // Its own run has ended nothing yet: the one that holds the tokens tells how fast things go.
    world.advance(3);
    let events = world.consume(&queue).await.unwrap();
    release(&world, events, None).await;
    let waiting = explain(&world, &second.event(3)).await;
    assert!(
        expectation(&waiting).contains("of the run that holds the tokens, 4 of 1000"),
        "{}",
        expectation(&waiting)
    );
    assert_eq!(
        waiting.expected_at,
        Some(world.clock.now() + Duration::seconds(996)),
        "{}",
        expectation(&waiting)
    );
    assert_eq!(explain(&world, &first.event(0)).await.record.status, EventStatus::Succeeded);
}

#[tokio::test]
async fn each_reason_to_wait_is_named() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 4, 600).await.unwrap();
    let id = "small".parse().unwrap();

    // Its launch.
    let later = JobSpec::at(world.clock.now() + Duration::seconds(90), &queue).unwrap();
    world.engine.tick().await.unwrap();
    let later = start(&world, "later", later, Flow::default()).await;
    let soon = explain(&world, &later.event(0)).await;
    assert_eq!(because(&soon), "its launch is in the future, at 12:01:30 UTC");
    assert_eq!(soon.expected_at, Some(later.launch_at()));

    // Pacing, and the end of its window.
    let deadline = Deadline::after(100).unwrap();
    let window = Some(BatchWindow { deadline, on_deadline: OnDeadline::Expire, paced: true });
    let paced = batch(&world, "paced", &queue, 10, Flow { window, ..Flow::default() }).await;
    let fifth = explain(&world, &paced.event(5)).await;
    assert_eq!(
        because(&fifth),
        "its run is paced over its window: event 6 of 10 is admitted from 12:00:50 UTC on"
    );
    let outlook = detail(&world, &paced).await;
    assert!(
        forecast(&outlook).contains("it is paced over its window, which ends at 12:01:40 UTC"),
        "{outlook:?}"
    );
    assert!(forecast(&outlook).contains("what is not admitted by 12:01:40 UTC is left out"), "{outlook:?}");
    assert_eq!(outlook.deadline, Some(paced.launch_at() + Duration::seconds(100)));

    // A pause.
    let written = world.engine.policies().pause(&client(), &id, true, None).await.unwrap();
    assert!(matches!(written, Written::Replaced(_)), "{written:?}");
    let paused = explain(&world, &paced.event(5)).await;
    assert_eq!(because(&paused), "its policy is paused: nothing is admitted until it is resumed");
    assert_eq!(paused.expected_at, None);
    assert_eq!(detail(&world, &paced).await.predicted_finish_at, None);
    world.engine.policies().pause(&client(), &id, false, None).await.unwrap();

    // A rate.
    let rate = RateLimit::new(6, Per::Minute, None).unwrap();
    let terms = PolicyTerms::new(4, 600).unwrap().with_rate(Some(rate));
    world.engine.policies().replace(&client(), &id, terms, None).await.unwrap();
    let rated = batch(&world, "rated", &queue, 10, Flow::default()).await;
    let next = explain(&world, &rated.event(1)).await;
    assert_eq!(
        because(&next),
        "its policy's rate lets no more than 6 a minute begin, the next at 12:00:10 UTC"
    );
    let third = explain(&world, &rated.event(3)).await;
    assert_eq!(
        because(&third),
        "its policy's rate lets no more than 6 a minute begin, and 2 events are before it"
    );
    assert_eq!(third.expected_at, Some(rated.launch_at() + Duration::seconds(30)));

    // A stop.
    assert_eq!(world.engine.jobs().cancel_run(&client(), &rated).await.unwrap(), RunCancel::Done);
    let stopped = explain(&world, &rated.event(9)).await;
    assert_eq!(because(&stopped), "its run was stopped (cancelled): it is not delivered");
    assert!(world.engine.queries().explain(&client(), &rated.event(10)).await.unwrap().is_none());
}

#[tokio::test]
async fn a_policy_that_drains_and_tokens_that_are_held_say_so() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 4, 60).await.unwrap();
    let run = batch(&world, "nightly", &queue, 10, Flow::default()).await;
    let terms = PolicyTerms::new(2, 60).unwrap().with_on_expiry(OnExpiry::Hold);
    world.engine.policies().replace(&client(), &"small".parse().unwrap(), terms, None).await.unwrap();
    let waiting = explain(&world, &run.event(4)).await;
    assert_eq!(because(&waiting), "its policy drains: 4 in flight, limit 2");
    let outlook = detail(&world, &run).await;
    assert!(forecast(&outlook).contains("its policy drains: 4 in flight, limit 2"), "{outlook:?}");

    world.advance(61);
    world.engine.tick().await.unwrap();
    world.pump().await.unwrap();
    let held = explain(&world, &run.event(0)).await;
    assert_eq!(
        because(&held),
        "its consumer has it, delivery 1; the lease ran out at 12:01:00 UTC, and the policy holds the token until it is \
         released or freed"
    );
    assert_eq!(held.holders.iter().map(|holder| holder.expired).collect::<Vec<_>>(), [true; 4]);
}

#[tokio::test]
async fn a_run_that_waits_for_its_predecessor_says_so() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 1, 600).await.unwrap();
    world.engine.tick().await.unwrap();
    let flow = Flow { overlap: Overlap::BufferOne, ..Flow::default() };
    let job = JobSpec::cron("* * * * *", "UTC", &queue).unwrap().of(3).unwrap();
    start(&world, "each", job, flow).await;
    for _ in 0..2 {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
    }
    let runs = world.runs("each").await.unwrap();
    let waiting = explain(&world, &runs[1].id.event(0)).await;
    assert!(because(&waiting).starts_with("an earlier run of its job is not finished"), "{waiting:?}");
    assert_eq!(waiting.expected_at, None);
}

#[tokio::test]
async fn a_list_and_a_template_give_each_event_its_own_payload() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("small", 4, 600).await.unwrap();
    // The long one does not travel: it is read from its job.
    let long = format!("[{},\"b\",{{\"c\" : 3}}]", serde_json::json!("a".repeat(500)));
    for (name, payload, third) in [
        ("short", Payload::list("[1,2, { \"c\" : 3 } ]".to_owned()).unwrap(), "{ \"c\" : 3 }"),
        ("long", Payload::list(long).unwrap(), "{\"c\" : 3}"),
        ("filled", Payload::template(r#"{"n":"{{index}}/{{count}}"}"#.to_owned()).unwrap(), r#"{"n":"2/3"}"#),
    ] {
        let job = JobSpec::at(world.clock.now(), &queue).unwrap().of(3).unwrap().under("small").unwrap();
        let mut draft = job.into_draft();
        draft.terms.payload = payload;
        world.engine.jobs().create(&client(), Some(name.parse().unwrap()), draft).await.unwrap();
        world.pump().await.unwrap();
        let events = world.consume(&queue).await.unwrap();
        let last = events.iter().find(|event| event.body.index == 2).unwrap();
        assert_eq!(last.body.payload.get(), third, "{name}");
        assert_eq!(events.len(), 3);
        release(&world, events, None).await;
    }
}

#[tokio::test]
async fn a_rate_that_runs_of_one_event_wait_for_is_named_and_says_when_each_has_its_turn() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let rate = RateLimit::new(2, Per::Second, None).unwrap();
    let terms = PolicyTerms::new(10, 600).unwrap().with_rate(Some(rate));
    world.engine.policies().create(&client(), "small".parse().unwrap(), terms).await.unwrap();
    let runs = singles(&world, &queue, 20).await;
    // Between two wake-ups, which come by the second, the rate has room for one.
    for ms in [0, 600] {
        world.clock.advance_ms(ms);
        let mut waiting = Vec::new();
        for run in &runs {
            let explained = explain(&world, &run.event(0)).await;
            if explained.record.status == EventStatus::Waiting {
                waiting.push(explained);
            }
        }
        assert_eq!(waiting.len(), 18);
        waiting.sort_by_key(|explained| explained.events_before);
        let last = waiting.last().unwrap();
        assert_eq!(
            because(last),
            "its policy's rate lets no more than 2 a second begin, and 17 events are before it"
        );
        assert_eq!(
            expectation(last),
            "17 events are before it; its policy's rate lets no more than 2 a second begin, so its turn comes at \
             12:00:09 UTC"
        );
        // Two began at noon: the third is due half a second later, the twentieth after nine.
        let noon = runs[0].launch_at();
        let expected: Vec<i64> =
            waiting.iter().map(|e| (e.expected_at.unwrap() - noon).num_milliseconds()).collect();
        let due: Vec<i64> = (1..=18).map(|number| (number * 500).max(ms)).collect();
        assert_eq!(expected, due);
    }
}

#[tokio::test]
async fn runs_of_one_event_that_wait_for_tokens_say_what_is_not_known_and_what_the_rate_bounds() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let rate = RateLimit::new(60, Per::Minute, Some(2)).unwrap();
    let terms = PolicyTerms::new(2, 600).unwrap().with_rate(Some(rate));
    world.engine.policies().create(&client(), "small".parse().unwrap(), terms).await.unwrap();
    let runs = singles(&world, &queue, 5).await;
    let mut last = explain(&world, &runs[0].event(0)).await;
    for run in &runs {
        let explained = explain(&world, &run.event(0)).await;
        if explained.events_before > last.events_before {
            last = explained;
        }
    }
    assert_eq!(last.events_before, Some(2));
    assert!(because(&last).starts_with("all 2 tokens of its policy are held by job-"), "{last:?}");
    assert_eq!(last.expected_at, None);
    assert_eq!(
        expectation(&last),
        "2 events are before it; no event of the runs that hold tokens has ended yet, so their speed is not known; the \
         first lease ends at 12:10:00 UTC, unless it is extended; its policy's rate lets no more than 60 a minute begin, \
         so its turn comes no earlier than 12:00:03 UTC"
    );
}
