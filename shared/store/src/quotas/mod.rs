//! What clients have taken of their quotas: a row for each client that has one, and another for the places in time of its events.
//!
//! Invariants: of a minute no more is taken than the quota was that any of its writes went by, however many processes take at once.
//! What the row says there is of a kind is never below what is stored of it and what is still being written.

mod count;
mod pace;
mod take;

use std::collections::BTreeMap;

pub use count::{CountClaim, Rows};
use tidegate_domain::ids::ClientId;
use tidegate_domain::quota::{Count, Counted, Taken};

use crate::item::{Attributes, Item, Key};
use crate::rows::Update;
use crate::tables::Table;
use crate::{Result, Store};

/// The minute since the epoch that the row counts in.
const IN_MINUTE: &str = "in_minute";
/// Jobs that were written in it.
const CREATES: &str = "creates";
/// One-time jobs that wait.
const WAITING: &str = "waiting";
/// Begins the names of the attributes that say how many of them are given back in a minute.
const BACK_IN: &str = "back|";
/// Begins the names of the attributes that say in which minute a zone was last taken.
const ZONE: &str = "zone|";

fn key(client: &ClientId) -> Key {
    Key::new(format!("creates|{client}"), "-")
}

fn read(row: &Attributes) -> Result<Taken> {
    let item = Item::read(Table::Clients, row)?;
    let (mut counts, mut launches, mut zones) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for of in Counted::ALL {
        let name = of.name();
        if let Some(next_ms) = item.find_number(&format!("{name}_next"))? {
            let part = |part: &str| item.number_or(&format!("{name}{part}"), 0_u64);
            let count = Count {
                at_most: part("")?,
                now: part("_now")?,
                before: part("_before")?,
                since: part("_since")?,
                counted_ms: item.find_number(&format!("{name}_counted"))?,
                next_ms,
            };
            counts.insert(of, count);
        }
    }
    for name in item.names() {
        if let Some(minute) = name.strip_prefix(BACK_IN) {
            launches.insert(item.parsed(name, minute)?, item.number(name)?);
        } else if let Some(zone) = name.strip_prefix(ZONE) {
            zones.insert(zone.to_owned(), item.number(name)?);
        }
    }
    Ok(Taken {
        minute: item.find_number(IN_MINUTE)?,
        creates: item.number_or(CREATES, 0)?,
        counts,
        waiting: item.number_or(WAITING, 0)?,
        launches,
        zones,
    })
}

/// A conditional update of the row, as it is put together.
#[derive(Default)]
struct Change {
    set: Vec<String>,
    add: Vec<String>,
    remove: Vec<String>,
    when: Vec<String>,
    values: Vec<(String, i128)>,
    names: Vec<(String, String)>,
}

impl Change {
    fn set(&mut self, set: impl Into<String>) {
        self.set.push(set.into());
    }

    fn add(&mut self, add: impl Into<String>) {
        self.add.push(add.into());
    }

    fn when(&mut self, when: impl Into<String>) {
        self.when.push(when.into());
    }

    fn value(&mut self, name: impl Into<String>, value: impl Into<i128>) {
        self.values.push((name.into(), value.into()));
    }

    /// What stands for nothing.
    fn zero(&mut self) -> &'static str {
        self.value(":zero", 0);
        ":zero"
    }

    /// Begins the row in a minute, if there was none when it was seen.
    fn begin_row(&mut self, seen: &Taken, minute: i64) {
        if seen.minute.is_none() {
            let zero = self.zero();
            self.set(format!("{IN_MINUTE} = :minute, {CREATES} = {zero}"));
            self.when(format!("attribute_not_exists({IN_MINUTE})"));
            self.value(":minute", minute);
        }
    }

    /// Lets `placeholder` stand for an attribute whose name has other characters than letters and digits.
    fn name(&mut self, placeholder: impl Into<String>, attribute: String) {
        self.names.push((placeholder.into(), attribute));
    }

    fn into_update(self, client: &ClientId) -> Update {
        let parts = [("SET", self.set), ("ADD", self.add), ("REMOVE", self.remove)];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
        let changes: Vec<String> =
            parts.map(|(verb, names)| format!("{verb} {}", names.join(", "))).collect();
        let mut update =
            Update::new(Table::Clients, key(client), changes.join(" ")).when(self.when.join(" AND "));
        for (name, value) in self.values {
            update = update.value(name, crate::item::number(value));
        }
        for (placeholder, attribute) in self.names {
            update = update.name(&placeholder, attribute);
        }
        update
    }
}

impl Store {
    /// What a client has taken of its quotas, read eventually; nothing when it has no row.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn taken_of_quotas(&self, client: &ClientId) -> Result<Taken> {
        let row = self.get(Table::Clients, &key(client), false).await?;
        Ok(row.as_ref().map(read).transpose()?.unwrap_or_default())
    }
}
