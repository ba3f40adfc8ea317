//! Making API keys and webhook secrets, which are shown once; and again to the same call, when it has an `Idempotency-Key`.
//!
//! An API key that such a call makes is derived from the key that the call comes with, which is stored nowhere, and from a random salt,
//! which is. So the same caller gets it again, and nobody who reads the tables does: decision 0067.

use axum::extract::{FromRequest, FromRequestParts as _, Request};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::REQUEST_BODY_BYTES;
use tidegate_store::made::{Made, MadeKind};
use tidegate_store::{CallKey, KeyHash};

use crate::ApiState;
use crate::auth::bearer;
use crate::body::{IdempotencyKey, collect, declared_as_json};
use crate::form::{self, Form};
use crate::problem::{Kind, Problem};
use crate::wire::instant;

/// What derived bytes are for.
const PURPOSE: &str = "tidegate: a key that is made once";

/// A body of at most `REQUEST_BODY_BYTES`, and what its call is named by; by nothing where it has no idempotency key.
pub(crate) struct OnceBody<T>(pub(crate) T, pub(crate) Option<Once>);

impl<T: Form> FromRequest<ApiState> for OnceBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let IdempotencyKey(key) = IdempotencyKey::from_request_parts(&mut parts, state).await?;
        let caller = bearer(&parts, "a key")?.to_owned();
        declared_as_json(&parts.headers)?;
        let bytes = collect(body, REQUEST_BODY_BYTES).await?;
        let body = form::read(&bytes, state.engine.clock().now())?;
        let said = KeyHash::of(&String::from_utf8_lossy(&bytes));
        Ok(Self(body, key.map(|key| Once { key: KeyHash::of(&key), said, caller })))
    }
}

/// What a call is named by that may be made again.
pub(crate) struct Once {
    /// The hash of its idempotency key.
    key: KeyHash,
    /// The hash of its body.
    said: KeyHash,
    /// The API key that it comes with.
    caller: String,
}

impl Once {
    /// What the same call made before, of a kind and of a client; `None`: nothing that is known.
    ///
    /// # Errors
    /// `AlreadyMade` when the idempotency key came with another body.
    pub(crate) async fn before(
        &self,
        state: &ApiState,
        client: &ClientId,
        kind: MadeKind,
    ) -> Result<Option<Made>, Problem> {
        let made = state.engine.store().made(client, kind, &self.key).await;
        let made = made.map_err(|e| Problem::of_store("look up an idempotency key", &e))?;
        match made {
            Some(made) if made.said != self.said => Err(came_with_another_body(made.at)),
            made => Ok(made),
        }
    }

    /// The same as what the engine knows it by.
    pub(crate) fn call(&self) -> CallKey {
        CallKey { key: self.key.clone(), said: self.said.clone() }
    }

    /// A new API key of a client, and what is kept so that this call gets it again.
    pub(crate) fn new_api_key(
        &self,
        client: &ClientId,
        kind: MadeKind,
        at: DateTime<Utc>,
    ) -> Result<(String, Made), Problem> {
        let salt = URL_SAFE_NO_PAD.encode(random()?);
        let api_key = self.derived(client, &salt);
        let id = KeyHash::of(&api_key).id().to_owned();
        Ok((api_key, Made { salt: Some(salt), ..self.made(client, kind, id, at) }))
    }

    /// The API key that the same call made; another one when it came with another key then.
    pub(crate) fn api_key_again(&self, made: &Made) -> String {
        self.derived(&made.client, made.salt.as_deref().unwrap_or_default())
    }

    /// What is kept of this call, when nothing is derived from what it comes with.
    pub(crate) fn made(&self, client: &ClientId, kind: MadeKind, id: String, at: DateTime<Utc>) -> Made {
        let (key, said) = (self.key.clone(), self.said.clone());
        Made { client: client.clone(), kind, key, said, id, salt: None, at }
    }

    fn derived(&self, client: &ClientId, salt: &str) -> String {
        // HMAC takes keys of every length.
        let bytes = Hmac::<Sha256>::new_from_slice(self.caller.as_bytes()).map(|mut mac| {
            mac.update(format!("{PURPOSE}|{client}|{salt}|{}", self.key.as_str()).as_bytes());
            mac.finalize().into_bytes().into()
        });
        api_key_of(client, bytes.unwrap_or_default())
    }
}

/// That the idempotency key of a call is that of another one, which was made then.
pub(crate) fn came_with_another_body(at: DateTime<Utc>) -> Problem {
    let detail = format!(
        "this Idempotency-Key came with another body at {}; send that body again, or another Idempotency-Key",
        instant(at)
    );
    Problem::new(Kind::AlreadyMade, detail)
}

fn api_key_of(client: &ClientId, bytes: [u8; 32]) -> String {
    format!("tg_{client}_{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// A new API key of a client, and what is kept of a call that may be made again.
pub(crate) fn new_api_key(
    once: Option<&Once>,
    client: &ClientId,
    kind: MadeKind,
    at: DateTime<Utc>,
) -> Result<(String, Option<Made>), Problem> {
    match once {
        Some(once) => once.new_api_key(client, kind, at).map(|(api_key, made)| (api_key, Some(made))),
        None => Ok((api_key_of(client, random()?), None)),
    }
}

/// A new webhook secret.
pub(crate) fn new_webhook_secret() -> Result<String, Problem> {
    Ok(format!("whsec_{}", STANDARD.encode(random()?)))
}

fn random() -> Result<[u8; 32], Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| Problem::internal("make a secret", &e))?;
    Ok(bytes)
}
