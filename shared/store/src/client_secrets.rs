//! Clients' secrets, by client: sealed values that only the engine can open. A row beside them counts them.

use std::fmt;

use chrono::{DateTime, Utc};
use tidegate_domain::change::{Change, Kind};
use tidegate_domain::ids::{ClientId, SecretId};
use tidegate_domain::limits::SECRETS;

use crate::changes::{Changed, named_row};
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Update};
use crate::tables::Table;
use crate::{Page, PageOf, Result, Store, Write};

/// A client's secret, as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret {
    /// The client whose it is.
    pub client: ClientId,
    /// Its name within the client.
    pub id: SecretId,
    /// Rises by one with each value; starts at 1.
    pub revision: u32,
    /// When it got this value, to the millisecond.
    pub changed_at: DateTime<Utc>,
    /// Its value, encrypted.
    pub sealed: String,
}

/// Without the value, though it is encrypted.
impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, id, revision, changed_at, sealed: _ } = self;
        let mut shown = f.debug_struct("ClientSecret");
        shown.field("client", client).field("id", id).field("revision", revision);
        shown.field("changed_at", changed_at).finish_non_exhaustive()
    }
}

fn partition(client: &ClientId) -> String {
    format!("client-secret|{client}")
}

fn key(client: &ClientId, id: &SecretId) -> Key {
    Key::new(partition(client), id.as_str())
}

fn count_key(client: &ClientId) -> Key {
    Key::new(format!("secret-count|{client}"), "-")
}

fn row(secret: &ClientSecret) -> Row {
    Row::new(&key(&secret.client, &secret.id))
        .with("client", text(secret.client.as_str()))
        .with("revision", number(secret.revision))
        .with("changed_at", number(secret.changed_at.timestamp_millis()))
        .with("sealed", text(&*secret.sealed))
}

fn read(row: &Attributes) -> Result<ClientSecret> {
    let item = Item::read(Table::Clients, row)?;
    Ok(ClientSecret {
        client: item.id("client")?,
        id: item.id("sk")?,
        revision: item.number("revision")?,
        changed_at: item.instant_ms("changed_at")?,
        sealed: item.text("sealed")?.to_owned(),
    })
}

/// What is recorded of a change of a secret: its name and its revisions, never its value.
fn change_of(secret: &ClientSecret, (before, after): (Option<u32>, Option<u32>), change: &Change) -> Row {
    let (client, id) = (&secret.client, secret.id.as_str());
    let fields = before.and(after).map(|_| "value").into_iter().collect();
    named_row(Changed { client, kind: Kind::Secret, id, revision: after }, before, fields, change)
}

impl Store {
    /// A secret of a client, read consistently; `None` when it has none of this name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn client_secret(&self, client: &ClientId, id: &SecretId) -> Result<Option<ClientSecret>> {
        self.get(Table::Clients, &key(client, id), true).await?.as_ref().map(read).transpose()
    }

    /// A page of a client's secrets, by name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn client_secrets(
        &self,
        client: &ClientId,
        page: impl Into<PageOf>,
    ) -> Result<Page<ClientSecret>> {
        let query = Query::of(Table::Clients, partition(client)).page(page.into());
        Ok(self.query(query).await?.read(Table::Clients, read))
    }

    /// Adds a secret, and records the change: both or neither. `Refused` when the client has one of this name, or [`SECRETS`] of others.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_client_secret(&self, secret: &ClientSecret, change: &Change) -> Result<Write> {
        let counted = Update::new(
            Table::Clients,
            count_key(&secret.client),
            "SET secrets = if_not_exists(secrets, :none) + :one",
        );
        let counted = counted
            .when("attribute_not_exists(secrets) OR secrets < :most")
            .value(":none", number(0))
            .value(":one", number(1))
            .value(":most", number(SECRETS));
        let items = vec![
            self.put_new_item_of(Table::Clients, row(secret))?,
            self.update_item_of(counted)?,
            self.put_item_of(Table::Jobs, change_of(secret, (None, Some(secret.revision)), change))?,
        ];
        self.transact(Table::Clients, items).await
    }

    /// Writes a secret over its predecessor, `secret.revision - 1`, and records the change: both or neither. `Refused` when another
    /// revision is stored, or none.
    ///
    /// # Errors
    /// As [`Self::create_client_secret`].
    pub async fn replace_client_secret(&self, secret: &ClientSecret, change: &Change) -> Result<Write> {
        let update = Update::rewrite(Table::Clients, row(secret)).when("revision = :old");
        let before = secret.revision.saturating_sub(1);
        let update = self.update_item_of(update.value(":old", number(before)))?;
        let revisions = (Some(before), Some(secret.revision));
        self.recorded(update, Some(change_of(secret, revisions, change))).await
    }

    /// Removes a secret at the revision that was seen, and records the change: both or neither. `Refused` when another revision is stored, or none.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn delete_client_secret(&self, secret: &ClientSecret, change: &Change) -> Result<Write> {
        let seen = Attributes::from([(":seen".to_owned(), number(secret.revision))]);
        let key = key(&secret.client, &secret.id);
        let counted = Update::new(
            Table::Clients,
            count_key(&secret.client),
            "SET secrets = if_not_exists(secrets, :one) - :one",
        );
        let items = vec![
            self.delete_when_item_of(Table::Clients, &key, "revision = :seen", seen)?,
            self.update_item_of(counted.value(":one", number(1)))?,
            self.put_item_of(Table::Jobs, change_of(secret, (Some(secret.revision), None), change))?,
        ];
        self.transact(Table::Clients, items).await
    }
}
