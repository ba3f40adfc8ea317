//! A deployment whose emitter is cut off: a tick each minute, workers on the scan queue, a neighbour who looks at the clock.

use std::sync::Arc;

use aws_sdk_sqs::types::Message as SqsMessage;
use chrono::{DateTime, Utc};
use tidegate_engine::message::Message;
use tidegate_engine::random::SeededRandom;
use tidegate_engine::{Engine, Handled, Written};
use tidegate_simulation::World;
use tidegate_simulation::world::JobSpec;
use tidegate_testkit::queue;

use super::timeline::{Running, Timeline, slow};

/// Workers on the scan queue at once: what an event source of AWS starts with.
const WORKERS: usize = 5;
/// How often the event source looks for messages, in milliseconds.
const LOOK_MS: i64 = 100;
const MINUTE_MS: i64 = 60_000;

/// A call of the emitter's function.
struct Call {
    running: Running<Option<SqsMessage>>,
    cut_off_at_ms: i64,
}

pub struct Stage {
    pub world: World,
    pub timeline: Arc<Timeline>,
    /// An engine whose requests take time.
    emitter: Engine,
    /// How long a call of the emitter's function may take, in milliseconds.
    limit_ms: i64,
    calls: Vec<Call>,
    pub ticks: u64,
    pub workers: u64,
    pub cut_off: u64,
    neighbours: String,
    /// What of the log was looked at for the neighbour.
    seen: usize,
    /// The messages of the neighbour that are not due yet.
    waiting: Vec<(DateTime<Utc>, String)>,
    /// When the neighbour's launches arrived: how late each was, in seconds.
    pub lateness_s: Vec<i64>,
    next_launch: DateTime<Utc>,
}

impl Stage {
    /// A stage at noon, on which a neighbour's job fires each minute.
    pub async fn new(limit_ms: i64) -> Self {
        let world = World::new().await.unwrap();
        let timeline = Timeline::new(world.clock.clone());
        let process = world.deployment.process().random(SeededRandom::new(7));
        let process = process.dynamodb_through(|http| slow(http, &timeline)).unwrap();
        let process = process.sqs_through(|http| slow(http, &timeline)).unwrap();
        // Also the few of each policy join their lines.
        let emitter = process.start(world.clock.clone()).with_few(0);
        let neighbours = world.queue("neighbours").await.unwrap();
        let next_launch = DateTime::from_timestamp_millis(timeline.now_ms() + 10 * MINUTE_MS).unwrap();
        let mut stage = Self {
            world,
            timeline,
            emitter,
            limit_ms,
            calls: Vec::new(),
            ticks: 0,
            workers: 0,
            cut_off: 0,
            neighbours,
            seen: 0,
            waiting: Vec::new(),
            lateness_s: Vec::new(),
            next_launch,
        };
        let every_minute = JobSpec::cron("* * * * *", "Europe/Berlin", &stage.neighbours).unwrap();
        let client = "neighbour".parse().unwrap();
        let id = Some("each-minute".parse().unwrap());
        let written = stage.world.engine.jobs().create(&client, id, every_minute.into_draft()).await.unwrap();
        assert!(matches!(written, Written::Created(_)), "{written:?}");
        stage.minutes(6).await;
        stage
    }

    /// Lets minutes pass, each with its tick.
    pub async fn minutes(&mut self, minutes: i64) {
        for _ in 0..minutes {
            let end_ms = (self.timeline.now_ms() / MINUTE_MS + 1) * MINUTE_MS;
            self.start_tick();
            while self.timeline.now_ms() < end_ms {
                self.look_for_parts().await;
                self.work_until((self.timeline.now_ms() + LOOK_MS).min(end_ms)).await;
                self.look_after_neighbour().await;
            }
        }
    }

    fn begin(&mut self, work: impl Future<Output = Option<SqsMessage>> + Send + 'static) {
        let cut_off_at_ms = self.timeline.now_ms() + self.limit_ms;
        self.calls.push(Call { running: Running::new(work), cut_off_at_ms });
    }

    fn start_tick(&mut self) {
        let emitter = self.emitter.clone();
        self.ticks += 1;
        self.begin(async move {
            emitter.tick().await.unwrap();
            None
        });
    }

    async fn look_for_parts(&mut self) {
        while self.calls.len() < WORKERS {
            let messages = self.world.receive_scans().await.unwrap();
            if messages.is_empty() {
                return;
            }
            for message in messages {
                let emitter = self.emitter.clone();
                self.workers += 1;
                self.begin(async move {
                    let received = queue::receive_count(&message);
                    let handled = emitter.handle(message.body().unwrap(), received).await;
                    (handled == Handled::Done).then_some(message)
                });
            }
        }
    }

    /// Lets the calls go on until an instant, and cuts off those whose time is over.
    async fn work_until(&mut self, until_ms: i64) {
        while self.timeline.now_ms() < until_ms {
            let mut left = Vec::new();
            for mut call in std::mem::take(&mut self.calls) {
                match call.running.poll() {
                    Some(Some(message)) => {
                        self.world.delete_scans(&[message]).await.unwrap();
                    }
                    Some(None) => {}
                    None if self.timeline.now_ms() >= call.cut_off_at_ms => self.cut_off += 1,
                    None => left.push(call),
                }
            }
            self.calls = left;
            let until_ms = self.calls.iter().map(|call| call.cut_off_at_ms).fold(until_ms, i64::min);
            self.timeline.go_on(until_ms);
        }
    }

    /// Delivers the neighbour's messages that are due, and notes how late its launches came.
    async fn look_after_neighbour(&mut self) {
        let sent = self.timeline.log().dispatched.iter().skip(self.seen).cloned().collect::<Vec<_>>();
        self.seen += sent.len();
        for message in sent {
            if matches!(Message::decode(&message.body), Ok(Message::Chunk(chunk)) if chunk.client == "neighbour")
            {
                self.waiting.push((message.visible_at, message.body));
            }
        }
        let now = DateTime::from_timestamp_millis(self.timeline.now_ms()).unwrap();
        let (due, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(at, _)| *at <= now);
        self.waiting = waiting;
        let due: Vec<(DateTime<Utc>, String)> = due;
        if due.is_empty() {
            return;
        }
        for (_, body) in due {
            assert_eq!(self.world.engine.handle(&body, 1).await, Handled::Done);
        }
        let mut launches: Vec<DateTime<Utc>> = Vec::new();
        for event in self.world.consume(&self.neighbours).await.unwrap() {
            launches.push(event.body.launch_at.parse().unwrap());
        }
        launches.sort_unstable();
        for launch_at in launches {
            assert!(launch_at <= now, "the launch of {launch_at} came at {now}");
            if launch_at == self.next_launch {
                self.lateness_s.push((now - launch_at).num_seconds());
                self.next_launch += chrono::Duration::minutes(1);
            }
        }
    }

    /// Whether all of the neighbour's launches that are over a minute old have come.
    pub fn neighbour_waits_for(&self) -> Option<DateTime<Utc>> {
        let now = DateTime::from_timestamp_millis(self.timeline.now_ms()).unwrap();
        (self.next_launch + chrono::Duration::seconds(61) < now).then_some(self.next_launch)
    }
}
