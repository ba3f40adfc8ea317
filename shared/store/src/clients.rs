//! Clients, and until when a client's jobs must be looked up before delivery.

use std::{fmt, iter};

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_domain::change::{Change, Kind, differing};
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::JobDefaults;
use tidegate_domain::limits::FORMER_SECRETS;
use tidegate_domain::quota::Quotas;
use tidegate_domain::secret::KeptSeconds;
use tidegate_domain::target::Target;
use tidegate_domain::time::{clamped, seconds, shifted};

use crate::changes::{Changed, named_row};
use crate::doc::{DefaultsDoc, QuotasDoc, read_told, told_json};
use crate::index::shared;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Update};
use crate::sidelines::{paced, recheck_key};
use crate::tables::Table;
use crate::{Page, PageOf, Result, Store, Write};

/// A client, a tenant of the deployment, as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Client {
    /// Its name, unique in the deployment.
    pub id: ClientId,
    /// Patterns of the addresses that its jobs may name, as
    /// [`Target::is_covered_by`](tidegate_domain::target::Target::is_covered_by) reads them. Empty: none.
    pub allowed_targets: Vec<String>,
    /// What HTTP deliveries are signed with (Standard Webhooks): `whsec_` and the key in base64. Kept out of `Debug`.
    pub webhook_secret: String,
    /// What they are signed with as well, while consumers change over to that: the latest first. Kept out of `Debug`.
    pub former_secrets: Vec<FormerSecret>,
    /// What its jobs have that say nothing of it.
    pub defaults: JobDefaults,
    /// What it may take at the most.
    pub quotas: Quotas,
    /// Who is told of launches that were not over in time; `None`: nobody.
    pub alerts: Option<Target>,
    /// That an admin suspended it; `None`: nobody did. Registered without.
    pub suspended: Option<Suspension>,
    /// How far its deletion came; `None`: it is not being deleted. Registered without.
    pub deleting: Option<Deletion>,
    /// Rises by one with each change of what it may name, of its defaults and quotas, and of its suspension; starts at 1.
    pub revision: u32,
    /// When it was registered, to the millisecond.
    pub created_at: DateTime<Utc>,
}

/// That an admin suspended a client: its keys are refused, and nothing of it is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// Since when, in milliseconds since the epoch.
    #[serde(rename = "s")]
    pub since_ms: i64,
    /// Why, in the words of whoever did it.
    #[serde(rename = "w")]
    pub because: String,
    /// It was sidelined before, and stays so when it is resumed.
    #[serde(rename = "h", skip_serializing_if = "std::ops::Not::not", default)]
    pub held_before: bool,
}

/// How far the deletion of a client came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// Since when, in milliseconds since the epoch.
    #[serde(rename = "s")]
    pub since_ms: i64,
    /// What is being removed.
    #[serde(rename = "g")]
    pub stage: Stage,
    /// Where in it to go on; `None`: at the beginning.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
    /// Rises with each step that was taken: a message asks for the next one by it.
    #[serde(rename = "n")]
    pub step: u64,
    /// Rows that were removed so far. A step that was taken twice counts once.
    #[serde(rename = "r")]
    pub removed: u64,
    /// Nothing is done before, in milliseconds since the epoch.
    #[serde(rename = "t")]
    pub not_before_ms: i64,
    /// When the last step was taken, in milliseconds since the epoch.
    #[serde(rename = "m")]
    pub moved_ms: i64,
}

impl Deletion {
    /// When the next step may be taken.
    pub fn not_before(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.not_before_ms).map(clamped).unwrap_or_default()
    }

    /// Since when the next step may have been taken, and was not.
    pub fn stands_since(&self) -> DateTime<Utc> {
        let moved_at = DateTime::from_timestamp_millis(self.moved_ms).map(clamped).unwrap_or_default();
        moved_at.max(self.not_before())
    }
}

/// What is removed, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Its rows in the time index, and its one-time jobs with generated ids, which lie there.
    #[serde(rename = "i")]
    Index,
    /// Its jobs.
    #[serde(rename = "j")]
    Jobs,
    /// Its policies, their slot groups and lines.
    #[serde(rename = "p")]
    Policies,
    /// Runs and packs.
    #[serde(rename = "r")]
    Runs,
    /// Events, dead letters, and chunks that are set aside.
    #[serde(rename = "e")]
    Events,
    /// Calendars, secrets, and itself.
    #[serde(rename = "c")]
    Client,
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
        let mut shown = f.debug_struct("Client");
        shown
            .field("id", &self.id)
            .field("revision", &self.revision)
            .field("allowed_targets", &self.allowed_targets)
            .field("suspended", &self.suspended)
            .field("deleting", &self.deleting);
        shown.field("defaults", &self.defaults).field("created_at", &self.created_at).finish_non_exhaustive()
    }
}

pub(crate) fn client_key(id: &str) -> Key {
    Key::new("client", id)
}

/// The row of a client that has one key.
pub(crate) fn row(client: &Client) -> Row {
    Row::new(&client_key(client.id.as_str()))
        .with("client", text(client.id.as_str()))
        .with("allowed_targets", allowed_targets(client))
        .with("defaults", defaults(client))
        .with("quotas", quotas(client))
        .with_some("alerts", alerts(client))
        .with("revision", number(client.revision))
        .with("live_keys", number(1))
        .with("webhook_secret", text(&*client.webhook_secret))
        .with_some("former_secrets", former_secrets(client))
        .with("created_at", number(client.created_at.timestamp_millis()))
}

fn allowed_targets(client: &Client) -> AttributeValue {
    AttributeValue::L(client.allowed_targets.iter().map(text).collect())
}

fn defaults(client: &Client) -> AttributeValue {
    // Serialising plain structs to a string has no way to fail.
    text(serde_json::to_string(&DefaultsDoc::from(&client.defaults)).unwrap_or_default())
}

fn quotas(client: &Client) -> AttributeValue {
    // Serialising plain structs to a string has no way to fail.
    text(serde_json::to_string(&QuotasDoc::from(&client.quotas)).unwrap_or_default())
}

fn alerts(client: &Client) -> Option<AttributeValue> {
    client.alerts.as_ref().map(|target| text(told_json(target)))
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
    let suspended = item.find_text("suspended").map(serde_json::from_str).transpose();
    let deleting = item.find_text("deleting").map(serde_json::from_str).transpose();
    let defaults = item.find_text("defaults").map(serde_json::from_str::<DefaultsDoc>).transpose();
    let defaults = defaults.map_err(|e| e.to_string()).and_then(|doc| doc.unwrap_or_default().read());
    let quotas = item.find_text("quotas").map(serde_json::from_str::<QuotasDoc>).transpose();
    let quotas = quotas.map_err(|e| e.to_string()).and_then(|doc| doc.unwrap_or_default().read());
    let alerts = item.find_text("alerts").map(read_told).transpose();
    Ok(Client {
        id: item.id("client")?,
        allowed_targets: item.texts("allowed_targets").into_iter().map(str::to_owned).collect(),
        webhook_secret: item.text("webhook_secret")?.to_owned(),
        former_secrets: former.map_err(|_| item.corrupt("'former_secrets' is no list"))?.unwrap_or_default(),
        defaults: defaults.map_err(|e| item.corrupt(format!("'defaults': {e}")))?,
        quotas: quotas.map_err(|e| item.corrupt(format!("'quotas': {e}")))?,
        alerts: alerts.map_err(|e| item.corrupt(format!("'alerts': {e}")))?,
        suspended: suspended.map_err(|e| item.corrupt(format!("'suspended': {e}")))?,
        deleting: deleting.map_err(|e| item.corrupt(format!("'deleting': {e}")))?,
        revision: item.number_or("revision", 1)?,
        created_at: item.instant_ms("created_at")?,
    })
}

/// What is recorded of a change of a client: its revisions, and the names of the fields that differ, never a secret.
pub(crate) fn change_of(
    client: &Client,
    (before, after): (Option<u32>, Option<u32>),
    fields: Vec<&'static str>,
    change: &Change,
) -> Row {
    let id = client.id.as_str();
    let changed = Changed { client: &client.id, kind: Kind::Client, id, revision: after };
    named_row(changed, before, fields, change)
}

fn fields_that_differ(old: &Client, new: &Client) -> Vec<&'static str> {
    differing([
        ("allowed_targets", new.allowed_targets != old.allowed_targets),
        ("defaults", new.defaults != old.defaults),
        ("quotas", new.quotas != old.quotas),
        ("alerts", new.alerts != old.alerts),
    ])
}

impl Store {
    /// A client by its name, read eventually; `None` when none is registered under it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn client(&self, id: &ClientId) -> Result<Option<Client>> {
        self.get(Table::Clients, &client_key(id.as_str()), false).await?.as_ref().map(read).transpose()
    }

    /// The same, also of a client that was registered a moment ago: where an eventual read finds none, a consistent one says so.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub async fn registered_client(&self, id: &ClientId) -> Result<Option<Client>> {
        self.get_once_there(Table::Clients, &client_key(id.as_str())).await?.as_ref().map(read).transpose()
    }

    /// The same, read consistently.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub async fn client_as_it_is(&self, id: &ClientId) -> Result<Option<Client>> {
        self.get(Table::Clients, &client_key(id.as_str()), true).await?.as_ref().map(read).transpose()
    }

    /// Replaces what a client may name, its defaults, its quotas, and whom its alerts go to, and records the change from what was `seen`: both or neither.
    /// `Refused` unless it is at the revision before the one that is given.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn replace_client(&self, client: &Client, seen: &Client, change: &Change) -> Result<Write> {
        let alerts = alerts(client);
        let sets =
            "SET allowed_targets = :allowed, defaults = :defaults, quotas = :quotas, revision = :revision";
        let changes = match &alerts {
            Some(_) => format!("{sets}, alerts = :alerts"),
            None => format!("{sets} REMOVE alerts"),
        };
        let update = Update::new(Table::Clients, client_key(client.id.as_str()), changes)
            .when("revision = :seen")
            .value(":allowed", allowed_targets(client))
            .value(":defaults", defaults(client))
            .value(":quotas", quotas(client))
            .value(":revision", number(client.revision))
            .value(":seen", number(client.revision.saturating_sub(1)));
        let update = match alerts {
            Some(alerts) => update.value(":alerts", alerts),
            None => update,
        };
        let revisions = (Some(seen.revision), Some(client.revision));
        let recorded = change_of(client, revisions, fields_that_differ(seen, client), change);
        let mut writes = vec![self.update_item_of(update)?];
        writes.extend(self.writes_of_quotas(client, &seen.quotas)?);
        self.all_recorded(writes, Some(recorded)).await
    }

    /// What of the quotas of a client is stored beside its row, where it differs from what was: deliveries and ticks do not read
    /// that.
    pub(crate) fn writes_of_quotas(&self, client: &Client, was: &Quotas) -> Result<Vec<TransactWriteItem>> {
        let quotas = &client.quotas;
        let is_paced_anew = quotas.events_pace() != was.events_pace();
        let is_shared_anew = quotas.delivery_share != was.delivery_share;
        let updates = [
            is_paced_anew.then(|| paced(&client.id, quotas)),
            is_shared_anew.then(|| shared(&client.id, quotas)),
        ];
        updates.into_iter().flatten().map(|update| self.update_item_of(update)).collect()
    }

    /// Suspends a client, or ends that, and records the change: both or neither. `Refused` unless it is at the revision before the
    /// one that is given.
    ///
    /// # Errors
    /// As [`Self::replace_client`].
    pub async fn replace_suspension(&self, client: &Client, change: &Change) -> Result<Write> {
        let changes = match &client.suspended {
            Some(_) => "SET revision = :revision, suspended = :suspended",
            None => "SET revision = :revision REMOVE suspended",
        };
        let update = Update::new(Table::Clients, client_key(client.id.as_str()), changes)
            .when("revision = :seen")
            .value(":revision", number(client.revision))
            .value(":seen", number(client.revision.saturating_sub(1)));
        let update = match &client.suspended {
            // Serialising a plain struct to a string has no way to fail.
            Some(suspended) => {
                update.value(":suspended", text(serde_json::to_string(suspended).unwrap_or_default()))
            }
            None => update,
        };
        let revisions = (Some(client.revision.saturating_sub(1)), Some(client.revision));
        let recorded = change_of(client, revisions, vec!["suspended"], change);
        self.recorded(self.update_item_of(update)?, Some(recorded)).await
    }

    /// Replaces the webhook secrets of a client, and records that: both or neither. `Refused` unless the present one is still the one
    /// that was seen.
    ///
    /// # Errors
    /// As [`Self::replace_client`].
    pub async fn replace_webhook_secrets(
        &self,
        client: &Client,
        seen: &str,
        change: &Change,
    ) -> Result<Write> {
        let items = self.replacement_of_webhook_secrets(client, seen, change)?;
        self.transact(Table::Clients, items).await
    }

    /// The writes that replace webhook secrets.
    pub(crate) fn replacement_of_webhook_secrets(
        &self,
        client: &Client,
        seen: &str,
        change: &Change,
    ) -> Result<Vec<TransactWriteItem>> {
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
        // It makes no revision.
        let recorded = change_of(client, (None, None), vec!["webhook_secret"], change);
        Ok(vec![self.update_item_of(update)?, self.put_item_of(Table::Jobs, recorded)?])
    }

    /// A page of all clients, by name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn clients(&self, page: impl Into<PageOf>) -> Result<Page<Client>> {
        let query = Query::of(Table::Clients, "client").page(page.into());
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
}
