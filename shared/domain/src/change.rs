//! Changes of what clients have: what was done, to what, and who is behind it.

use std::net::IpAddr;

use chrono::{DateTime, Utc};

use crate::calendar::Exclusions;
use crate::job::{HistoryDays, Job};
use crate::policy::Policy;

/// Who is behind a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    /// What the key is called that the call came with, or [`Author::ADMIN`]; `None`: no call is behind it.
    pub by: Option<String>,
    /// The address that the call came from, where it is known.
    pub from: Option<IpAddr>,
    /// For how long the client wants to know what happened: its changes are told at least as long.
    pub history_days: HistoryDays,
}

impl Author {
    /// What the admin is called. No key is called so.
    pub const ADMIN: &'static str = "admin";
}

/// A change as it is recorded: what was done, and who did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What was done.
    pub what: What,
    /// Who did it.
    pub author: Author,
    /// When, to the millisecond.
    pub at: DateTime<Utc>,
}

impl Change {
    /// A change that no call is behind.
    pub fn by_nobody(what: What, at: DateTime<Utc>) -> Self {
        Self { what, author: Author::default(), at }
    }
}

/// A kind of thing that changes are recorded of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A job.
    Job,
    /// A policy.
    Policy,
    /// A calendar.
    Calendar,
    /// A key of a client.
    Key,
    /// A secret of a client.
    Secret,
    /// The client itself.
    Client,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Job, Self::Policy, Self::Calendar, Self::Key, Self::Secret, Self::Client];

    /// Its word in rows and in the API, which never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Policy => "policy",
            Self::Calendar => "calendar",
            Self::Key => "key",
            Self::Secret => "secret",
            Self::Client => "client",
        }
    }

    /// The kind that a word is of.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What was done. Shown as [`What::as_str`].
///
/// ```
/// use tidegate_domain::change::What;
///
/// assert_eq!(What::RolledBack.as_str(), "rolled_back");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// It was not there before.
    Created,
    /// It says something else than before.
    Changed,
    /// It was paused, or paused for another reason.
    Paused,
    /// It goes on.
    Resumed,
    /// A launch of the job is left out.
    LaunchSkipped,
    /// Launches of the job that were over were made after all.
    Backfilled,
    /// The job launches at other times.
    Rescheduled,
    /// The job says again what it said at an earlier revision.
    RolledBack,
    /// The policy was closed.
    Closed,
    /// The policy was opened.
    Opened,
    /// The client was suspended.
    Suspended,
    /// What the job or the client would deliver is held.
    Sidelined,
    /// What was held of it goes, at a pace.
    Drained,
    /// A run of the job was triggered.
    Triggered,
    /// A run of the job was cancelled.
    Cancelled,
    /// Events of the job that did not succeed were sent again.
    Redriven,
    /// Events of the job that did not succeed were forgotten.
    Discarded,
    /// Tokens of the policy were freed in the place of those who held them.
    Freed,
    /// It is gone.
    Deleted,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Created,
        Self::Changed,
        Self::Paused,
        Self::Resumed,
        Self::LaunchSkipped,
        Self::Backfilled,
        Self::Rescheduled,
        Self::RolledBack,
        Self::Closed,
        Self::Opened,
        Self::Suspended,
        Self::Sidelined,
        Self::Drained,
        Self::Triggered,
        Self::Cancelled,
        Self::Redriven,
        Self::Discarded,
        Self::Freed,
        Self::Deleted,
    ];

    /// Its word in rows and in the API, which never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::LaunchSkipped => "launch_skipped",
            Self::Backfilled => "backfilled",
            Self::Rescheduled => "rescheduled",
            Self::RolledBack => "rolled_back",
            Self::Closed => "closed",
            Self::Opened => "opened",
            Self::Suspended => "suspended",
            Self::Sidelined => "sidelined",
            Self::Drained => "drained",
            Self::Triggered => "triggered",
            Self::Cancelled => "cancelled",
            Self::Redriven => "redriven",
            Self::Discarded => "discarded",
            Self::Freed => "freed",
            Self::Deleted => "deleted",
        }
    }
}

/// The fields of a job, as the API calls them, that say something else in another version of it.
pub fn fields_that_differ(old: &Job, new: &Job) -> Vec<&'static str> {
    // A field that is added to a job does not compile before it is named here; below stands what the API calls it.
    let Job {
        client: _,
        id: _,
        revision: _,
        trigger: _,
        rules: _,
        paused: _,
        paused_because: _,
        terms: _,
        tags: _,
        expect: _,
        children: _,
        emit_from: _,
        changed_at: _,
    } = new;
    let (terms, was) = (&new.terms, &old.terms);
    let (flow, flowed) = (&new.terms.flow, &old.terms.flow);
    let (rules, ruled) = (&new.rules, &old.rules);
    let released = flow.release_on_response != flowed.release_on_response;
    let fields = [
        ("trigger", new.trigger != old.trigger),
        ("target", terms.target != was.target || released),
        ("count", terms.count != was.count),
        ("policy_id", terms.policy != was.policy),
        ("payload", terms.payload != was.payload),
        ("history", terms.history != was.history),
        ("max_attempts", terms.max_attempts != was.max_attempts),
        ("retry", terms.retry != was.retry),
        ("relevancy_seconds", terms.relevancy != was.relevancy),
        ("cost", flow.cost != flowed.cost),
        ("priority", flow.priority != flowed.priority),
        ("fair_by", flow.fair_by != flowed.fair_by),
        ("overlap", flow.overlap != flowed.overlap),
        ("window", flow.window != flowed.window),
        ("max_failures", flow.max_failures != flowed.max_failures),
        ("on_completion", flow.on_completion != flowed.on_completion),
        ("heartbeat_url", flow.heartbeat != flowed.heartbeat),
        ("start_at", rules.start_at != ruled.start_at),
        ("end_at", rules.end_at != ruled.end_at),
        ("jitter_seconds", rules.jitter != ruled.jitter),
        ("misfire", rules.misfire != ruled.misfire),
        ("calendars", rules.calendars != ruled.calendars),
        ("only_on", rules.only_on != ruled.only_on),
        ("on_closed_day", rules.on_closed_day != ruled.on_closed_day),
        ("skip", rules.skip != ruled.skip),
        ("tags", new.tags != old.tags),
        ("expect", new.expect != old.expect),
        ("paused", new.paused != old.paused),
        ("paused_because", new.paused_because != old.paused_because),
    ];
    differing(fields)
}

/// The same of a policy.
pub fn policy_fields_that_differ(old: &Policy, new: &Policy) -> Vec<&'static str> {
    let (terms, was) = (&new.terms, &old.terms);
    differing([
        ("max_in_flight", terms.max_in_flight() != was.max_in_flight()),
        ("lease_seconds", terms.lease_seconds() != was.lease_seconds()),
        ("on_expiry", terms.on_expiry() != was.on_expiry()),
        ("rate", terms.rate() != was.rate()),
        ("max_waiting_runs", terms.max_waiting_runs() != was.max_waiting_runs()),
        ("paused", new.paused != old.paused),
        ("backpressure", new.backpressure != old.backpressure),
    ])
}

/// The same of a calendar.
pub fn calendar_fields_that_differ(old: &Exclusions, new: &Exclusions) -> Vec<&'static str> {
    differing([
        ("zone", new.zone != old.zone),
        ("dates", new.dates != old.dates),
        ("yearly", new.yearly != old.yearly),
        ("weekdays", new.weekdays != old.weekdays),
        ("early_close", new.early_close != old.early_close),
        ("intervals", new.intervals != old.intervals),
    ])
}

/// The names of those fields that differ.
pub fn differing<const N: usize>(fields: [(&'static str, bool); N]) -> Vec<&'static str> {
    fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_word_stands_for_two_and_none_is_the_name_of_a_key() {
        let words: HashSet<&str> = What::ALL.map(What::as_str).into_iter().collect();
        assert_eq!(words.len(), What::ALL.len());
        for kind in Kind::ALL {
            assert_eq!(Kind::from_word(kind.as_str()), Some(kind));
        }
        // A key is called by twelve characters of hex.
        assert_ne!(Author::ADMIN.len(), 12);
    }
}
