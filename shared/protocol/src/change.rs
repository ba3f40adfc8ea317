//! What was changed, when and by whom, and what a job said before.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::JobView;
use crate::policy::Unreadable;

/// A change of something of a client's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// What was changed: `job`, `policy`, `calendar`, `key`, `secret` or `client`.
    #[cfg_attr(feature = "openapi", schema(example = "job"))]
    pub kind: String,
    /// The name of what was changed.
    #[cfg_attr(feature = "openapi", schema(example = "nightly"))]
    pub id: String,
    /// What was done: `created`, `changed`, `paused`, `resumed`, `launch_skipped`, `backfilled`, `rescheduled`, `rolled_back`,
    /// `closed`, `opened`, `suspended`, `sidelined`, `drained`, `triggered`, `cancelled`, `redriven`, `discarded`, `freed` or `deleted`.
    #[cfg_attr(feature = "openapi", schema(example = "changed"))]
    pub what: String,
    /// To what of it: the run that was triggered or cancelled, the event that was redriven or discarded, or how many events, or tokens
    /// that were freed. Left out where it was done to the thing itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<String>,
    /// The id of the key that the call came with, or `admin`; null when no call is behind it.
    #[cfg_attr(feature = "openapi", schema(example = "0f3a9c1b7d24"))]
    pub by: Option<String>,
    /// The address that the call came from, where it is known.
    #[cfg_attr(feature = "openapi", schema(example = "203.0.113.7"))]
    pub from: Option<String>,
    /// The revision before; null when there was nothing, or it has no revisions.
    pub before_revision: Option<u32>,
    /// The revision that came of it, of a job also of its deletion; null when nothing is there, or it has no revisions.
    pub after_revision: Option<u32>,
    /// The fields that said something else before. Empty where something was created or deleted.
    pub fields: Vec<String>,
    /// A policy or a calendar as it was before. What a job was, its versions say. Left out when nothing was there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<Value>,
    /// The same after the change. Left out when nothing is there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<Value>,
}

/// A page of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeList {
    /// The changes, the latest first.
    pub changes: Vec<Change>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last. A page may have few changes, or none, and be followed by others.
    pub next_cursor: Option<String>,
}

/// A version of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(bound = ""))]
pub struct JobVersion<P = Value> {
    /// Its revision.
    pub revision: u32,
    /// When it was written.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub changed_at: String,
    /// What was done to make it, as a change says it; null when that is not recorded: of a one-time job that was created, and
    /// where it is no longer kept.
    #[cfg_attr(feature = "openapi", schema(example = "changed"))]
    pub what: Option<String>,
    /// The id of the key that the call came with, or `admin`; null when no call is behind it, or it is not recorded.
    pub by: Option<String>,
    /// The address that the call came from, where it is known.
    pub from: Option<String>,
    /// The fields that said something else in the version before.
    pub fields: Vec<String>,
    /// The job as it was then; null when this version is its deletion.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<JobView>))]
    pub job: Option<JobView<P>>,
}

/// A page of the versions of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(bound = ""))]
pub struct JobVersionList<P = Value> {
    /// The versions, the latest first.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<JobVersion>))]
    pub versions: Vec<JobVersion<P>>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_written_as_it_was_read_and_one_of_a_later_version_is_read() {
        let answered = json!({
            "at": "2026-11-21T12:00:00Z", "kind": "policy", "id": "small", "what": "changed", "by": "0f3a9c1b7d24",
            "from": "203.0.113.7", "before_revision": 1, "after_revision": 2, "fields": ["max_in_flight"],
            "before": {"max_in_flight": 2}, "after": {"max_in_flight": 3}
        });
        let change: Change = serde_json::from_value(answered.clone()).unwrap();
        assert_eq!(serde_json::to_value(&change).unwrap(), answered);
        let mut later = answered;
        later["kind"] = json!("webhook");
        later["why"] = json!("a ticket");
        let read: Change = serde_json::from_value(later).unwrap();
        assert_eq!(read, Change { kind: "webhook".to_owned(), ..change });
    }
}
