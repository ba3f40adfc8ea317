//! Why an event is where it is, and what the expectation of its turn follows from, in sentences.

use chrono::{DateTime, Utc};
use tidegate_domain::policy::OnExpiry;
use tidegate_engine::{ExpectationBasis, Explanation, LeaseSpan, Reason};

use super::{clock_text, length_text, rate_text, so_far_text, speed_text};

/// Holders that are named in a sentence.
const NAMED_HOLDERS: usize = 3;

/// Why an event is where it is.
pub fn because(explanation: &Explanation) -> String {
    let record = &explanation.record;
    let clock = |at: DateTime<Utc>| clock_text(at, explanation.as_of);
    let at = record.at.map(|at| format!(" at {}", clock(at))).unwrap_or_default();
    let told = record.text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    let before = explanation.events_before.unwrap_or_default();
    match &explanation.reason {
        Reason::NotLaunched { launch_at } => {
            format!("its launch is in the future, at {}", clock(*launch_at))
        }
        Reason::PolicyPaused => "its policy is paused: nothing is admitted until it is resumed".to_owned(),
        Reason::PolicyClosed(closed) => {
            let backpressure =
                explanation.policy.as_ref().and_then(|status| status.policy.backpressure.as_ref());
            let why = backpressure.map(|backpressure| backpressure.because()).filter(|why| !why.is_empty());
            let because = why.map(|why| format!(", because {why}")).unwrap_or_default();
            format!("its policy is closed until {}{because}", clock(closed.until))
        }
        Reason::Sidelined { since } => {
            format!(
                "its client or job is sidelined since {}: nothing of it is sent until it is drained",
                clock(*since)
            )
        }
        Reason::EarlierRun => {
            "an earlier run of its job is not finished, and one run may wait for that (overlap buffer_one)"
                .to_owned()
        }
        Reason::OverlapUndecided => "its job's overlap rule has not been applied to its run yet".to_owned(),
        Reason::Retrying { failed: 0, due_at, .. } => {
            format!("it was redriven, and takes its place in the line at {}", clock(*due_at))
        }
        Reason::Retrying { failed, since, due_at } => {
            let times = if *failed == 1 {
                "once".to_owned()
            } else {
                format!("{failed} times since {}", clock(*since))
            };
            format!("its target did not take it, {times}: it is sent again from {} on", clock(*due_at))
        }
        Reason::Paced { count, admits_at } => {
            let (number, from) = (u64::from(record.id.index()).saturating_add(1), clock(*admits_at));
            format!("its run is paced over its window: event {number} of {count} is admitted from {from} on")
        }
        Reason::Draining { held, limit } => {
            format!("its policy drains: {held} in flight, limit {limit}")
        }
        Reason::TokensHeld { held, limit, cost, holders } => {
            let by = held_by(explanation, *holders);
            match held == limit {
                true => format!("all {limit} tokens of its policy are held{by}"),
                false => {
                    let takes = if *cost > 1 { format!(" and it takes {cost}") } else { String::new() };
                    format!("{held} of {limit} tokens of its policy are held{by}{takes}")
                }
            }
        }
        Reason::Rate { rate, turn_at } => {
            let lets = rate_text(*rate);
            match before {
                0 => format!("its policy's rate lets {lets} begin, the next at {}", clock(*turn_at)),
                _ => format!("its policy's rate lets {lets} begin, and {} before it", events_are(before)),
            }
        }
        Reason::TokensFree => match before {
            0 => "a token is free: it is about to be admitted".to_owned(),
            _ => format!("tokens are free, and {} to be admitted before it", events_are(before)),
        },
        Reason::PolicyDeleted => "its policy was deleted: it is not delivered".to_owned(),
        Reason::BeingDelivered => {
            "nothing throttles it: its delivery is under way, or is tried again".to_owned()
        }
        Reason::InFlight { attempt, lease: None } => format!("its consumer has it, delivery {attempt}"),
        Reason::InFlight { attempt, lease: Some(LeaseSpan { since, ends_at }) } => {
            let (since, end) = (clock(*since), clock(*ends_at));
            format!(
                "its consumer has it, delivery {attempt}: granted or last extended at {since}, lease until {end}"
            )
        }
        Reason::LeaseRanOut { attempt, ended_at, on_expiry } => {
            let becomes = match on_expiry {
                OnExpiry::Hold => "the policy holds the token until it is released or freed",
                OnExpiry::Reclaim => "the token is about to be taken back",
            };
            let end = clock(*ended_at);
            format!("its consumer has it, delivery {attempt}; the lease ran out at {end}, and {becomes}")
        }
        Reason::Succeeded => format!("its consumer released it as succeeded{at}{told}"),
        Reason::Failed => format!("its consumer released it as failed{at}{told}"),
        Reason::Expired => "nobody released it before its lease ended, in any of its deliveries".to_owned(),
        Reason::Dead => {
            let why = record.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("it could not be delivered{at}{why}")
        }
        Reason::Stopped => {
            let reason = record.reason.as_deref().unwrap_or("no reason");
            format!("its run was stopped ({reason}): it is not delivered")
        }
        Reason::Delivered => format!("it was delivered{at}; nothing throttles it"),
    }
}

/// What the instant follows from at which an event is expected to be admitted, or why nothing can be expected.
pub fn expectation(explanation: &Explanation) -> String {
    if explanation.basis.is_empty() {
        return "it does not wait for a token".to_owned();
    }
    let parts: Vec<String> = explanation.basis.iter().map(|basis| part(basis, explanation.as_of)).collect();
    parts.join("; ")
}

fn part(basis: &ExpectationBasis, as_of: DateTime<Utc>) -> String {
    let clock = |at: DateTime<Utc>| clock_text(at, as_of);
    match basis {
        ExpectationBasis::EventsBefore(events) => format!("{} before it", events_are(*events)),
        ExpectationBasis::EndUnknown => "how long that lasts is not known, so neither is its turn".to_owned(),
        ExpectationBasis::OwnSpeed(so_far) => format!("of its run, {}", so_far_text(so_far, as_of)),
        ExpectationBasis::HoldersSpeed(so_far) => {
            format!("of the run that holds the tokens, {}", so_far_text(so_far, as_of))
        }
        ExpectationBasis::Turn { after, per_second } => {
            let (after, speed) = (length_text(*after), speed_text(*per_second));
            format!("so its turn comes in about {after} at {speed} a second")
        }
        ExpectationBasis::SpeedUnknown => {
            "no event of the runs that hold tokens has ended yet, so their speed is not known".to_owned()
        }
        ExpectationBasis::FirstLeaseEnd(at) => {
            format!("the first lease ends at {}, unless it is extended", clock(*at))
        }
        ExpectationBasis::Rate { rate, turn_at, is_exact } => {
            let comes = if *is_exact { "comes at" } else { "comes no earlier than" };
            let (rate, turn) = (rate_text(*rate), clock(*turn_at));
            format!("its policy's rate lets {rate} begin, so its turn {comes} {turn}")
        }
        ExpectationBasis::AfterDeadline(at) => {
            format!("that is after its window ends at {}: it is then left out", clock(*at))
        }
        ExpectationBasis::LeftOutAtDeadline(at) => {
            format!("if it is not admitted by {}, it is left out", clock(*at))
        }
    }
}

/// ` by a.1.2.3, a.1.2.4 and 6 others`.
fn held_by(explanation: &Explanation, holders: usize) -> String {
    let named = explanation.holders.iter().take(NAMED_HOLDERS);
    let names: Vec<String> = named.map(|holder| holder.event.to_string()).collect();
    match holders.saturating_sub(NAMED_HOLDERS) {
        _ if names.is_empty() => String::new(),
        0 => format!(" by {}", names.join(", ")),
        1 => format!(" by {} and another", names.join(", ")),
        others => format!(" by {} and {others} others", names.join(", ")),
    }
}

fn events_are(count: u64) -> String {
    match count {
        1 => "1 event is".to_owned(),
        _ => format!("{count} events are"),
    }
}
