//! The table `policies`: slot groups, lines and policies, and the epoch of the last repair.

use tidegate_domain::fair::Rank;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_domain::slots::{Epoch, SlotGroup};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::line::{self, LineEntry, Pending};
use crate::rows::Update;
use crate::tables::{PARTITION_KEY, SORT_KEY, Table};
use crate::{Create, Page, Result, Store, Write, policies, slots};

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyRow {
    /// A policy.
    Policy(Box<Policy>),
    /// A slot group.
    Group(Box<SlotGroup>),
    /// An entry of a policy's line, and what groups took of it last.
    Entry(PolicyRef, LineEntry, Vec<Taken>),
    /// Any other.
    Other,
}

/// The range of an entry that a slot group took of it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The number of the group, from 0.
    pub group: u32,
    /// The number of its refill.
    pub refill: u64,
    /// The number of the first event.
    pub start: u32,
    /// The number behind the last event.
    pub end: u32,
}

/// Events of a pack that are put into the line again.
#[derive(Debug, Clone, PartialEq)]
pub struct PutBack<'p> {
    /// The pack.
    pub pack: &'p PackId,
    /// Its priority and lane.
    pub rank: Rank,
    /// When its first event is due.
    pub launch_at: chrono::DateTime<chrono::Utc>,
    /// The numbers of the first event and of the one behind the last. The same: nothing is left of it, and whoever comes to
    /// it looks whether its run has ended.
    pub events: (u32, u32),
    /// What its job's overlap rule still has to say.
    pub overlap: Option<Pending>,
}

fn epoch_key() -> Key {
    Key::new("epoch|numbers", "-")
}

fn taken_of(item: Item<'_>) -> Vec<Taken> {
    let taken = item.names().filter_map(|name| {
        let group: u32 = name.strip_prefix('g')?.parse().ok()?;
        Some(Taken {
            group,
            refill: item.number(name).ok()?,
            start: item.number(&format!("a{group}")).ok()?,
            end: item.number(&format!("b{group}")).ok()?,
        })
    });
    taken.collect()
}

fn read(row: &Attributes) -> Result<PolicyRow> {
    let item = Item::new(Table::Policies, row);
    let (pk, sk) = (item.text(PARTITION_KEY)?, item.text(SORT_KEY)?);
    let parts: Vec<&str> = pk.split('|').collect();
    Ok(match (parts.as_slice(), sk) {
        ([_], sk) if sk.starts_with("policy|") => PolicyRow::Policy(Box::new(policies::read(row)?)),
        ([client, policy, "line"], _) => {
            let client: ClientId = item.parsed(PARTITION_KEY, client)?;
            let policy: PolicyId = item.parsed(PARTITION_KEY, policy)?;
            PolicyRow::Entry(PolicyRef { client, policy }, line::read(row)?, taken_of(item))
        }
        ([_, _, _], "slots") => match slots::read_row(row) {
            Some(group) => PolicyRow::Group(Box::new(group?)),
            None => return Err(item.corrupt("'pk' names no slot group")),
        },
        _ => PolicyRow::Other,
    })
}

impl Store {
    /// A page of the table of policies.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn all_of_policies(&self, after: Option<String>) -> Result<Page<PolicyRow>> {
        Ok(self.scan(Table::Policies, after).await?.read(Table::Policies, read))
    }

    /// What the numbers of new slot groups begin at: the epoch of the last repair; `None` when there was none. Read
    /// consistently.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn epoch(&self) -> Result<Option<Epoch>> {
        let Some(row) = self.get(Table::Policies, &epoch_key(), true).await? else { return Ok(None) };
        Ok(Some(Epoch::from_millis(Item::read(Table::Policies, &row)?.number("epoch_ms")?)))
    }

    /// Begins an epoch. `Refused` when a later one has begun.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn begin_epoch(&self, epoch: Epoch) -> Result<Write> {
        let update = Update::new(Table::Policies, epoch_key(), "SET epoch_ms = :epoch")
            .when("attribute_not_exists(epoch_ms) OR epoch_ms <= :epoch")
            .value(":epoch", number(epoch.millis()));
        Ok(self.update(update).await?.into())
    }

    /// Writes a slot group over the one that was seen: its numbers, and what it let go of. `Refused` when it changed
    /// meanwhile.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn repair_slot_group(&self, seen: &SlotGroup, new: &SlotGroup) -> Result<Write> {
        let update = Update::rewrite(Table::Policies, slots::changes_of_row(seen, new))
            .when("fc = :fence AND gs = :refills AND held = :held")
            .value(":fence", number(seen.next_fence))
            .value(":refills", number(seen.refills))
            .value(":held", number(seen.held));
        Ok(self.update(update).await?.into())
    }

    /// Puts events into the line again, as an entry of their own. `Exists` when this repair has put them there.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn put_back(&self, policy: &PolicyRef, events: &PutBack<'_>, epoch: Epoch) -> Result<Create> {
        let (first, end) = events.events;
        let whole = line::line_key(events.pack, events.rank, events.launch_at);
        let line_key = line::line_key_put_back(&whole, epoch.millis(), first);
        let row = Row::new(&Key::new(line::partition(&policy.client, &policy.policy), line_key))
            .with("pack", text(events.pack.to_string()))
            .with("n", number(end))
            .with("cur", number(first))
            .with_some("ov", events.overlap.map(|pending| text(pending.code())));
        self.put_new(Table::Policies, row).await
    }

    /// Removes an entry of a line whose pack is gone, whatever is left of it.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn drop_entry(&self, policy: &PolicyRef, line_key: &str) -> Result<()> {
        let key = Key::new(line::partition(&policy.client, &policy.policy), line_key);
        self.remove(Table::Policies, &key).await
    }
}
