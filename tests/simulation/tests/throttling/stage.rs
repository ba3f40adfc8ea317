//! A world with one queue, whose jobs and policies say what a test needs.

use std::sync::Arc;

use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Flow;
use tidegate_domain::ids::ClientId;
use tidegate_domain::policy::PolicyTerms;
use tidegate_engine::{Engine, Load, Outcome, Release, Released, Written};
use tidegate_simulation::World;
use tidegate_simulation::pace::Pace;
use tidegate_simulation::world::{CLIENT, JobSpec, Received};
use tidegate_store::runs::RunRow;

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) queue: String,
}

pub(crate) fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.engine.tick().await.unwrap();
        Self { world, queue }
    }

    pub(crate) async fn policy(&self, id: &str, terms: PolicyTerms) {
        let written =
            self.world.engine.policies().create(&client(), id.parse().unwrap(), terms).await.unwrap();
        assert!(matches!(written, Written::Created(_)), "{written:?}");
    }

    pub(crate) async fn change(&self, id: &str, terms: PolicyTerms) {
        let id = id.parse().unwrap();
        let written = self.world.engine.policies().replace(&client(), &id, terms, None).await.unwrap();
        assert!(matches!(written, Written::Replaced(_)), "{written:?}");
    }

    pub(crate) async fn pause(&self, id: &str, paused: bool) {
        let id = id.parse().unwrap();
        let written = self.world.engine.policies().pause(&client(), &id, paused, None).await.unwrap();
        assert!(matches!(written, Written::Replaced(_)), "{written:?}");
    }

    /// A job of `count` events for now, under a policy.
    pub(crate) async fn job(&self, id: &str, count: u64, policy: &str, flow: Flow) {
        self.job_in(0, id, count, policy, flow).await;
    }

    /// The same for `seconds` from now.
    pub(crate) async fn job_in(&self, seconds: i64, id: &str, count: u64, policy: &str, flow: Flow) {
        let launch_at = self.world.clock.now() + chrono::Duration::seconds(seconds);
        let spec = JobSpec::at(launch_at, &self.queue).unwrap().of(count).unwrap().under(policy).unwrap();
        self.put(id, spec, flow).await;
    }

    pub(crate) async fn put(&self, id: &str, spec: JobSpec, flow: Flow) {
        let mut draft = spec.into_draft();
        draft.terms.flow = flow;
        let id = Some(id.parse().unwrap());
        let written = self.world.engine.jobs().create(&client(), id, draft).await.unwrap();
        assert!(matches!(written, Written::Created(_)), "{written:?}");
    }

    /// What arrived at the consumer since the last look.
    pub(crate) async fn arrived(&self) -> Vec<Received> {
        self.world.pump().await.unwrap();
        self.world.consume(&self.queue).await.unwrap()
    }

    pub(crate) async fn release(&self, events: &[Received]) {
        self.end(events, Outcome::Succeeded).await;
    }

    /// The same where an event may have reached its consumer though nobody was told: then it is sent again under another token,
    /// and this one has ended.
    pub(crate) async fn release_those_held(&self, events: &[Received]) {
        let releases =
            events.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Succeeded));
        let answers = self.world.engine.tokens().release(&client(), releases.collect()).await.unwrap();
        let has_ended = |answer: &Released| matches!(answer, Released::Released | Released::AlreadyReleased);
        assert!(answers.iter().all(|(_, answer)| has_ended(answer)), "{answers:?}");
    }

    pub(crate) async fn end(&self, events: &[Received], outcome: Outcome) {
        let releases = events.iter().map(|event| Release::new(event.token.clone().unwrap(), outcome));
        let answers = self.world.engine.tokens().release(&client(), releases.collect()).await.unwrap();
        assert!(answers.iter().all(|(_, answer)| *answer == Released::Released), "{answers:?}");
    }

    /// A process whose updates of slot groups are counted.
    pub(crate) fn counted(&self) -> (Engine, Arc<Pace>) {
        let updates = Pace::of(|operation, body| {
            operation == "UpdateItem"
                && body["TableName"].as_str().is_some_and(|name| name.ends_with("-policies"))
        });
        (self.world.paced(&updates).unwrap(), updates)
    }

    /// Moves on by seconds, with a tick at each minute, and returns what arrived.
    pub(crate) async fn wait(&self, seconds: i64) -> Vec<Received> {
        let mut arrived = Vec::new();
        for _ in 0..seconds {
            let minute = self.world.clock.now().timestamp().div_euclid(60);
            self.world.advance(1);
            if self.world.clock.now().timestamp().div_euclid(60) != minute {
                self.world.engine.tick().await.unwrap();
            }
            arrived.extend(self.arrived().await);
        }
        arrived
    }

    pub(crate) async fn load(&self, id: &str) -> Load {
        self.world.engine.queries().policy(&client(), &id.parse().unwrap()).await.unwrap().unwrap().load
    }

    /// How many events of a job's last run have come to an end.
    pub(crate) async fn ended(&self, job: &str) -> u32 {
        let runs =
            self.world.engine.queries().runs(&client(), &job.parse().unwrap(), None).await.unwrap().rows;
        runs.first().map_or(0, |run| run.tally.total())
    }

    /// The runs of a job, the latest first.
    pub(crate) async fn runs(&self, job: &str) -> Vec<RunRow> {
        self.world.engine.store().runs(&client(), &job.parse().unwrap(), None).await.unwrap().rows
    }
}

pub(crate) fn terms(max_in_flight: u32) -> PolicyTerms {
    PolicyTerms::new(max_in_flight, 60).unwrap()
}

pub(crate) fn jobs_of(events: &[Received]) -> Vec<&str> {
    events.iter().map(|event| &*event.body.job_id).collect()
}
