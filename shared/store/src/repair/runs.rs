//! The tables `runs` and `events`: runs and packs with when they were written, their counts, and their history.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::limits::HISTORY_DAYS;
use tidegate_domain::pack::{Singles, SinglesId};
use tidegate_domain::time::{days, shifted};

use crate::events::{self, HistoryOf};
use crate::item::{Attributes, Item, Key, number};
use crate::rows::{Query, Sorted, Update};
use crate::runs::{self, RunRow, Tally, list_key, part};
use crate::tables::{EXPIRES_AT, PARTITION_KEY, SORT_KEY, Table};
use crate::{Page, Result, Store, Write, packs};

/// Rows that are removed at once.
const REMOVED_AT_ONCE: usize = 16;

/// A row of the table `runs`.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredRun {
    /// A run, or what was skipped.
    Run {
        /// The client whose it is.
        client: ClientId,
        /// What its row says.
        row: Box<RunRow>,
        /// When it was written, launched or last kept for longer, whichever is latest.
        since: DateTime<Utc>,
    },
    /// A pack of single events.
    Pack {
        /// The client whose it is.
        client: ClientId,
        /// The policy under which it waits.
        policy: PolicyId,
        /// Its occurrences.
        pack: Box<Singles>,
        /// When it was written, launched or last kept for longer, whichever is latest.
        since: DateTime<Utc>,
    },
    /// Any other.
    Other,
}

/// When a row was written that is kept for so many days; later, where it was kept for longer because it waits.
fn since(item: Item<'_>) -> Result<DateTime<Utc>> {
    Ok(shifted(item.instant_s(EXPIRES_AT)?, -days(HISTORY_DAYS)))
}

fn read(row: &Attributes) -> Result<StoredRun> {
    let item = Item::new(Table::Runs, row);
    let pk: Vec<&str> = item.text(PARTITION_KEY)?.split('|').collect();
    let client = |client: &str| item.parsed::<ClientId>(PARTITION_KEY, client);
    Ok(match pk.as_slice() {
        [owner, minute] if minute.starts_with('~') => {
            let (client, (policy, id)) = (client(owner)?, packs::name_of(row)?);
            let pack = Box::new(packs::read(&client, id, row)?);
            StoredRun::Pack { client, policy, pack, since: since(item)? }
        }
        [owner, _job] => {
            StoredRun::Run { client: client(owner)?, row: Box::new(runs::read(row)?), since: since(item)? }
        }
        _ => StoredRun::Other,
    })
}

impl Store {
    /// A page of the table of runs.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn all_of_runs(&self, after: Option<String>) -> Result<Page<StoredRun>> {
        Ok(self.scan(Table::Runs, after).await?.read(Table::Runs, read))
    }

    /// Makes a run's row say these counts, whatever it and its parts have counted. `Refused` when outcomes were added
    /// since it was `seen`, or there is no such run. Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer; parts of the counts may be gone then, and the
    /// run's row still knows their sums.
    pub async fn set_tally(&self, client: &ClientId, seen: &RunRow, tally: Tally) -> Result<Write> {
        // What the parts counted is in the new counts, and what they count from now on comes on top of these.
        let parts = Query {
            sorted: Sorted::Prefix(format!("{}|", list_key(&seen.id))),
            consistent: true,
            ..Query::of(Table::Runs, part::partition(client, &seen.id))
        };
        self.remove_all(parts).await?;
        let key = runs::key(client, &seen.id);
        let Some(row) = self.get(Table::Runs, &key, true).await? else { return Ok(Write::Refused) };
        let counts = tally.counts();
        let mut changes = "SET".to_owned();
        for (place, (name, _)) in counts.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            changes.push_str(&format!("{comma} {name} = :{name}"));
        }
        let counted: Vec<&String> = row.keys().filter(|name| part::is_count(name)).collect();
        if !counted.is_empty() {
            let names: Vec<&str> = counted.iter().map(|name| name.as_str()).collect();
            changes.push_str(&format!(" REMOVE {}", names.join(", ")));
        }
        let update = counts.iter().fold(Update::new(Table::Runs, key, changes), |update, (name, count)| {
            update.value(format!(":{name}"), number(*count))
        });
        let update = match seen.last_outcome_at {
            Some(at) => update.when("last_at = :seen").value(":seen", number(at.timestamp_millis())),
            None => update.when("attribute_exists(pk) AND attribute_not_exists(last_at)"),
        };
        Ok(self.update(update).await?.into())
    }

    /// Removes the history of a pack whose row is gone: another may get its number.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn forget_history(&self, client: &ClientId, policy: &PolicyId, pack: SinglesId) -> Result<()> {
        let of = HistoryOf::Singles(policy.clone(), pack);
        let history = Query { consistent: true, ..Query::of(Table::Events, events::partition(client, &of)) };
        self.remove_all(history).await
    }

    /// Removes the record that a part of a run was sent, in its first attempt: it is sent again.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn forget_part(&self, client: &ClientId, run: &RunId, from: u32) -> Result<()> {
        self.remove(Table::Events, &events::part_key(client, run, from, 1)).await
    }

    async fn remove_all(&self, mut query: Query) -> Result<()> {
        let (table, pk, sorted) = (query.table, query.pk.clone(), query.sorted.clone());
        loop {
            let page = self.query(query).await?;
            let mut keys = Vec::with_capacity(page.rows.len());
            for row in &page.rows {
                keys.push(Key::new(&*pk, Item::new(table, row).text(SORT_KEY)?));
            }
            let removes: Vec<_> = keys.iter().map(|key| self.remove(table, key)).collect();
            stream::iter(removes).buffer_unordered(REMOVED_AT_ONCE).try_collect::<()>().await?;
            if page.next.is_none() {
                return Ok(());
            }
            query = Query {
                after: page.next,
                sorted: sorted.clone(),
                consistent: true,
                ..Query::of(table, &*pk)
            };
        }
    }
}
