//! Lambda as it is: environments that start cold, have a share of a processor, and are stopped wherever they are when their
//! time is over; and an account that runs only so many of them at once.

mod environment;
pub(crate) mod event_source;
mod invocation;
pub(crate) mod schedule;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock as _;
use tokio::time::{Instant, sleep, timeout};

use environment::Environment;
pub use event_source::{AllPollers, EventSource, Pollers};
pub use invocation::Kind;
pub(crate) use invocation::{Answer, Failed, Work};
pub use schedule::Schedule;

pub use crate::function::{Configured, Function};
use crate::limits::{COLD_START, KEPT_IDLE, WARM_START};
use crate::processor::Processor;
use crate::region::{Caller, Region};
use crate::version::Version;

/// What became of a function's invocations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Invoked {
    /// Invocations that began.
    pub begun: u64,
    /// Of these, in a new environment.
    pub cold: u64,
    /// Of these, stopped because their time was over.
    pub timed_out: u64,
    /// Of these, killed.
    pub killed: u64,
    /// Of those that were killed, events of the schedule.
    pub killed_ticks: u64,
    /// Of those that were killed, parts of large emissions.
    pub killed_parts: u64,
    /// Of these, ended with an error.
    pub errors: u64,
    /// Invocations that could not begin.
    pub throttled: u64,
    /// The most at once.
    pub at_once: usize,
    /// Memory times time, as it is billed.
    pub gb_seconds: f64,
    /// The longest.
    pub longest: Duration,
}

/// The functions of a region, and what the account lets them run.
pub(crate) struct Account {
    pub(crate) region: Arc<Region>,
    admin_key_sha256: &'static str,
    concurrency: usize,
    configured: BTreeMap<Function, Configured>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<Function, usize>,
    idle: BTreeMap<Function, Vec<(Instant, Environment)>>,
    /// The version of each function that begins now.
    versions: BTreeMap<Function, Version>,
    invoked: BTreeMap<Function, Invoked>,
    /// After so many requests of it, the next invocation of a function is killed.
    to_be_killed: BTreeMap<Function, u64>,
    /// Invocations that are killed one after the other.
    killing: Option<Killing>,
    /// From when and until when nothing can be invoked.
    away: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// Every invocation of a kind is killed after so many requests, until so many were.
struct Killing {
    kind: Kind,
    requests: u64,
    left: u32,
}

impl State {
    /// After how many of its requests the invocation is killed that begins now.
    fn killed_after(&mut self, function: Function, kind: Kind) -> Option<u64> {
        let killing = self.killing.as_ref().filter(|killing| killing.kind == kind && killing.left > 0);
        killing.map(|killing| killing.requests).or_else(|| self.to_be_killed.remove(&function))
    }

    fn note_killed(&mut self, function: Function, kind: Kind) {
        if let Some(killing) = self.killing.as_mut().filter(|killing| killing.kind == kind) {
            killing.left = killing.left.saturating_sub(1);
        }
        let invoked = self.invoked.entry(function).or_default();
        invoked.killed += 1;
        invoked.killed_ticks += u64::from(kind == Kind::Tick);
        invoked.killed_parts += u64::from(kind == Kind::Part);
    }
}

/// An invocation's place; free again when it is dropped.
struct Place<'a> {
    account: &'a Account,
    function: Function,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.account.locked().running.get_mut(&self.function) {
            *running -= 1;
        }
    }
}

impl Account {
    pub(crate) fn new(
        region: Arc<Region>,
        admin_key_sha256: &'static str,
        concurrency: usize,
        configured: BTreeMap<Function, Configured>,
    ) -> Self {
        Self { region, admin_key_sha256, concurrency, configured, state: Mutex::default() }
    }

    /// What became of a function's invocations so far.
    pub(crate) fn invoked(&self, function: Function) -> Invoked {
        self.locked().invoked.get(&function).copied().unwrap_or_default()
    }

    /// Kills the next invocation of a function after so many of its requests.
    pub(crate) fn kill_after(&self, function: Function, requests: u64) {
        self.locked().to_be_killed.insert(function, requests);
    }

    /// Kills each invocation of a kind that begins from now on after so many of its requests, until `times` were killed.
    pub(crate) fn kill_each(&self, kind: Kind, requests: u64, times: u32) {
        self.locked().killing = Some(Killing { kind, requests, left: times });
    }

    /// Lambda is away from one instant up to another: nothing can be invoked.
    pub(crate) fn go_away(&self, from: DateTime<Utc>, to: DateTime<Utc>) {
        self.locked().away = Some((from, to));
    }

    /// Deploys a version of a function: what runs goes on with the version that it began with, what begins has this one.
    pub(crate) fn deploy(&self, function: Function, version: Version) {
        let mut state = self.locked();
        state.versions.insert(function, version);
        state.idle.remove(&function);
    }

    /// The version of a function that begins now.
    fn version(&self, function: Function) -> Version {
        self.locked().versions.get(&function).copied().unwrap_or_default()
    }

    /// Runs a function once.
    pub(crate) async fn invoke(&self, function: Function, work: Work) -> Result<Answer, Failed> {
        let (place, kind) = (self.enter(function)?, work.kind(function));
        let configured = self.configured(function);
        let version = self.version(function);
        let environment = self.take_idle(function);
        let is_cold = environment.is_none();
        let environment =
            environment.map_or_else(|| self.start_environment(function, configured, version), Ok);
        let environment = environment.map_err(|_| Failed::Error)?;
        if is_cold {
            self.count(function, |invoked| invoked.cold += 1);
        }
        sleep(self.region.dice.time(if is_cold { COLD_START } else { WARM_START })).await;
        environment.begin(self.locked().killed_after(function, kind));
        let began = Instant::now();
        let deadline_ms = (self.region.clock.now() + configured.timeout).timestamp_millis();
        let work = environment.run(function, work, u64::try_from(deadline_ms).unwrap_or_default());
        let ended = tokio::select! {
            biased;
            () = environment.killed() => Err(Failed::Killed),
            ended = timeout(configured.timeout, work) => {
                ended.map_err(|_| Failed::TimedOut).flatten()
            }
        };
        let took = began.elapsed();
        self.count(function, |invoked| {
            invoked.gb_seconds += took.as_secs_f64() * f64::from(configured.memory_mb) / 1024.0;
            invoked.longest = invoked.longest.max(took);
            match ended {
                Err(Failed::TimedOut) => invoked.timed_out += 1,
                Err(Failed::Error | Failed::Throttled) => invoked.errors += 1,
                Err(Failed::Killed) | Ok(_) => {}
            }
        });
        if matches!(ended, Err(Failed::Killed)) {
            self.locked().note_killed(function, kind);
        }
        drop(place);
        let is_replaced = self.version(function) != version;
        if !is_replaced && !matches!(ended, Err(Failed::TimedOut | Failed::Killed)) {
            let mut state = self.locked();
            state.idle.entry(function).or_default().push((Instant::now(), environment));
        }
        ended
    }

    fn start_environment(
        &self,
        function: Function,
        configured: Configured,
        version: Version,
    ) -> anyhow::Result<Environment> {
        let processor = Arc::new(Processor::of(configured.memory_mb));
        let engine = self.region.engine(version, Caller { function, processor: Arc::clone(&processor) })?;
        Ok(Environment::new(engine, version, self.admin_key_sha256, processor))
    }

    fn configured(&self, function: Function) -> Configured {
        self.configured.get(&function).copied().unwrap_or_else(|| function.as_deployed())
    }

    fn enter(&self, function: Function) -> Result<Place<'_>, Failed> {
        let mut state = self.locked();
        let now = self.region.clock.now();
        let is_away = state.away.is_some_and(|(from, to)| from <= now && now < to);
        let reserved = |function| self.configured(function).reserved;
        let running = |function: &Function| state.running.get(function).copied().unwrap_or(0);
        let has_room = match reserved(function) {
            Some(own) => running(&function) < own,
            None => {
                let others: usize = Function::ALL.into_iter().filter_map(reserved).sum();
                let shared: usize =
                    Function::ALL.iter().filter(|of| reserved(**of).is_none()).map(running).sum();
                shared < self.concurrency.saturating_sub(others)
            }
        };
        let has_room = has_room && !is_away;
        let at_once = running(&function) + 1;
        let invoked = state.invoked.entry(function).or_default();
        if !has_room {
            invoked.throttled += 1;
            return Err(Failed::Throttled);
        }
        invoked.begun += 1;
        invoked.at_once = invoked.at_once.max(at_once);
        state.running.insert(function, at_once);
        Ok(Place { account: self, function })
    }

    /// The environment that was used last, unless it was idle for too long.
    fn take_idle(&self, function: Function) -> Option<Environment> {
        let mut state = self.locked();
        let idle = state.idle.entry(function).or_default();
        idle.retain(|(since, _)| since.elapsed() < KEPT_IDLE);
        idle.pop().map(|(_, environment)| environment)
    }

    fn count(&self, function: Function, add: impl FnOnce(&mut Invoked)) {
        add(self.locked().invoked.entry(function).or_default());
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
