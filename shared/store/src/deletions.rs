//! Taking a client away with all that is its own: how far that came, and the rows of a table that are a client's.
//!
//! Jobs and what lies under a client's own keys are asked for by them. What lies elsewhere (children of the time index, slot groups
//! and lines, runs and events) has no list, so its table is read from one end to the other, a page at a time.
//!
//! Deliberately absent: what is nobody's (marks of chunks, parts of emissions), which is over within days.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;

use crate::changes;
use crate::clients::{Client, Deletion, Stage, client_key};
use crate::item::{Attributes, Item, Key, number, text};
use crate::keys::hash_key;
use crate::launch::owner_of;
use crate::rows::{Query, Update};
use crate::sidelines::recheck_key;
use crate::tables::Table;
use crate::triggers::TRIGGERED;
use crate::{Result, Store, Write};

/// Rows of one page of what is looked at.
const ROWS_PER_LOOK: i32 = 1_000;

impl Stage {
    /// What comes after it; `None`: nothing.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Index => Some(Self::Jobs),
            Self::Jobs => Some(Self::Policies),
            Self::Policies => Some(Self::Runs),
            Self::Runs => Some(Self::Events),
            Self::Events => Some(Self::Client),
            Self::Client => None,
        }
    }

    /// The table that is read from one end to the other; `None`: what is removed is asked for by its key.
    fn table(self) -> Option<Table> {
        match self {
            Self::Index => Some(Table::Launch),
            Self::Policies => Some(Table::Policies),
            Self::Runs => Some(Table::Runs),
            Self::Events => Some(Table::Events),
            Self::Jobs | Self::Client => None,
        }
    }
}

/// What came of a look at a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// How many rows were removed.
    pub removed: u64,
    /// Where to go on; `None`: this was the last page.
    pub next: Option<String>,
}

/// Whether a row of a table that is read as a whole is a client's.
fn is_owned(table: Table, client: &ClientId, key: &Key) -> bool {
    let begins = |text: &str| text.strip_prefix(client.as_str()).is_some_and(|rest| rest.starts_with('|'));
    match table {
        Table::Launch => match key.pk.strip_prefix(TRIGGERED) {
            Some(owner) => begins(owner),
            None => owner_of(&key.sk).is_some_and(|(owner, _)| owner == *client),
        },
        Table::Policies if key.pk.starts_with("active|") => begins(&key.sk),
        Table::Policies => key.pk == client.as_str() || begins(&key.pk),
        Table::Runs | Table::Events => begins(&key.pk),
        Table::Jobs | Table::Clients | Table::Ticker => false,
    }
}

fn encode(deletion: &Deletion) -> String {
    // Serialising a plain struct to a string has no way to fail.
    serde_json::to_string(deletion).unwrap_or_default()
}

impl Store {
    /// Says that a client is being deleted. `Refused` unless it is at the revision before the one that is given.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn begin_deletion(&self, client: &Client, deletion: &Deletion) -> Result<Write> {
        let changes = "SET revision = :revision, deleting = :new";
        let update = Update::new(Table::Clients, client_key(client.id.as_str()), changes)
            .when("revision = :seen")
            .value(":revision", number(client.revision.saturating_add(1)))
            .value(":seen", number(client.revision))
            .value(":new", text(encode(deletion)));
        Ok(self.update(update).await?.into())
    }

    /// Says how far a deletion came. `Refused` unless it is still as it was seen: somebody else took the step.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn move_deletion(&self, client: &ClientId, seen: &Deletion, next: &Deletion) -> Result<Write> {
        let update = Update::new(Table::Clients, client_key(client.as_str()), "SET deleting = :new")
            .when("deleting = :seen")
            .value(":seen", text(encode(seen)))
            .value(":new", text(encode(next)));
        Ok(self.update(update).await?.into())
    }

    /// Takes the client itself away, whose deletion has come to its end. `Refused` unless it is still as it was seen.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn end_deletion(&self, client: &ClientId, seen: &Deletion) -> Result<Write> {
        let values = Attributes::from([(":seen".to_owned(), text(encode(seen)))]);
        self.remove_when(Table::Clients, &client_key(client.as_str()), "deleting = :seen", values).await
    }

    /// Removes what is a client's of the next page of a stage. Repeating it is safe.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer; some rows may be removed then.
    pub async fn sweep(&self, client: &ClientId, stage: Stage, after: Option<String>) -> Result<Swept> {
        let Some(table) = stage.table() else {
            return match stage {
                Stage::Jobs => self.sweep_jobs(client).await,
                _ => self.sweep_own(client).await,
            };
        };
        let page = self.scan_keys(table, after, ROWS_PER_LOOK).await?;
        let owned: Vec<Key> = page.rows.into_iter().filter(|key| is_owned(table, client, key)).collect();
        let removed = owned.len() as u64;
        self.remove_rows(table, owned).await?;
        Ok(Swept { removed, next: page.next })
    }

    /// Removes a page of a partition. Where more may be left, it is asked for again.
    async fn sweep_partition(&self, table: Table, pk: String) -> Result<Swept> {
        let query = Query { limit: Some(ROWS_PER_LOOK), consistent: true, ..Query::of(table, pk) };
        let page = self.query(query).await?;
        let keys = page.rows.iter().map(|row| Item::new(table, row).key()).collect::<Result<Vec<Key>>>()?;
        let removed = keys.len() as u64;
        self.remove_rows(table, keys).await?;
        Ok(Swept { removed, next: page.next.map(|_| "more".to_owned()) })
    }

    /// Removes jobs, and what is recorded of changes.
    async fn sweep_jobs(&self, client: &ClientId) -> Result<Swept> {
        let jobs = self.sweep_partition(Table::Jobs, client.to_string()).await?;
        let recorded = self.sweep_partition(Table::Jobs, changes::partition(client)).await?;
        let removed = jobs.removed.saturating_add(recorded.removed);
        Ok(Swept { removed, next: jobs.next.or(recorded.next) })
    }

    /// Removes what lies beside a client's own row: keys, calendars, secrets.
    async fn sweep_own(&self, client: &ClientId) -> Result<Swept> {
        let hashes: Vec<Key> =
            self.keys_of(client).await?.rows.iter().map(|key| hash_key(&key.hash)).collect();
        self.remove_rows(Table::Clients, hashes).await?;
        let mut all = Swept { removed: 0, next: None };
        for kind in ["keys", "calendar", "client-secret", "secret-count", "creates", "paced"] {
            let swept = self.sweep_partition(Table::Clients, format!("{kind}|{client}")).await?;
            all.removed = all.removed.saturating_add(swept.removed);
            all.next = all.next.or(swept.next);
        }
        Ok(all)
    }

    /// Leaves of what deliveries read that what was planned before `until` is looked up, and that nothing is sidelined: so what is
    /// still on its way finds no job, whoever has the name next.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn forget_sidelines(&self, client: &ClientId, until: DateTime<Utc>) -> Result<()> {
        let update = Update::new(
            Table::Clients,
            recheck_key(client),
            "SET dirty_until = :until REMOVE sidelined, events_per_minute, events_waiting",
        )
        .value(":until", number(until.timestamp_millis()));
        self.update(update).await.map(drop)
    }

    /// Has ticks look after the deletion of a client, or not any more.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn list_deletion(&self, client: &ClientId, is_deleting: bool) -> Result<()> {
        let changes = if is_deleting { "SET #deleting = :one" } else { "REMOVE #deleting, #share" };
        let update = Update::new(Table::Ticker, crate::index::key(), changes)
            .name("#deleting", format!("{}{client}", crate::index::DELETING_PREFIX));
        let update = match is_deleting {
            true => update.value(":one", number(1)),
            // Whoever has the name next has a share of its own.
            false => update.name("#share", format!("{}{client}", crate::index::SHARE_PREFIX)),
        };
        self.update(update).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_by_their_keys_and_no_name_is_the_beginning_of_another() {
        let acme: ClientId = "acme".parse().unwrap();
        for (table, pk, sk, is) in [
            (Table::Launch, "UTC|H:03|0", "0180|acme|nightly", true),
            (Table::Launch, "UTC|H:03|0", "0180|acme2|nightly", false),
            (Table::Launch, "AT|2991|7", "29921044|acme|at_1", true),
            (Table::Launch, "OUTBOX|1", "acme|nightly", true),
            (Table::Launch, "OUTBOX|1", "001795262640|acme|nightly", true),
            (Table::Launch, "TRIGGERED|acme|nightly", "001795262640", true),
            (Table::Launch, "TRIGGERED|acme-2|nightly", "001795262640", false),
            (Table::Launch, "ZONE|UTC|1", "zeta|acme", false),
            (Table::Policies, "acme", "policy|small", true),
            (Table::Policies, "acme|small|0", "slots", true),
            (Table::Policies, "acme|lateness", "0000498684", true),
            (Table::Policies, "active|3", "acme|small", true),
            (Table::Policies, "active|3", "acme-2|small", false),
            (Table::Policies, "epoch|numbers", "-", false),
            (Table::Runs, "acme|nightly", "1|1", true),
            (Table::Runs, "acme-2|nightly", "1|1", false),
            (Table::Events, "mark|acme", "-", false),
            (Table::Events, "acme|dead|1", "x", true),
            (Table::Events, "acme|made", "key|x", true),
        ] {
            assert_eq!(is_owned(table, &acme, &Key::new(pk, sk)), is, "{pk} / {sk}");
        }
    }

    #[test]
    fn the_stored_form_of_a_deletion_is_pinned() {
        let deletion = Deletion {
            since_ms: 1_795_262_640_000,
            stage: Stage::Runs,
            after: Some("a\nb".to_owned()),
            step: 7,
            removed: 9,
            not_before_ms: 0,
            moved_ms: 5,
        };
        let pinned = r#"{"s":1795262640000,"g":"r","a":"a\nb","n":7,"r":9,"t":0,"m":5}"#;
        assert_eq!(encode(&deletion), pinned);
        assert_eq!(serde_json::from_str::<Deletion>(pinned).unwrap(), deletion);
    }
}
