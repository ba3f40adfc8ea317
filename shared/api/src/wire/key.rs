//! API keys as they travel.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::key::{Scope, Scopes};
use tidegate_domain::limits::KEY_NOTE_BYTES;
use tidegate_protocol::{self as protocol, KeyView};
use tidegate_store::keys::ApiKey;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::{List, Text, bounded_fields};
use crate::wire::instant;
use crate::wire::when::read_ahead;

/// A key as it is asked for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKeyBody, example = json!({"scopes": ["release"], "note": "the workers of the shop"}))]
pub(crate) struct KeyBody {
    /// What it is for; everything when left out.
    #[schema(value_type = Option<Vec<protocol::Scope>>)]
    scopes: Option<List<ScopeWord, { Scope::ALL.len() }>>,
    /// What is to be remembered of it.
    #[schema(value_type = Option<String>)]
    note: Option<Text<KEY_NOTE_BYTES>>,
    /// From when on it opens nothing: an instant in ISO 8601, with its offset. It does not end when left out.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

bounded_fields!(KeyBody: scopes, note);

/// A word for something that a key may be for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeWord {
    Read,
    Schedule,
    Release,
    Admin,
}

/// A key that may be made.
#[derive(Debug)]
pub(crate) struct CheckedKey {
    pub(crate) scopes: Scopes,
    pub(crate) note: String,
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

impl Form for KeyBody {
    fn note_faults(self, now: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(now, errors);
    }
}

impl KeyBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<CheckedKey> {
        let scopes = match &self.scopes {
            Some(listed) => check_scopes(listed, errors),
            None => Some(Scopes::all()),
        };
        let note = self.note.as_ref().map_or_else(|| Some(String::new()), |text| text.check("note", errors));
        let expires_at = match self.expires_at.as_deref() {
            Some(text) => {
                errors.keep("expires_at", text, read_ahead("expires_at", text, now)).and_then(|at| {
                    let is_ahead = at > now;
                    if !is_ahead {
                        let message = "expires_at is past; give a later instant, or leave it out";
                        errors.add("expires_at", text, message);
                    }
                    is_ahead.then_some(Some(at))
                })
            }
            None => Some(None),
        };
        Some(CheckedKey { scopes: scopes?, note: note?, expires_at: expires_at? })
    }
}

fn check_scopes(listed: &[ScopeWord], errors: &mut FieldErrors) -> Option<Scopes> {
    let scopes = Scopes::new(listed.iter().map(|word| match word {
        ScopeWord::Read => Scope::Read,
        ScopeWord::Schedule => Scope::Schedule,
        ScopeWord::Release => Scope::Release,
        ScopeWord::Admin => Scope::Admin,
    }));
    if scopes.is_none() {
        let words = Scope::ALL.map(Scope::as_str).join(", ");
        errors.add(
            "scopes",
            (),
            format!("scopes must be one or several of {words}; leave it out for all of them"),
        );
    }
    scopes
}

/// A key as it is answered.
pub(crate) fn view(key: &ApiKey) -> KeyView {
    let word = |scope: Scope| match scope {
        Scope::Read => protocol::Scope::Read,
        Scope::Schedule => protocol::Scope::Schedule,
        Scope::Release => protocol::Scope::Release,
        Scope::Admin => protocol::Scope::Admin,
    };
    KeyView {
        key_id: key.hash.id().to_owned(),
        scopes: key.scopes.iter().map(word).collect(),
        note: (!key.note.is_empty()).then(|| key.note.clone()),
        expires_at: key.expires_at.map(instant),
        created_at: instant(key.created_at),
    }
}
