//! What was made by calls with an idempotency key whose answers have a secret that is shown once: keys, clients with their first key,
//! webhook secrets. A row for each such call, by its client, what it makes, and the hash of the idempotency key.
//!
//! Invariant: an idempotency key makes one thing of a kind and client. Its row is written together with what was made, or not at all.
//!
//! Deliberately absent: the secret, and what it can be derived from without the key that the call came with.

use chrono::{DateTime, Utc};
use tidegate_domain::change::Change;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::IDEMPOTENCY_HOURS;
use tidegate_domain::time::{seconds, shifted};

use crate::clients::Client;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::keys::{ApiKey, KeyHash};
use crate::tables::Table;
use crate::{Result, Store, Write};

/// What a call with an idempotency key made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Whose it is, or who it is.
    pub client: ClientId,
    /// What kind of thing it is: of each kind a client has idempotency keys of its own.
    pub kind: MadeKind,
    /// The hash of the idempotency key.
    pub key: KeyHash,
    /// The hash of what the call said.
    pub said: KeyHash,
    /// What was made: the name of a key, or the first characters of the hash of a secret.
    pub id: String,
    /// Random text that an API key was derived with; `None`: it was derived from nothing.
    pub salt: Option<String>,
    /// When it was made, to the millisecond.
    pub at: DateTime<Utc>,
}

/// What a call made that shows a secret once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeKind {
    /// A client, with its first key.
    Client,
    /// A key.
    Key,
    /// A webhook secret, in the place of another.
    WebhookSecret,
}

impl MadeKind {
    /// Its word in rows, which never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Key => "key",
            Self::WebhookSecret => "webhook_secret",
        }
    }
}

fn place(client: &ClientId, kind: MadeKind, key: &KeyHash) -> Key {
    Key::new(format!("{client}|made"), format!("{}|{}", kind.as_str(), key.as_str()))
}

fn row(made: &Made) -> Row {
    Row::new(&place(&made.client, made.kind, &made.key))
        .with("said", text(made.said.as_str()))
        .with("id", text(&*made.id))
        .with_some("salt", made.salt.as_deref().map(text))
        .with("made_at", number(made.at.timestamp_millis()))
        .expiring(shifted(made.at, seconds(IDEMPOTENCY_HOURS * 3_600)))
}

fn read(client: &ClientId, kind: MadeKind, key: &KeyHash, row: &Attributes) -> Result<Made> {
    let item = Item::read(Table::Events, row)?;
    Ok(Made {
        client: client.clone(),
        kind,
        key: key.clone(),
        said: KeyHash::read(item.text("said")?),
        id: item.text("id")?.to_owned(),
        salt: item.find_text("salt").map(str::to_owned),
        at: item.instant_ms("made_at")?,
    })
}

impl Store {
    /// What a call with an idempotency key made; `None` when there was no such call in the last `IDEMPOTENCY_HOURS`, or somewhat
    /// longer. Read consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn made(&self, client: &ClientId, kind: MadeKind, key: &KeyHash) -> Result<Option<Made>> {
        let row = self.get(Table::Events, &place(client, kind, key), true).await?;
        row.as_ref().map(|row| read(client, kind, key, row)).transpose()
    }

    /// As [`Self::create_client`], by a call with an idempotency key. `Refused` when the name is taken, or the idempotency key was used.
    ///
    /// # Errors
    /// As [`Self::create_client`].
    pub async fn create_client_once(
        &self,
        client: &Client,
        key: &ApiKey,
        made: &Made,
        change: &Change,
    ) -> Result<Write> {
        let mut items = self.creation_of_client(client, key, change)?;
        items.push(self.put_new_item_of(Table::Events, row(made))?);
        self.transact(Table::Clients, items).await
    }

    /// As [`Self::create_key`], by a call with an idempotency key. `Refused` also when the idempotency key was used.
    ///
    /// # Errors
    /// As [`Self::create_key`].
    pub async fn create_key_once(&self, key: &ApiKey, made: &Made, change: &Change) -> Result<Write> {
        let mut items = self.creation_of_key(key, change)?;
        items.push(self.put_new_item_of(Table::Events, row(made))?);
        self.transact(Table::Clients, items).await
    }

    /// As [`Self::replace_webhook_secrets`], by a call with an idempotency key. `Refused` also when the idempotency key was used.
    ///
    /// # Errors
    /// As [`Self::replace_webhook_secrets`].
    pub async fn replace_webhook_secrets_once(
        &self,
        client: &Client,
        seen: &str,
        made: &Made,
        change: &Change,
    ) -> Result<Write> {
        let mut items = self.replacement_of_webhook_secrets(client, seen, change)?;
        items.push(self.put_new_item_of(Table::Events, row(made))?);
        self.transact(Table::Clients, items).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_stored_form_of_what_a_call_made_is_pinned() {
        let made = Made {
            client: "acme".parse().unwrap(),
            kind: MadeKind::Key,
            key: KeyHash::of("once"),
            said: KeyHash::of("{}"),
            id: "3f9a0c17be52".to_owned(),
            salt: Some("c2FsdA".to_owned()),
            at: DateTime::from_timestamp_millis(1_795_262_640_123).unwrap(),
        };
        let attributes = row(&made).into_attributes();
        let pinned = HashMap::from([
            ("pk".to_owned(), text("acme|made")),
            ("sk".to_owned(), text(format!("key|{}", KeyHash::of("once").as_str()))),
            ("said".to_owned(), text(KeyHash::of("{}").as_str())),
            ("id".to_owned(), text("3f9a0c17be52")),
            ("salt".to_owned(), text("c2FsdA")),
            ("made_at".to_owned(), number(1_795_262_640_123_i64)),
            ("expires_at".to_owned(), number(1_795_262_640 + 86_400)),
        ]);
        assert_eq!(attributes, pinned);
        assert_eq!(read(&made.client, made.kind, &made.key, &attributes).unwrap(), made);
        let unsalted = Made { salt: None, ..made };
        assert!(!row(&unsalted).into_attributes().contains_key("salt"));
        let kinds = [MadeKind::Client, MadeKind::Key, MadeKind::WebhookSecret].map(MadeKind::as_str);
        assert_eq!(kinds, ["client", "key", "webhook_secret"]);
    }
}
