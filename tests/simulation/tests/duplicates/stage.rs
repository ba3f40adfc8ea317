//! A world whose messages of one kind come again, and what can be seen of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::ClientId;
use tidegate_domain::target::Target;
use tidegate_engine::message::Message;
use tidegate_engine::{DeadLetterFilter, Handled};
use tidegate_simulation::World;
use tidegate_simulation::gate::{Gate, Task};
use tidegate_simulation::world::{CLIENT, JobSpec, Received};
use tidegate_testkit::queue;

use super::Kind;

/// Requests that two processes make for one message at the most.
const REQUESTS: usize = 10_000;
/// Rounds in which all must be done that can be at one instant.
const ROUNDS: usize = 50;

/// When messages come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    Never,
    /// While they are handled for the first time, in another process, which begins when the first has made so many requests.
    AtOnce {
        ahead: usize,
    },
    /// So many seconds after they were handled, and again when everything has ended.
    After {
        seconds: i64,
    },
}

/// What consumers see and what is recorded, without the instants.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Events by their ids, whichever of their deliveries: without token.
    pub(crate) events: BTreeMap<String, Value>,
    /// Ends of runs, and launches that were not over in time, that were told, by their ids.
    ends: BTreeMap<String, Value>,
    records: BTreeSet<String>,
}

impl Seen {
    /// What is in one and not in the other.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let (these, those) = (self.lines(), other.lines());
        let missing = these.difference(&those).map(|line| format!("- {line}"));
        missing.chain(those.difference(&these).map(|line| format!("+ {line}"))).collect()
    }

    fn lines(&self) -> BTreeSet<String> {
        let told = self.events.iter().chain(&self.ends).map(|(id, body)| format!("{id} {body}"));
        told.chain(self.records.iter().cloned()).collect()
    }
}

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) kind: Kind,
    pub(crate) queue: String,
    pub(crate) ends: String,
    /// How often a message of the kind came again.
    pub(crate) repeated: usize,
    repeats: Repeats,
    jobs: BTreeSet<String>,
    policies: BTreeSet<String>,
    /// What comes again, and when.
    later: Vec<(DateTime<Utc>, String)>,
    kept: Vec<String>,
    events: BTreeMap<String, Value>,
    told: BTreeMap<String, Value>,
}

pub(crate) fn client() -> ClientId {
    CLIENT.parse().unwrap()
}

/// A job under the policy `small`, whose endpoint may not be called.
pub(crate) fn refused(job: JobSpec) -> JobSpec {
    let target = Target::http("http://127.0.0.1:9/hook").unwrap();
    job.under("small").unwrap().with(|draft| draft.terms.target = target)
}

impl Stage {
    pub(crate) async fn new(kind: Kind, repeats: Repeats) -> Self {
        let world = World::new().await.unwrap();
        let (queue, ends) = (world.queue("jobs").await.unwrap(), world.queue("ends").await.unwrap());
        world.engine.tick().await.unwrap();
        Self {
            world,
            kind,
            queue,
            ends,
            repeated: 0,
            repeats,
            jobs: BTreeSet::new(),
            policies: BTreeSet::new(),
            later: Vec::new(),
            kept: Vec::new(),
            events: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// A job for so many seconds from now.
    pub(crate) async fn job(&mut self, id: &str, seconds: i64, change: impl FnOnce(JobSpec) -> JobSpec) {
        let launch_at = self.world.clock.now() + Duration::seconds(seconds);
        let spec = change(JobSpec::at(launch_at, &self.queue).unwrap().named(id));
        self.jobs.insert(self.world.create(spec).await.unwrap());
    }

    pub(crate) fn know(&mut self, jobs: impl IntoIterator<Item = String>) {
        self.jobs.extend(jobs);
    }

    pub(crate) async fn policy(&mut self, id: &str, max_in_flight: u32) {
        self.world.policy(id, max_in_flight, 600).await.unwrap();
        self.policies.insert(id.to_owned());
    }

    /// Time passes, in steps of at the most half a minute: ticks, pollers and consumers do what is theirs.
    pub(crate) async fn pass(&mut self, seconds: i64) {
        let until = self.world.clock.now() + Duration::seconds(seconds);
        while self.world.clock.now() < until {
            let left = (until - self.world.clock.now()).num_seconds();
            self.world.advance(left.clamp(1, 30));
            self.world.engine.tick().await.unwrap();
            self.settle().await;
        }
    }

    /// The scene comes to its end: minutes pass, and then hours.
    pub(crate) async fn end(&mut self) {
        self.pass(180).await;
        for _ in 0..3 {
            self.world.advance(2_500);
            self.pass(1).await;
        }
    }

    /// Handles all that is there, and consumers release what comes, until nothing does.
    pub(crate) async fn settle(&mut self) {
        for _ in 0..ROUNDS {
            self.pump().await;
            let events = self.world.consume(&self.queue).await.unwrap();
            self.note_ends().await;
            if events.is_empty() {
                return;
            }
            for event in &events {
                self.note(event);
            }
            let held: Vec<Received> = events.into_iter().filter(|event| event.token.is_some()).collect();
            self.release(&held).await;
        }
        panic!("consumers get something without end");
    }

    fn note(&mut self, event: &Received) {
        let mut body = serde_json::to_value(&event.body).unwrap();
        for of_delivery in ["token", "lease_expires_at"] {
            body.as_object_mut().unwrap().remove(of_delivery);
        }
        self.events.insert(event.body.event_id.clone(), body);
    }

    async fn note_ends(&mut self) {
        for text in queue::take_all(&self.world.deployment.sqs, &self.ends).await.unwrap() {
            let mut end: Value = serde_json::from_str(&text).unwrap();
            for instant in ["started_at", "finished_at", "seen_at"] {
                end.as_object_mut().unwrap().remove(instant);
            }
            self.told.insert(end["id"].to_string(), end);
        }
    }

    async fn release(&mut self, events: &[Received]) {
        match self.kind {
            Kind::OfReleaseQueue => {
                for events in events.chunks(3) {
                    let tokens: Vec<_> = events.iter().map(|event| event.body.token.clone()).collect();
                    self.handle(&json!({"client_id": CLIENT, "tokens": tokens}).to_string(), 1).await;
                }
            }
            Kind::Release => {
                // A call whose time is over leaves them to the dispatch queue.
                let over = self.world.clock.now() - Duration::seconds(1);
                tidegate_engine::within(over, self.world.release(events)).await.unwrap();
            }
            _ if events.is_empty() => {}
            _ => drop(self.world.release(events).await.unwrap()),
        }
    }

    /// Handles what our queues have, and what comes again by now.
    pub(crate) async fn pump(&mut self) {
        let now = self.world.clock.now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        let due: Vec<(DateTime<Utc>, String)> = due;
        for (_, text) in due {
            self.again(&text).await;
        }
        let urls =
            [self.world.deployment.scan_url(), self.world.deployment.dispatch_url()].map(str::to_owned);
        for url in urls {
            let mut last = String::new();
            for round in 0.. {
                assert!(round < ROUNDS, "{url} has messages without end, as {last}");
                let sqs = self.world.deployment.sqs.clone();
                let messages = queue::receive(&sqs, &url).await.unwrap();
                if messages.is_empty() {
                    break;
                }
                for message in messages {
                    let text = message.body().unwrap_or_default();
                    text.clone_into(&mut last);
                    if self.handle(text, queue::receive_count(&message)).await == Handled::Done {
                        queue::delete(&sqs, &url, &[message]).await.unwrap();
                    }
                }
            }
        }
    }

    fn is_of_kind(&self, text: &str) -> bool {
        match Message::decode(text) {
            Ok(message) => Kind::of(&message) == self.kind,
            Err(_) => self.kind == Kind::OfReleaseQueue,
        }
    }

    async fn handle(&mut self, text: &str, received: u32) -> Handled {
        if !self.is_of_kind(text) {
            return self.world.engine.handle(text, received).await;
        }
        match self.repeats {
            Repeats::Never => handled(self.world.engine.clone(), text.to_owned(), received).await,
            Repeats::AtOnce { ahead } => {
                self.repeated += 1;
                self.at_once(text, received, ahead)
            }
            Repeats::After { seconds } => {
                let at = self.world.clock.now() + Duration::seconds(seconds);
                self.later.push((at, text.to_owned()));
                self.kept.push(text.to_owned());
                handled(self.world.engine.clone(), text.to_owned(), received).await
            }
        }
    }

    /// Two processes handle a message, each a request at a time.
    fn at_once(&self, text: &str, received: u32, ahead: usize) -> Handled {
        let task = || {
            let gate = Arc::new(Gate::default());
            let engine = self.world.process(&gate).unwrap();
            Task::new(&gate, handled(engine, text.to_owned(), received))
        };
        let (mut first, mut second) = (task(), task());
        first.steps(ahead);
        for _ in 0..REQUESTS {
            if !(first.step() | second.step()) {
                break;
            }
        }
        assert!(first.is_over() && second.is_over(), "does not come to its end: {text}");
        let outcomes = [first.finish().unwrap(), second.finish().unwrap()];
        // Either of them deletes it.
        if outcomes.contains(&Handled::Done) { Handled::Done } else { Handled::Retry }
    }

    /// A message that was handled before comes to a process that remembers nothing of it.
    async fn again(&mut self, text: &str) {
        self.repeated += 1;
        let engine = self.world.process(&Arc::new(Gate::default())).unwrap();
        let outcome = handled(engine, text.to_owned(), 2).await;
        assert_eq!(outcome, Handled::Done, "{text}");
    }

    /// Whatever came later comes once more, and what follows from it takes its course.
    pub(crate) async fn repeat_all(&mut self) {
        for text in std::mem::take(&mut self.kept) {
            self.again(&text).await;
        }
        self.settle().await;
        self.pass(60).await;
    }

    pub(crate) async fn seen(&self) -> Seen {
        let (queries, store, client) = (self.world.engine.queries(), self.world.engine.store(), client());
        let mut records = BTreeSet::new();
        for job in &self.jobs {
            for run in self.world.runs(job).await.unwrap() {
                let detail = queries.run_detail(&client, &run.id).await.unwrap().unwrap().summary;
                let told = run.announced.map(|announced| announced.failure);
                records.insert(format!(
                    "run {} {:?} {:?} {:?} {told:?} {:?}",
                    run.id, detail.state, detail.tally, detail.reason, run.redriven
                ));
                let mut after = None;
                while let Some(page) = queries.events(&client, &run.id, after).await.unwrap() {
                    for event in page.rows {
                        records.insert(format!(
                            "event {} {:?} {:?} {:?} {:?}",
                            event.id, event.status, event.attempts, event.reason, event.text
                        ));
                        for failed in store.failed_deliveries(&client, &event.id).await.unwrap().rows {
                            records
                                .insert(format!("failed {} {} {}", event.id, failed.attempt, failed.reason));
                        }
                    }
                    after = page.next.and_then(|next| next.parse().ok());
                    if after.is_none() {
                        break;
                    }
                }
            }
        }
        let letters = self.world.engine.dead_letters();
        for letter in letters.list(&client, &DeadLetterFilter::default(), None).await.unwrap().rows {
            records.insert(format!(
                "letter {} {:?} {} {:?}",
                letter.event, letter.outcome, letter.attempts, letter.reason
            ));
        }
        for policy in &self.policies {
            let load = queries.policy(&client, &policy.parse().unwrap()).await.unwrap().unwrap().load;
            records.insert(format!("policy {policy} {load:?}"));
        }
        let parts = store.parts(None).await.unwrap().rows.len();
        records.insert(format!("{parts} parts"));
        Seen { events: self.events.clone(), ends: self.told.clone(), records }
    }
}

async fn handled(engine: tidegate_engine::Engine, text: String, received: u32) -> Handled {
    match Message::decode(&text) {
        Ok(_) => engine.handle(&text, received).await,
        Err(_) => engine.handle_releases(&[(&text, received)]).await.remove(0),
    }
}
