//! Secrets of clients as they travel: a value comes in and never goes out.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::limits::SECRET_BYTES;
use tidegate_domain::secret::SecretValue;
use tidegate_protocol::SecretView;
use tidegate_store::client_secrets::ClientSecret;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{Text, bounded_fields};
use crate::wire::instant;

/// The value of a secret. It is stored encrypted, and no answer shows it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretBody {
    /// Visible ASCII with blanks between, as headers take it: the whole value of a header, or the part of it behind `Bearer `.
    #[schema(value_type = String, min_length = 1, write_only)]
    value: Text<SECRET_BYTES>,
}

bounded_fields!(SecretBody: value);

impl Form for SecretBody {
    const HIDES_VALUES: bool = true;

    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl SecretBody {
    /// The value; `None` when it is wrong, and then `errors` says why, and not what it is.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<SecretValue> {
        errors.keep("value", (), SecretValue::new(&*self.value))
    }
}

/// A secret as it is answered.
pub(crate) fn view(secret: &ClientSecret) -> SecretView {
    SecretView {
        secret_id: secret.id.to_string(),
        revision: secret.revision,
        changed_at: instant(secret.changed_at),
    }
}
