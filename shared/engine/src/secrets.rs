//! Clients' secrets: kept encrypted, opened when a call is made, never shown.
//!
//! A process remembers what it opened for [`SECRET_SECONDS`], so a value that was replaced is used a few seconds longer at the
//! most, and no job is touched by it.
//!
//! Deliberately absent: who uses a secret. One that is deleted is gone at once, since somebody may know it who should not.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use futures::future::{BoxFuture, join_all};
use lru::LruCache;
use tidegate_domain::change::What;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, SecretId};
use tidegate_domain::limits::{SECRET_SECONDS, WRITE_ROUNDS};
use tidegate_domain::secret::{NoSuchSecret, SecretValue, SecretValues};
use tidegate_domain::time::{seconds, shifted};
use tidegate_store::client_secrets::ClientSecret;
use tidegate_store::{Store, StoreError, Write};
use tracing::warn;

use crate::contain::locked;
use crate::random::Random;
use crate::sealing::Sealing;
use crate::token_key::TokenKeys;
use crate::{EngineError, Expect, Written, author};

/// What the key is for that secrets are encrypted with. It is derived from that of tokens.
const PURPOSE: &[u8] = b"tidegate client secrets 1";
/// Secrets that a process remembers: a megabyte at the most.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// What came of putting a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPut {
    /// It was written, or what is there is not as expected. Never `Unchanged`: each value is a revision.
    Written(Written<ClientSecret>),
    /// The client has as many as it may have.
    Full,
}

/// What came of deleting a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretDelete {
    /// It is gone.
    Done,
    /// There is no such secret.
    Absent,
    /// It has another revision than was expected: this one. Nothing changed.
    RevisionIs(u32),
}

/// A secret as a process remembers it.
struct Known {
    /// `None`: there was none.
    value: Option<SecretValue>,
    until: DateTime<Utc>,
}

/// Secrets that were opened for some calls.
#[derive(Default)]
pub(crate) struct Opened {
    /// Those that could be.
    pub(crate) values: SecretValues,
    /// Why others could not.
    faults: BTreeMap<SecretId, String>,
}

impl Opened {
    /// Why a call fails whose secret is not among the values.
    pub(crate) fn reason(&self, NoSuchSecret(id): &NoSuchSecret) -> String {
        let why = self.faults.get(id).cloned();
        why.unwrap_or_else(|| {
            format!("headers name the secret '{id}', which is not there: put it, PUT /v1/secrets/{id}")
        })
    }
}

/// Keeps secrets, and opens them.
pub struct Secrets {
    store: Store,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    keys: Arc<TokenKeys>,
    known: Mutex<LruCache<(ClientId, SecretId), Known>>,
}

impl Secrets {
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        keys: Arc<TokenKeys>,
    ) -> Self {
        Self { store, clock, random, keys, known: Mutex::new(LruCache::new(REMEMBERED)) }
    }

    /// Gives a secret a value, if what is there is as expected.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the key of the deployment cannot be read;
    /// `EngineError::Contended` when the secret changed in each of `WRITE_ROUNDS` rounds. Repeating the call is safe.
    pub fn put<'a>(
        &'a self,
        client: &'a ClientId,
        id: SecretId,
        value: SecretValue,
        expected: impl Into<Expect>,
    ) -> BoxFuture<'a, Result<SecretPut, EngineError>> {
        let expected = expected.into();
        Box::pin(async move {
            let mut refused = false;
            for _ in 0..WRITE_ROUNDS {
                let seen = self.store.client_secret(client, &id).await?;
                let revision = seen.as_ref().map_or(0, |secret| secret.revision);
                match (&seen, expected) {
                    (None, Expect::Revision(_)) => return Ok(SecretPut::Written(Written::Absent)),
                    (None, _) if refused => return Ok(SecretPut::Full),
                    (Some(seen), Expect::Nothing) => {
                        return Ok(SecretPut::Written(Written::Taken(seen.clone())));
                    }
                    (Some(_), expected) if expected.is_other_than(revision) => {
                        return Ok(SecretPut::Written(Written::RevisionIs(revision)));
                    }
                    _ => {}
                }
                let secret = self.sealed(client, &id, revision.saturating_add(1), &value).await?;
                let what = if seen.is_some() { What::Changed } else { What::Created };
                let change = author::change(what, secret.changed_at);
                let written = match &seen {
                    None => self.store.create_client_secret(&secret, &change).await?,
                    Some(_) => self.store.replace_client_secret(&secret, &change).await?,
                };
                self.forget(client, &id);
                match (written, seen) {
                    (Write::Done, None) => return Ok(SecretPut::Written(Written::Created(secret))),
                    (Write::Done, Some(_)) => return Ok(SecretPut::Written(Written::Replaced(secret))),
                    // Somebody else made it, or there are too many.
                    (Write::Refused, seen) => refused = seen.is_none(),
                }
            }
            Err(EngineError::Contended { what: "a secret", rounds: WRITE_ROUNDS })
        })
    }

    /// Deletes a secret, at the `expected` revision; `None`: at any. Calls that name it fail from then on, and are made again
    /// as their jobs say.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the row cannot be read;
    /// `EngineError::Contended` when the secret changed in each of `WRITE_ROUNDS` rounds. Repeating the call is safe.
    pub fn delete<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a SecretId,
        expected: Option<u32>,
    ) -> BoxFuture<'a, Result<SecretDelete, EngineError>> {
        Box::pin(async move {
            for _ in 0..WRITE_ROUNDS {
                let Some(seen) = self.store.client_secret(client, id).await? else {
                    return Ok(SecretDelete::Absent);
                };
                if expected.is_some_and(|expected| expected != seen.revision) {
                    return Ok(SecretDelete::RevisionIs(seen.revision));
                }
                let change = author::change(What::Deleted, self.clock.now());
                if self.store.delete_client_secret(&seen, &change).await? == Write::Done {
                    self.forget(client, id);
                    return Ok(SecretDelete::Done);
                }
            }
            Err(EngineError::Contended { what: "a secret", rounds: WRITE_ROUNDS })
        })
    }

    /// The values of some secrets of a client, from memory where possible. One that cannot be had spoils no other.
    pub(crate) async fn open(&self, client: &ClientId, ids: BTreeSet<SecretId>) -> Opened {
        let mut opened = Opened::default();
        let asked = ids.into_iter().map(async |id| (self.value(client, &id).await, id));
        for (value, id) in join_all(asked).await {
            match value {
                Ok(Some(value)) => drop(opened.values.insert(id, value)),
                Ok(None) => {}
                Err(why) => {
                    warn!(%client, secret = %id, why, "a secret cannot be opened");
                    let fault = format!("headers name the secret '{id}', which cannot be opened: {why}");
                    opened.faults.insert(id, fault);
                }
            }
        }
        opened
    }

    /// A value; `None` when there is no such secret. In words why it cannot be had.
    async fn value(&self, client: &ClientId, id: &SecretId) -> Result<Option<SecretValue>, String> {
        let (key, now) = ((client.clone(), id.clone()), self.clock.now());
        if let Some(known) = locked(&self.known).get(&key).filter(|known| now < known.until) {
            return Ok(known.value.clone());
        }
        let value = match self.store.client_secret(client, id).await.map_err(|e| e.to_string())? {
            None => None,
            Some(secret) => {
                let sealing = self.sealing().await.map_err(|e| e.to_string())?;
                let text = sealing.open(&place(client, id), &secret.sealed);
                let value = text.and_then(|text| SecretValue::new(text).ok());
                Some(value.ok_or("it was not encrypted by this deployment, or changed since; put it again")?)
            }
        };
        let known = Known { value: value.clone(), until: shifted(now, seconds(SECRET_SECONDS)) };
        locked(&self.known).put(key, known);
        Ok(value)
    }

    async fn sealed(
        &self,
        client: &ClientId,
        id: &SecretId,
        revision: u32,
        value: &SecretValue,
    ) -> Result<ClientSecret, EngineError> {
        let sealed = self.sealing().await?.seal(&place(client, id), self.random.next_u128(), value.expose());
        let sealed = sealed.ok_or_else(|| StoreError::unreadable_secret(id.as_str()))?;
        Ok(ClientSecret {
            client: client.clone(),
            id: id.clone(),
            revision,
            changed_at: self.clock.now(),
            sealed,
        })
    }

    async fn sealing(&self) -> Result<Sealing, EngineError> {
        let sealing = Sealing::new(&self.keys.key().await?.derived(PURPOSE));
        Ok(sealing.ok_or_else(|| StoreError::unreadable_secret("token-key"))?)
    }

    fn forget(&self, client: &ClientId, id: &SecretId) {
        locked(&self.known).pop(&(client.clone(), id.clone()));
    }
}

/// What a value is sealed for. Neither name has a blank.
fn place(client: &ClientId, id: &SecretId) -> String {
    format!("{client} {id}")
}
