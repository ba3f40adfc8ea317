//! What is done about targets that cannot keep up and whose events nothing throttles: a row for each of them, which expires.
//!
//! Of a throttled event its policy's row says so.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use tidegate_domain::backpressure::Backpressure;
use tidegate_domain::ids::ClientId;
use tidegate_domain::time::{days, shifted};

use crate::doc::BackpressureDoc;
use crate::item::{Attributes, Item, Key, Row, text};
use crate::rows::{Query, Update};
use crate::tables::Table;
use crate::{Page, PageOf, Result, Store, Write};

/// For how long a row outlives what it says, in days.
const KEPT_DAYS: i64 = 1;

/// A target that cannot keep up, or could not lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrainedTarget {
    /// Its address: a URL or an ARN.
    pub address: String,
    /// What is done about it.
    pub backpressure: Backpressure,
}

fn partition(client: &ClientId) -> String {
    format!("{client}|targets")
}

fn key(client: &ClientId, address: &str) -> Key {
    let hash: String = Sha256::digest(address).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Key::new(partition(client), hash)
}

fn read(row: &Attributes) -> Result<StrainedTarget> {
    let item = Item::read(Table::Events, row)?;
    let backpressure = BackpressureDoc::decode(item.text("backpressure")?);
    let backpressure = backpressure.map_err(|e| item.corrupt(format!("'backpressure': {e}")))?;
    Ok(StrainedTarget { address: item.text("address")?.to_owned(), backpressure })
}

impl Store {
    /// What is done about a target of a client, read eventually; `None`: it keeps up.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn target_backpressure(
        &self,
        client: &ClientId,
        address: &str,
    ) -> Result<Option<Backpressure>> {
        let row = self.get(Table::Events, &key(client, address), false).await?;
        Ok(row.as_ref().map(read).transpose()?.map(|target| target.backpressure))
    }

    /// Says what is done about a target from now on. `Refused` unless it is still as it was `seen`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn replace_target_backpressure(
        &self,
        (client, address): (&ClientId, &str),
        next: &Backpressure,
        seen: Option<&Backpressure>,
    ) -> Result<Write> {
        let expires_at = shifted(next.eases_at(), days(KEPT_DAYS));
        let row = Row::new(&key(client, address))
            .with("address", text(address))
            .with("backpressure", text(BackpressureDoc::encode(next)))
            .expiring(expires_at);
        let update = Update::rewrite(Table::Events, row);
        let update = match seen {
            None => update.when("attribute_not_exists(pk)"),
            Some(seen) => {
                update.when("backpressure = :seen").value(":seen", text(BackpressureDoc::encode(seen)))
            }
        };
        Ok(self.update(update).await?.into())
    }

    /// A page of a client's targets that cannot keep up, or could not until `now`, read eventually.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn strained_targets(
        &self,
        client: &ClientId,
        page: impl Into<PageOf>,
        now: DateTime<Utc>,
    ) -> Result<Page<StrainedTarget>> {
        let query = Query::of(Table::Events, partition(client)).page(page.into());
        let mut page = self.query(query).await?.read(Table::Events, read);
        page.rows.retain_mut(|target| match target.backpressure.at(now) {
            Some(present) => {
                target.backpressure = present;
                true
            }
            None => false,
        });
        Ok(page)
    }
}
