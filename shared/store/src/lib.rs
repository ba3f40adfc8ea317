//! The DynamoDB tables of Tidegate, one module per table or kind of row, written once against the AWS SDK.
//!
//! Every write that matters is conditional, and a lost race is a value (`Create::Exists`), not an error. Nothing here
//! decides what should happen: the engine does. Nothing here reads a clock.

// Values from outside come here: nothing may panic on them.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod aside;
mod backfills;
pub mod calendars;
pub mod changes;
pub mod client_secrets;
pub mod clients;
mod create;
pub mod dead_letters;
pub mod deletions;
pub mod doc;
pub mod events;
pub mod failures;
pub mod index;
mod item;
pub mod jobs;
pub mod journal;
pub mod keys;
mod lateness;
pub mod launch;
pub mod line;
pub mod made;
pub mod one_times;
pub mod overdue;
pub mod pace;
pub mod packs;
mod pause;
pub mod policies;
pub mod quotas;
pub mod repair;
mod rows;
pub mod runs;
pub mod samples;
pub mod scans;
mod secrets;
pub mod sidelines;
pub mod slots;
pub mod tables;
pub mod targets;
pub mod ticker;
mod transact;
mod triggers;
mod usage;
pub mod watches;

mod error;

use std::sync::Arc;

use aws_sdk_dynamodb::Client;

pub use backfills::{CallKey, MadeLaunches};
pub use clients::Client as ClientRecord;
pub use error::StoreError;
use item::{Attributes, Item};
use journal::Journal;
pub use keys::KeyHash;
pub use pause::Pause;
use pause::Pauses;
use tables::{SORT_KEY, Table};
use tidegate_calls::Way;
use tidegate_domain::bounded::PageRows;
use tidegate_domain::limits::{AT_SHARDS, GROUPS_PER_PART};
use tracing::warn;

/// The format that rows and messages are written in, and the highest that is read.
///
/// Each says its format as `v`, and one that does not is of format 1, so that `v` costs nothing. A process reads every
/// format up to its own. What is of a higher one it does not act on: the row or message is set aside as written by a newer
/// version. Attributes and members that it does not know are ignored, and kept where it writes again.
///
/// When it must be raised, and what a deployment then does: decision 0022.
pub const FORMAT: u32 = 1;

/// What a function of the store returns: each names the [`StoreError`]s that it gives.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The tables of one deployment. Cheap to clone.
///
/// A client may be put together without a connection; the first call needs one.
///
/// ```
/// use tidegate_store::{Spread, Store};
///
/// let config = aws_sdk_dynamodb::Config::builder()
///     .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
///     .build();
/// let store = Store::new(aws_sdk_dynamodb::Client::from_conf(config), "tidegate-test");
/// assert_eq!(store.spread(), Spread::default());
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    db: Client,
    way: Way,
    prefix: String,
    spread: Spread,
    pauses: Pauses,
    journal: Option<Arc<Journal>>,
}

/// What rows are spread by.
///
/// Invariant: all processes of a deployment have the same, for ever, since keys of rows follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Partitions that the instants of ten minutes are spread over, 1 to [`AT_SHARDS`].
    pub at_shards: u32,
    /// Slot groups that share a part of what is kept for a large run, 1 or more.
    pub groups_per_part: u32,
}

impl Spread {
    /// The part of a large run, from 0, that slot group number `group` takes of, and counts in.
    pub fn part_of(self, group: u32) -> u32 {
        group.checked_div(self.groups_per_part).unwrap_or_default()
    }
}

impl Default for Spread {
    fn default() -> Self {
        Self { at_shards: AT_SHARDS, groups_per_part: GROUPS_PER_PART }
    }
}

/// What came of a write that may only create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// The row is there now, and was not before.
    Done,
    /// The row was there already; nothing changed.
    Exists,
}

/// What came of a write that names the state it expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// The write took place.
    Done,
    /// The row is not in the expected state, or not there; nothing changed.
    Refused,
}

/// A page of a list. Rows that cannot be read spoil no other: they stand in `unreadable`.
///
/// ```
/// use tidegate_store::Page;
///
/// let page = Page::new(vec![1, 2], Some("2".to_owned()));
/// let texts = page.map(|number: u8| number.to_string());
/// assert_eq!((texts.rows, texts.next.as_deref()), (vec!["1".to_owned(), "2".to_owned()], Some("2")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows, in the order of the list.
    pub rows: Vec<T>,
    /// The last sort key that was read: what the next page is asked with, as `after`. `None` on the last.
    pub next: Option<String>,
    /// Rows of the page that cannot be read, each with the reason; mostly none.
    pub unreadable: Vec<Unreadable>,
}

/// Which page of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOf<A = String> {
    /// What comes before it, as the `next` of the page before says; `None` for the first.
    pub after: Option<A>,
    /// The most rows of it.
    pub rows: PageRows,
}

impl<A> From<Option<A>> for PageOf<A> {
    /// A whole page.
    fn from(after: Option<A>) -> Self {
        Self { after, rows: PageRows::DEFAULT }
    }
}

/// A row of a list that cannot be read. The others of its page can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its sort key, which says what it is the row of.
    pub sort_key: String,
    /// Why it cannot be read: the text of a [`StoreError::Corrupt`], or what it was set aside for.
    pub reason: String,
}

impl<T> Page<T> {
    /// A page of which every row was read.
    pub fn new(rows: Vec<T>, next: Option<String>) -> Self {
        Self { rows, next, unreadable: Vec::new() }
    }

    /// The same page with every row turned into something else.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        let Self { rows, next, unreadable } = self;
        Page { rows: rows.into_iter().map(f).collect(), next, unreadable }
    }
}

impl Page<Attributes> {
    /// Reads the rows. One that cannot be read stands by itself with the reason, and spoils no other.
    fn read<T>(self, table: Table, read: impl Fn(&Attributes) -> Result<T>) -> Page<T> {
        let mut page = Page::new(Vec::with_capacity(self.rows.len()), self.next);
        for row in &self.rows {
            match read(row) {
                Ok(row) => page.rows.push(row),
                Err(error) => {
                    let sort_key = Item::new(table, row).find_text(SORT_KEY).unwrap_or_default().to_owned();
                    warn!(%error, "a row is passed over");
                    page.unreadable.push(Unreadable { sort_key, reason: error.to_string() });
                }
            }
        }
        page
    }
}

impl Store {
    /// The tables whose names begin with `prefix` and a dash, with the default [`Spread`]. Makes no call.
    pub fn new(db: Client, prefix: &str) -> Self {
        Self {
            db,
            way: Way::default(),
            prefix: prefix.to_owned(),
            spread: Spread::default(),
            pauses: Pauses::default(),
            journal: None,
        }
    }

    /// The same tables with rows that are spread otherwise; values outside of the bounds are brought to the nearest
    /// one. For tests: a small world has few instants and few slot groups.
    #[must_use]
    pub fn with_spread(self, spread: Spread) -> Self {
        let Spread { at_shards, groups_per_part } = spread;
        let spread =
            Spread { at_shards: at_shards.clamp(1, AT_SHARDS), groups_per_part: groups_per_part.max(1) };
        Self { spread, ..self }
    }

    /// The same tables, whose calls go that way.
    #[must_use]
    pub fn with_way(self, way: Way) -> Self {
        Self { way, ..self }
    }

    /// The same tables, whose calls wait before they are made once more, as `pause` says; without it they do not wait.
    #[must_use]
    pub fn with_pauses(self, pause: impl Pause) -> Self {
        Self { pauses: Pauses::of(pause), ..self }
    }

    /// What rows are spread by.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    fn name(&self, table: Table) -> String {
        format!("{}-{}", self.prefix, table.name())
    }
}
