//! Changes as they travel, and the versions of a job.

use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_domain::calendar::Calendar;
use tidegate_domain::change::Kind as KindOfThing;
use tidegate_domain::limits::JOB_ID_BYTES;
use tidegate_domain::policy::Policy;
use tidegate_engine::JobVersion;
use tidegate_protocol as protocol;
use tidegate_store::StoreError;
use tidegate_store::changes::ChangeRow;
use utoipa::IntoParams;

use crate::problem::{Kind, Problem};
use crate::wire::bounds::Text;
use crate::wire::number::PageLimit;
use crate::wire::{calendar, instant, job, policy};

/// Which changes are asked for: those that fit all that is given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangesQuery {
    /// The `next_cursor` of the page before; left out for the first.
    pub(crate) cursor: Option<String>,
    /// The most rows of the page, 1 to 100; 100 when left out.
    #[param(inline, value_type = Option<PageLimit>)]
    pub(crate) limit: Option<String>,
    /// Those that were made at this instant or later, in ISO 8601 with its offset; all that are kept when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(crate) since: Option<String>,
    /// Those that were made before this instant; up to now when left out.
    #[param(value_type = Option<String>, format = DateTime)]
    pub(crate) until: Option<String>,
    /// What was changed: `job`, `policy`, `calendar`, `key`, `secret` or `client`.
    #[param(example = "job")]
    kind: Option<String>,
    /// The name of what was changed.
    #[param(value_type = Option<String>, example = "nightly", max_length = 200)]
    id: Option<Text<JOB_ID_BYTES>>,
}

/// Which changes are meant.
pub(crate) struct Wanted {
    kind: Option<KindOfThing>,
    id: Option<String>,
}

impl ChangesQuery {
    /// What the changes that are asked for have in common beside their time.
    pub(crate) fn wanted(&self) -> Result<Wanted, Problem> {
        let kind = self.kind.as_deref().map(|word| {
            KindOfThing::from_word(word).ok_or_else(|| {
                let words = KindOfThing::ALL.map(KindOfThing::as_str).join(", ");
                let detail = format!("kind is '{word}'; it must be one of {words}");
                Problem::of_field(Kind::MalformedRequest, "kind", word, detail)
            })
        });
        Ok(Wanted { kind: kind.transpose()?, id: self.id.as_deref().map(str::to_owned) })
    }
}

impl Wanted {
    /// Whether all changes are meant.
    pub(crate) fn has_all(&self) -> bool {
        self.kind.is_none() && self.id.is_none()
    }

    /// Whether a change is meant.
    pub(crate) fn has(&self, change: &ChangeRow) -> bool {
        self.kind.is_none_or(|kind| kind.as_str() == change.kind)
            && self.id.as_ref().is_none_or(|id| *id == change.id)
    }
}

/// A change as it is answered.
pub(crate) fn view(row: &ChangeRow) -> Result<protocol::Change, StoreError> {
    let ((policy_before, policy_after), (calendar_before, calendar_after)) =
        (row.policies()?, row.calendars()?);
    let told = |policy: Option<Policy>, calendar: Option<Calendar>| match (policy, calendar) {
        (Some(policy), _) => serde_json::to_value(policy::view(&policy)).ok(),
        (None, Some(calendar)) => serde_json::to_value(calendar::view(&calendar)).ok(),
        (None, None) => None,
    };
    Ok(protocol::Change {
        at: instant(row.at),
        kind: row.kind.clone(),
        id: row.id.clone(),
        what: row.what.clone(),
        of: row.of.clone(),
        by: row.by.clone(),
        from: row.from.clone(),
        before_revision: row.before_revision,
        after_revision: row.after_revision,
        fields: row.fields.clone(),
        before: told(policy_before, calendar_before),
        after: told(policy_after, calendar_after),
    })
}

/// A version of a job as it is answered.
pub(crate) fn version_view(version: &JobVersion) -> protocol::JobVersion<Box<RawValue>> {
    let change = version.change.as_ref();
    protocol::JobVersion {
        revision: version.revision,
        changed_at: instant(version.changed_at),
        what: change.map(|change| change.what.clone()),
        by: change.and_then(|change| change.by.clone()),
        from: change.and_then(|change| change.from.clone()),
        fields: change.map(|change| change.fields.clone()).unwrap_or_default(),
        job: version.job.as_ref().map(|job| job::view(job, Vec::new())),
    }
}
