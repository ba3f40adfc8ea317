//! Policies as they travel.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::{
    DELIVERY_SECONDS, LEASE_SECONDS, MAX_IN_FLIGHT, RATE_BURST, RATE_EVENTS, WAITING_RUNS,
};
use tidegate_domain::policy::{OnExpiry, Policy, PolicyTerms};
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_engine::{Load, PolicyStatus};
use tidegate_store::Unreadable;
use utoipa::ToSchema;

use crate::form::Form;
use crate::merge::{Members, members_of};
use crate::problem::{FieldErrors, Problem};
use crate::wire::Whole;
use crate::wire::read_only::Unread;
use crate::wire::spoiled::UnreadableView;

/// The lease of a policy that does not name one, in seconds.
const DEFAULT_LEASE_SECONDS: u32 = 60;

/// A policy as a client defines it. The fields that only answers have may be sent back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the unread fields are there so that an answer can be sent back")]
pub(crate) struct PolicyBody {
    /// Its name: 1 to 32 letters, digits, '-' or '_'. Needed when posted; in the path when put.
    #[schema(max_length = 32, example = "small")]
    policy_id: Option<String>,
    /// The most events in flight at once.
    #[schema(value_type = u32, minimum = 1, maximum = 10_000, example = 3)]
    max_in_flight: Whole,
    /// How long a consumer may hold a token without a heartbeat, in seconds.
    #[schema(value_type = Option<u32>, minimum = 10, maximum = 43_200, default = 60)]
    lease_seconds: Option<Whole>,
    /// What becomes of a token whose lease ran out; `reclaim` when left out.
    #[serde(default)]
    on_expiry: OnExpiryWord,
    /// How fast events may begin; as fast as tokens allow when left out.
    rate: Option<RateBody>,
    /// How many runs may wait in its line; any number when left out. A run beyond them is recorded as `line_full`.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    max_waiting_runs: Option<Whole>,
    /// The revision that is expected, as in `If-Match`. Not looked at when posted.
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub(crate) revision: Option<Whole>,
    /// What holds at present, or nothing: the calls to pause and resume change it.
    pub(crate) paused: Option<bool>,
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
    #[schema(value_type = Option<Vec<UnreadableView>>, read_only)]
    set_aside: Unread<Vec<UnreadableView>>,
}

/// What becomes of a token whose lease ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OnExpiry)]
pub(crate) enum OnExpiryWord {
    /// It is taken back; the event goes on by its job's retry rule.
    #[default]
    Reclaim,
    /// It stays with its holder until that one releases it, or an operator frees it.
    Hold,
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
    #[schema(value_type = u32, minimum = 1, maximum = 100_000)]
    events: Whole,
    per: PerWord,
    /// How many may begin at once after a pause; what one second allows, and at least 1, when left out. With 1 they are
    /// evenly spaced.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 10_000)]
    burst: Option<Whole>,
}

/// A rate as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PolicyRateView)]
pub(crate) struct RateView {
    /// Events in that time.
    events: u32,
    per: PerWord,
    /// How many may begin at once after a pause; what one second allows, and at least 1, when null.
    burst: Option<u32>,
}

/// The length of time that a rate counts events in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Per)]
pub(crate) enum PerWord {
    /// One second.
    Second,
    /// Sixty of them.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
}

/// A policy that has been checked.
pub(crate) struct CheckedPolicy {
    /// The name in the body, if there is one.
    pub(crate) id: Option<PolicyId>,
    pub(crate) terms: PolicyTerms,
}

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
        let max_in_flight = self.max_in_flight.within_so("max_in_flight", 1..=MAX_IN_FLIGHT, so, errors);
        let lease_seconds = self.lease_seconds.unwrap_or(DEFAULT_LEASE_SECONDS.into());
        let so = format!("; {DELIVERY_SECONDS} seconds is what one delivery may take");
        let lease_seconds = lease_seconds.within_so("lease_seconds", LEASE_SECONDS, &so, errors);
        let rate = match &self.rate {
            Some(rate) => rate.check(errors).map(Some),
            None => Some(None),
        };
        let runs = match self.max_waiting_runs {
            Some(runs) => runs.within("max_waiting_runs", WAITING_RUNS, errors).map(Some),
            None => Some(None),
        };
        let terms = PolicyTerms::new(max_in_flight?, lease_seconds?);
        let terms = errors.keep("(body)", (), terms)?.with_on_expiry(self.on_expiry.into()).with_rate(rate?);
        let terms = errors.keep("max_waiting_runs", (), terms.with_max_waiting_runs(runs?))?;
        Some(CheckedPolicy { id: id?, terms })
    }
}

impl RateBody {
    fn check(&self, errors: &mut FieldErrors) -> Option<RateLimit> {
        let events = self.events.within("rate.events", 1..=RATE_EVENTS, errors);
        let burst = match self.burst {
            Some(burst) => burst.within("rate.burst", 1..=RATE_BURST, errors).map(Some),
            None => Some(None),
        };
        errors.keep("rate", (), RateLimit::new(events?, self.per.into(), burst?))
    }
}

impl From<RateLimit> for RateView {
    fn from(rate: RateLimit) -> Self {
        let per = match rate.per() {
            Per::Second => PerWord::Second,
            Per::Minute => PerWord::Minute,
            Per::Hour => PerWord::Hour,
            Per::Day => PerWord::Day,
        };
        Self { events: rate.events(), per, burst: rate.burst() }
    }
}

impl From<PerWord> for Per {
    fn from(word: PerWord) -> Self {
        match word {
            PerWord::Second => Self::Second,
            PerWord::Minute => Self::Minute,
            PerWord::Hour => Self::Hour,
            PerWord::Day => Self::Day,
        }
    }
}

impl From<OnExpiryWord> for OnExpiry {
    fn from(word: OnExpiryWord) -> Self {
        match word {
            OnExpiryWord::Reclaim => Self::Reclaim,
            OnExpiryWord::Hold => Self::Hold,
        }
    }
}

impl From<OnExpiry> for OnExpiryWord {
    fn from(rule: OnExpiry) -> Self {
        match rule {
            OnExpiry::Reclaim => Self::Reclaim,
            OnExpiry::Hold => Self::Hold,
        }
    }
}

/// A policy as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Policy)]
pub(crate) struct PolicyView {
    /// Its name within the client.
    policy_id: String,
    /// Rises by one with each change. It is also the ETag, which `If-Match` takes.
    revision: u32,
    /// The most events in flight at once.
    max_in_flight: u32,
    /// How long a consumer may hold a token without a heartbeat, in seconds.
    lease_seconds: u32,
    /// What becomes of a token whose lease ran out.
    on_expiry: OnExpiryWord,
    /// How fast events may begin; as fast as tokens allow when null.
    rate: Option<RateView>,
    /// How many runs may wait in its line; any number when null.
    max_waiting_runs: Option<u32>,
    /// Whether it is paused: nothing is admitted then.
    paused: bool,
}

impl PolicyView {
    /// A policy as its client would send it: what a patch is merged into.
    pub(crate) fn as_sent(policy: &Policy) -> Result<Members, Problem> {
        let mut members = members_of(&Self::from(policy))?;
        members.retain(|name, _| !["revision", "paused"].contains(&name.as_str()));
        Ok(members)
    }
}

impl From<&Policy> for PolicyView {
    fn from(policy: &Policy) -> Self {
        Self {
            policy_id: policy.id.to_string(),
            revision: policy.revision,
            max_in_flight: policy.terms.max_in_flight(),
            lease_seconds: policy.terms.lease_seconds(),
            on_expiry: policy.terms.on_expiry().into(),
            rate: policy.terms.rate().map(RateView::from),
            max_waiting_runs: policy.terms.max_waiting_runs(),
            paused: policy.paused,
        }
    }
}

/// A policy with what it holds at present.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PolicyStatus)]
pub(crate) struct PolicyStatusView {
    #[serde(flatten)]
    policy: PolicyView,
    /// Tokens that are held now: the costs of the events that were delivered or are about to be, and neither released nor
    /// taken back.
    in_flight: u32,
    /// Events that were launched and wait for a token.
    waiting: u32,
    /// Runs in its line, due or not.
    waiting_runs: u32,
    /// Whether more is in flight than the limit, because the limit was lowered: nothing is admitted until it is not.
    draining: bool,
    /// The same in a sentence.
    #[schema(example = "12 in flight, limit 8, draining")]
    status: String,
    /// What was taken out of its line because it cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set_aside: Vec<UnreadableView>,
}

impl PolicyStatusView {
    pub(crate) fn new(status: &PolicyStatus) -> Self {
        let PolicyStatus { policy, load: Load { in_flight, waiting, waiting_runs } } = status;
        let (in_flight, limit) = (*in_flight, policy.terms.max_in_flight());
        // Of a paused policy nobody asks whether it drains to nothing, but whether it may go on when it is resumed.
        let draining = in_flight > limit;
        let paused = if policy.paused { "paused, " } else { "" };
        let drains = if draining { ", draining" } else { "" };
        Self {
            policy: policy.into(),
            in_flight,
            waiting: *waiting,
            waiting_runs: *waiting_runs,
            draining,
            status: format!("{paused}{in_flight} in flight, limit {limit}{drains}"),
            set_aside: Vec::new(),
        }
    }

    /// With what was taken out of its line.
    pub(crate) fn with_set_aside(self, rows: Vec<Unreadable>) -> Self {
        Self { set_aside: UnreadableView::all(rows, ""), ..self }
    }
}

/// A page of policies.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyList {
    /// The policies, by name.
    pub(crate) policies: Vec<PolicyView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<UnreadableView>,
    /// What to ask the next page with; null on the last.
    pub(crate) next_cursor: Option<String>,
}
