//! Sidelining as it travels.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::limits::CLOSED_BECAUSE_BYTES;
use tidegate_domain::retry::RedrivePace;
use tidegate_domain::sideline::Sideline;
use tidegate_protocol as protocol;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::instant;
use crate::wire::number::Number;
use crate::wire::read_only::Unread;

/// A client or a job to be sidelined.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"because": "the database of the shop is restored"}))]
pub(crate) struct SidelineBody {
    /// Why, for those who look at it: at most 200 bytes.
    #[schema(value_type = Option<String>)]
    because: Option<Text<CLOSED_BECAUSE_BYTES>>,
}

bounded_fields!(SidelineBody: because);

impl Form for SidelineBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl SidelineBody {
    /// Why; `None` when it is too long, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<String> {
        self.because.as_ref().map_or_else(|| Some(String::new()), |text| text.check("because", errors))
    }
}

/// How what was sidelined drains.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"per_second": 10}))]
pub(crate) struct DrainBody {
    /// How many events are delivered in a second, at the most.
    #[schema(value_type = u32)]
    per_second: Number<RedrivePace>,
}

bounded_fields!(DrainBody: per_second);

impl Form for DrainBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl DrainBody {
    /// The pace; `None` when it is wrong, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<RedrivePace> {
        self.per_second.check(errors)
    }
}

/// What an answer says of a policy whose client was sidelined. Not looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there so that an answer can be sent back")]
pub(crate) struct SidelinedBody {
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    since: Unread<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    because: Unread<String>,
    #[serde(default)]
    #[schema(value_type = Option<u32>)]
    per_second: Unread<i128>,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    draining_since: Unread<String>,
}

/// That something is sidelined, or drains.
pub(crate) fn view(sideline: &Sideline) -> protocol::Sideline {
    protocol::Sideline {
        since: instant(sideline.since),
        because: sideline.because.clone(),
        per_second: sideline.drain.map(|drain| drain.pace.get()),
        draining_since: sideline.drain.map(|drain| instant(drain.since)),
    }
}
