//! Who calls, and for what: a client by one of its keys, or the admin, who may call in the place of a client.
//!
//! Keys carry 256 random bits and are looked up by their SHA-256, so nothing here compares secrets byte by byte.
//! A key that was found stays known for a little while, and so does one that was not. A text that has not the form of a key
//! is refused without a look: whoever sends garbage costs no read.

use axum::extract::FromRequestParts;
use chrono::DateTime;
use http::Method;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::request::Parts;
use tidegate_domain::change::Author;
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::HistoryDays;
use tidegate_domain::key::Scope;
use tidegate_engine::author::called_by;
use tidegate_store::KeyHash;
use tidegate_store::clients::{Client, Suspension};
use tidegate_store::keys::ApiKey;

use crate::ApiState;
use crate::body::id_to_find;
use crate::problem::{Kind, Problem};
use crate::wire::instant;

/// Characters of a key's random part.
const KEY_CHARACTERS: usize = 43;

/// The header by which the admin says in the place of which client a call is made.
const CLIENT: HeaderName = HeaderName::from_static("tidegate-client");

/// The client that a request comes from, by a key that is for such requests; or that the admin names.
pub(crate) struct Caller(pub(crate) Client);

/// Says that a request carries the admin key.
pub(crate) struct Admin;

impl FromRequestParts<ApiState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let key = bearer(parts, "the client's API key")?;
        let hash = KeyHash::of(key);
        let now = state.engine.clock().now();
        if let Some(named) = parts.headers.get(CLIENT) {
            return in_place_of(state, &hash, named).await;
        }
        let (key, client) = match state.known_keys.find(&hash, now) {
            Some(known) => known,
            None if !is_client_key(key) || state.refused_keys.find(&hash, now).is_some() => {
                return Err(unknown_key(state, &hash));
            }
            None => {
                let found = find(state, &hash).await?;
                let Some(known) = found else {
                    let problem = unknown_key(state, &hash);
                    state.refused_keys.keep(hash, now, ());
                    return Err(problem);
                };
                state.known_keys.keep(hash, now, known.clone());
                known
            }
        };
        if key.has_expired(now) {
            let at = key.expires_at.map(instant).unwrap_or_default();
            let id = key.hash.id();
            let detail =
                format!("key {id} expired at {at}; use another one, or make one with a key of scope admin");
            return Err(Problem::new(Kind::UnknownKey, detail));
        }
        let needed = scope_of(&parts.method, parts.uri.path());
        if !key.scopes.has(needed) {
            let (id, has, needs) = (key.hash.id(), &key.scopes, needed.as_str());
            let detail =
                format!("this call needs a key of scope {needs}, and key {id} has {has}; use another one");
            return Err(Problem::new(Kind::ScopeMissing, detail));
        }
        if client.deleting.is_some() {
            return Err(is_being_deleted(&client));
        }
        // What a consumer has is done, and its token counts until it is released.
        if needed != Scope::Release
            && let Some(suspended) = &client.suspended
        {
            return Err(is_suspended(&client, suspended));
        }
        tracing::Span::current().record("client", client.id.as_str());
        called_by(key.hash.id(), client.defaults.history_days.unwrap_or_default());
        Ok(Self(client))
    }
}

async fn find(state: &ApiState, hash: &KeyHash) -> Result<Option<(ApiKey, Client)>, Problem> {
    let store = state.engine.store();
    let key = store.key(hash).await.map_err(|e| Problem::of_store("look up a key", &e))?;
    let Some(key) = key else { return Ok(None) };
    let client =
        store.registered_client(&key.client).await.map_err(|e| Problem::of_store("read a client", &e))?;
    Ok(client.map(|client| (key, client)))
}

/// The client that the admin names.
async fn in_place_of(state: &ApiState, hash: &KeyHash, named: &HeaderValue) -> Result<Caller, Problem> {
    if !state.is_admin(hash) {
        let detail = "only the admin key may name a client in the header Tidegate-Client; leave it out";
        return Err(Problem::new(Kind::UnknownKey, detail));
    }
    let client = present(state, named.to_str().unwrap_or_default()).await?;
    tracing::Span::current().record("client", client.id.as_str());
    called_by(Author::ADMIN, client.defaults.history_days.unwrap_or_default());
    Ok(Caller(client))
}

/// The client of a name that the admin gives.
pub(crate) async fn registered(state: &ApiState, name: &str) -> Result<Client, Problem> {
    let id: ClientId = id_to_find("client", name)?;
    let found = state.engine.store().registered_client(&id).await;
    let found = found.map_err(|e| Problem::of_store("read a client", &e))?;
    found.ok_or_else(|| not_registered(&id))
}

/// The client of a name that the admin gives, which is not being deleted.
pub(crate) async fn present(state: &ApiState, name: &str) -> Result<Client, Problem> {
    let client = registered(state, name).await?;
    if client.deleting.is_some() { Err(is_being_deleted(&client)) } else { Ok(client) }
}

/// That nothing is done any more for a client.
fn is_being_deleted(client: &Client) -> Problem {
    let id = &client.id;
    let detail =
        format!("client '{id}' is being deleted; GET /v1/clients/{id} says how far that is, to the admin");
    Problem::new(Kind::ClientDeleted, detail)
}

/// That a client is not there.
pub(crate) fn not_registered(id: &ClientId) -> Problem {
    Problem::new(Kind::NotFound, format!("no client '{id}' is registered"))
}

/// That nothing is done for a client.
pub(crate) fn is_suspended(client: &Client, suspended: &Suspension) -> Problem {
    let since = DateTime::from_timestamp_millis(suspended.since_ms).map(instant).unwrap_or_default();
    let (id, because) = (&client.id, &suspended.because);
    let detail = format!(
        "client '{id}' is suspended since {since}: {because}; tokens can be released and extended, all else waits until an admin \
         resumes it by POST /v1/clients/{id}/resume"
    );
    Problem::new(Kind::ClientSuspended, detail)
}

/// What a key must be for, for a call.
fn scope_of(method: &Method, path: &str) -> Scope {
    let path = path.strip_prefix("/v1/").unwrap_or(path);
    let (noun, rest) = path.split_once('/').unwrap_or((path, ""));
    match (noun, rest) {
        ("keys" | "webhook-secret", _) => Scope::Admin,
        ("secrets", name) if !name.is_empty() => Scope::Admin,
        ("tokens", "release" | "extend") => Scope::Release,
        // They ask, and change nothing.
        ("schedules", "preview") => Scope::Read,
        ("calendars", rest) if rest.ends_with("/preview") => Scope::Read,
        _ if *method == Method::GET || *method == Method::HEAD => Scope::Read,
        _ => Scope::Schedule,
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
            called_by(Author::ADMIN, HistoryDays::default());
            return Ok(Self);
        }
        Err(Problem::new(
            Kind::UnknownKey,
            "this is not the admin key of this deployment; clients are registered and listed with the admin key only",
        ))
    }
}

/// The key that a request comes with.
pub(crate) fn bearer<'p>(parts: &'p Parts, whose: &str) -> Result<&'p str, Problem> {
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
