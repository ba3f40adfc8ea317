//! Clients, their key hashes, and until when a client's jobs must be looked up before delivery.

use std::{fmt, iter};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::FORMER_SECRETS;
use tidegate_domain::secret::KeptSeconds;
use tidegate_domain::time::{seconds, shifted};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted, Update};
use crate::sidelines::recheck_key;
use crate::tables::Table;
use crate::{Create, Page, Result, Store, Write};

/// A client, a tenant of the deployment, as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Client {
    /// Its name, unique in the deployment.
    pub id: ClientId,
    /// Patterns of the addresses that its jobs may name, as
    /// [`Target::is_covered_by`](tidegate_domain::target::Target::is_covered_by) reads them. Empty: any address.
    pub allowed_targets: Vec<String>,
    /// What HTTP deliveries are signed with (Standard Webhooks): `whsec_` and the key in base64. Kept out of `Debug`.
    pub webhook_secret: String,
    /// What they are signed with as well, while consumers change over to that: the latest first. Kept out of `Debug`.
    pub former_secrets: Vec<FormerSecret>,
    /// When it was registered, to the millisecond.
    pub created_at: DateTime<Utc>,
}

/// A webhook secret that was replaced.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSecret {
    /// The secret, as [`Client::webhook_secret`].
    #[serde(rename = "s")]
    pub secret: String,
    /// Deliveries are signed with it before this instant, in seconds since the epoch.
    #[serde(rename = "u")]
    pub until_s: i64,
}

/// Without the secret, which would end in a log.
impl fmt::Debug for FormerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FormerSecret").field("until_s", &self.until_s).finish_non_exhaustive()
    }
}

impl Client {
    /// The same client with a new webhook secret. Deliveries are signed with the former one as well for so long; where that is no
    /// time at all, with none of the former ones, since somebody else may know any of them.
    ///
    /// # Errors
    /// The oldest of the former secrets, when there are [`FORMER_SECRETS`] already.
    pub fn with_webhook_secret(
        mut self,
        secret: String,
        kept: KeptSeconds,
        now: DateTime<Utc>,
    ) -> std::result::Result<Self, FormerSecret> {
        let former = FormerSecret {
            secret: std::mem::replace(&mut self.webhook_secret, secret),
            until_s: shifted(now, seconds(kept.get().into())).timestamp(),
        };
        self.former_secrets.retain(|former| former.until_s > now.timestamp());
        if kept.get() == 0 {
            self.former_secrets.clear();
        } else if let Some(oldest) = self.former_secrets.get(FORMER_SECRETS - 1) {
            return Err(oldest.clone());
        } else {
            self.former_secrets.insert(0, former);
        }
        Ok(self)
    }

    /// All secrets that deliveries are signed with at an instant, the present one first.
    pub fn live_secrets(&self, now: DateTime<Utc>) -> Vec<String> {
        let former = self.former_secrets.iter().filter(|former| former.until_s > now.timestamp());
        iter::once(&self.webhook_secret).chain(former.map(|former| &former.secret)).cloned().collect()
    }
}

/// Without the secrets, which would end in a log.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, allowed_targets, webhook_secret: _, former_secrets: _, created_at } = self;
        let mut shown = f.debug_struct("Client");
        shown.field("id", id).field("allowed_targets", allowed_targets).field("created_at", created_at);
        shown.finish_non_exhaustive()
    }
}

/// The SHA-256 of an API key, in lower-case hex: 64 characters. Keys have 256 random bits, so a fast hash is enough.
///
/// ```
/// use tidegate_store::KeyHash;
///
/// let hash = KeyHash::of("tg_acme_secret");
/// assert_eq!(hash.as_str().len(), 64);
/// assert_eq!(hash, KeyHash::of("tg_acme_secret"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyHash(String);

impl KeyHash {
    /// The hash of a key.
    pub fn of(key: &str) -> Self {
        use fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(key.as_bytes()) {
            let _infallible = write!(hex, "{byte:02x}");
        }
        Self(hex)
    }

    /// The hex text, as rows and the environment have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn client_key(id: &str) -> Key {
    Key::new("client", id)
}

fn key_key(hash: &KeyHash) -> Key {
    Key::new(format!("key|{}", hash.0), "-")
}

fn row(key: &Key, client: &Client) -> Row {
    let allowed = client.allowed_targets.iter().map(text).collect();
    Row::new(key)
        .with("client", text(client.id.as_str()))
        .with("allowed_targets", AttributeValue::L(allowed))
        .with("webhook_secret", text(&*client.webhook_secret))
        .with_some("former_secrets", former_secrets(client))
        .with("created_at", number(client.created_at.timestamp_millis()))
}

fn former_secrets(client: &Client) -> Option<AttributeValue> {
    if client.former_secrets.is_empty() {
        return None;
    }
    // Serialising plain structs to a string has no way to fail.
    Some(text(serde_json::to_string(&client.former_secrets).unwrap_or_default()))
}

fn read(row: &Attributes) -> Result<Client> {
    let item = Item::read(Table::Clients, row)?;
    let former = item.find_text("former_secrets").map(serde_json::from_str).transpose();
    Ok(Client {
        id: item.id("client")?,
        allowed_targets: item.texts("allowed_targets").into_iter().map(str::to_owned).collect(),
        webhook_secret: item.text("webhook_secret")?.to_owned(),
        former_secrets: former.map_err(|_| item.corrupt("'former_secrets' is no list"))?.unwrap_or_default(),
        created_at: item.instant_ms("created_at")?,
    })
}

impl Store {
    /// Registers a client with its first key: both or neither. The key's row carries a copy of the client, so a call of
    /// the API reads one row. `Exists` when the name is taken.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_client(&self, client: &Client, hash: &KeyHash) -> Result<Create> {
        let items = vec![
            self.put_new_item_of(Table::Clients, row(&client_key(client.id.as_str()), client))?,
            self.put_item_of(Table::Clients, row(&key_key(hash), client))?,
        ];
        Ok(match self.transact(Table::Clients, items).await? {
            Write::Done => Create::Done,
            Write::Refused => Create::Exists,
        })
    }

    /// The client that a key opens; `None` when no client has the key. A key is good from the moment on that it was given: where
    /// an eventual read finds none, a consistent one says so.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn client_by_key(&self, hash: &KeyHash) -> Result<Option<Client>> {
        let key = key_key(hash);
        let found = match self.get(Table::Clients, &key, false).await? {
            None => self.get(Table::Clients, &key, true).await?,
            found => found,
        };
        found.as_ref().map(read).transpose()
    }

    /// A client by its name, read eventually; `None` when none is registered under it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn client(&self, id: &ClientId) -> Result<Option<Client>> {
        self.get(Table::Clients, &client_key(id.as_str()), false).await?.as_ref().map(read).transpose()
    }

    /// Replaces the webhook secrets of a client. `Refused` unless the present one is still the one that was seen.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn replace_webhook_secrets(&self, client: &Client, seen: &str) -> Result<Write> {
        let former = former_secrets(client);
        let changes = match &former {
            Some(_) => "SET webhook_secret = :secret, former_secrets = :former",
            None => "SET webhook_secret = :secret REMOVE former_secrets",
        };
        let update = Update::new(Table::Clients, client_key(client.id.as_str()), changes)
            .when("webhook_secret = :seen")
            .value(":secret", text(&*client.webhook_secret))
            .value(":seen", text(seen));
        let update = match former {
            Some(former) => update.value(":former", former),
            None => update,
        };
        Ok(self.update(update).await?.into())
    }

    /// A page of up to [`PAGE_ROWS`](tidegate_domain::limits::PAGE_ROWS) of all clients, by name; the first when
    /// `after` is `None`, else what follows a page whose `next` it was.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn clients(&self, after: Option<String>) -> Result<Page<Client>> {
        let limit = Some(tidegate_domain::limits::PAGE_ROWS);
        let query = Query { limit, after, sorted: Sorted::All, ..Query::of(Table::Clients, "client") };
        Ok(self.query(query).await?.read(Table::Clients, read))
    }

    /// Says that a job of the client changes about now: whatever was planned before `until` is checked against the jobs
    /// before it is delivered. Only ever moves forward: an earlier instant changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn mark_dirty(&self, client: &ClientId, until: DateTime<Utc>) -> Result<()> {
        let update = Update::new(Table::Clients, recheck_key(client), "SET dirty_until = :until")
            .when("attribute_not_exists(dirty_until) OR dirty_until < :until")
            .value(":until", number(until.timestamp_millis()));
        self.update(update).await.map(drop)
    }

    /// The instant of the last [`Store::mark_dirty`], read consistently; `None` when there was none. A row that cannot
    /// be read gives the latest instant there is, so every job is looked up.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn recheck_until(&self, client: &ClientId) -> Result<Option<DateTime<Utc>>> {
        Ok(self.recheck(client).await?.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_hash_is_the_sha_256_in_hex() {
        let hash = KeyHash::of("abc");
        assert_eq!(hash.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
