//! The shape of the time index: which zones have children, and into how many shards busy LaunchExpressions are split.
//!
//! One row of the ticker table, read once per scan. Invariant: a zone is in it before a child lies in that zone, and a
//! number of shards only rises, so a scan that has read the row reads every child that existed before.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::EXPRESSION_SHARDS;
use tidegate_domain::quota::{DeliveryShare, Quotas};
use tidegate_domain::time::{LaunchExpression, parse_zone};

use crate::item::{Item, Key, number};
use crate::rows::Update;
use crate::tables::Table;
use crate::{Result, Store, Write};

const SHARDS_PREFIX: &str = "shards|";
const ZONE_PREFIX: &str = "zone|";
/// Stands before the names of clients that are being deleted: ticks look after them, and read this row anyway.
pub(crate) const DELETING_PREFIX: &str = "deleting|";
/// Stands before the names of clients that have a share of deliveries: ticks send their messages by it.
pub(crate) const SHARE_PREFIX: &str = "share|";
/// Says that some job is watched: until the first one is, ticks do not look.
const WATCHED: &str = "watched";

/// The shape of the index.
///
/// Invariant: a zone is in it before a child lies in that zone, and numbers of shards only rise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexShape {
    /// The zones that have children, each with the instant, in whole seconds, at which it was last added; ordered by
    /// name. The instant is the epoch where it cannot be read.
    pub zones: Vec<(Tz, DateTime<Utc>)>,
    /// What this version cannot read of it: names of zones that its database does not know. Their jobs do not launch.
    pub unreadable: Vec<String>,
    /// The clients that are being deleted.
    pub deleting: Vec<ClientId>,
    /// Whether there may be watches. It never falls back.
    pub watched: bool,
    /// The clients whose messages have more turns than one.
    pub shares: BTreeMap<ClientId, DeliveryShare>,
    shards: BTreeMap<String, u32>,
}

impl IndexShape {
    /// Into how many shards a LaunchExpression is split in a zone: 1 unless it was raised.
    pub fn shards_of(&self, zone: Tz, expression: &LaunchExpression) -> u32 {
        self.shards.get(&name(zone, expression)).copied().unwrap_or(1)
    }

    /// The LaunchExpressions that are split, as `Europe/Berlin|H:03`, and into how many shards.
    pub fn split(&self) -> impl Iterator<Item = (&str, u32)> {
        self.shards.iter().map(|(name, shards)| (&**name, *shards))
    }
}

fn name(zone: Tz, expression: &LaunchExpression) -> String {
    format!("{}|{expression}", zone.name())
}

/// Has ticks send the messages of a client by its share from now on.
pub(crate) fn shared(client: &ClientId, quotas: &Quotas) -> Update {
    let changes = match quotas.delivery_share {
        Some(_) => "SET #share = :share",
        None => "REMOVE #share",
    };
    let update = Update::new(Table::Ticker, key(), changes).name("#share", format!("{SHARE_PREFIX}{client}"));
    match quotas.delivery_share {
        Some(share) => update.value(":share", number(share.get())),
        None => update,
    }
}

pub(crate) fn key() -> Key {
    Key::new("index", "-")
}

impl Store {
    /// The shape of the index, read consistently; without zones before the first job. Shards whose number cannot be
    /// read count as the most there may be ([`EXPRESSION_SHARDS`]), so no row is missed.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row is of a
    /// newer format.
    pub async fn index_shape(&self) -> Result<IndexShape> {
        let row = self.get(Table::Ticker, &key(), true).await?.unwrap_or_default();
        let item = Item::read(Table::Ticker, &row)?;
        let mut shape = IndexShape::default();
        for attribute in item.names() {
            if let Some(zone) = attribute.strip_prefix(ZONE_PREFIX) {
                match parse_zone(zone) {
                    // A zone whose instant cannot be read stays: it was added long ago.
                    Ok(zone) => shape.zones.push((zone, item.instant_s(attribute).unwrap_or_default())),
                    Err(_) => shape.unreadable.push(zone.to_owned()),
                }
            } else if attribute == WATCHED {
                shape.watched = true;
            } else if let Some(client) = attribute.strip_prefix(DELETING_PREFIX) {
                shape.deleting.extend(client.parse::<ClientId>());
            } else if let Some(client) = attribute.strip_prefix(SHARE_PREFIX) {
                // One that cannot be read is none.
                let share =
                    item.number::<u64>(attribute).ok().and_then(|turns| DeliveryShare::new(turns).ok());
                shape.shares.extend(client.parse::<ClientId>().ok().zip(share));
            } else if let Some(name) = attribute.strip_prefix(SHARDS_PREFIX) {
                // Rather too many shards are read than too few.
                shape.shards.insert(name.to_owned(), item.number(attribute).unwrap_or(EXPRESSION_SHARDS));
            }
        }
        shape.zones.sort_unstable_by_key(|(zone, _)| zone.name());
        Ok(shape)
    }

    /// Has ticks look for watches from now on. Repeating it changes nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn add_watches(&self) -> Result<()> {
        let update = Update::new(Table::Ticker, key(), "SET #watched = :one")
            .name("#watched", WATCHED)
            .value(":one", number(1));
        self.update(update).await.map(drop)
    }

    /// Adds a zone to those in use, or says that it is still wanted: its instant becomes `now`, and never an earlier
    /// one.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn add_zone(&self, zone: Tz, now: DateTime<Utc>) -> Result<()> {
        let update = Update::new(Table::Ticker, key(), "SET #zone = :now")
            .when("attribute_not_exists(#zone) OR #zone < :now")
            .name("#zone", format!("{ZONE_PREFIX}{}", zone.name()))
            .value(":now", number(now.timestamp()));
        self.update(update).await.map(drop)
    }

    /// Removes a zone that nobody has added since `before`. `Refused` when somebody has, or it is not there.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn remove_zone(&self, zone: Tz, before: DateTime<Utc>) -> Result<Write> {
        let update = Update::new(Table::Ticker, key(), "REMOVE #zone")
            .when("#zone < :before")
            .name("#zone", format!("{ZONE_PREFIX}{}", zone.name()))
            .value(":before", number(before.timestamp()));
        Ok(self.update(update).await?.into())
    }

    /// Raises the number of shards of a LaunchExpression in a zone. Children that are written from now on are spread
    /// over them; those that were there stay where they are. It is never lowered: `Refused` when it is `shards` or more
    /// already.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn raise_shards(&self, zone: Tz, expression: &LaunchExpression, shards: u32) -> Result<Write> {
        let update = Update::new(Table::Ticker, key(), "SET #shards = :shards")
            .when("attribute_not_exists(#shards) OR #shards < :shards")
            .name("#shards", format!("{SHARDS_PREFIX}{}", name(zone, expression)))
            .value(":shards", number(shards));
        Ok(self.update(update).await?.into())
    }
}
