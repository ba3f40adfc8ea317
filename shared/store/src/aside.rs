//! Rows that were set aside because they cannot be read: moved out of the way as they are, with the reason.
//!
//! They stay until an operator deletes them, or puts them back for a version that can read them.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::PAGE_ROWS;

use crate::item::{Item, Key, Row, number, text};
use crate::line;
use crate::rows::Query;
use crate::tables::{PARTITION_KEY, SORT_KEY, Table};
use crate::{Result, Store, Unreadable};

/// The attribute that says why a row was set aside.
const REASON: &str = "set_aside_because";

fn line_partition(client: &ClientId, policy: &PolicyId) -> String {
    format!("{client}|{policy}|aside")
}

impl Store {
    /// Takes an entry that cannot be read, or whose pack cannot be, out of the line of its policy, and keeps it with
    /// the reason: what waits behind it goes on. `because` is the reason and the present instant. Repeating it changes
    /// nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. The entry may then be in both places; the
    /// next call removes it from the line.
    pub async fn set_entry_aside(
        &self,
        (client, policy): (&ClientId, &PolicyId),
        line_key: &str,
        because: (&str, DateTime<Utc>),
    ) -> Result<()> {
        let entry = Key::new(line::partition(client, policy), line_key);
        self.move_aside(Table::Policies, &entry, &line_partition(client, policy), because).await
    }

    /// The first 100 entries of a policy's line that were set aside ([`PAGE_ROWS`]), each by its place and with the
    /// reason, in the order of the line.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. Rows are not read beyond key and reason, so
    /// none is unreadable.
    pub async fn entries_set_aside(&self, client: &ClientId, policy: &PolicyId) -> Result<Vec<Unreadable>> {
        self.set_aside_in(Table::Policies, &line_partition(client, policy)).await
    }

    /// Moves a row as it is to another partition.
    pub(crate) async fn move_aside(
        &self,
        table: Table,
        from: &Key,
        partition: &str,
        (reason, now): (&str, DateTime<Utc>),
    ) -> Result<()> {
        let Some(row) = self.get(table, from, true).await? else { return Ok(()) };
        let kept = row.into_iter().filter(|(name, _)| name != PARTITION_KEY && name != SORT_KEY);
        let aside = Row::new(&Key::new(partition, &*from.sk))
            .with(REASON, text(reason))
            .with("set_aside_at", number(now.timestamp_millis()));
        self.put(table, kept.fold(aside, |aside, (name, value)| aside.with(&name, value))).await?;
        self.remove(table, from).await
    }

    pub(crate) async fn set_aside_in(&self, table: Table, partition: &str) -> Result<Vec<Unreadable>> {
        let page = self.query(Query { limit: Some(PAGE_ROWS), ..Query::of(table, partition) }).await?;
        let read = |row| {
            let item = Item::new(table, row);
            let own = |name| item.find_text(name).unwrap_or_default().to_owned();
            Unreadable { sort_key: own(SORT_KEY), reason: own(REASON) }
        };
        Ok(page.rows.iter().map(read).collect())
    }
}
