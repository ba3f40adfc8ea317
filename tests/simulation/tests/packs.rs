//! Single events under a policy: they wait in packs, each in one pack, once, and stay single events for their clients.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::{ClientId, JobId, RunId};
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::{JobDelete, RunCancel, RunState};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec, Received};

/// A world with a policy, and jobs under it that launch once, at one instant.
struct Stage {
    world: World,
    queue: String,
    launch_at: DateTime<Utc>,
}

impl Stage {
    async fn new(tokens: u32) -> Self {
        let mut world = World::new().await.unwrap();
        // Also those that are few wait in packs.
        world.engine = world.engine.with_few(0);
        let queue = world.queue("jobs").await.unwrap();
        world.policy("small", tokens, 600).await.unwrap();
        world.engine.tick().await.unwrap();
        let launch_at = world.clock.now() + Duration::minutes(30);
        Self { world, queue, launch_at }
    }

    fn job(&self, name: &str) -> JobSpec {
        JobSpec::at(self.launch_at, &self.queue).unwrap().under("small").unwrap().named(name)
    }

    async fn jobs(&self, count: usize) {
        let jobs = (0..count).map(|number| (Some(id(number)), self.job(&name(number)).into_draft()));
        let created = self.world.engine.jobs().create_all(&client(), jobs.collect()).await;
        assert!(created.iter().all(Result::is_ok), "{created:?}");
    }

    /// The tick before the launch, then the launch.
    async fn launch(&self) {
        self.world.advance(29 * 60);
        assert!(self.world.engine.tick().await.unwrap().won);
        self.world.advance(60);
        self.world.pump().await.unwrap();
    }

    /// Takes what came and releases it, until nothing comes any more; the jobs whose events came.
    async fn drain(&self) -> Vec<String> {
        let mut came = Vec::new();
        loop {
            let events: Vec<Received> = self.world.consume(&self.queue).await.unwrap();
            if events.is_empty() {
                return came;
            }
            self.world.release(&events).await.unwrap();
            self.world.pump().await.unwrap();
            came.extend(events.into_iter().map(|event| event.body.job_id));
        }
    }

    fn run(&self, job: &str) -> RunId {
        RunId::new(job.parse().unwrap(), 1, self.launch_at)
    }

    async fn state(&self, job: &str) -> (RunState, Option<String>) {
        let detail =
            self.world.engine.queries().run_detail(&client(), &self.run(job)).await.unwrap().unwrap();
        (detail.summary.state, detail.summary.reason)
    }
}

/// More than fit into one pack.
const JOBS: usize = 260;

fn name(number: usize) -> String {
    format!("job-{number:03}")
}

fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

fn id(number: usize) -> JobId {
    name(number).parse().unwrap()
}

fn names(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers.into_iter().map(name).collect()
}

/// Kills the caller at a request.
struct DiesAt {
    at: u64,
    seen: Arc<AtomicU64>,
}

impl FaultPlan for DiesAt {
    fn on_request(&self, _: &Call) -> Fault {
        match self.seen.fetch_add(1, Ordering::Relaxed) {
            seen if seen == self.at => Fault::CrashAfter,
            _ => Fault::None,
        }
    }
}

/// A tick dies at every fourth of its requests that may write packs. Before the next one repeats it, a job is created and one is
/// deleted.
#[tokio::test]
async fn an_occurrence_is_in_one_pack_once_though_a_tick_is_repeated_after_rows_changed() {
    let mut packed_before = 0;
    for at in (0..64).step_by(16).chain((64..).step_by(4)) {
        let stage = Stage::new(12).await;
        stage.jobs(JOBS).await;
        let world = &stage.world;
        world.advance(29 * 60);
        let seen = Arc::new(AtomicU64::new(0));
        world.embedded.inject(DiesAt { at, seen: Arc::clone(&seen) });
        let is_over = world.engine.tick().await.is_ok();
        world.embedded.inject_nothing();
        packed_before += usize::from(!world.waiting_runs("small").await.unwrap().is_empty());
        world.create(stage.job(&name(JOBS))).await.unwrap();
        world.engine.jobs().delete(&client(), &id(7), None).await.unwrap();
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump_scans().await.unwrap();
        let waiting = world.waiting_runs("small").await.unwrap();
        let each: BTreeSet<String> = waiting.iter().map(|run| run.job().to_string()).collect();
        assert_eq!(each.len(), waiting.len(), "died at request {at}: an occurrence waits twice");
        world.advance(60);
        world.pump().await.unwrap();
        let came = stage.drain().await;
        assert_eq!(came.len(), came.iter().collect::<BTreeSet<_>>().len(), "died at request {at}");
        assert_eq!(
            came.into_iter().collect::<BTreeSet<_>>(),
            names((0..=JOBS).filter(|n| *n != 7)),
            "died at request {at}"
        );
        if is_over {
            break;
        }
    }
    assert!(packed_before > 2, "no tick died after some of its packs were written");
}

#[tokio::test]
async fn what_waits_of_a_job_is_not_delivered_once_it_is_deleted_paused_or_changed() {
    // All wait in the range of the only group, behind the first; or they are in the line still.
    for in_line in [false, true] {
        let stage = Stage::new(1).await;
        stage.jobs(20).await;
        let world = &stage.world;
        match in_line {
            true => {
                world.advance(29 * 60 + 30);
                world.engine.tick().await.unwrap();
            }
            false => stage.launch().await,
        }
        world.engine.jobs().delete(&client(), &id(5), None).await.unwrap();
        // What was due before these changes is delivered as it was.
        world.engine.jobs().pause(&client(), &id(6), true, None).await.unwrap();
        world.replace(stage.job(&name(7)).attempts(3).unwrap()).await.unwrap();
        world.advance(60);
        world.pump().await.unwrap();
        let came: BTreeSet<String> = stage.drain().await.into_iter().collect();
        let expected = match in_line {
            false => names((0..20).filter(|n| *n != 5)),
            // Its new revision launches in the place of the one that was replaced.
            true => names((0..20).filter(|n| ![5, 6].contains(n))),
        };
        assert_eq!(came, expected, "in the line: {in_line}");
        assert_eq!(stage.state(&name(5)).await, (RunState::Stopped, Some("job_deleted".to_owned())));
        if in_line {
            assert_eq!(stage.state(&name(7)).await, (RunState::Stopped, Some("rescheduled".to_owned())));
        }
    }
}

#[tokio::test]
async fn a_job_that_is_created_anew_does_not_bring_back_what_was_cancelled_with_the_one_before() {
    let stage = Stage::new(1).await;
    stage.jobs(5).await;
    stage.launch().await;
    let world = &stage.world;
    world.engine.jobs().delete(&client(), &id(3), None).await.unwrap();
    let later = JobSpec::cron("0 0 1 1 *", "UTC", &stage.queue).unwrap().named(&name(3));
    world.create(later).await.unwrap();
    let came: BTreeSet<String> = stage.drain().await.into_iter().collect();
    assert_eq!(came, names([0, 1, 2, 4]));
}

#[tokio::test]
async fn a_single_event_is_cancelled_by_its_run() {
    let stage = Stage::new(1).await;
    stage.jobs(5).await;
    stage.launch().await;
    let cancel = async |number| {
        stage.world.engine.jobs().cancel_run(&client(), &stage.run(&name(number))).await.unwrap()
    };
    assert_eq!(cancel(3).await, RunCancel::Done);
    assert_eq!(cancel(3).await, RunCancel::Over);
    let came: BTreeSet<String> = stage.drain().await.into_iter().collect();
    assert_eq!(came, names([0, 1, 2, 4]));
    assert_eq!(stage.state(&name(3)).await, (RunState::Stopped, Some("cancelled".to_owned())));
    assert_eq!(stage.state(&name(4)).await, (RunState::Finished, None));
    assert_eq!(cancel(4).await, RunCancel::Over);
}

/// Events of one pack may differ in all but client, policy, priority, cost and minute.
#[tokio::test]
async fn events_of_one_pack_differ_in_target_payload_age_and_second() {
    let stage = Stage::new(2).await;
    let world = &stage.world;
    let other = world.queue("other").await.unwrap();
    let missing = stage.queue.replace("jobs", "missing");
    let at = |seconds: i64, queue: &str| {
        let launch_at = stage.launch_at + Duration::seconds(seconds);
        JobSpec::at(launch_at, queue).unwrap().under("small").unwrap()
    };
    world.create(at(40, &stage.queue).named("late")).await.unwrap();
    world.create(at(0, &stage.queue).named("first")).await.unwrap();
    world.create(at(1, &other).named("elsewhere")).await.unwrap();
    world.create(at(0, &missing).named("nowhere").attempts(1).unwrap()).await.unwrap();
    world.create(at(2, &stage.queue).named("brief").relevant_for(10).unwrap()).await.unwrap();
    world.advance(29 * 60);
    world.engine.tick().await.unwrap();
    let line = world.engine.store().line(&client(), &"small".parse().unwrap(), None).await.unwrap();
    assert_eq!(line.rows.iter().map(|entry| entry.count).collect::<Vec<_>>(), [5], "{line:?}");
    world.advance(60);
    world.pump().await.unwrap();
    assert_eq!(stage.drain().await, ["first"], "the others are not due yet");
    // A consumer that is slow: both tokens are taken when the brief one is due.
    world.advance(1);
    world.pump().await.unwrap();
    let held = world.consume(&other).await.unwrap();
    assert_eq!(held.len(), 1);
    world.advance(19);
    world.pump().await.unwrap();
    world.release(&held).await.unwrap();
    world.advance(40);
    world.engine.tick().await.unwrap();
    world.pump().await.unwrap();
    assert_eq!(stage.drain().await, ["late"]);
    let run = |job: &str, seconds| {
        RunId::new(job.parse().unwrap(), 1, stage.launch_at + Duration::seconds(seconds))
    };
    let state = async |job: &str, seconds| {
        let detail = world.engine.queries().run_detail(&client(), &run(job, seconds)).await.unwrap().unwrap();
        (detail.summary.state, detail.summary.tally.dead, detail.summary.reason)
    };
    assert_eq!(state("elsewhere", 1).await, (RunState::Finished, 0, None));
    assert_eq!(state("nowhere", 0).await, (RunState::Finished, 1, None));
    assert_eq!(state("brief", 2).await, (RunState::Stopped, 1, Some("expired".to_owned())));
    let record = world
        .engine
        .queries()
        .events(&client(), &run("nowhere", 0), None)
        .await
        .unwrap()
        .unwrap()
        .rows
        .remove(0);
    assert!(record.reason.is_some(), "{record:?}");
}

#[tokio::test]
async fn a_lowered_limit_gives_the_rest_of_a_pack_back_to_the_line() {
    let stage = Stage::new(30).await;
    stage.jobs(200).await;
    stage.launch().await;
    stage.world.change_policy("small", 5, 600).await.unwrap();
    let mut came = stage.drain().await;
    for _ in 0..3 {
        stage.world.advance(60);
        stage.world.engine.tick().await.unwrap();
        stage.world.pump().await.unwrap();
        came.extend(stage.drain().await);
    }
    came.sort_unstable();
    assert_eq!(came, names(0..200).into_iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn the_runs_of_a_cron_job_are_listed_though_they_have_no_rows() {
    let stage = Stage::new(5).await;
    let world = &stage.world;
    for other in ["each", "beside"] {
        let job = JobSpec::cron("* * * * *", "UTC", &stage.queue).unwrap().under("small").unwrap();
        world.create(job.named(other)).await.unwrap();
    }
    for _ in 0..60 {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
        stage.drain().await;
    }
    let (mut listed, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = world.engine.queries().runs(&client(), &"each".parse().unwrap(), after).await.unwrap();
        listed.extend(page.rows);
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let launches: Vec<i64> = listed.iter().map(|run| run.id.launch_at().timestamp()).collect();
    assert!(launches.windows(2).all(|two| two[0] - two[1] == 60), "{launches:?}");
    let finished = listed.iter().filter(|run| run.state == RunState::Finished).count();
    assert!(finished >= 55 && pages > 1, "{finished} of {} on {pages} pages", listed.len());
}

/// A slot group knew many packs of the job, and marked so few in a call that the call gave up (seed 1795371200361: I2).
#[tokio::test]
async fn a_job_is_deleted_whose_events_are_in_many_packs() {
    let stage = Stage::new(12).await;
    let job = JobSpec::cron("* * * * *", "UTC", &stage.queue).unwrap().under("small").unwrap();
    stage.world.create(job.named("each")).await.unwrap();
    let mut held = 0;
    // Within its lease, nothing comes back.
    for _ in 0..9 {
        stage.world.advance(60);
        stage.world.engine.tick().await.unwrap();
        stage.world.pump().await.unwrap();
        held += stage.world.consume(&stage.queue).await.unwrap().len();
    }
    assert!(held > 8, "{held} events are held");
    let deleted = stage.world.engine.jobs().delete(&client(), &"each".parse().unwrap(), None).await.unwrap();
    assert_eq!(deleted, JobDelete::Done);
}
