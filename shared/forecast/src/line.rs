//! A policy as time goes on: what joins its lines in a minute, waits, and is delivered.

use std::collections::BTreeMap;

use tidegate_domain::limits::{GRANT_EVENTS, OUTCOMES_PER_COMPACTION, SLOTS_PER_GROUP};

use crate::backlog::{Backlog, Delivered};
use crate::counted::{MinuteLoad, Peak, place_of};
use crate::facts::{Policy, Setting};
use crate::minute::{CALL_MESSAGES, Seconds};
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
    /// What each event takes from its release on.
    pub(crate) of_an_event: Steps,
    pub(crate) tokens: f64,
    pub(crate) active_until: i64,
    pub(crate) busiest_second: Peak,
}

impl PolicyState {
    pub(crate) fn new(policy: &Policy, setting: &Setting) -> Self {
        let together = policy.tokens_of_a_release();
        let groups = policy.groups_of_a_release();
        let mut of_an_event = Steps::default();
        of_an_event.add(Step::ReleaseCall, 1.0 / together);
        of_an_event.add(Step::SlotWrite, groups / together);
        of_an_event.add(Step::Send, groups / together);
        of_an_event.add(Step::Compaction, 1.0 / OUTCOMES_PER_COMPACTION as f64);
        Self {
            backlog: Backlog::new(policy, setting.handover_seconds),
            minute: PolicyMinute::default(),
            shared: Steps::default(),
            of_an_event,
            tokens: 0.0,
            active_until: i64::MIN,
            busiest_second: Peak::default(),
        }
    }

    /// Adds what was delivered to its minutes.
    pub(crate) fn deliver(&self, delivered: Delivered, minutes: &mut [MinuteLoad], first_minute: i64) {
        let Delivered { events: tokens, from_s, to_s } = delivered;
        if tokens <= 0.0 {
            return;
        }
        // Events are counted in tokens while they are inside.
        let events = tokens * self.backlog.events / self.tokens.max(1e-9);
        let of_one = self.of_an_event.cost();
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

/// What it takes to admit events that come in a second, of which those of runs take ranges of their own, and some find a token
/// at once: those are sent together.
pub(crate) fn admission(
    (events, of_runs): (f64, f64),
    tokens: f64,
    at_once: f64,
    few: bool,
    policy: &Policy,
) -> Steps {
    let mut steps = Steps::default();
    let of_one = tokens / events.max(1e-9);
    let groups = (at_once * of_one / f64::from(SLOTS_PER_GROUP)).ceil().min(policy.groups());
    match few {
        // They go straight to a group.
        true if at_once >= events => {}
        true => {
            steps.add(Step::Pack, 1.0);
            steps.add(Step::Range, 1.0);
        }
        false => {
            // A run takes its first range as it joins the line.
            let first = if of_runs < events { 0.0 } else { 1.0 };
            steps.add(Step::FreshRange, (groups - first).max(0.0));
            steps.add(Step::FreshEvent, at_once);
            steps.add(Step::Range, (events - of_runs - at_once).max(0.0) / f64::from(GRANT_EVENTS));
            // Where several groups share them they take more ranges than full ones.
            let wait = (events - at_once).max(0.0);
            steps.add(Step::Range, policy.ranges(wait) - wait / f64::from(GRANT_EVENTS));
        }
    }
    let together = policy.tokens_of_a_release();
    let sends = (at_once / CALL_MESSAGES).ceil().max(groups);
    steps.add(Step::Send, sends - at_once * policy.groups_of_a_release() / together);
    steps
}
