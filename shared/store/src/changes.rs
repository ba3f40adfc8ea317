//! What is recorded of changes: a row each, by its client and the instant, written together with the change.
//!
//! The key of a row follows from what was changed: the kind, the id, when, and the revision that came of it. A row says what was
//! there before, which names the change before that: so the versions of a thing are a chain that nothing else keeps.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};
use chrono::{DateTime, Utc};
use tidegate_domain::change::{Change, Kind};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::CHANGE_DAYS;
use tidegate_domain::time::{days, shifted};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted};
use crate::tables::{SORT_KEY, Table};
use crate::{Page, PageOf, Result, Store, Write};

/// A change, as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeRow {
    /// When it was made, to the millisecond.
    pub at: DateTime<Utc>,
    /// What kind of thing was changed: the word of a [`Kind`], or of one of a later version.
    pub kind: String,
    /// The name of the thing.
    pub id: String,
    /// What was done: the word of a [`What`](tidegate_domain::change::What), or of a later version.
    pub what: String,
    /// What the key is called that the call came with, or `admin`; `None`: no call is behind it.
    pub by: Option<String>,
    /// The address that the call came from, where it was known.
    pub from: Option<String>,
    /// The revision before; `None`: there was nothing, or it has no revisions.
    pub before_revision: Option<u32>,
    /// The revision that came of it; `None`: nothing is there, or it has no revisions.
    pub after_revision: Option<u32>,
    /// The fields that said something else before, as the API calls them.
    pub fields: Vec<String>,
    /// Its place among the changes of its client.
    pub sort_key: String,
    /// What of it that was done to, where that is not the thing itself: a run, an event, or how many.
    pub of: Option<String>,
    /// What was there before, as it was stored; `None`: nothing, or nothing that is told.
    pub(crate) before: Option<Attributes>,
    /// The same after it; not of jobs, whose next change says it, or the job itself.
    pub(crate) after: Option<Attributes>,
}

/// What was changed, and the revision that came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changed<'a> {
    pub(crate) client: &'a ClientId,
    pub(crate) kind: Kind,
    pub(crate) id: &'a str,
    pub(crate) revision: Option<u32>,
}

/// What is told of it beside.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) before_revision: Option<u32>,
    pub(crate) fields: Vec<&'static str>,
    pub(crate) before: Option<Row>,
    pub(crate) after: Option<Row>,
    pub(crate) of: Option<String>,
}

/// The partition of the changes of a client. No job's client is called so.
pub(crate) fn partition(client: &ClientId) -> String {
    format!("{client}|changes")
}

/// Whether a row of the table of jobs is a change and no job.
pub(crate) fn is_change(row: &Attributes) -> bool {
    Item::new(Table::Jobs, row).find_text("pk").is_some_and(|pk| pk.ends_with("|changes"))
}

/// The instant as changes are sorted by it.
fn place_of(at: DateTime<Utc>) -> String {
    format!("{:013}", at.timestamp_millis())
}

/// Where the change is recorded that made a revision. Revisions of one instant are in their order.
fn key(changed: Changed<'_>, revision: u32, at: DateTime<Utc>) -> Key {
    key_of(changed, &format!("{revision:010}"), at)
}

/// What comes of it tells changes of one thing and instant apart: a revision, or, where there is none, what was done.
fn key_of(changed: Changed<'_>, result: &str, at: DateTime<Utc>) -> Key {
    let Changed { client, kind, id, .. } = changed;
    Key::new(partition(client), format!("{}|{}|{id}|{result}", place_of(at), kind.as_str()))
}

fn map(row: Row) -> AttributeValue {
    AttributeValue::M(row.into_attributes())
}

/// The row of a change of something that is told by its name, its revisions and the names of its fields alone.
pub(crate) fn named_row(
    changed: Changed<'_>,
    before_revision: Option<u32>,
    fields: Vec<&'static str>,
    change: &Change,
) -> Row {
    change_row(changed, change, Told { before_revision, fields, ..Told::default() })
}

/// The row of a change.
pub(crate) fn change_row(changed: Changed<'_>, change: &Change, told: Told) -> Row {
    let Change { what, author, at } = change;
    let Told { before_revision, fields, before, after, of } = told;
    let kept_days = i64::from(author.history_days.get().max(CHANGE_DAYS));
    let key = match changed.revision {
        Some(revision) => key(changed, revision, *at),
        None => {
            let result = [Some(what.as_str()), of.as_deref()];
            key_of(changed, &result.into_iter().flatten().collect::<Vec<_>>().join(" "), *at)
        }
    };
    Row::new(&key)
        .with("what", text(what.as_str()))
        .with_some("by", author.by.as_deref().map(text))
        .with_some("from", author.from.map(|from| text(from.to_string())))
        .with_some("before_rev", before_revision.map(number))
        .with_some("rev", changed.revision.map(number))
        .with_some("fields", (!fields.is_empty()).then(|| text(fields.join(","))))
        .with_some("of", of.map(text))
        .with_some("before", before.map(map))
        .with_some("after", after.map(map))
        .expiring(shifted(*at, days(kept_days)))
}

fn read(row: &Attributes) -> Result<ChangeRow> {
    let item = Item::read(Table::Jobs, row)?;
    let sort_key = item.text(SORT_KEY)?;
    let malformed = || item.corrupt("its sort key is not that of a change");
    let mut parts = sort_key.split('|');
    let ms = parts.next().and_then(|ms| ms.parse().ok());
    let at = ms.and_then(DateTime::from_timestamp_millis).ok_or_else(malformed)?;
    let (kind, id) = parts.next().zip(parts.next()).ok_or_else(malformed)?;
    let owned = |name: &str| item.find_text(name).map(str::to_owned);
    let told = |name: &str| row.get(name).and_then(|value| value.as_m().ok()).cloned();
    let fields = item.find_text("fields").into_iter().flat_map(|fields| fields.split(','));
    Ok(ChangeRow {
        at,
        kind: kind.to_owned(),
        id: id.to_owned(),
        what: item.text("what")?.to_owned(),
        by: owned("by"),
        from: owned("from"),
        before_revision: item.find_number("before_rev")?,
        after_revision: item.find_number("rev")?,
        fields: fields.map(str::to_owned).collect(),
        sort_key: sort_key.to_owned(),
        of: owned("of"),
        before: told("before"),
        after: told("after"),
    })
}

impl Store {
    /// A page of what was changed of a client's from `since` on and before `until`, the latest first. Read eventually.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn changes(
        &self,
        client: &ClientId,
        (since, until): (DateTime<Utc>, DateTime<Utc>),
        page: impl Into<PageOf>,
    ) -> Result<Page<ChangeRow>> {
        // No sort key is the instant alone, so that nothing of `until` itself is between.
        let sorted = Sorted::Between(place_of(since), place_of(until));
        let query = Query { sorted, descending: true, ..Query::of(Table::Jobs, partition(client)) };
        Ok(self.query(query.page(page.into())).await?.read(Table::Jobs, read))
    }

    /// A change by its place among those of its client, read consistently; `None` when none was recorded there, or is kept.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn change_at(&self, client: &ClientId, sort_key: &str) -> Result<Option<ChangeRow>> {
        let key = Key::new(partition(client), sort_key);
        self.get(Table::Jobs, &key, true).await?.as_ref().map(read).transpose()
    }

    /// Records what was done without changing what anything says: to the runs, the events or the tokens `of` it. Repeating it changes
    /// nothing.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn record_done(
        &self,
        client: &ClientId,
        (kind, id, of): (Kind, &str, String),
        change: &Change,
    ) -> Result<()> {
        let changed = Changed { client, kind, id, revision: None };
        let told = Told { of: Some(of), ..Told::default() };
        self.put(Table::Jobs, change_row(changed, change, told)).await
    }

    /// The change of something that made a revision at an instant.
    pub(crate) async fn change_of(
        &self,
        changed: Changed<'_>,
        revision: u32,
        at: DateTime<Utc>,
    ) -> Result<Option<ChangeRow>> {
        self.get(Table::Jobs, &key(changed, revision, at), true).await?.as_ref().map(read).transpose()
    }

    /// Makes a write and what is recorded of it one: both or neither.
    pub(crate) async fn recorded(&self, write: TransactWriteItem, record: Option<Row>) -> Result<Write> {
        self.all_recorded(vec![write], record).await
    }

    /// The same of several writes.
    pub(crate) async fn all_recorded(
        &self,
        mut writes: Vec<TransactWriteItem>,
        record: Option<Row>,
    ) -> Result<Write> {
        writes.extend(record.map(|record| self.put_item_of(Table::Jobs, record)).transpose()?);
        self.transact(Table::Jobs, writes).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tidegate_domain::change::{Author, What};
    use tidegate_domain::job::HistoryDays;

    use super::*;

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(ms).unwrap()
    }

    #[test]
    fn the_stored_form_of_a_change_is_pinned() {
        let client: ClientId = "acme".parse().unwrap();
        let author = Author {
            by: Some("0123456789ab".to_owned()),
            from: "203.0.113.7".parse().ok(),
            history_days: HistoryDays::DEFAULT,
        };
        let change = Change { what: What::Changed, author, at: at(1_795_262_640_123) };
        let changed = Changed { client: &client, kind: Kind::Job, id: "nightly", revision: Some(3) };
        let before = Row::new(&Key::new("acme", "nightly")).with("rev", number(2));
        let told = Told {
            before_revision: Some(2),
            fields: vec!["count", "tags"],
            before: Some(before),
            ..Told::default()
        };
        let row = change_row(changed, &change, told).into_attributes();
        let before = HashMap::from([
            ("pk".to_owned(), text("acme")),
            ("sk".to_owned(), text("nightly")),
            ("rev".to_owned(), number(2)),
        ]);
        let pinned = HashMap::from([
            ("pk".to_owned(), text("acme|changes")),
            ("sk".to_owned(), text("1795262640123|job|nightly|0000000003")),
            ("what".to_owned(), text("changed")),
            ("by".to_owned(), text("0123456789ab")),
            ("from".to_owned(), text("203.0.113.7")),
            ("before_rev".to_owned(), number(2)),
            ("rev".to_owned(), number(3)),
            ("fields".to_owned(), text("count,tags")),
            ("before".to_owned(), AttributeValue::M(before.clone())),
            ("expires_at".to_owned(), number(1_795_262_640 + 90 * 86_400)),
        ]);
        assert_eq!(row, pinned);
        assert!(is_change(&row) && !is_change(&before));
        let read = read(&row).unwrap();
        assert_eq!((read.at, &*read.kind, &*read.id), (change.at, "job", "nightly"));
        assert_eq!((read.before_revision, read.after_revision), (Some(2), Some(3)));
        assert_eq!((read.fields, read.before), (vec!["count".to_owned(), "tags".to_owned()], Some(before)));
    }

    #[test]
    fn a_change_is_kept_as_long_as_its_client_keeps_what_happened() {
        let client: ClientId = "acme".parse().unwrap();
        let changed = Changed { client: &client, kind: Kind::Policy, id: "small", revision: None };
        for (days, kept) in [(14, 90), (90, 90), (365, 365)] {
            let author = Author { history_days: HistoryDays::new(days).unwrap(), ..Author::default() };
            let change = Change { what: What::Deleted, author, at: at(0) };
            let row = change_row(changed, &change, Told::default()).into_attributes();
            assert_eq!(row["expires_at"], number(kept * 86_400), "{days}");
            assert_eq!(row["sk"], text("0000000000000|policy|small|deleted"));
        }
    }

    #[test]
    fn a_key_that_is_none_of_a_change_is_not_read() {
        for bad in ["", "x|job|nightly|1", "1795262640123", "1795262640123|job"] {
            let row = Row::new(&Key::new("acme|changes", bad)).with("what", text("changed"));
            assert!(read(&row.into_attributes()).is_err(), "{bad}");
        }
    }
}
