//! One history, step by step.

use std::collections::VecDeque;

use anyhow::{Result, bail};
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::token::Token;
use tidegate_engine::clock::Clock as _;
use tidegate_engine::{
    Engine, Handled, JobDelete, JobDraft, JobWrite, Outcome, PolicyWrite, Release, Released,
};

use super::consumer::{Act, Agenda};
use super::dice::Dice;
use super::model::{JobModel, Model, Wish};
use super::processes::{About, Call, Done, Op, Treatment, poll_round};
use super::setup::{self, Stage};
use super::watch::Watch;
use super::{Failure, Violation, finale};
use crate::world::{Received, pump_delete, pump_receive};

/// Steps of a history before its faults stop.
const STEPS: u64 = 260;
/// Calls that are under way at once.
const CALLS: usize = 5;

/// What came of a history that held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// How many requests reached the services.
    pub requests: u64,
    /// Events that consumers received.
    pub delivered: usize,
    /// A hash of everything that happened.
    pub trace: u64,
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
    pub(crate) step: u64,
    ticked_at: DateTime<Utc>,
    last: VecDeque<String>,
    lines: usize,
    trace: u64,
}

/// Plays the history of a seed.
pub(crate) async fn play(seed: u64, lines: usize) -> Result<Result<Summary, Box<Failure>>> {
    let dice = Dice::new(seed);
    let stage = setup::stage(seed, &dice).await?;
    let model = setup::tenants(&stage, &dice).await?;
    let engines = (0..1 + dice.below(3)).map(|_| stage.site.start()).collect();
    let mut history = History {
        dice,
        ticked_at: stage.clock.now(),
        stage,
        model,
        watch: Watch::default(),
        agenda: Agenda::default(),
        engines,
        ops: Vec::new(),
        step: 0,
        last: VecDeque::new(),
        lines,
        trace: 0xcbf2_9ce4_8422_2325,
    };
    Ok(match history.whole().await? {
        Ok(()) => Ok(Summary {
            requests: history.stage.chaos.requests(),
            delivered: history.model.delivered.values().map(std::collections::BTreeSet::len).sum(),
            trace: history.trace,
        }),
        Err(violation) => {
            Err(Box::new(Failure { seed, step: history.step, violation, last: history.last.into() }))
        }
    })
}

impl History {
    async fn whole(&mut self) -> Result<Result<(), Violation>> {
        self.stage.chaos.set_quiet(false);
        for _ in 0..STEPS {
            if let Err(violation) = self.one_step().await? {
                return Ok(Err(violation));
            }
        }
        self.stage.chaos.set_quiet(true);
        for process in 0..self.engines.len() {
            self.crash(process);
        }
        self.note("the faults stop".to_owned());
        finale::finish(self).await
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.stage.clock.now()
    }

    pub(crate) fn note(&mut self, line: String) {
        let line = format!("{} {} {line}", self.step, self.now().format("%H:%M:%S%.3f"));
        for byte in line.bytes() {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.last.len() >= self.lines {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    async fn one_step(&mut self) -> Result<Result<(), Violation>> {
        self.step += 1;
        self.begin_something().await?;
        let polls = self.dice.within(1..=6);
        for _ in 0..polls {
            if let Err(violation) = self.poll_something()? {
                return Ok(Err(violation));
            }
            if let Err(violation) = self.look().await? {
                return Ok(Err(violation));
            }
        }
        Ok(Ok(()))
    }

    /// Holds the invariants against what was written since the last look.
    pub(crate) async fn look(&mut self) -> Result<Result<(), Violation>> {
        let touched = self.stage.chaos.take_touched();
        if touched.is_empty() {
            return Ok(Ok(()));
        }
        let (step, now) = (self.step, self.stage.clock.now());
        let held = self.watch.look(&self.stage.store, &self.model, touched, step, now).await?;
        for note in self.watch.take_notes() {
            self.note(note);
        }
        Ok(held)
    }

    async fn begin_something(&mut self) -> Result<()> {
        self.cut_off();
        let busy = self.ops.len() >= CALLS;
        match self.dice.below(100) {
            0..22 => self.advance(),
            22..25 => {
                let process = self.dice.below(self.engines.len() as u64) as usize;
                self.crash(process);
            }
            25..45 => self.receive().await?,
            _ if busy => {}
            45..62 => self.pump(),
            62..70 => self.tick(),
            70..82 => self.act(),
            82..96 => self.change_job()?,
            _ => self.change_policy()?,
        }
        Ok(())
    }

    fn advance(&mut self) {
        let ms = match self.dice.below(10) {
            0..4 => self.dice.below(900),
            4..9 => self.dice.within(1_000..=12_000),
            _ => self.dice.within(20_000..=80_000),
        };
        self.stage.clock.advance_ms(ms as i64);
    }

    /// Functions have a time limit.
    fn cut_off(&mut self) {
        let now = self.now();
        while let Some(late) = self.ops.iter().position(|op| op.cut_off_at <= now) {
            let op = self.ops.remove(late);
            self.note(format!("cut off: {}", op.name));
            self.unanswered(op.about);
        }
    }

    fn crash(&mut self, process: usize) {
        let (dead, alive) = std::mem::take(&mut self.ops).into_iter().partition(|op| op.process == process);
        self.ops = alive;
        let dead: Vec<Op> = dead;
        let names: Vec<&str> = dead.iter().map(|op| &*op.name).collect();
        self.note(format!("process {process} dies with {names:?}"));
        for op in dead {
            self.unanswered(op.about);
        }
        self.engines[process] = self.stage.site.start();
    }

    fn unanswered(&mut self, about: About) {
        match about {
            About::Nobody => {}
            About::Job(job) => self.model.jobs[job].busy = false,
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

    fn process(&self) -> (usize, Engine) {
        let process = self.dice.below(self.engines.len() as u64) as usize;
        (process, self.engines[process].clone())
    }

    fn begin(&mut self, call: Call, future: impl Future<Output = Done> + Send + 'static) {
        self.note(format!("process {} begins {}", call.process, call.name));
        let op = call.begin(self.now(), future);
        self.ops.push(op);
    }

    fn tick(&mut self) {
        // Ticks may be missed and may come twice.
        if self.now() - self.ticked_at < Duration::seconds(50) && !self.dice.chance(150) {
            return;
        }
        self.ticked_at = self.now();
        let (process, engine) = self.process();
        let call = Call { process, name: "a tick".to_owned(), about: About::Nobody, seconds: 55 };
        self.begin(call, async move { Done::Ticked(engine.tick().await) });
    }

    fn pump(&mut self) {
        let (process, engine) = self.process();
        let treatment = Treatment { twice: self.dice.chance(60), undeleted: self.dice.chance(60) };
        let name = format!("a round of its poller, {treatment:?}");
        let (sqs, url) = (self.stage.site.sqs.clone(), self.stage.site.dispatch_url.clone());
        let call = Call { process, name, about: About::Nobody, seconds: 30 };
        self.begin(call, poll_round(engine, sqs, url, treatment));
    }

    /// A consumer takes what its queue has.
    pub(crate) async fn receive(&mut self) -> Result<()> {
        let Some(url) = self.dice.pick(&self.stage.queue_urls).cloned() else { return Ok(()) };
        let messages = pump_receive(&self.stage.sqs, &url).await?;
        for message in &messages {
            let event = Received::read(message.body().unwrap_or_default())?;
            self.received(&event)?;
        }
        if !self.dice.chance(60) {
            pump_delete(&self.stage.sqs, &url, &messages).await?;
        }
        Ok(())
    }

    fn received(&mut self, event: &Received) -> Result<()> {
        self.note(format!("a consumer receives {} {:?}", event.body.event_id, event.body.token));
        let client = event.body.client_id.parse()?;
        self.model.delivered.entry(client).or_default().insert(event.body.event_id.clone());
        let Some(token) = &event.token else { return Ok(()) };
        let Some(policy) = self.model.policy(&token.client, &token.policy) else {
            bail!("a token of an unknown policy: {token}")
        };
        if !policy.hogged {
            let (lease, now) = (policy.lease_seconds, self.now());
            self.agenda.plan(&self.dice, event, now, lease);
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
                    let client = token.client.clone();
                    Done::Extended { result: engine.extend(&client, vec![token], None).await }
                });
            }
            Some(Act::Forge(token)) => self.release(vec![token], true),
            Some(Act::Release(_)) => {
                let mut tokens: Vec<_> = due
                    .into_iter()
                    .filter_map(|act| if let Act::Release(token) = act { Some(token) } else { None })
                    .collect();
                // A call is one client's.
                let client = tokens.first().map(|token| token.client.clone());
                let (own, other) = tokens.drain(..).partition(|token| Some(&token.client) == client.as_ref());
                let other: Vec<_> = other;
                for token in other {
                    let now = self.now();
                    self.agenda.add(now, Act::Release(token));
                }
                self.release(own, false);
            }
        }
    }

    fn release(&mut self, tokens: Vec<Token>, forged: bool) {
        let (process, engine) = self.process();
        let Some(client) = tokens.first().map(|token| token.client.clone()) else { return };
        let about = if forged { About::Nobody } else { About::Tokens(tokens.clone()) };
        let name = format!("a release of {:?}", tokens.iter().map(ToString::to_string).collect::<Vec<_>>());
        if !forged {
            tokens.iter().for_each(|token| self.watch.asks(token));
        }
        let asked = if forged { Vec::new() } else { tokens.clone() };
        let outcome = if self.dice.chance(800) { Outcome::Succeeded } else { Outcome::Failed };
        let releases = tokens.into_iter().map(|token| Release { token, outcome }).collect();
        let call = Call { process, name, about, seconds: 29 };
        self.begin(
            call,
            async move { Done::Released { asked, result: engine.release(&client, releases).await } },
        );
    }

    fn change_job(&mut self) -> Result<()> {
        let open: Vec<usize> = (0..self.model.jobs.len())
            .filter(|job| {
                !self.model.jobs[*job].busy && (self.model.jobs[*job].wish.is_some() || self.dice.chance(250))
            })
            .collect();
        let job = match self.dice.pick(&open) {
            Some(job) => *job,
            None if self.model.jobs.len() < 6 => {
                let Some(client) = self.dice.pick(&self.model.clients).cloned() else { return Ok(()) };
                let number = self.model.jobs.len();
                let id = if self.dice.chance(750) { Some(format!("job{number}").parse()?) } else { None };
                self.model.jobs.push(JobModel::new(client, id));
                number
            }
            None => return Ok(()),
        };
        if self.model.jobs[job].wish.is_none() {
            let (now, client) = (self.now(), self.model.jobs[job].client.clone());
            let live = self.model.jobs[job].is_live();
            // One-time jobs with a generated id cannot be replaced.
            let nameless = self.model.jobs[job].id.as_ref().is_none_or(|id| id.one_time_place().is_some());
            if !live && nameless && !self.model.jobs[job].revisions.is_empty() {
                return Ok(());
            }
            let wish = if live && self.dice.chance(300) {
                let paused = self.model.jobs[job].is_paused();
                Wish::Pause(!paused)
            } else if live && (nameless || self.dice.chance(300)) {
                Wish::Delete
            } else {
                let terms = setup::terms(&self.dice, &self.model, &client, &self.stage)?;
                // Without an id, a cron job whose creation was not answered would fire for ever unknown.
                let once = self.model.jobs[job].id.is_none();
                let trigger = setup::trigger(&self.dice, now, once)?;
                Wish::Put(Box::new(JobDraft { trigger, rules: setup::rules(&self.dice, now)?, terms }))
            };
            self.model.jobs[job].wish(wish, now);
        }
        self.call_for_job(job);
        Ok(())
    }

    fn call_for_job(&mut self, job: usize) {
        let (process, engine) = self.process();
        let model = &mut self.model.jobs[job];
        let (Some(wish), client, id) = (model.wish.clone(), model.client.clone(), model.id.clone()) else {
            return;
        };
        model.busy = true;
        let replaces = !model.revisions.is_empty();
        let about = About::Job(job);
        match (wish, id) {
            (Wish::Put(draft), id) => {
                let name = format!(
                    "a write of job {job} {id:?}: {:?} {:?} {} {:?}",
                    draft.trigger,
                    draft.rules,
                    draft.terms.count.get(),
                    draft.terms.policy
                );
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    let result = match id {
                        Some(id) if replaces => engine.replace_job(&client, id, *draft, None).await,
                        id => engine.create_job(&client, id, *draft).await,
                    };
                    Done::Put { job, result: Box::new(result) }
                });
            }
            (Wish::Pause(paused), Some(id)) => {
                let name = format!("a call for job {job} {id}: paused is {paused}");
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    let result = engine.pause_job(&client, &id, paused, None).await;
                    Done::Put { job, result: Box::new(result) }
                });
            }
            (Wish::Delete, Some(id)) => {
                let name = format!("a deletion of job {job} {id}");
                self.begin(Call { process, name, about, seconds: 29 }, async move {
                    Done::Deleted { job, result: engine.delete_job(&client, &id, None).await }
                });
            }
            (Wish::Pause(_) | Wish::Delete, None) => {}
        }
    }

    fn change_policy(&mut self) -> Result<()> {
        if self.model.policies.is_empty() {
            return Ok(());
        }
        let number = self.dice.below(self.model.policies.len() as u64) as usize;
        let limit = self.dice.within(1..=30) as u32;
        let policy = &mut self.model.policies[number];
        if policy.busy {
            return Ok(());
        }
        if policy.wish.is_none() {
            policy.ask(limit);
        }
        self.call_for_policy(number)
    }

    fn call_for_policy(&mut self, number: usize) -> Result<()> {
        let (process, engine) = self.process();
        let policy = &mut self.model.policies[number];
        policy.busy = true;
        let (client, id) = (policy.client.clone(), policy.id.clone());
        let terms = PolicyTerms::new(policy.limit(), policy.lease_seconds)?;
        let name = format!("a change of policy {client}/{id} to {}", policy.limit());
        self.begin(Call { process, name, about: About::Policy(number), seconds: 29 }, async move {
            Done::Changed { policy: number, result: engine.replace_policy(&client, &id, terms, None).await }
        });
        Ok(())
    }

    fn poll_something(&mut self) -> Result<Result<(), Violation>> {
        if self.ops.is_empty() {
            return Ok(Ok(()));
        }
        let chosen = self.dice.below(self.ops.len() as u64) as usize;
        let requests = if self.dice.chance(300) { 200 } else { self.dice.within(1..=12) };
        for _ in 0..requests {
            let Some(done) = self.ops[chosen].poll() else { continue };
            let op = self.ops.remove(chosen);
            return self.ended(&op.name, done);
        }
        Ok(Ok(()))
    }

    /// Takes note of the end of a call.
    pub(crate) fn ended(&mut self, name: &str, done: Done) -> Result<Result<(), Violation>> {
        let step = self.step;
        match done {
            Done::Ticked(result) => self.note(format!("{name}: {result:?}")),
            Done::Extended { result } => self.note(format!("{name}: {result:?}")),
            Done::Pumped(handled) => {
                for (body, outcome) in handled {
                    if outcome == Handled::Again || !body.contains("chunk") {
                        self.note(format!("{name}: {outcome:?} {body:.120}"));
                    } else {
                        self.note(format!("{name}: {outcome:?} a chunk"));
                    }
                }
            }
            Done::Put { job, result } => {
                self.note(format!("{name}: {}", told(&result)));
                self.model.jobs[job].busy = false;
                match *result {
                    Ok(JobWrite::Created(new) | JobWrite::Replaced(new) | JobWrite::Unchanged(new)) => {
                        self.model.jobs[job].told(Some(new));
                    }
                    Ok(other) => {
                        return Ok(Err(Violation::new("I8", format!("{name} was answered {other:?}"))));
                    }
                    Err(_) => {}
                }
            }
            Done::Deleted { job, result } => {
                self.note(format!("{name}: {result:?}"));
                self.model.jobs[job].busy = false;
                match result {
                    Ok(JobDelete::Done | JobDelete::Absent) => self.model.jobs[job].told(None),
                    Ok(JobDelete::RevisionIs(_)) | Err(_) => {}
                }
            }
            Done::Changed { policy, result } => {
                self.note(format!("{name}: {result:?}"));
                self.model.policies[policy].busy = false;
                if let Ok(PolicyWrite::Done(_) | PolicyWrite::Unchanged(_)) = result {
                    self.model.policies[policy].answered(step);
                }
            }
            Done::Released { asked, result } => {
                self.note(format!("{name}: {result:?}"));
                match result {
                    Ok(answers) if asked.is_empty() => {
                        // In the instant in which the lease that it imitates is released, its answer may be that one's;
                        // what the rows say is held against the real tokens only.
                        let taken_in = |token: &Token| !self.watch.is_asked(token);
                        let released = answers.iter().find(|(t, a)| *a == Released::Released && taken_in(t));
                        if let Some((token, answer)) = released {
                            let message = format!("the forged token {token} was answered {answer:?}");
                            return Ok(Err(Violation::new("I4", message)));
                        }
                    }
                    Ok(_) => {}
                    Err(_) => self.ask_again(asked),
                }
            }
        }
        Ok(Ok(()))
    }
}

fn told(result: &Result<JobWrite, tidegate_engine::EngineError>) -> String {
    match result {
        Ok(JobWrite::Created(job)) => format!("created {} revision {}", job.id, job.revision),
        Ok(JobWrite::Replaced(job)) => format!("replaced {} revision {}", job.id, job.revision),
        Ok(JobWrite::Unchanged(job)) => format!("unchanged {} revision {}", job.id, job.revision),
        other => format!("{other:?}"),
    }
}
