//! Firings, second by second, and what follows from them: steps, waits, peaks.
//!
//! What is held at a time is a minute, and some numbers for each minute of the window, each job and each policy: how many
//! firings there are does not matter.

use std::collections::BTreeMap;

use tidegate_domain::limits::PACK_EVENTS;

use crate::cost::Cost;
use crate::counted::{Counted, MinuteLoad, Peak, PolicyLoad, SecondPeaks, place_of};
use crate::dispatch::{BATCH_SECONDS, Dispatch, LATE_MS, SOON_MS};
use crate::facts::{Created, Job, Setting, Target};
use crate::job_steps::{chunks_of_a_run, own_steps};
use crate::line::{LineMinute, PolicyState, admission};
use crate::minute::{CALL_MESSAGES, SECONDS, Seconds, Singles, cut, emissions, events_per_chunk, payload};
use crate::spread::Spread;
use crate::steps::{Step, Steps};

/// Single events of a line and minute that travel in messages: `few` of the engine.
const FEW: f64 = 10.0;
/// Minutes for which a policy stays on the list of active ones when nothing is left.
const ACTIVE_AFTER: i64 = 2;
/// Minutes after the window in which what waits at its end is delivered; what takes longer counts for the last of them.
const MINUTES_AFTER: usize = 1_440;
/// Parts that a tick leaves to workers when it has not come to the end of a minute.
const PARTS_LEFT: f64 = 8.0;
/// A read of the mark of a client, in units.
const MARK_READ: f64 = 1.0;

/// Takes firings in order of time, and counts.
pub struct Load<'a> {
    setting: &'a Setting,
    first_minute: i64,
    minute: i64,
    /// To queues, and to HTTP targets.
    singles: [Singles; 2],
    batches: Vec<(usize, f64, f64)>,
    messages: Seconds,
    firings: Seconds,
    events: Seconds,
    records: Seconds,
    chunks: Seconds,
    /// Read units of jobs whose payloads do not travel.
    row_reads: Seconds,
    fifo: BTreeMap<(usize, usize), f64>,
    /// What each firing of a job takes by itself.
    own: Vec<Cost>,
    /// What the minute that is under way takes.
    cost: Cost,
    touched: Vec<usize>,
    policies: Vec<PolicyState>,
    active: Vec<usize>,
    dispatch: Dispatch,
    counted: Counted,
}

impl<'a> Load<'a> {
    /// Nothing has fired yet.
    pub fn new(setting: &'a Setting) -> Self {
        let first_minute = setting.from_s.div_euclid(60);
        let policies = setting.policies.iter().map(|policy| PolicyState::new(policy, setting)).collect();
        let own = setting.jobs.iter().map(|job| own_steps(job, setting).cost() * setting.scale).collect();
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
            singles: [Singles::default(); 2],
            batches: Vec::new(),
            messages: [0.0; SECONDS],
            firings: [0.0; SECONDS],
            events: [0.0; SECONDS],
            records: [0.0; SECONDS],
            chunks: [0.0; SECONDS],
            row_reads: [0.0; SECONDS],
            fifo: BTreeMap::new(),
            own,
            cost: Cost::NONE,
            touched: Vec::new(),
            policies,
            active: Vec::new(),
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
        let events = times * f64::from(job.count);
        add(&mut self.counted.fired, place, times);
        add(&mut self.firings, of_minute, times);
        add(&mut self.row_reads, of_minute, times * f64::from(job.row_reads));
        add(&mut self.events, of_minute, events);
        self.cost += self.own.get(place).copied().unwrap_or_default();
        match job.policy {
            Some(policy) => self.join(policy, &job, of_minute, times),
            None if job.count == 1 => {
                let [queue, http] = &mut self.singles;
                let singles = if job.target == Target::Http { http } else { queue };
                add(&mut singles.events, of_minute, times);
                singles.bytes += times * f64::from(job.item_bytes);
                if job.keeps_record {
                    add(&mut self.records, of_minute, times);
                }
            }
            None => {
                let chunks = times * chunks_of_a_run(&job);
                self.batches.push((of_minute, chunks, events));
            }
        }
        if let Target::Fifo(queue) = job.target {
            *self.fifo.entry((queue, of_minute)).or_default() += events;
        }
    }

    fn join(&mut self, place: usize, job: &Job, of_minute: usize, times: f64) {
        let Some(policy) = self.policies.get_mut(place) else { return };
        if policy.minute.lines.is_empty() && policy.minute.runs.is_empty() {
            self.touched.push(place);
        }
        let events = times * f64::from(job.count);
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
        let singles: f64 = self.singles.iter().flat_map(|singles| singles.events).sum();
        let runs = self.batches.len() as f64 * self.setting.scale;
        let firings: f64 = self.firings.iter().sum();
        let emissions = emissions((firings - runs).max(0.0), runs);
        self.counted.busiest_tick.see(firings, minute * 60);
        let mut shared = Steps::default();
        if emissions > 1.0 {
            shared.add(Step::ScanPart, PARTS_LEFT);
        }
        let kept = self.records.iter().sum::<f64>() / singles.max(1.0);
        for (is_http, Singles { events, bytes }) in
            [false, true].into_iter().zip(std::mem::take(&mut self.singles))
        {
            let item_bytes = bytes / events.iter().sum::<f64>().max(1.0);
            for (second, events) in events.into_iter().enumerate() {
                let cut = cut(events, item_bytes, is_http, emissions);
                shared.add(Step::SingleChunk, cut.chunks);
                shared.add(Step::ChunkMark, cut.chunks - cut.lone * kept);
                shared.add(Step::Send, cut.sends);
                shared.add(Step::Payload, cut.payload);
                add(&mut self.messages, second, cut.chunks);
                add(&mut self.chunks, second, cut.chunks);
            }
        }
        for (second, chunks, _) in &self.batches {
            add(&mut self.messages, *second, *chunks);
            add(&mut self.chunks, *second, *chunks);
        }
        // Messages of policies come on top of those that nothing throttles, which are handled first here.
        let plain = self.messages;
        let due = std::mem::take(&mut self.touched);
        for place in &due {
            self.plan_policy(*place, emissions);
        }
        let messages = self.messages;
        let (calls, sends) = calls_of(&messages, emissions);
        let late = self.handle(&plain, &messages);
        for place in &due {
            self.serve_policy(*place, &late);
        }
        self.share_calls(&plain, (calls, sends), &mut shared);
        self.see_seconds(&messages);
        self.counted.unthrottled.add_all(&shared);
        self.counted.unthrottled_events += singles + self.batches.iter().map(|batch| batch.2).sum::<f64>();
        let cost = std::mem::take(&mut self.cost) + shared.cost();
        if let Some(load) = self.counted.minutes.get_mut(place_of(minute, self.first_minute)) {
            load.firings += firings;
            load.events += self.events.iter().sum::<f64>();
            load.cost += cost;
        }
        self.keep_active();
        self.batches.clear();
        self.fifo.clear();
        for seconds in [
            &mut self.messages,
            &mut self.firings,
            &mut self.events,
            &mut self.records,
            &mut self.chunks,
            &mut self.row_reads,
        ] {
            *seconds = [0.0; SECONDS];
        }
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
            }
            for (second, events) in line.events.iter().enumerate().filter(|(_, events)| **events > 0.0) {
                if is_few {
                    let messages = (events / events_per_chunk(false, item_bytes)).ceil();
                    steps.add(Step::Arrival, messages);
                    steps.add(Step::ArrivedEvent, *events);
                    steps.add(Step::Payload, payload(messages, events * item_bytes));
                    add(&mut self.messages, second, messages);
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
            add(&mut self.messages, second, 1.0);
        }
        policy.shared.add_all(&steps);
        self.cost += steps.cost();
    }

    /// Has the messages of the minute handled: for each second, how late the first and the last of all of them are.
    fn handle(&mut self, plain: &Seconds, all: &Seconds) -> [(f64, f64); SECONDS] {
        let mut late = [(0.0, 0.0); SECONDS];
        let counts = plain.iter().zip(all).zip(&self.events).zip(&mut late);
        for (second, (((plain, all), events), late)) in (self.minute * 60..).zip(counts) {
            if *all <= 0.0 {
                continue;
            }
            let (first, last) = self.dispatch.due(second, *all);
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
    fn serve_policy(&mut self, place: usize, late: &[(f64, f64); SECONDS]) {
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
            let steps = admission((events, runs), tokens, at_once, few, policy);
            state.shared.add_all(&steps);
            self.cost += steps.cost();
            state.tokens += tokens;
            let late_ms = late.get(second).map_or(SOON_MS, |late| late.1);
            let straight = free.min(tokens);
            state.busiest_second.see((straight + state.backlog.per_second()).min(tokens), at_s);
            state.backlog.come(events, tokens / events.max(1e-9), late_ms);
        }
        if state.active_until < self.minute {
            state.shared.add(Step::Activation, 1.0);
            self.cost += Step::Activation.cost();
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
        let all: f64 = self.messages.iter().sum();
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
        self.cost += throttled.cost();
        let states = self.policies.iter_mut().filter(|state| state.active_until >= self.minute);
        let mut states: Vec<_> = states.collect();
        let part = 1.0 / states.len().max(1) as f64;
        for state in &mut states {
            state.shared.add_all(&throttled.scaled(part));
        }
    }

    fn see_seconds(&mut self, messages: &Seconds) {
        let peaks = &mut self.counted.seconds;
        for second in 0..SECONDS {
            let at_s = self.minute * 60 + second as i64;
            let of = |seconds: &Seconds| seconds.get(second).copied().unwrap_or_default();
            peaks.firings.see(of(&self.firings), at_s);
            peaks.events.see(of(&self.events), at_s);
            peaks.messages.see(of(messages), at_s);
            peaks.records.see(of(&self.records), at_s);
            peaks.mark_reads.see(of(&self.chunks) * MARK_READ, at_s);
            peaks.row_reads.see(of(&self.row_reads), at_s);
        }
        for ((_, second), events) in &self.fifo {
            peaks.fifo.see(*events, self.minute * 60 + *second as i64);
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
        self.dispatch.finish();
        let Self { setting, mut counted, policies, first_minute, .. } = self;
        for mut state in policies {
            let delivered = state.backlog.finish();
            state.deliver(delivered, &mut counted.minutes, first_minute);
            let PolicyState { backlog, shared, of_an_event, busiest_second, .. } = state;
            let mut shared = shared;
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
        for (minute, load) in (first_minute..).zip(&counted.minutes) {
            counted.seconds.released.see(load.released / 60.0, minute * 60);
        }
        idle(setting, &mut counted);
        creates(setting, &mut counted);
        counted
    }
}

/// Calls that handle messages, and calls that send them.
fn calls_of(messages: &Seconds, emissions: f64) -> (f64, f64) {
    let calls = messages.iter().map(|messages| (messages / CALL_MESSAGES).ceil()).sum();
    let all: f64 = messages.iter().sum();
    (calls, if all > 0.0 { (all / CALL_MESSAGES).max(emissions.min(all)) } else { 0.0 })
}

fn add(counts: &mut [f64], place: usize, more: f64) {
    if let Some(count) = counts.get_mut(place) {
        *count += more;
    }
}

/// Ticks and polls of the window.
fn idle(setting: &Setting, counted: &mut Counted) {
    let mut minute = Steps::default();
    minute.add(Step::Tick, 1.0);
    minute.add(Step::TickZone, setting.zones as f64);
    minute.add(Step::PolledMinute, 1.0);
    let minutes = setting.minutes();
    counted.idle = minute.scaled(minutes as f64);
    counted.minutes.iter_mut().take(minutes).for_each(|load| load.cost += minute.cost());
}

/// The most jobs that are created in a second: as was said, or as many as launch in the busiest minute.
fn creates(setting: &Setting, counted: &mut Counted) {
    let created = setting.jobs.iter().zip(&counted.fired).filter(|(job, _)| job.created != Created::Before);
    let created: f64 = created.map(|(_, fired)| fired).sum();
    let busiest = counted.busiest_tick;
    let of_busiest = (busiest.value / 60.0).min(created);
    let value = setting.creates_per_second.unwrap_or(if created > 0.0 { of_busiest } else { 0.0 });
    counted.seconds.creates = Peak { value, at_s: busiest.at_s };
}
