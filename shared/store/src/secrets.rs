//! Secrets of the deployment that it makes itself, once: rows of the clients' table, which no route reads.

use crate::item::{Item, Key, Row, text};
use crate::tables::Table;
use crate::{Result, Store};

impl Store {
    /// The secret of a name. `fresh` becomes it when there is none yet; whoever asks later, or at the same time, gets
    /// the one that was stored first.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn secret(&self, name: &str, fresh: &str) -> Result<String> {
        let key = Key::new(format!("secret|{name}"), "-");
        if let Some(row) = self.get(Table::Clients, &key, true).await? {
            return Item::read(Table::Clients, &row)?.text("secret").map(str::to_owned);
        }
        self.put_new(Table::Clients, Row::new(&key).with("secret", text(fresh))).await?;
        let row = self.get(Table::Clients, &key, true).await?.unwrap_or_default();
        Item::read(Table::Clients, &row)?.text("secret").map(str::to_owned)
    }
}
