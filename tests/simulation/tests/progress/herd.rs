//! The herd: three runs of a million events and ten thousand throttled launches of one minute, in calls of two seconds.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Count;
use tidegate_engine::message::Message;
use tidegate_engine::{JobDraft, Written};
use tidegate_simulation::world::{CLIENT, JobSpec};

use super::stage::Stage;

/// How long a call of the emitter's function may take, in milliseconds.
const LIMIT_MS: i64 = 2_000;
/// Minutes in which all must be emitted: launches are planned up to two minutes ahead of time, and one more is granted.
const MINUTES: i64 = 12;

/// A tenth, so that the test stays quick; `TIDEGATE_FULL=1` asks for all of it.
fn scale() -> u32 {
    if std::env::var("TIDEGATE_FULL").is_ok_and(|full| full == "1") { 1 } else { 10 }
}

/// Stores jobs of [`CLIENT`] under generated ids; tells the ids.
async fn store(stage: &Stage, drafts: Vec<JobDraft>) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for some in drafts.chunks(1_000) {
        let some = some.iter().map(|draft| (None, draft.clone())).collect();
        for written in stage.world.engine.jobs().create_all(&CLIENT.parse().unwrap(), some).await {
            let Written::Created(job) = written.unwrap() else { panic!("a job is not stored") };
            ids.insert(job.id.to_string());
        }
    }
    ids
}

/// The parts of each run that were sent, each with how often.
fn parts_sent(stage: &Stage) -> BTreeMap<String, BTreeMap<(u32, u32), u64>> {
    let mut parts: BTreeMap<String, BTreeMap<(u32, u32), u64>> = BTreeMap::new();
    for message in &stage.timeline.log().dispatched {
        let Ok(Message::Chunk(chunk)) = Message::decode(&message.body) else { continue };
        assert!(chunk.launch_s <= message.visible_at.timestamp(), "an event is early");
        for item in chunk.items {
            *parts.entry(item.job).or_default().entry((item.from, item.to)).or_default() += 1;
        }
    }
    parts
}

/// The policies that are woken, with the second.
fn wakes(stage: &Stage) -> BTreeSet<(String, i64)> {
    let log = stage.timeline.log();
    let messages = log.dispatched.iter().filter_map(|message| Message::decode(&message.body).ok());
    let wake = |message| match message {
        Message::Wake { policy, due_s, .. } => Some((policy, due_s?)),
        _ => None,
    };
    messages.filter_map(wake).collect()
}

/// C3 of the attack, and B1 of the review for AWS.
#[tokio::test]
async fn a_herd_is_emitted_in_calls_of_two_seconds_and_a_neighbour_stays_on_time() {
    let mut stage = Stage::new(LIMIT_MS).await;
    let (events, jobs, policies) = (1_000_000 / scale(), 10_000 / scale(), 1_000 / scale());
    let queue = stage.world.queue("jobs").await.unwrap();
    let minute: DateTime<Utc> = stage.world.clock.now() + Duration::minutes(6);
    for number in 0..policies {
        stage.world.policy(&format!("policy-{number}"), 10, 600).await.unwrap();
    }
    let mut batch = JobSpec::at(minute, &queue).unwrap().failures_only().into_draft();
    batch.terms.count = Count::new(events.into()).unwrap();
    let batches = store(&stage, vec![batch; 3]).await;
    let single = |number: u32| {
        let launch_at = minute + Duration::seconds(i64::from(number % 60));
        JobSpec::at(launch_at, &queue).unwrap().under(&format!("policy-{}", number % policies)).unwrap()
    };
    let singles = store(&stage, (0..jobs).map(|number| single(number).into_draft()).collect()).await;
    stage.minutes(MINUTES).await;

    let parts = parts_sent(&stage);
    let mut sent = 0;
    for batch in &batches {
        let parts = parts.get(batch).cloned().unwrap_or_default();
        sent += parts.values().sum::<u64>();
        let mut next = 0;
        for (from, to) in parts.into_keys() {
            assert_eq!(from, next, "chunks of one run are cut in one way, and none is missing");
            next = to;
        }
        assert_eq!(next, events, "events of a run that were sent");
    }
    let mut waiting = BTreeSet::new();
    for number in 0..policies {
        let runs = stage.world.waiting_runs(&format!("policy-{number}")).await.unwrap();
        waiting.extend(runs.into_iter().map(|run| run.job().to_string()));
    }
    assert_eq!(waiting, singles, "throttled launches that wait in their lines");
    let expected: BTreeSet<(String, i64)> = (0..jobs)
        .map(|n| (format!("policy-{}", n % policies), minute.timestamp() + i64::from(n % 60)))
        .collect();
    let woken = wakes(&stage);
    assert_eq!(expected.difference(&woken).next(), None, "a policy that is not woken at a launch");
    assert_eq!(stage.neighbour_waits_for(), None, "a launch of the neighbour that has not come");
    println!(
        "{} events in {sent} messages, {jobs} throttled launches: {} ticks, {} workers, {} calls cut off; the neighbour \
         was {:?} s late at the most; {:?}",
        3 * events,
        stage.ticks,
        stage.workers,
        stage.cut_off,
        stage.lateness_s.iter().max(),
        stage.timeline.log().requests,
    );
    assert!(stage.lateness_s.iter().all(|late| *late <= 1), "{:?}", stage.lateness_s);
}
