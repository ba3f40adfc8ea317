//! Parts of a scan that were too large for their tick: each is a row until it is done, so that no crash loses it.
//!
//! A part is worked on under a lease, and its fencing number rises with each worker: one that was taken over writes no
//! cursor any more.

use chrono::{DateTime, Utc};
use tidegate_domain::time::Window;

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Update, Updated};
use crate::tables::Table;
use crate::{Create, Page, Result, Store, Write};

const PARTITION: &str = "scan";

/// The rest of a shard in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPart {
    /// The partition of the index that it reads.
    pub partition: String,
    /// The first and the last sort key; `None`: all of the partition.
    pub range: Option<(String, String)>,
    /// The sort key after which to go on.
    pub cursor: Option<String>,
    /// Which launches.
    pub window: Window,
    /// Launches before it may have been emitted before.
    pub repeat_before: DateTime<Utc>,
    /// Launches before it were missed.
    pub missed_before: DateTime<Utc>,
    /// The same for those before `repeat_before`.
    pub repeat_missed_before: DateTime<Utc>,
    /// When the first of its rows may have been read.
    pub as_of: DateTime<Utc>,
    /// Rises with each worker that takes it.
    pub fence: u64,
    /// Until when its worker has it.
    pub lease_end: DateTime<Utc>,
}

/// What came of the attempt to take a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakePart {
    /// It is ours until its lease ends.
    Taken(ScanPart),
    /// Somebody else works on it.
    Busy,
    /// It is done.
    Gone,
}

impl ScanPart {
    /// What it is known by. Its whole window belongs to it: the tick after one that died plans a longer window from the
    /// same instant, and what it leaves of the added minutes must not be taken for the part that is there.
    pub fn id(&self) -> String {
        let first = self.range.as_ref().map_or("", |(first, _)| first);
        let (from_s, to_s) = (self.window.from().timestamp(), self.window.to().timestamp());
        format!("{from_s:012}|{to_s:012}|{}|{first}", self.partition)
    }

    fn row(&self) -> Row {
        Row::new(&key(&self.id()))
            .with("partition_key", text(&*self.partition))
            .with_some("first", self.range.as_ref().map(|(first, _)| text(&**first)))
            .with_some("last", self.range.as_ref().map(|(_, last)| text(&**last)))
            .with_some("after", self.cursor.as_deref().map(text))
            .with("from_s", number(self.window.from().timestamp()))
            .with("to_s", number(self.window.to().timestamp()))
            .with("repeat_s", number(self.repeat_before.timestamp()))
            .with("missed_s", number(self.missed_before.timestamp()))
            .with("repeat_missed_s", number(self.repeat_missed_before.timestamp()))
            .with("as_of", number(self.as_of.timestamp_millis()))
            .with("fence", number(self.fence))
            .with("lease_end", number(self.lease_end.timestamp_millis()))
    }
}

fn key(id: &str) -> Key {
    Key::new(PARTITION, id)
}

fn read(row: &Attributes) -> Result<ScanPart> {
    let item = Item::new(Table::Ticker, row);
    let own = |name| item.find_text(name).map(str::to_owned);
    let window = Window::new(item.instant_s("from_s")?, item.instant_s("to_s")?);
    Ok(ScanPart {
        partition: item.text("partition_key")?.to_owned(),
        range: own("first").zip(own("last")),
        cursor: own("after"),
        window: window.map_err(|e| item.corrupt(e.to_string()))?,
        repeat_before: item.instant_s("repeat_s")?,
        missed_before: item.instant_s("missed_s")?,
        repeat_missed_before: item.instant_s("repeat_missed_s")?,
        as_of: item.instant_ms("as_of")?,
        fence: item.number("fence")?,
        lease_end: item.instant_ms("lease_end")?,
    })
}

impl Store {
    /// Writes a part down. One that is there already stays as it is.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn put_scan_part(&self, part: &ScanPart) -> Result<Create> {
        self.put_new(Table::Ticker, part.row()).await
    }

    /// A page of the parts that are not done, oldest window first, read consistently.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn scan_parts(&self, after: Option<String>) -> Result<Page<ScanPart>> {
        let query = Query { after, consistent: true, ..Query::of(Table::Ticker, PARTITION) };
        let page = self.query(query).await?;
        Ok(Page { rows: page.rows.iter().map(read).collect::<Result<_>>()?, next: page.next })
    }

    /// The beginning of the oldest window of which a part is not done, read consistently.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn oldest_scan_part(&self) -> Result<Option<DateTime<Utc>>> {
        let query = Query { limit: Some(1), consistent: true, ..Query::of(Table::Ticker, PARTITION) };
        let page = self.query(query).await?;
        page.rows.first().map(|row| read(row).map(|part| part.window.from())).transpose()
    }

    /// Takes a part until `lease_end`, if nobody has it.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn take_scan_part(
        &self,
        id: &str,
        now: DateTime<Utc>,
        lease_end: DateTime<Utc>,
    ) -> Result<TakePart> {
        let update = Update::new(Table::Ticker, key(id), "SET lease_end = :lease ADD fence :one")
            .when("attribute_exists(pk) AND lease_end <= :now")
            .value(":lease", number(lease_end.timestamp_millis()))
            .value(":now", number(now.timestamp_millis()))
            .value(":one", number(1));
        Ok(match self.update(update).await? {
            Updated::Done(row) => TakePart::Taken(read(&row)?),
            Updated::Refused(Some(_)) => TakePart::Busy,
            Updated::Refused(None) => TakePart::Gone,
        })
    }

    /// Says how far a worker came: everything up to `cursor` is emitted. `Refused` when it was taken over.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn move_scan_part(
        &self,
        part: &ScanPart,
        cursor: &str,
        lease_end: DateTime<Utc>,
    ) -> Result<Write> {
        let update = Update::new(Table::Ticker, key(&part.id()), "SET #after = :after, lease_end = :lease")
            .when("fence = :fence")
            .name("#after", "after")
            .value(":after", text(cursor))
            .value(":lease", number(lease_end.timestamp_millis()))
            .value(":fence", number(part.fence));
        Ok(self.update(update).await?.into())
    }

    /// Strikes a part: all of it is emitted. `Refused` when it was taken over.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn finish_scan_part(&self, part: &ScanPart) -> Result<Write> {
        let values = Attributes::from([(":fence".to_owned(), number(part.fence))]);
        self.remove_when(Table::Ticker, &key(&part.id()), "fence = :fence", values).await
    }

    /// Ends the leases of all parts. Only for a process that knows that no other one is alive.
    ///
    /// # Errors
    /// When DynamoDB does not answer.
    pub async fn break_scan_leases(&self) -> Result<()> {
        let mut after = None;
        loop {
            let page = self.scan_parts(after).await?;
            for part in page.rows {
                let update = Update::new(Table::Ticker, key(&part.id()), "SET lease_end = :zero")
                    .when("attribute_exists(pk)")
                    .value(":zero", number(0));
                self.update(update).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
