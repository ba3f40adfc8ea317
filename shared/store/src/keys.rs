//! API keys: by their hash, which a call is looked up by, and by their client, which lists them.
//!
//! A key's row says whose it is and what for; what its client may do stands in the client's row alone, so that a change of it
//! holds for all keys.

use aws_sdk_dynamodb::types::TransactWriteItem;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use tidegate_domain::change::{Change, Kind};
use tidegate_domain::ids::ClientId;
use tidegate_domain::key::Scopes;
use tidegate_domain::limits::CLIENT_KEYS;
use tidegate_domain::quota::Quotas;

use crate::changes::{Changed, named_row};
use crate::clients::{self, Client, client_key};
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Update};
use crate::tables::{PARTITION_KEY, Table};
use crate::{Create, Page, Result, Store, Write};

/// Characters of a hash that a key is named by.
const ID_CHARACTERS: usize = 12;

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
        use std::fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(key.as_bytes()) {
            let _infallible = write!(hex, "{byte:02x}");
        }
        Self(hex)
    }

    /// A hash as a row has it.
    pub(crate) fn read(hex: &str) -> Self {
        Self(hex.to_owned())
    }

    /// The first 12 characters: what the key is called. Whoever finds a key can tell which one it is.
    pub fn id(&self) -> &str {
        self.0.get(..ID_CHARACTERS).unwrap_or(&self.0)
    }

    /// Whether a text may be what a key is called.
    pub fn is_id(text: &str) -> bool {
        text.len() == ID_CHARACTERS && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }

    /// The hex text, as rows and the environment have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key of a client, as it is stored: without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Whose it is.
    pub client: ClientId,
    /// Its hash.
    pub hash: KeyHash,
    /// What it is for.
    pub scopes: Scopes,
    /// What its client says of it; empty when nothing.
    pub note: String,
    /// From when on it opens nothing; `None`: it does not end.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was made, to the millisecond.
    pub created_at: DateTime<Utc>,
}

impl ApiKey {
    /// Whether it is over at an instant.
    pub fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

pub(crate) fn hash_key(hash: &KeyHash) -> Key {
    Key::new(format!("key|{}", hash.0), "-")
}

fn listed_key(client: &ClientId, id: &str) -> Key {
    Key::new(format!("keys|{client}"), id)
}

/// The two rows of a key.
pub(crate) fn rows(key: &ApiKey) -> [Row; 2] {
    [hash_key(&key.hash), listed_key(&key.client, key.hash.id())].map(|at| {
        Row::new(&at)
            .with("client", text(key.client.as_str()))
            .with("hash", text(key.hash.as_str()))
            .with("scopes", text(key.scopes.to_string()))
            .with_some("note", (!key.note.is_empty()).then(|| text(&*key.note)))
            .with_some("expires_at", key.expires_at.map(|at| number(at.timestamp_millis())))
            .with("created_at", number(key.created_at.timestamp_millis()))
    })
}

fn read(row: &Attributes) -> Result<ApiKey> {
    let item = Item::read(Table::Clients, row)?;
    let scopes = item.text("scopes")?.parse();
    Ok(ApiKey {
        client: item.id("client")?,
        hash: KeyHash::read(item.text("hash")?),
        scopes: scopes.map_err(|word| item.corrupt(format!("'scopes': '{word}' is none")))?,
        note: item.find_text("note").unwrap_or_default().to_owned(),
        expires_at: item.find_instant_ms("expires_at")?,
        created_at: item.instant_ms("created_at")?,
    })
}

/// What is recorded of a key that is made or revoked: never the key.
fn change_of(client: &ClientId, id: &str, change: &Change) -> Row {
    named_row(Changed { client, kind: Kind::Key, id, revision: None }, None, Vec::new(), change)
}

impl Store {
    /// Registers a client with its first key, and records the change: all or nothing. `Exists` when the name is taken.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_client(&self, client: &Client, key: &ApiKey, change: &Change) -> Result<Create> {
        let items = self.creation_of_client(client, key, change)?;
        Ok(match self.transact(Table::Clients, items).await? {
            Write::Done => Create::Done,
            Write::Refused => Create::Exists,
        })
    }

    /// The writes that register a client.
    pub(crate) fn creation_of_client(
        &self,
        client: &Client,
        key: &ApiKey,
        change: &Change,
    ) -> Result<Vec<TransactWriteItem>> {
        let mut items = vec![self.put_new_item_of(Table::Clients, clients::row(client))?];
        for row in rows(key) {
            items.push(self.put_item_of(Table::Clients, row)?);
        }
        let recorded = clients::change_of(client, (None, Some(client.revision)), Vec::new(), change);
        items.push(self.put_item_of(Table::Jobs, recorded)?);
        items.extend(self.writes_of_quotas(client, &Quotas::default())?);
        Ok(items)
    }

    /// A key by its hash; `None` when there is no such key. It is good from the moment on that it was given: where an eventual
    /// read finds none, a consistent one says so.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn key(&self, hash: &KeyHash) -> Result<Option<ApiKey>> {
        self.get_once_there(Table::Clients, &hash_key(hash)).await?.as_ref().map(read).transpose()
    }

    /// Gives a client another key, and records the change: both or neither. `Refused` when it has [`CLIENT_KEYS`], or is not there.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_key(&self, key: &ApiKey, change: &Change) -> Result<Write> {
        self.transact(Table::Clients, self.creation_of_key(key, change)?).await
    }

    /// The writes that give a client another key.
    pub(crate) fn creation_of_key(&self, key: &ApiKey, change: &Change) -> Result<Vec<TransactWriteItem>> {
        let counted =
            Update::new(Table::Clients, client_key(key.client.as_str()), "SET live_keys = live_keys + :one")
                .when("live_keys < :most")
                .value(":one", number(1))
                .value(":most", number(CLIENT_KEYS));
        let mut items = vec![self.update_item_of(counted)?];
        for row in rows(key) {
            items.push(self.put_item_of(Table::Clients, row)?);
        }
        let recorded = change_of(&key.client, key.hash.id(), change);
        items.push(self.put_item_of(Table::Jobs, recorded)?);
        Ok(items)
    }

    /// The keys of a client, those that are over among them, ordered by their names.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn keys_of(&self, client: &ClientId) -> Result<Page<ApiKey>> {
        let of_client = Query { consistent: true, ..Query::of(Table::Clients, listed_key(client, "").pk) };
        Ok(self.query(of_client).await?.read(Table::Clients, read))
    }

    /// Revokes a key of a client by its name, records the change with it, and tells its hash; `None` when the client has no such key.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then. `StoreError::Corrupt` when the row cannot be read.
    pub async fn revoke_key(&self, client: &ClientId, id: &str, change: &Change) -> Result<Option<KeyHash>> {
        let listed = listed_key(client, id);
        let Some(row) = self.get(Table::Clients, &listed, true).await? else { return Ok(None) };
        let hash = KeyHash::read(Item::read(Table::Clients, &row)?.text("hash")?);
        let counted =
            Update::new(Table::Clients, client_key(client.as_str()), "SET live_keys = live_keys - :one")
                .value(":one", number(1));
        let is_there = format!("attribute_exists({PARTITION_KEY})");
        let items = vec![
            self.delete_when_item_of(Table::Clients, &listed, &is_there, Attributes::new())?,
            self.delete_item_of(Table::Clients, &hash_key(&hash))?,
            self.update_item_of(counted)?,
            self.put_item_of(Table::Jobs, change_of(client, id, change))?,
        ];
        Ok((self.transact(Table::Clients, items).await? == Write::Done).then_some(hash))
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
