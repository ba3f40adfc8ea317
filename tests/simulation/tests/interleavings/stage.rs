//! The stage: one world, a case each minute, each with a tick of its own and processes of its own.
//!
//! A job is made ready some minutes before its case, so that the emitter owns it by then, and lives on for some minutes,
//! so that it is handed over to the emitter again; then it is deleted, and its account is settled.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Trigger;
use tidegate_engine::random::{Random as _, SeededRandom};
use tidegate_engine::{Engine, EngineError, JobDelete, TickReport, Written};
use tidegate_simulation::World;
use tidegate_simulation::gate::{Gate, Task};
use tidegate_simulation::world::{Account, CLIENT, JobSpec};

use super::act::{Act, Done};
use super::case::Case;

/// Minutes from a job's preparation to its case.
const LEAD: usize = 5;
/// Minutes from a case to the end of its job.
const LIFE: usize = 13;

/// In which order the requests of a case are made. Numbers are requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Some of one, some of the other, the rest of the one, the rest of the other.
    Cut {
        writer_first: bool,
        writer: usize,
        tick: usize,
    },
    /// Any order of a writer and two ticks.
    Random(u64),
    WriterDies {
        writer: usize,
        tick: usize,
    },
    TickDies {
        writer: usize,
        tick: usize,
    },
    /// It goes on minutes later, when that minute's tick has made some requests.
    WriterIsLate {
        writer: usize,
        minutes: usize,
        tick: usize,
    },
    /// A wrong protocol: the writer dies, and its outbox row is removed.
    OwedIsForgotten {
        writer: usize,
    },
    /// A wrong protocol: the writer goes on minutes later with the watermark as it was.
    WatermarkIsReadFirst {
        writer: usize,
        minutes: usize,
    },
}

impl Plan {
    pub fn cut(writer_first: bool, writer: usize, tick: usize) -> Self {
        Self::Cut { writer_first, writer, tick }
    }

    fn is_orderly(self) -> bool {
        matches!(self, Self::Cut { .. } | Self::Random(_))
    }
}

/// What came of the cases.
#[derive(Debug, Default)]
pub struct Found {
    pub cases: usize,
    pub wrong: Vec<String>,
    pub writer_steps: usize,
    pub tick_steps: usize,
}

impl Found {
    pub fn told(&self) -> String {
        self.wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    }
}

type Writer = Task<Result<Done, EngineError>>;
type Tick = Task<Result<TickReport, EngineError>>;

/// A writer that goes on at a later minute.
struct Late {
    minute: usize,
    tick: usize,
    case: usize,
    writer: Writer,
}

pub struct Stage {
    act: Act,
    world: World,
    queue: String,
    account: Account,
    cases: Vec<Case>,
    late: Vec<Late>,
    /// Minutes up to this one feel that a tick died: launches come late, or twice.
    shaken_to: usize,
    /// Where the ids that the writers generate lie; the processes draw the same numbers each time.
    shard: u32,
    found: Found,
}

impl Stage {
    /// Plays one case for each plan.
    pub async fn play(act: Act, plans: Vec<Plan>) -> Found {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        let mut stage = Self {
            act,
            world,
            queue,
            account: Account::default(),
            cases: Vec::new(),
            late: Vec::new(),
            shaken_to: 0,
            shard: 0,
            found: Found { cases: plans.len(), ..Found::default() },
        };
        stage.shard = stage.shard_of_generated_ids().await;
        let mut plans = VecDeque::from(plans);
        let minutes = plans.len() + LEAD + LIFE + 1;
        stage.world.engine.tick().await.unwrap();
        for minute in 0..minutes {
            stage.minute(minute, &mut plans).await;
        }
        stage.found
    }

    async fn shard_of_generated_ids(&self) -> u32 {
        let (_, engine) = self.process();
        let far = Trigger::at(self.world.clock.now() + Duration::days(300));
        let draft = JobSpec::new(far, &self.queue).unwrap().into_draft();
        let written = engine.jobs().create(&CLIENT.parse().unwrap(), None, draft).await.unwrap();
        let Written::Created(job) = written else { panic!("{written:?}") };
        job.id.one_time_shard().unwrap().shard
    }

    async fn minute(&mut self, minute: usize, plans: &mut VecDeque<Plan>) {
        self.world.advance(20);
        self.collect().await;
        if minute < self.found.cases {
            self.prepare(minute).await;
        }
        match minute.checked_sub(LEAD).and_then(|_| plans.pop_front()) {
            Some(plan) => self.case(minute, plan).await,
            None => self.tick_with_late_writers(minute).await,
        }
        self.collect().await;
        self.world.advance(27);
        self.collect().await;
        if let Some(case) = minute.checked_sub(LEAD + LIFE).filter(|case| *case < self.found.cases) {
            self.end(case).await;
        }
        self.collect().await;
        self.world.advance(13);
        self.collect().await;
        if let Some(case) = minute.checked_sub(LEAD + LIFE).filter(|case| *case < self.found.cases) {
            self.found.wrong.extend(self.cases[case].verdict(&self.world, &self.account).await);
        }
    }

    async fn collect(&mut self) {
        self.account.collect(&self.world, &self.queue).await.unwrap();
    }

    async fn prepare(&mut self, number: usize) {
        let mut case = Case::new(format!("case-{number}").parse().unwrap());
        for written in self.act.prepare(&self.world.engine, &case.id, &self.queue).await {
            let (Written::Created(job) | Written::Replaced(job)) = written else { panic!("{written:?}") };
            case.is(job);
        }
        self.cases.push(case);
    }

    /// A process of its own for each call: nothing is remembered from another.
    fn process(&self) -> (Arc<Gate>, Engine) {
        let gate = Arc::new(Gate::default());
        let engine = self.world.process(&gate).unwrap();
        (gate, engine)
    }

    fn tick(&self, case: usize) -> Tick {
        let (gate, engine) = self.process();
        gate.stop_only(self.act.stops(&self.cases[case].id, self.shard, self.world.clock.now()));
        Task::new(&gate, async move { engine.tick().await })
    }

    fn writer(&self, case: usize) -> (Arc<Gate>, Writer) {
        let (gate, engine) = self.process();
        let call = self.act.call(engine, self.cases[case].id.clone(), self.queue.clone());
        let writer = Task::new(&gate, call);
        (gate, writer)
    }

    /// The tick of a minute, with the writers beside it that go on in it.
    async fn tick_with_late_writers(&mut self, minute: usize) {
        let (due, later) = std::mem::take(&mut self.late).into_iter().partition(|late| late.minute == minute);
        self.late = later;
        let due: Vec<Late> = due;
        let Some(first) = due.first() else {
            self.world.engine.tick().await.unwrap();
            return;
        };
        let mut tick = self.tick(first.case);
        for late in due {
            tick.steps(late.tick);
            self.answered(late.case, late.writer.finish()).await;
        }
        tick.finish().unwrap().unwrap();
    }

    async fn case(&mut self, minute: usize, plan: Plan) {
        let number = minute - LEAD;
        self.cases[number].told = format!("{plan:?}");
        self.cases[number].strict = plan.is_orderly() && minute > self.shaken_to;
        let (gate, mut writer) = self.writer(number);
        let mut tick = self.tick(number);
        match plan {
            Plan::Cut { writer_first, writer: j, tick: k } => {
                if !writer_first {
                    tick.steps(k);
                }
                self.found.writer_steps = writer.steps(j).max(self.found.writer_steps);
                if writer_first {
                    tick.steps(k);
                }
                self.finish(number, writer, tick, writer_first).await;
            }
            Plan::Random(seed) => {
                let mut second = self.tick(number);
                let dice = SeededRandom::new(seed);
                while !(writer.is_over() && tick.is_over() && second.is_over()) {
                    match dice.next_u64() % 8 {
                        0..3 => drop(writer.step()),
                        3..7 => drop(tick.step()),
                        _ => drop(second.step()),
                    }
                }
                second.finish().unwrap().unwrap();
                self.finish(number, writer, tick, true).await;
            }
            Plan::WriterDies { writer: j, tick: k } => {
                tick.steps(k);
                writer.steps(j);
                drop(writer);
                tick.finish().unwrap().unwrap();
                self.look_up(number).await;
            }
            Plan::TickDies { writer: j, tick: k } => {
                writer.steps(j);
                tick.steps(k);
                drop(tick);
                self.shaken_to = minute + 2;
                self.answered(number, writer.finish()).await;
            }
            Plan::WriterIsLate { writer: j, minutes, tick: k } => {
                writer.steps(j);
                self.tick_with_late_writers(minute).await;
                self.late.push(Late { minute: minute + minutes, tick: k, case: number, writer });
            }
            Plan::OwedIsForgotten { writer: j } => {
                writer.steps(j);
                drop(writer);
                self.look_up(number).await;
                self.forget_owed(number).await;
                tick.finish().unwrap().unwrap();
            }
            Plan::WatermarkIsReadFirst { writer: j, minutes } => {
                let watermark = self.world.engine.store().watermark().await.unwrap().unwrap();
                writer.steps(j);
                gate.freeze_watermark(watermark.planned_to.timestamp());
                self.tick_with_late_writers(minute).await;
                self.late.push(Late { minute: minute + minutes, tick: 0, case: number, writer });
            }
        }
    }

    async fn finish(&mut self, case: usize, writer: Writer, mut tick: Tick, writer_first: bool) {
        if !writer_first {
            self.found.tick_steps = tick.steps(usize::MAX).max(self.found.tick_steps);
        }
        self.answered(case, writer.finish()).await;
        self.found.tick_steps = tick.steps(usize::MAX).max(self.found.tick_steps);
        tick.finish().unwrap().unwrap();
    }

    /// A client is told what came of its call.
    async fn answered(&mut self, case: usize, done: Option<Result<Done, EngineError>>) {
        let now = self.world.clock.now();
        match done.unwrap().unwrap() {
            Done::Written(written) => {
                let (Written::Created(job) | Written::Replaced(job)) = *written else {
                    panic!("{}: {written:?}", self.cases[case].told)
                };
                self.cases[case].id = job.id.clone();
                self.cases[case].is(job);
                self.cases[case].answered(now);
            }
            Done::Deleted(JobDelete::Done) => self.cases[case].ends(now),
            other => panic!("{}: {other:?}", self.cases[case].told),
        }
    }

    /// Nobody was told: what is stored counts.
    async fn look_up(&mut self, case: usize) {
        let now = self.world.clock.now();
        let client = CLIENT.parse().unwrap();
        match self.world.engine.jobs().get(&client, &self.cases[case].id).await.unwrap() {
            Some(job) => self.cases[case].is(job),
            None => self.cases[case].ends(now),
        }
    }

    async fn forget_owed(&self, case: usize) {
        let (store, client) = (self.world.engine.store(), CLIENT.parse().unwrap());
        if let Some(outbox) = store.outbox_of(&client, &self.cases[case].id).await.unwrap() {
            store.ack_outbox(&outbox.child).await.unwrap();
        }
    }

    async fn end(&mut self, case: usize) {
        let (now, client) = (self.world.clock.now(), CLIENT.parse().unwrap());
        let id = self.cases[case].id.clone();
        self.world.engine.jobs().delete(&client, &id, None).await.unwrap();
        self.cases[case].ends(now);
    }
}
