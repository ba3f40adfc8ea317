//! One history, step by step.

use std::collections::VecDeque;

use anyhow::{Result, bail};
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Job;
use tidegate_domain::token::Token;
use tidegate_engine::{Engine, Extended, JobDelete, Outcome, Release, Released, Written};
use tidegate_testkit::queue;

use super::checkers::{Violation, i6_times, i8_accepted};
use super::clocks::{APART_MS, JUMP_MS};
use super::consumer::{Act, Agenda};
use super::coverage::{CoveredFault, FaultCoverage};
use super::dice::Dice;
use super::endpoints::Taken;
use super::mix::{self, Step};
use super::model::Model;
use super::processes::{About, Call, Done, Op, Treatment, poll_round};
use super::setup::{self, Stage};
use super::watch::Watch;
use super::{Failure, Options, Played};
use crate::mutants::Clauses;
use crate::world::Received;

/// Steps of a history before its faults stop.
const STEPS: u64 = 260;
/// Calls that are under way at once.
const CALLS: usize = 5;

/// What came of a history that held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many requests reached the services.
    pub requests: u64,
    /// Events that consumers received.
    pub delivered: usize,
    /// What went wrong, and how often.
    pub coverage: FaultCoverage,
    /// A hash of everything that happened.
    pub trace: u64,
    /// The clauses of its conditional writes, when they were counted.
    pub clauses: Clauses,
}

/// A history under way.
pub(crate) struct History {
    pub(crate) dice: Dice,
    pub(crate) stage: Stage,
    pub(crate) model: Model,
    pub(crate) watch: Watch,
    pub(crate) agenda: Agenda,
    pub(crate) engines: Vec<Engine>,
    ops: Vec<Op>,
    /// What its steps begin, and how often.
    steps: Vec<(Step, u64)>,
    /// Whether clocks jump.
    pub(crate) jumps: bool,
    /// Whether launches are made after all.
    pub(crate) backfills: bool,
    pub(crate) step: u64,
    /// Jobs that came with others in one call.
    pub(crate) in_bulk: usize,
    /// Events that consumers received, each as often as it came.
    pub(crate) received: u64,
    ticked_at: DateTime<Utc>,
    last: VecDeque<String>,
    lines: usize,
    trace: u64,
}

impl History {
    /// The history of a seed, before its first step.
    pub(crate) async fn new(seed: u64, options: Options) -> Result<Self> {
        let dice = Dice::new(seed);
        let stage = setup::stage(seed, &dice, options).await?;
        let model = setup::tenants(&stage, &dice).await?;
        let engines: Vec<Engine> = (0..stage.processes).map(|process| stage.start(process)).collect();
        // An hour is a rare and a great jump.
        let jumps = dice.chance(150);
        if jumps && let Some(engine) = engines.first() {
            // The first watermark of all is whatever the first clock says.
            engine.tick().await?;
        }
        Ok(Self {
            in_bulk: 0,
            steps: mix::steps(jumps, model.tight),
            watch: Watch::new(&stage.chaos),
            dice,
            jumps,
            backfills: seed.is_multiple_of(3),
            ticked_at: stage.clock.now(),
            stage,
            model,
            agenda: Agenda::default(),
            engines,
            ops: Vec::new(),
            step: 0,
            received: 0,
            last: VecDeque::new(),
            lines: options.lines,
            trace: 0xcbf2_9ce4_8422_2325,
        })
    }

    /// Its steps, while faults strike. Afterwards none does, every clock is right, and nobody is at work.
    pub(crate) async fn under_faults(&mut self) -> Result<()> {
        self.stage.chaos.set_quiet(false);
        for _ in 0..STEPS {
            self.one_step().await?;
        }
        self.stage.chaos.set_quiet(true);
        for process in 0..self.engines.len() {
            self.set_right(process);
            self.crash(process);
        }
        self.note("the faults stop".to_owned());
        Ok(())
    }

    /// What came of it.
    pub(crate) fn end(self, seed: u64, options: Options, outcome: Result<()>) -> Result<Played> {
        match outcome.map_err(|error| error.downcast::<Violation>()) {
            Ok(()) => Ok(Played::Held(Summary {
                requests: self.stage.chaos.requests(),
                delivered: self.model.delivered.values().map(std::collections::BTreeSet::len).sum(),
                coverage: self.stage.chaos.coverage(),
                trace: self.trace,
                clauses: self.stage.census.take(),
            })),
            Err(Ok(violation)) => {
                let (step, last, mutant) = (self.step, self.last.into(), options.mutant);
                Ok(Played::Failed(Box::new(Failure { seed, step, violation, last, mutant })))
            }
            Err(Err(error)) => Err(error),
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.stage.clock.now()
    }

    pub(crate) fn note(&mut self, line: String) {
        let line = format!("{} {} {line}", self.step, self.now().format("%H:%M:%S%.3f"));
        for byte in line.bytes() {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.last.push_back(line);
        if self.last.len() > self.lines {
            self.last.pop_front();
        }
    }

    async fn one_step(&mut self) -> Result<()> {
        self.step += 1;
        self.begin_something().await?;
        if self.ops.len() < CALLS {
            self.operate();
            self.sideline();
        }
        let polls = self.dice.within(1..=6);
        for _ in 0..polls {
            self.poll_something().await?;
        }
        Ok(())
    }

    pub(crate) fn count(&self, fault: CoveredFault) {
        self.stage.chaos.count(fault);
    }

    /// Holds the invariants against what was written since the last look.
    pub(crate) async fn look(&mut self) -> Result<()> {
        let touched = self.stage.chaos.take_touched();
        if touched.is_empty() {
            return Ok(());
        }
        let (step, latest) = (self.step, self.stage.clocks.latest(self.now()));
        let held = self.watch.look(&self.stage.store, &self.model, touched, step, latest).await;
        for note in self.watch.take_notes() {
            self.note(note);
        }
        held
    }

    async fn begin_something(&mut self) -> Result<()> {
        self.cut_off();
        let step = *self.dice.weighted(&self.steps);
        if step.is_call() && self.ops.len() >= CALLS {
            return Ok(());
        }
        match step {
            Step::TimePasses => self.advance(),
            Step::ProcessDies => {
                let process = self.dice.below(self.engines.len() as u64) as usize;
                self.crash(process);
            }
            Step::ConsumerReceives => return self.receive().await,
            Step::PollerWorks => self.poll(),
            Step::EmitterTicks => self.tick(),
            Step::ConsumerActs => self.act(),
            Step::JobChanges => self.change_job()?,
            Step::JobsComeInBulk => self.create_in_bulk()?,
            Step::PolicyChanges => self.change_policy()?,
            Step::ClockJumps => self.jump(),
            Step::LastReleaseRaces => self.race()?,
        }
        Ok(())
    }

    fn advance(&mut self) {
        let ms = self.dice.within(self.dice.weighted(&mix::WAITS_MS).clone());
        if !self.ops.is_empty() {
            self.count(CoveredFault::Delayed);
        }
        self.stage.clock.advance_ms(ms as i64);
    }

    /// A process's clock jumps an hour, or is set right.
    fn jump(&mut self) {
        let process = self.dice.below(self.engines.len() as u64) as usize;
        if self.stage.clocks.offset_ms(process).abs() > APART_MS {
            return self.set_right(process);
        }
        let (by_ms, fault) = if self.dice.chance(500) {
            (JUMP_MS, CoveredFault::ClockAhead)
        } else {
            (-JUMP_MS, CoveredFault::ClockBehind)
        };
        self.count(fault);
        let now = self.now();
        self.stage.clocks.jump(process, by_ms, now);
        self.note(format!("the clock of process {process} jumps by {by_ms} ms"));
    }

    /// A clock that jumped is set right.
    fn set_right(&mut self, process: usize) {
        let offset_ms = self.stage.clocks.offset_ms(process);
        if offset_ms.abs() > APART_MS {
            let now = self.now();
            self.stage.clocks.jump(process, -offset_ms.signum() * JUMP_MS, now);
            self.note(format!("the clock of process {process} is set right"));
        }
    }

    /// Functions have a time limit.
    fn cut_off(&mut self) {
        let now = self.now();
        while let Some(late) = self.ops.iter().position(|op| op.cut_off_at <= now) {
            let op = self.ops.remove(late);
            self.note(format!("cut off: {}", op.name));
            self.count(CoveredFault::CutOff);
            self.unanswered(op.about);
        }
    }

    fn crash(&mut self, process: usize) {
        let (dead, alive) = std::mem::take(&mut self.ops).into_iter().partition(|op| op.process == process);
        self.ops = alive;
        let dead: Vec<Op> = dead;
        let names: Vec<&str> = dead.iter().map(|op| &*op.name).collect();
        self.note(format!("process {process} dies with {names:?}"));
        if !dead.is_empty() {
            self.count(CoveredFault::Crash);
        }
        for op in dead {
            self.unanswered(op.about);
        }
        self.engines[process] = self.stage.start(process);
    }

    fn unanswered(&mut self, about: About) {
        match about {
            About::Nobody | About::Tick => {}
            About::Jobs(jobs) => jobs.into_iter().for_each(|job| self.model.jobs[job].busy = false),
            About::Policy(policy) => self.model.policies[policy].busy = false,
            About::Tokens(tokens) => self.ask_again(tokens),
        }
    }

    /// Most consumers call again when they get no answer.
    fn ask_again(&mut self, tokens: Vec<Token>) {
        for token in tokens {
            if self.dice.chance(800) {
                let at = self.now() + Duration::seconds(self.dice.below(5) as i64);
                self.agenda.add(at, Act::Release(token));
            }
        }
    }

    pub(crate) fn process(&self) -> (usize, Engine) {
        let process = self.dice.below(self.engines.len() as u64) as usize;
        (process, self.engines[process].clone())
    }

    pub(crate) fn begin(&mut self, call: Call, future: impl Future<Output = Done> + Send + 'static) {
        self.note(format!("process {} begins {}", call.process, call.name));
        let op = call.begin(self.now(), future);
        self.ops.push(op);
    }

    fn tick(&mut self) {
        // Ticks may be missed and may come twice.
        let since = self.now() - self.ticked_at;
        if since < Duration::seconds(50) {
            if !self.dice.chance(150) {
                return;
            }
            self.count(CoveredFault::DuplicateTick);
        }
        if since > Duration::seconds(120) {
            self.count(CoveredFault::MissedTick);
        }
        if self.ops.iter().any(|op| matches!(op.about, About::Tick)) {
            self.count(CoveredFault::OverlappingTicks);
        }
        self.ticked_at = self.now();
        let (process, engine) = self.process();
        let call = Call { process, name: "a tick".to_owned(), about: About::Tick, seconds: 55 };
        self.begin(call, async move { Done::Ticked(engine.tick().await) });
    }

    fn poll(&mut self) {
        let (process, engine) = self.process();
        let times = *self.dice.weighted(&mix::HANDLED_TIMES);
        let treatment = Treatment { times, undeleted: self.dice.chance(60) };
        let name = format!("a round of its poller, {treatment:?}");
        // The parts of large windows have a queue of their own.
        let deployment = &self.stage.deployment;
        let url = if self.dice.chance(300) { deployment.scan_url() } else { deployment.dispatch_url() };
        let (sqs, url) = (self.stage.site.sqs().clone(), url.to_owned());
        let call = Call { process, name, about: About::Nobody, seconds: 30 };
        self.begin(call, poll_round(engine, sqs, url, treatment));
    }

    /// A consumer takes what its queue has.
    async fn receive(&mut self) -> Result<()> {
        let Some(url) = self.dice.pick(&self.stage.queue_urls).cloned() else { return Ok(()) };
        let messages = queue::receive(&self.stage.deployment.sqs, &url).await?;
        for message in &messages {
            let event = Received::read(message.body().unwrap_or_default())?;
            self.arrived("a consumer", &event)?;
            self.plan(&event)?;
        }
        if !self.dice.chance(60) {
            queue::delete(&self.stage.deployment.sqs, &url, &messages).await?;
        }
        Ok(())
    }

    /// An event has come to a consumer.
    pub(crate) fn arrived(&mut self, consumer: &str, event: &Received) -> Result<()> {
        self.note(format!("{consumer} receives {} {:?}", event.body.event_id, event.body.token));
        let client = event.body.client_id.parse()?;
        self.received += 1;
        self.model.delivered.entry(client).or_default().insert(event.body.event_id.clone());
        // What a clock that was an hour ahead has sent may be read long after it was set right. Text that is no id is I3's.
        let Ok(event) = event.body.event_id.parse() else { return Ok(()) };
        let latest = self.stage.clocks.latest(self.now());
        if !self.jumps {
            i6_times::arrived(&event, latest)?;
        }
        Ok(())
    }

    /// Takes note of the calls that endpoints took. Those whose consumers have to release a token.
    pub(crate) fn take_calls(&mut self) -> Result<Vec<Received>> {
        let Some(endpoints) = self.stage.endpoints.clone() else { return Ok(Vec::new()) };
        let mut open = Vec::new();
        for Taken { body, says_so, releases } in endpoints.take() {
            let event = Received::read(&body)?;
            self.arrived("an endpoint", &event)?;
            match &event.token {
                Some(token) if releases && says_so => self.watch.releases.ask(token),
                Some(_) if releases => {}
                Some(_) => open.push(event),
                None => {}
            }
        }
        Ok(open)
    }

    /// What a consumer makes of an event with a token.
    fn plan(&mut self, event: &Received) -> Result<()> {
        let Some(token) = &event.token else { return Ok(()) };
        let Some(policy) = self.model.policy(token.client(), &token.group.policy) else {
            bail!("a token of an unknown policy: {token}")
        };
        if !policy.starved {
            let (lease, now) = (policy.terms.lease_seconds(), self.now());
            if let Some(fault) = self.agenda.plan(&self.dice, event, now, lease) {
                self.count(fault);
            }
        }
        Ok(())
    }

    fn act(&mut self) {
        let due = self.agenda.due(self.now());
        match due.first().cloned() {
            None => {}
            Some(Act::Extend(token)) => {
                let (process, engine) = self.process();
                let name = format!("an extension of {token}");
                let call = Call { process, name, about: About::Nobody, seconds: 29 };
                self.begin(call, async move {
                    let client = token.client().clone();
                    Done::Extended { result: engine.tokens().extend(&client, vec![token], None).await }
                });
            }
            Some(Act::Forge(token)) => self.release(vec![token], true),
            Some(Act::Release(_)) => {
                let mut tokens: Vec<_> = due
                    .into_iter()
                    .filter_map(|act| if let Act::Release(token) = act { Some(token) } else { None })
                    .collect();
                // A call is one client's.
                let client = tokens.first().map(|token| token.client().clone());
                let (own, other) =
                    tokens.drain(..).partition(|token| Some(token.client()) == client.as_ref());
                let other: Vec<_> = other;
                for token in other {
                    let now = self.now();
                    self.agenda.add(now, Act::Release(token));
                }
                self.release(own, false);
            }
        }
    }

    pub(crate) fn release(&mut self, tokens: Vec<Token>, forged: bool) {
        let (process, engine) = self.process();
        let Some(client) = tokens.first().map(|token| token.client().clone()) else { return };
        let about = if forged { About::Nobody } else { About::Tokens(tokens.clone()) };
        let name = format!("a release of {:?}", tokens.iter().map(ToString::to_string).collect::<Vec<_>>());
        match forged {
            true => self.count(CoveredFault::Forged),
            false => tokens.iter().for_each(|token| self.watch.releases.ask(token)),
        }
        let asked = if forged { Vec::new() } else { tokens.clone() };
        let outcome = if self.dice.chance(800) { Outcome::Succeeded } else { Outcome::Failed };
        let releases = tokens.into_iter().map(|token| Release::new(token, outcome)).collect();
        let call = Call { process, name, about, seconds: 29 };
        self.begin(call, async move {
            Done::Released { asked, result: engine.tokens().release(&client, releases).await }
        });
    }

    async fn poll_something(&mut self) -> Result<()> {
        if self.ops.is_empty() {
            return Ok(());
        }
        let chosen = self.dice.below(self.ops.len() as u64) as usize;
        let requests = if self.dice.chance(300) { 200 } else { self.dice.within(1..=12) };
        for _ in 0..requests {
            let done = self.ops[chosen].poll();
            for event in self.take_calls()? {
                self.plan(&event)?;
            }
            // After every single write: what is wrong only for a moment is wrong.
            self.look().await?;
            if let Some(done) = done {
                let op = self.ops.remove(chosen);
                if chosen > 0 {
                    self.count(CoveredFault::Reordered);
                }
                return self.ended(&op.name, done);
            }
        }
        Ok(())
    }

    /// Takes note of the end of a call.
    pub(crate) fn ended(&mut self, name: &str, done: Done) -> Result<()> {
        let step = self.step;
        match done {
            Done::Ticked(result) => self.note(format!("{name}: {result:?}")),
            Done::Extended { result } => {
                self.note(format!("{name}: {result:?}"));
                if result
                    .is_ok_and(|answers| answers.iter().any(|(_, a)| matches!(a, Extended::Extended { .. })))
                {
                    self.count(CoveredFault::Extended);
                }
            }
            Done::Operated { client, redrives } => {
                self.note(format!("{name}: {redrives:?}"));
                self.operated(&client, redrives.unwrap_or_default());
            }
            Done::Pumped { handled, treatment } => {
                if !handled.is_empty() {
                    match treatment.times {
                        3.. => self.count(CoveredFault::HandledThrice),
                        2 => self.count(CoveredFault::HandledTwice),
                        _ => {}
                    }
                    if treatment.undeleted {
                        self.count(CoveredFault::ComesAgain);
                    }
                }
                for (body, outcome) in handled {
                    self.note(format!("{name}: {outcome:?} {body:.300}"));
                }
            }
            Done::Put { answers } => {
                for (job, result) in answers {
                    self.note(format!("{name}: {}", told(&result)));
                    self.model.jobs[job].busy = false;
                    match result {
                        Ok(Written::Created(new) | Written::Replaced(new) | Written::Unchanged(new)) => {
                            for _ in 0..self.model.jobs[job].told(Some(new)) {
                                self.count(CoveredFault::Backfilled);
                            }
                        }
                        Ok(other) => {
                            return Err(i8_accepted::refused(name, &format!("{other:?}")).into());
                        }
                        Err(_) => {}
                    }
                }
            }
            Done::Deleted { job, result } => {
                self.note(format!("{name}: {result:?}"));
                self.model.jobs[job].busy = false;
                match result {
                    Ok(JobDelete::Done | JobDelete::Absent) => drop(self.model.jobs[job].told(None)),
                    Ok(JobDelete::RevisionIs(_)) | Err(_) => {}
                }
            }
            Done::Changed { policy, result } => {
                self.note(format!("{name}: {result:?}"));
                self.model.policies[policy].busy = false;
                if let Ok(Written::Replaced(_) | Written::Unchanged(_)) = result
                    && let Some(fault) = self.model.policies[policy].answered(step)
                {
                    self.count(fault);
                }
            }
            Done::Released { asked, result } => {
                self.note(format!("{name}: {result:?}"));
                match result {
                    Ok(answers) if asked.is_empty() => {
                        return Ok(self.watch.releases.forged(&answers)?);
                    }
                    Ok(answers) => {
                        let late = [Released::AlreadyReleased, Released::Reclaimed];
                        for (token, _) in answers.iter().filter(|(_, answer)| late.contains(answer)) {
                            let is_anothers = self.watch.is_anothers(token);
                            self.count(if is_anothers {
                                CoveredFault::Reassigned
                            } else {
                                CoveredFault::ReleasedTwice
                            });
                        }
                    }
                    Err(_) => self.ask_again(asked),
                }
            }
        }
        Ok(())
    }
}

fn told(result: &Result<Written<Job>, tidegate_engine::EngineError>) -> String {
    match result {
        Ok(Written::Created(job)) => format!("created {} revision {}", job.id, job.revision),
        Ok(Written::Replaced(job)) => format!("replaced {} revision {}", job.id, job.revision),
        Ok(Written::Unchanged(job)) => format!("unchanged {} revision {}", job.id, job.revision),
        other => format!("{other:?}"),
    }
}
