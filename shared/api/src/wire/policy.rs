//! Policies as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::backpressure::{Backpressure, ClosedBy};
use tidegate_domain::bounded::Revision;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::{CLOSED_BECAUSE_BYTES, CLOSED_SECONDS, DELIVERY_SECONDS, NAME_BYTES};
use tidegate_domain::policy::{LeaseSeconds, MaxInFlight, OnExpiry, Policy, PolicyTerms, WaitingRuns};
use tidegate_domain::rate_limit::{Per, RateBurst, RateEvents, RateLimit};
use tidegate_domain::sideline::Sideline;
use tidegate_engine::{Load, PolicyStatus};
use tidegate_protocol as protocol;
use tidegate_store::targets::StrainedTarget;
use utoipa::ToSchema;

use crate::form::Form;
use crate::merge::{Members, members_of};
use crate::problem::{FieldErrors, Problem};
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::number::{Number, check_given};
use crate::wire::read_only::Unread;
use crate::wire::sideline::{self, SidelinedBody};
use crate::wire::{instant, when};

/// A policy as a client defines it. The fields that only answers have may be sent back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the unread fields are there so that an answer can be sent back")]
pub(crate) struct PolicyBody {
    /// Its name: 1 to 32 letters, digits, '-' or '_'. Needed when posted; in the path when put.
    #[schema(value_type = Option<String>, example = "small")]
    policy_id: Option<Text<NAME_BYTES>>,
    /// The most events in flight at once.
    #[schema(value_type = u32, example = 3)]
    max_in_flight: Number<MaxInFlight>,
    /// How long a consumer may hold a token without a heartbeat, in seconds.
    #[schema(value_type = Option<u32>, default = json!(LeaseSeconds::DEFAULT.get()))]
    lease_seconds: Option<Number<LeaseSeconds>>,
    /// What becomes of a token whose lease ran out; `reclaim` when left out.
    #[serde(default)]
    on_expiry: protocol::OnExpiry,
    /// How fast events may begin; as fast as tokens allow when left out.
    rate: Option<RateBody>,
    /// How many runs may wait in its line; any number when left out. A run beyond them is recorded as `line_full`.
    #[schema(value_type = Option<u32>)]
    max_waiting_runs: Option<Number<WaitingRuns>>,
    /// The revision that is expected, as in `If-Match`. Not looked at when posted.
    #[schema(value_type = Option<u32>)]
    pub(crate) revision: Option<Number<Revision>>,
    /// What holds at present, or nothing: the calls to pause and resume change it.
    pub(crate) paused: Option<bool>,
    /// Not looked at: the calls to close and open change it.
    #[serde(default)]
    #[schema(value_type = Option<BackpressureBody>, read_only)]
    backpressure: Unread<BackpressureBody>,
    /// Not looked at: the calls to sideline and drain its client change it.
    #[serde(default)]
    #[schema(value_type = Option<SidelinedBody>, read_only)]
    sidelined: Unread<SidelinedBody>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<u32>, read_only)]
    in_flight: Unread<i128>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<u32>, read_only)]
    waiting: Unread<i128>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<u32>, read_only)]
    waiting_runs: Unread<i128>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<bool>, read_only)]
    draining: Unread<bool>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<String>, read_only)]
    status: Unread<String>,
    /// Not looked at.
    #[serde(default)]
    #[schema(value_type = Option<Vec<protocol::Unreadable>>, read_only)]
    set_aside: Unread<Vec<protocol::Unreadable>>,
}

/// What an answer says of a consumer that cannot keep up. Not looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there so that an answer can be sent back")]
pub(crate) struct BackpressureBody {
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    closed_until: Unread<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    closed_by: Unread<String>,
    #[serde(default)]
    #[schema(value_type = Option<u32>)]
    limit: Unread<i128>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    because: Unread<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    eases_at: Unread<String>,
}

/// How fast events may begin. A hard cap: in any interval of length `t` at most `burst + rate * t` begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a rate such as {\"events\": 30, \"per\": \"minute\"}: a whole number of events per second, minute, hour or day"
)]
#[schema(as = PolicyRate, example = json!({"events": 100, "per": "second", "burst": 20}))]
pub(crate) struct RateBody {
    /// Events in that time. For less than one of them, name a longer time: 0.5 a second is 30 a minute.
    #[schema(value_type = u32)]
    events: Number<RateEvents>,
    per: protocol::Per,
    /// How many may begin at once after a pause; what one second allows, and at least 1, when left out. With 1 they are
    /// evenly spaced.
    #[schema(value_type = Option<u32>)]
    burst: Option<Number<RateBurst>>,
}

/// A policy that has been checked.
pub(crate) struct CheckedPolicy {
    /// The name in the body, if there is one.
    pub(crate) id: Option<PolicyId>,
    pub(crate) terms: PolicyTerms,
}

bounded_fields!(PolicyBody: policy_id, max_in_flight, lease_seconds, max_waiting_runs, revision);
bounded_fields!(RateBody: events, burst);

impl Form for PolicyBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl PolicyBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<CheckedPolicy> {
        let id = match &self.policy_id {
            Some(text) => errors.keep("policy_id", &**text, text.parse()).map(Some),
            None => Some(None),
        };
        let so = "; pause the policy to let nothing through";
        let max_in_flight = self.max_in_flight.check_so(so, errors);
        let so = format!("; {DELIVERY_SECONDS} seconds is what one delivery may take");
        let lease_seconds = match self.lease_seconds {
            Some(seconds) => seconds.check_so(&so, errors),
            None => Some(LeaseSeconds::DEFAULT),
        };
        let rate = match &self.rate {
            Some(rate) => rate.check(errors).map(Some),
            None => Some(None),
        };
        let waiting_runs = check_given(self.max_waiting_runs, errors);
        let terms =
            PolicyTerms::of(max_in_flight?, lease_seconds?).with_on_expiry(on_expiry(self.on_expiry)?);
        let terms = terms.with_rate(rate?).with_max_waiting_runs(waiting_runs?);
        Some(CheckedPolicy { id: id?, terms })
    }
}

impl RateBody {
    fn check(&self, errors: &mut FieldErrors) -> Option<RateLimit> {
        let events = self.events.check(errors);
        let burst = check_given(self.burst, errors);
        Some(RateLimit::of(events?, per(self.per)?, burst?))
    }
}

fn per(word: protocol::Per) -> Option<Per> {
    match word {
        protocol::Per::Second => Some(Per::Second),
        protocol::Per::Minute => Some(Per::Minute),
        protocol::Per::Hour => Some(Per::Hour),
        protocol::Per::Day => Some(Per::Day),
        protocol::Per::Other => None,
    }
}

fn on_expiry(word: protocol::OnExpiry) -> Option<OnExpiry> {
    match word {
        protocol::OnExpiry::Reclaim => Some(OnExpiry::Reclaim),
        protocol::OnExpiry::Hold => Some(OnExpiry::Hold),
        protocol::OnExpiry::Other => None,
    }
}

/// A policy as it is answered.
pub(crate) fn view(policy: &Policy) -> protocol::PolicyView {
    let rate = |rate: RateLimit| protocol::Rate {
        events: rate.events(),
        per: match rate.per() {
            Per::Second => protocol::Per::Second,
            Per::Minute => protocol::Per::Minute,
            Per::Hour => protocol::Per::Hour,
            Per::Day => protocol::Per::Day,
        },
        burst: rate.burst(),
    };
    protocol::PolicyView {
        policy_id: policy.id.to_string(),
        revision: policy.revision,
        max_in_flight: policy.terms.max_in_flight(),
        lease_seconds: policy.terms.lease_seconds(),
        on_expiry: match policy.terms.on_expiry() {
            OnExpiry::Reclaim => protocol::OnExpiry::Reclaim,
            OnExpiry::Hold => protocol::OnExpiry::Hold,
        },
        rate: policy.terms.rate().map(rate),
        max_waiting_runs: policy.terms.max_waiting_runs(),
        paused: policy.paused,
        backpressure: policy
            .backpressure
            .as_ref()
            .map(|state| backpressure(state, policy.terms.max_in_flight())),
        sidelined: policy.sidelined.as_ref().map(sideline::view),
    }
}

/// What is done about a consumer that cannot keep up, where `limit` is the limit without it.
pub(crate) fn backpressure(state: &Backpressure, limit: u32) -> protocol::Backpressure {
    let closed = state.closed();
    protocol::Backpressure {
        closed_until: closed.map(|closed| instant(closed.until)),
        closed_by: closed.map(|closed| {
            let by = match closed.by {
                ClosedBy::Client => "client",
                ClosedBy::Consumer => "consumer",
            };
            by.to_owned()
        }),
        limit: state.open_limit(limit),
        because: state.because().to_owned(),
        eases_at: instant(state.eases_at()),
    }
}

/// A target without a policy that cannot keep up.
pub(crate) fn strained_target(target: &StrainedTarget) -> protocol::StrainedTarget {
    // It has no limit that could be halved: it is open or closed.
    let StrainedTarget { address, backpressure: state } = target;
    protocol::StrainedTarget { address: address.clone(), backpressure: backpressure(state, 1) }
}

/// A policy as its client would send it: what a patch is merged into.
pub(crate) fn as_sent(policy: &Policy) -> Result<Members, Problem> {
    let mut members = members_of(&view(policy))?;
    members.retain(|name, _| !["revision", "paused", "backpressure", "sidelined"].contains(&name.as_str()));
    Ok(members)
}

/// A policy as it is answered by itself, with what it holds at present.
pub(crate) fn status_view(status: &PolicyStatus) -> protocol::PolicyStatus {
    let PolicyStatus { policy, load: Load { in_flight, waiting, waiting_runs } } = status;
    let (in_flight, most) = (*in_flight, policy.terms.max_in_flight());
    let limit = policy.open_limit();
    // Of a paused policy nobody asks whether it drains to nothing, but whether it may go on when it is resumed.
    let draining = in_flight > limit;
    let paused = if policy.paused { "paused, " } else { "" };
    let sidelined = policy.sidelined.as_ref().map(sidelined).unwrap_or_default();
    let held_back = policy.backpressure.as_ref().map(|state| held_back(state, limit < most));
    let held_back = held_back.unwrap_or_default();
    let drains = if draining { ", draining" } else { "" };
    protocol::PolicyStatus {
        policy: view(policy),
        in_flight,
        waiting: *waiting,
        waiting_runs: *waiting_runs,
        draining,
        status: format!("{paused}{sidelined}{held_back}{in_flight} in flight, limit {limit}{drains}"),
        set_aside: Vec::new(),
    }
}

/// That the client of a policy is sidelined, or that it drains, as the beginning of a sentence.
fn sidelined(sideline: &Sideline) -> String {
    match sideline.drain {
        None => format!("sidelined since {}, ", instant(sideline.since)),
        Some(drain) => format!("drained at {} a second, ", drain.pace.get()),
    }
}

/// That a policy is closed or slowed, and why, as the beginning of a sentence.
fn held_back(state: &Backpressure, is_slowed: bool) -> String {
    let because = match state.because() {
        "" => String::new(),
        because => format!(", because {because}"),
    };
    match state.closed() {
        Some(closed) => format!("closed until {}{because}; ", instant(closed.until)),
        None if is_slowed => format!("slowed{because}; "),
        None => String::new(),
    }
}

/// A policy to be closed for a while.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"until": "2026-12-01T14:32:00Z", "because": "the mail provider moves its servers"}))]
pub(crate) struct CloseBody {
    /// Nothing is admitted before this instant, in ISO 8601 with its offset, at most 7 days ahead.
    #[schema(format = DateTime)]
    until: String,
    /// Why, for those who look at the policy: at most 200 bytes.
    #[schema(value_type = Option<String>)]
    because: Option<Text<CLOSED_BECAUSE_BYTES>>,
}

bounded_fields!(CloseBody: because);

impl Form for CloseBody {
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(now, errors);
    }
}

impl CloseBody {
    /// Until when, and why; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(
        &self,
        now: DateTime<Utc>,
        errors: &mut FieldErrors,
    ) -> Option<(DateTime<Utc>, String)> {
        let until = errors.keep("until", &*self.until, check_until(&self.until, now));
        let because =
            self.because.as_ref().map_or_else(|| Some(String::new()), |text| text.check("because", errors));
        Some((until?, because?))
    }
}

fn check_until(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let until = when::read_instant("until", text)?;
    if until <= now {
        return Err(format!(
            "{}; to open a policy, call its /open",
            when::is_past("until", text, until, now)
        ));
    }
    let ahead = until - now;
    if ahead.num_seconds() > CLOSED_SECONDS.into() {
        let days = CLOSED_SECONDS / 86_400;
        return Err(format!(
            "until '{text}' is {} ahead; {days} days is the most: pause the policy to stop it for longer",
            when::span(ahead)
        ));
    }
    Ok(until)
}
