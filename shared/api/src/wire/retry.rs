//! Whether and when events are sent again, as it travels.

use serde::Deserialize;
use tidegate_domain::retry::{Backoff, Retry, RetryAge, RetryCeiling, RetryWait};
use tidegate_domain::unknown::Unknown;
use tidegate_protocol::{self as protocol};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::bounds::bounded_fields;
use crate::wire::number::{Number, check_or_default};

/// When an event is sent again that its target did not take.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Retry, example = json!({"backoff": "exponential", "wait_seconds": 2, "ceiling_seconds": 3600, "max_age_seconds": 86400}))]
pub(crate) struct RetryBody {
    /// How the waits grow; `exponential` when left out.
    #[serde(default)]
    backoff: protocol::Backoff,
    /// The wait, or with `exponential` the bound of the first one. Not with `none`.
    #[schema(value_type = Option<u32>, default = json!(RetryWait::DEFAULT.get()))]
    wait_seconds: Option<Number<RetryWait>>,
    /// What the bound doubles up to. Only with `exponential`.
    #[schema(value_type = Option<u32>, default = json!(RetryCeiling::DEFAULT.get()))]
    ceiling_seconds: Option<Number<RetryCeiling>>,
    /// For how long an event is sent again, from its first delivery that failed; the last one is made when the time is over. Not
    /// with `none`.
    #[schema(value_type = Option<u32>, default = json!(RetryAge::DEFAULT.get()))]
    max_age_seconds: Option<Number<RetryAge>>,
}

bounded_fields!(RetryBody: wait_seconds, ceiling_seconds, max_age_seconds);

impl RetryBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Retry> {
        let given = [
            ("retry.wait_seconds", self.wait_seconds.is_some(), "'fixed' and 'exponential'"),
            ("retry.ceiling_seconds", self.ceiling_seconds.is_some(), "'exponential'"),
            ("retry.max_age_seconds", self.max_age_seconds.is_some(), "'fixed' and 'exponential'"),
        ];
        let without: &[usize] = match self.backoff {
            protocol::Backoff::None => &[0, 1, 2],
            protocol::Backoff::Fixed => &[1],
            protocol::Backoff::Exponential => &[],
            protocol::Backoff::Other => return None,
        };
        let mut is_right = true;
        for (field, _, goes_with) in
            without.iter().filter_map(|index| given.get(*index)).filter(|given| given.1)
        {
            errors.add(*field, (), format!("{field} goes with the backoff {goes_with} only; leave it out"));
            is_right = false;
        }
        let wait = check_or_default(self.wait_seconds, errors);
        let ceiling = check_or_default(self.ceiling_seconds, errors);
        let max_age = check_or_default(self.max_age_seconds, errors);
        let (wait, ceiling, max_age) = (wait?, ceiling?, max_age?);
        let backoff = match self.backoff {
            protocol::Backoff::None => Backoff::None,
            protocol::Backoff::Fixed => Backoff::Fixed { wait },
            protocol::Backoff::Exponential | protocol::Backoff::Other => {
                Backoff::Exponential { first: wait, ceiling }
            }
        };
        is_right.then_some(Retry { backoff, max_age, unknown: Unknown::default() })
    }
}

/// The rule as it is answered.
pub(crate) fn retry_view(retry: &Retry) -> protocol::Retry {
    match retry.backoff {
        Backoff::None => protocol::Retry::never(),
        Backoff::Fixed { wait } => protocol::Retry::fixed(wait.get()).within(retry.max_age.get()),
        Backoff::Exponential { first, ceiling } => {
            protocol::Retry::exponential(first.get(), ceiling.get()).within(retry.max_age.get())
        }
    }
}
