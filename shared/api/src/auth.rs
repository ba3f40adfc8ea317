//! Who calls: a client by its key, or the admin.
//!
//! Keys carry 256 random bits and are looked up by their SHA-256, so nothing here compares secrets byte by byte.
//! A key that was found stays known for a little while, and so does one that was not. A text that has not the form of a key
//! is refused without a look: whoever sends garbage costs no read.

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use tidegate_domain::ids::ClientId;
use tidegate_store::KeyHash;
use tidegate_store::clients::Client;

use crate::ApiState;
use crate::problem::{Kind, Problem};

/// Characters of a key's random part.
const KEY_CHARACTERS: usize = 43;

/// The client that a request comes from.
pub(crate) struct Caller(pub(crate) Client);

/// Says that a request carries the admin key.
pub(crate) struct Admin;

impl FromRequestParts<ApiState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let key = bearer(parts, "the client's API key")?;
        let hash = KeyHash::of(key);
        let now = state.engine.clock().now();
        let client = match state.known_keys.find(&hash, now) {
            Some(client) => client,
            None if !is_client_key(key) || state.refused_keys.find(&hash, now).is_some() => {
                return Err(unknown_key(state, &hash));
            }
            None => {
                let found = state.engine.store().client_by_key(&hash).await;
                let found = found.map_err(|e| Problem::of_store("look up a key", &e))?;
                let Some(client) = found else {
                    let problem = unknown_key(state, &hash);
                    state.refused_keys.keep(hash, now, ());
                    return Err(problem);
                };
                state.known_keys.keep(hash, now, client.clone());
                client
            }
        };
        tracing::Span::current().record("client", client.id.as_str());
        Ok(Self(client))
    }
}

/// Whether a text has the form of a client's key: `tg_<client>_` and 43 characters of base64, for 256 bits.
fn is_client_key(text: &str) -> bool {
    let random = text
        .strip_prefix("tg_")
        .and_then(|rest| rest.split_at_checked(rest.len().checked_sub(KEY_CHARACTERS)?));
    random.is_some_and(|(client, random)| {
        let id = client.strip_suffix('_').map(str::parse::<ClientId>);
        matches!(id, Some(Ok(_)))
            && random.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    })
}

fn unknown_key(state: &ApiState, hash: &KeyHash) -> Problem {
    if state.is_admin(hash) {
        let detail = "this is the admin key, which registers clients; send the API key of a client here";
        return Problem::new(Kind::UnknownKey, detail);
    }
    Problem::new(
        Kind::UnknownKey,
        "no client has this API key; check that it was copied whole (tg_<client>_ and 43 characters)",
    )
}

impl FromRequestParts<ApiState> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let hash = KeyHash::of(bearer(parts, "the admin key")?);
        if state.is_admin(&hash) {
            return Ok(Self);
        }
        Err(Problem::new(
            Kind::UnknownKey,
            "this is not the admin key of this deployment; clients are registered and listed with the admin key only",
        ))
    }
}

fn bearer<'p>(parts: &'p Parts, whose: &str) -> Result<&'p str, Problem> {
    let missing = |what: &str| {
        let detail = format!("{what}; send {whose} in the header 'Authorization: Bearer <key>'");
        Problem::new(Kind::MissingKey, detail)
    };
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value,
        (None, _) => return Err(missing("the request has no key")),
        // Whichever were taken, a proxy before this may have judged the other.
        (Some(_), Some(_)) => return Err(missing("the request has several Authorization headers")),
    };
    let text = value.to_str().map_err(|_| missing("the header Authorization is not readable text"))?;
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty() => {
            Ok(key.trim())
        }
        _ => Err(missing("the header Authorization holds no bearer key")),
    }
}
