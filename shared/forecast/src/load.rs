//! Firings, second by second, and what follows from them: steps, waits, peaks.
//!
//! What is held at a time is a minute, and some numbers for each minute of the window, each job and each policy: how many
//! firings there are does not matter.

use std::collections::BTreeMap;

use tidegate_domain::limits::PACK_EVENTS;

use crate::cost::Cost;
use crate::counted::{Counted, MinuteLoad, PolicyLoad, SecondPeaks, place_of};
use crate::dispatch::{BATCH_SECONDS, Dispatch, LATE_MS, Minutes, RECORD_SECONDS, SOON_MS};
use crate::due::{Due, add};
use crate::emission::Emission;
use crate::facts::{Job, Setting};
use crate::job_steps::{creation_steps, own_steps};
use crate::line::{LineMinute, PolicyState, SentAtOnce, admission};
use crate::minute::{CALL_MESSAGES, SECONDS, Seconds, Singles, cut, emissions, events_per_chunk, payload};
use crate::peak::Peak;
use crate::quotas::emitted_per_second;
use crate::spread::Spread;
use crate::steps::{Step, Steps};
use crate::totals::{add_totals, idle};

/// Single events of a line and minute that travel in messages: `few` of the engine.
const FEW: f64 = 10.0;
/// Minutes for which a policy stays on the list of active ones when nothing is left.
const ACTIVE_AFTER: i64 = 2;
/// Minutes after the window in which what waits at its end is delivered; what takes longer counts for the last of them.
const MINUTES_AFTER: usize = 1_440;
/// Parts that a tick leaves to workers when it has not come to the end of a minute.
const PARTS_LEFT: f64 = 8.0;

/// How much later single events come that arrived in messages and found too few tokens, in milliseconds. Measured on the model of
/// AWS, under a hundred policies of two tokens.
const OVERFLOW_MS: f64 = 400.0;

/// For each second of a minute, when the first and the last of its messages are handled, in milliseconds after it.
type Late = [(f64, f64); SECONDS];

/// Takes firings in order of time, and counts.
pub struct Load<'a> {
    setting: &'a Setting,
    first_minute: i64,
    minute: i64,
    due: Due,
    /// What each firing of a job takes by itself, and what of that creates it.
    own: Vec<(Cost, Cost)>,
    touched: Vec<usize>,
    policies: Vec<PolicyState>,
    active: Vec<usize>,
    emission: Emission,
    dispatch: Dispatch,
    counted: Counted,
}

impl<'a> Load<'a> {
    /// Nothing has fired yet.
    pub fn new(setting: &'a Setting) -> Self {
        let first_minute = setting.from_s.div_euclid(60);
        let policies = setting.policies.iter().map(|policy| PolicyState::new(policy, setting)).collect();
        let own = |job: &Job| {
            let creation = creation_steps(job, setting).cost() * setting.scale;
            (own_steps(job, setting).cost() * setting.scale, creation)
        };
        let counted = Counted {
            fired: vec![0.0; setting.jobs.len()],
            unthrottled: Steps::default(),
            unthrottled_events: 0.0,
            unthrottled_waits: Spread::default(),
            policies: Vec::new(),
            idle: Steps::default(),
            minutes: vec![MinuteLoad::default(); setting.minutes() + MINUTES_AFTER],
            seconds: SecondPeaks::default(),
            busiest_tick: Peak::default(),
        };
        Self {
            setting,
            first_minute,
            minute: first_minute,
            due: Due::new(),
            own: setting.jobs.iter().map(own).collect(),
            touched: Vec::new(),
            policies,
            active: Vec::new(),
            emission: Emission::new(emitted_per_second(&setting.account)),
            dispatch: Dispatch::new(setting.account.pollers(), BATCH_SECONDS),
            counted,
        }
    }

    /// A job fires, at a second that is no earlier than that of the call before. Jobs are named by their places.
    pub fn fire(&mut self, second: i64, place: usize) {
        let Some(job) = self.setting.jobs.get(place).copied() else { return };
        let minute = second.div_euclid(60);
        if minute > self.minute {
            self.end_minute();
            self.minute = minute;
        }
        let of_minute = second.rem_euclid(60) as usize;
        let times = self.setting.scale;
        add(&mut self.counted.fired, place, times);
        let (own, creation) = self.own.get(place).copied().unwrap_or_default();
        self.due.cost += own;
        self.due.creation += creation;
        self.due.fire(of_minute, &job, times);
        if let Some(policy) = job.policy {
            self.join(policy, &job, of_minute, times);
        }
    }

    fn join(&mut self, place: usize, job: &Job, of_minute: usize, times: f64) {
        let Some(policy) = self.policies.get_mut(place) else { return };
        if policy.minute.lines.is_empty() && policy.minute.runs.is_empty() {
            self.touched.push(place);
        }
        let events = times * f64::from(job.count);
        policy.see_target(job, events);
        if job.is_packed {
            let empty = LineMinute { events: [0.0; SECONDS], bytes: 0.0 };
            let line = policy.minute.lines.entry((job.priority, job.cost)).or_insert(empty);
            add(&mut line.events, of_minute, times);
            line.bytes += times * f64::from(job.item_bytes);
        } else {
            let runs = policy.minute.runs.entry(of_minute).or_default();
            *runs = (runs.0 + times, runs.1 + events, runs.2 + events * f64::from(job.cost));
        }
    }

    /// The minute that is under way is over.
    fn end_minute(&mut self) {
        let minute = self.minute;
        let runs = self.due.batches.len() as f64 * self.setting.scale;
        let firings: f64 = self.due.firings.iter().sum();
        let emissions = emissions((firings - runs).max(0.0), runs);
        self.counted.busiest_tick.see(firings, minute * 60);
        let emitted = self.emission.minute(minute, &self.due.firings);
        let records: f64 = self.due.records.iter().sum();
        let mut shared = self.plan_plain(emissions);
        // Messages of policies come on top of those that nothing throttles, which are handled first here.
        let plain = self.due.messages;
        let touched = std::mem::take(&mut self.touched);
        for place in &touched {
            self.plan_policy(*place, emissions);
        }
        let messages = self.due.messages;
        let delivery = self.due.cost + shared.cost() - self.due.creation;
        self.dispatch.of_a_message = delivery * (1.0 / messages.iter().sum::<f64>().max(1.0));
        self.dispatch.of_records =
            RECORD_SECONDS * CALL_MESSAGES * records / messages.iter().sum::<f64>().max(1.0);
        let late = self.handle(&plain, &emitted);
        for place in &touched {
            self.serve_policy(*place, &late);
        }
        self.share_calls(&plain, calls_of(&messages, emissions), &mut shared);
        let most_of =
            |policy: usize| self.policies.get(policy).map_or(0.0, |of| of.backlog.most_in_a_second());
        self.due.see(minute, self.dispatch.pollers().most, most_of, &mut self.counted.seconds);
        self.counted.unthrottled.add_all(&shared);
        self.counted.unthrottled_events += self.due.plain_events.iter().sum::<f64>();
        let due = std::mem::replace(&mut self.due, Due::new());
        if let Some(load) = self.counted.minutes.get_mut(place_of(minute, self.first_minute)) {
            load.firings += firings;
            load.events += due.events.iter().sum::<f64>();
            load.cost += due.cost + shared.cost();
        }
        self.keep_active();
    }

    /// Chunks of what nothing throttles: what they share, and their messages.
    fn plan_plain(&mut self, emissions: f64) -> Steps {
        let mut shared = Steps::default();
        if emissions > 1.0 {
            shared.add(Step::ScanPart, PARTS_LEFT);
        }
        let singles: f64 = self.due.singles.iter().flat_map(|singles| singles.events).sum();
        let kept = self.due.records.iter().sum::<f64>() / singles.max(1.0);
        for (is_http, Singles { events, bytes }) in [false, true].into_iter().zip(self.due.singles) {
            let item_bytes = bytes / events.iter().sum::<f64>().max(1.0);
            for (second, events) in events.into_iter().enumerate() {
                let cut = cut(events, item_bytes, is_http, emissions);
                shared.add(Step::SingleChunk, cut.chunks);
                shared.add(Step::ChunkMark, cut.chunks - cut.lone * kept);
                shared.add(Step::Send, cut.sends);
                shared.add(Step::Payload, cut.payload);
                self.due.chunk(second, cut.chunks);
            }
        }
        for (second, chunks, _) in std::mem::take(&mut self.due.batches) {
            self.due.chunk(second, chunks);
        }
        shared
    }

    /// Packs, arrivals and wake-ups of what joins the lines of a policy: their messages.
    fn plan_policy(&mut self, place: usize, emissions: f64) {
        let Some(policy) = self.policies.get_mut(place) else { return };
        let mut steps = Steps::default();
        let mut woken = [false; SECONDS];
        for line in policy.minute.lines.values() {
            let events: f64 = line.events.iter().sum();
            let item_bytes = line.bytes / events.max(1.0);
            let is_few = events / emissions.min(events) <= FEW;
            if !is_few {
                steps.add(Step::Pack, (events / PACK_EVENTS as f64).ceil());
                steps.add(Step::PackedEvent, events);
                if policy.has_groups() {
                    steps.add(Step::SharedEvent, events);
                }
                self.due.packed += events;
            }
            for (second, events) in line.events.iter().enumerate().filter(|(_, events)| **events > 0.0) {
                if is_few {
                    // Each emission sends what it has of an instant.
                    let parts = emissions.min(*events);
                    let messages = parts * (events / parts / events_per_chunk(false, item_bytes)).ceil();
                    let mut arrived = Steps::default();
                    arrived.add(Step::Arrival, messages);
                    arrived.add(Step::ArrivedEvent, *events);
                    self.due.tables.add_steps(second, &arrived);
                    steps.add_all(&arrived);
                    steps.add(Step::Payload, payload(messages, events * item_bytes));
                    self.due.arrive(second, messages);
                } else if let Some(woken) = woken.get_mut(second) {
                    *woken = true;
                }
            }
        }
        for second in policy.minute.runs.keys() {
            if let Some(woken) = woken.get_mut(*second) {
                *woken = true;
            }
        }
        for (second, _) in woken.into_iter().enumerate().filter(|(_, woken)| *woken) {
            steps.add(Step::Wake, 1.0);
            add(&mut self.due.messages, second, 1.0);
        }
        policy.shared.add_all(&steps);
        self.due.cost += steps.cost();
    }

    /// Has the messages of the minute handled: for each second, how late the first and the last of all of them are. They come no
    /// earlier than they are emitted.
    fn handle(&mut self, plain: &Seconds, emitted: &Late) -> Late {
        let mut late = [(0.0, 0.0); SECONDS];
        let messages = self.due.messages;
        let mut minutes = Minutes { first: self.first_minute, loads: &mut self.counted.minutes };
        let counts = plain.iter().zip(&messages).zip(&self.due.plain_events).zip(emitted).zip(&mut late);
        for (second, ((((plain, all), events), emitted), late)) in (self.minute * 60..).zip(counts) {
            if *all <= 0.0 {
                continue;
            }
            let (first, last) = self.dispatch.due(second, *all, &mut minutes);
            let (first, last) = (first.max(emitted.0), last.max(emitted.1));
            *late = (first + SOON_MS, last + SOON_MS);
            if *plain > 0.0 {
                let latest = (last + LATE_MS).max(first + LATE_MS);
                self.counted.unthrottled_waits.add(events * 0.98, late.0.min(late.1), late.1);
                self.counted.unthrottled_waits.add(events * 0.02, late.1, latest);
            }
        }
        late
    }

    /// What joined the lines of a policy in the minute waits for tokens and is delivered.
    fn serve_policy(&mut self, place: usize, late: &Late) {
        let Some((policy, state)) = self.setting.policies.get(place).zip(self.policies.get_mut(place)) else {
            return;
        };
        let due = std::mem::take(&mut state.minute);
        let mut by_second: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (second, (_, events, tokens)) in &due.runs {
            let sum = by_second.entry(*second).or_default();
            *sum = (sum.0 + events, sum.1 + tokens);
        }
        for ((_, cost), line) in &due.lines {
            for (second, events) in line.events.iter().enumerate().filter(|(_, events)| **events > 0.0) {
                let sum = by_second.entry(second).or_default();
                *sum = (sum.0 + events, sum.1 + events * f64::from(*cost));
            }
        }
        let few =
            due.runs.is_empty() && due.lines.values().all(|line| line.events.iter().sum::<f64>() <= FEW);
        for (second, (events, tokens)) in by_second {
            let at_s = self.minute * 60 + second as i64;
            let delivered = state.backlog.pass_until(at_s as f64);
            state.deliver(delivered, &mut self.counted.minutes, self.first_minute);
            let free = state.backlog.free();
            let runs = due.runs.get(&second).map_or(0.0, |(_, events, _)| *events);
            let at_once = (free / (tokens / events.max(1e-9))).floor().min(events);
            let sent = SentAtOnce { events, of_runs: runs, tokens, at_once, few };
            let steps = admission(sent, policy, state.http_part());
            self.due.tables.add_steps(second, &steps);
            state.shared.add_all(&steps);
            self.due.cost += steps.cost();
            state.tokens += tokens;
            let overflows = few && at_once < events;
            let late_ms =
                late.get(second).map_or(SOON_MS, |late| late.1) + if overflows { OVERFLOW_MS } else { 0.0 };
            let straight = free.min(tokens);
            state.busiest_second.see((straight + state.backlog.per_second()).min(tokens), at_s);
            state.backlog.come(events, tokens / events.max(1e-9), late_ms);
        }
        if state.active_until < self.minute {
            state.shared.add(Step::Activation, 1.0);
            self.due.cost += Step::Activation.cost();
            self.active.push(place);
        }
        state.active_until = self.minute + ACTIVE_AFTER;
    }

    /// Active policies are looked after in each minute, those too whose events still wait.
    fn keep_active(&mut self) {
        let until = self.minute + 1;
        let mut still = Vec::with_capacity(self.active.len());
        // Each is woken by a message, ten of which are sent and handled together.
        let policies = self.active.len().max(1) as f64;
        let calls = (policies / CALL_MESSAGES).ceil() / policies;
        for place in std::mem::take(&mut self.active) {
            let Some((policy, state)) = self.setting.policies.get(place).zip(self.policies.get_mut(place))
            else {
                continue;
            };
            let busy_s = state.backlog.busy_until_s();
            let active_until = state.active_until.max((busy_s / 60.0) as i64 + ACTIVE_AFTER);
            if active_until >= until {
                state.active_until = active_until;
                still.push(place);
            }
            let mut steps = Steps::default();
            steps.add(Step::ActiveMinute, 1.0);
            steps.add(Step::DispatchSend, calls);
            steps.add(Step::HandlerCall, calls);
            steps.add(Step::ActiveGroupMinute, policy.groups());
            state.shared.add_all(&steps);
            if let Some(load) = self.counted.minutes.get_mut(place_of(self.minute, self.first_minute)) {
                load.cost += steps.cost();
            }
        }
        self.active = still;
    }

    /// Calls to and from the dispatch queue, each with the messages that it carries.
    fn share_calls(&mut self, plain: &Seconds, (calls, sends): (f64, f64), shared: &mut Steps) {
        let all: f64 = self.due.messages.iter().sum();
        if all <= 0.0 {
            return;
        }
        let of_plain = plain.iter().sum::<f64>() / all;
        let calls_of = |part: f64| {
            let mut steps = Steps::default();
            steps.add(Step::HandlerCall, calls * part);
            steps.add(Step::DispatchSend, sends * part);
            steps
        };
        shared.add_all(&calls_of(of_plain));
        let throttled = calls_of(1.0 - of_plain);
        self.due.cost += throttled.cost();
        let states = self.policies.iter_mut().filter(|state| state.active_until >= self.minute);
        let mut states: Vec<_> = states.collect();
        let part = 1.0 / states.len().max(1) as f64;
        for state in &mut states {
            state.shared.add_all(&throttled.scaled(part));
        }
    }

    /// Everything has fired.
    pub fn finish(mut self) -> Counted {
        self.end_minute();
        let minutes = self.setting.minutes() as i64;
        while !self.active.is_empty() && self.minute < self.first_minute + minutes + MINUTES_AFTER as i64 {
            self.minute += 1;
            self.keep_active();
        }
        let mut loads = Minutes { first: self.first_minute, loads: &mut self.counted.minutes };
        self.dispatch.finish(&mut loads);
        let Self { setting, mut counted, policies, first_minute, .. } = self;
        for mut state in policies {
            let delivered = state.backlog.finish();
            state.deliver(delivered, &mut counted.minutes, first_minute);
            let of_an_event = state.of_an_event();
            let PolicyState { backlog, mut shared, busiest_second, .. } = state;
            shared.add_all(&of_an_event.scaled(backlog.events));
            counted.policies.push(PolicyLoad {
                shared,
                events: backlog.events,
                per_second: backlog.per_second(),
                busiest_second,
                longest: backlog.longest,
                last: backlog.last,
                waits: backlog.waits,
            });
        }
        counted.seconds.batches = Peak { value: self.dispatch.most.0, at_s: self.dispatch.most.1 };
        idle(setting, &mut counted);
        add_totals(setting, first_minute, &mut counted);
        counted
    }
}

/// Calls that handle messages, and calls that send them.
fn calls_of(messages: &Seconds, emissions: f64) -> (f64, f64) {
    let calls = messages.iter().map(|messages| (messages / CALL_MESSAGES).ceil()).sum();
    let all: f64 = messages.iter().sum();
    (calls, if all > 0.0 { (all / CALL_MESSAGES).max(emissions.min(all)) } else { 0.0 })
}
