//! A policy as time goes on: what joins its lines in a minute, waits, and is delivered.

use std::collections::BTreeMap;

use tidegate_domain::limits::{
    EVENTS_PER_COMPACTION, GRANT_EVENTS, OUTCOMES_PER_COMPACTION, TOKENS_PER_GROUP,
};

use crate::backlog::{Backlog, Delivered};
use crate::counted::{MinuteLoad, place_of};
use crate::facts::{Job, Policy, Setting, Target};
use crate::minute::{CALL_MESSAGES, Seconds};
use crate::peak::Peak;
use crate::steps::{Step, Steps};

/// Events of one line within the minute that is under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineMinute {
    pub(crate) events: Seconds,
    pub(crate) bytes: f64,
}

/// Whatever joins the lines of one policy within the minute that is under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyMinute {
    /// Runs of several events, by second: how many, events and tokens of all.
    pub(crate) runs: BTreeMap<usize, (f64, f64, f64)>,
    /// Single events, by priority and cost.
    pub(crate) lines: BTreeMap<(u8, u32), LineMinute>,
}

pub(crate) struct PolicyState {
    pub(crate) backlog: Backlog,
    pub(crate) minute: PolicyMinute,
    pub(crate) shared: Steps,
    policy: Policy,
    /// Its events for HTTP targets, and those that an answer releases.
    http: f64,
    released_by_answer: f64,
    /// Those that are noted as sent: no other delivery follows.
    noted: f64,
    /// All its events so far, and their tokens.
    joined: f64,
    pub(crate) tokens: f64,
    pub(crate) active_until: i64,
    pub(crate) busiest_second: Peak,
}

impl PolicyState {
    pub(crate) fn new(policy: &Policy, setting: &Setting) -> Self {
        Self {
            backlog: Backlog::new(policy, setting.handover_seconds),
            minute: PolicyMinute::default(),
            shared: Steps::default(),
            policy: policy.clone(),
            http: 0.0,
            released_by_answer: 0.0,
            noted: 0.0,
            joined: 0.0,
            tokens: 0.0,
            active_until: i64::MIN,
            busiest_second: Peak::default(),
        }
    }

    /// Whether several slot groups share its tokens.
    pub(crate) fn has_groups(&self) -> bool {
        self.policy.groups() > 1.0
    }

    /// Takes note of where events go.
    pub(crate) fn see_target(&mut self, job: &Job, events: f64) {
        self.joined += events;
        if job.is_delivered_once && !job.releases_itself {
            self.noted += events;
        }
        if job.target == Target::Http {
            self.http += events;
            self.released_by_answer += if job.releases_itself { events } else { 0.0 };
        }
    }

    /// Which part of its events goes to HTTP targets.
    pub(crate) fn http_part(&self) -> f64 {
        self.http / self.joined.max(1e-9)
    }

    /// What each event takes from its release on.
    pub(crate) fn of_an_event(&self) -> Steps {
        let together = self.policy.tokens_of_a_release();
        let groups = self.policy.groups_of_a_release();
        let part = |events: f64| events / self.joined.max(1e-9);
        let answered = part(self.released_by_answer);
        let mut steps = Steps::default();
        steps.add(Step::ReleaseCall, (1.0 - answered) / together);
        steps.add(Step::SlotWrite, groups / together * (1.0 + part(self.noted)));
        steps.add_all(&handed_over(sends_of_an_event(&self.policy), self.http_part()));
        // Of events that follow one another one outcome is kept: of those that are released together where they lie in one group.
        let together = if self.has_groups() { 1.0 } else { together };
        let compacted = OUTCOMES_PER_COMPACTION as f64 * together;
        steps.add(Step::Compaction, 1.0 / compacted.min(EVENTS_PER_COMPACTION.into()));
        steps
    }

    /// Adds what was delivered to its minutes.
    pub(crate) fn deliver(&self, delivered: Delivered, minutes: &mut [MinuteLoad], first_minute: i64) {
        let Delivered { events: tokens, from_s, to_s } = delivered;
        if tokens <= 0.0 {
            return;
        }
        // Events are counted in tokens while they are inside.
        let events = tokens * self.backlog.events / self.tokens.max(1e-9);
        let of_one = self.of_an_event().cost();
        let last = minutes.len().saturating_sub(1);
        let (first, end) = ((from_s / 60.0).floor() as i64, (to_s / 60.0).floor() as i64);
        let length = (to_s - from_s).max(1e-9);
        for minute in first..=end {
            let begins = (minute as f64 * 60.0).max(from_s);
            let part = (((minute + 1) as f64 * 60.0).min(to_s) - begins).max(0.0) / length;
            let part = if first == end { 1.0 } else { part };
            if let Some(load) = minutes.get_mut(place_of(minute, first_minute).min(last)) {
                load.released += events * part;
                load.cost += of_one * (events * part);
            }
        }
    }
}

/// Calls to the queue for each event that a release lets go: what one call releases goes out together, whatever groups it lies in.
fn sends_of_an_event(policy: &Policy) -> f64 {
    let together = policy.tokens_of_a_release();
    (together / CALL_MESSAGES).ceil() / together
}

/// Events that are sent so many times: to a queue at once, to an HTTP target by way of the dispatch queue.
fn handed_over(sends: f64, http: f64) -> Steps {
    let mut steps = Steps::default();
    steps.add(Step::Send, sends * (1.0 - http));
    for step in [Step::DispatchSend, Step::HandlerCall, Step::HttpWait] {
        steps.add(step, sends * http);
    }
    steps
}

/// Events that come in a second, of which some find a token at once: those are sent together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentAtOnce {
    pub(crate) events: f64,
    /// Of these, those of runs, which take ranges of their own.
    pub(crate) of_runs: f64,
    pub(crate) tokens: f64,
    pub(crate) at_once: f64,
    /// Whether they came in messages.
    pub(crate) few: bool,
}

/// What it takes to admit them, when such a part of them goes to HTTP targets.
pub(crate) fn admission(sent: SentAtOnce, policy: &Policy, http: f64) -> Steps {
    let SentAtOnce { events, of_runs, tokens, at_once, few } = sent;
    let mut steps = Steps::default();
    let of_one = tokens / events.max(1e-9);
    let groups = (at_once * of_one / f64::from(TOKENS_PER_GROUP)).ceil().min(policy.groups());
    match few {
        // They go straight to a group.
        true if at_once >= events => {}
        true => {
            steps.add(Step::Overflow, 1.0);
        }
        false => {
            // A run takes its first range as it joins the line.
            let first = if of_runs < events { 0.0 } else { 1.0 };
            steps.add(Step::FreshRange, (groups - first).max(0.0));
            steps.add(Step::FreshEvent, at_once);
            steps.add(Step::Range, (events - of_runs - at_once).max(0.0) / f64::from(GRANT_EVENTS));
            // Where several groups share them they take more ranges than full ones.
            let wait = (events - at_once).max(0.0);
            let ranges = policy.ranges(wait);
            steps.add(Step::Range, ranges - wait / f64::from(GRANT_EVENTS));
        }
    }
    let sends = (at_once / CALL_MESSAGES).ceil().max(groups);
    steps.add_all(&handed_over(sends - at_once * sends_of_an_event(policy), http));
    steps
}
