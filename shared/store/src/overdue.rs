//! Launches that were not over when they were expected to be: the record of each, by client and launch.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::time::{Window, seconds, shifted};

use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Sorted, Update};
use crate::runs::Announced;
use crate::tables::Table;
use crate::{Create, Page, PageOf, Result, Store, Write};

/// A launch that was not over when it was expected to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    /// The run that it is, or would be.
    pub run: RunId,
    /// How long after its instant it was expected to be over, in seconds.
    pub within_seconds: u32,
    /// Where it stood then.
    pub state: OverdueState,
    /// Why nothing (more) of it is delivered, as the word of a `SkipReason` or a `StopReason`; `None` where that is not so.
    pub reason: Option<String>,
    /// When that was seen, to the millisecond.
    pub seen_at: DateTime<Utc>,
    /// How its client was told; `None`: not yet, or nobody is to be.
    pub told: Option<Announced>,
}

/// Where a launch stood that was expected to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverdueState {
    /// Nothing is recorded of it: it did not start, or its delivery is still tried.
    Unrecorded,
    /// It was not made, for a reason that its client did not ask for.
    Skipped,
    /// None of its events was delivered.
    Waiting,
    /// Some of its events were.
    Running,
    /// It was stopped, for a reason that its client did not ask for.
    Stopped,
}

impl OverdueState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Unrecorded, Self::Skipped, Self::Waiting, Self::Running, Self::Stopped];

    /// Its word in rows and in the API, which never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unrecorded => "unrecorded",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

/// By launch, job and revision.
///
/// ```
/// use tidegate_store::overdue::place_of;
///
/// let run: tidegate_domain::ids::RunId = "nightly.3.1790000000".parse()?;
/// assert_eq!(place_of(&run), "001790000000|nightly|0000000003");
/// # Ok::<(), tidegate_domain::ids::IdError>(())
/// ```
pub fn place_of(run: &RunId) -> String {
    format!("{:012}|{}|{:010}", run.launch_at().timestamp(), run.job(), run.revision())
}

fn partition(client: &ClientId) -> String {
    format!("{client}|overdue")
}

fn key(client: &ClientId, run: &RunId) -> Key {
    Key::new(partition(client), place_of(run))
}

fn row(client: &ClientId, overdue: &Overdue, kept: HistoryDays) -> Row {
    Row::new(&key(client, &overdue.run))
        .with("run", text(overdue.run.to_string()))
        .with("within", number(overdue.within_seconds))
        .with("state", text(overdue.state.as_str()))
        .with_some("reason", overdue.reason.as_deref().map(text))
        .with("seen_at", number(overdue.seen_at.timestamp_millis()))
        .expiring(kept.from(overdue.seen_at))
}

fn read(row: &Attributes) -> Result<Overdue> {
    let item = Item::read(Table::Events, row)?;
    let word = item.text("state")?;
    let state = OverdueState::ALL.into_iter().find(|state| state.as_str() == word);
    let failure = item.find_text("told_failure").map(str::to_owned);
    Ok(Overdue {
        run: item.id("run")?,
        within_seconds: item.number("within")?,
        state: state.ok_or_else(|| item.corrupt(format!("'state': {word} is none")))?,
        reason: item.find_text("reason").map(str::to_owned),
        seen_at: item.instant_ms("seen_at")?,
        told: item.find_instant_ms("told_at")?.map(|at| Announced { at, failure }),
    })
}

impl Store {
    /// Records a launch that was not over in time, kept for so long. The first record of a launch stays.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn record_overdue(
        &self,
        client: &ClientId,
        overdue: &Overdue,
        kept: HistoryDays,
    ) -> Result<Create> {
        self.put_new(Table::Events, row(client, overdue, kept)).await
    }

    /// The record of a launch that was not over in time, read consistently; `None` when there is none.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn overdue(&self, client: &ClientId, run: &RunId) -> Result<Option<Overdue>> {
        self.get(Table::Events, &key(client, run), true).await?.as_ref().map(read).transpose()
    }

    /// Notes that a client was told of a launch. `Refused` when that was noted before, or there is no record.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn mark_told(&self, client: &ClientId, run: &RunId, told: &Announced) -> Result<Write> {
        let changes = match &told.failure {
            Some(_) => "SET told_at = :at, told_failure = :failure",
            None => "SET told_at = :at",
        };
        let update = Update::new(Table::Events, key(client, run), changes)
            .when("attribute_exists(pk) AND attribute_not_exists(told_at)")
            .value(":at", number(told.at.timestamp_millis()));
        let update = match &told.failure {
            Some(failure) => update.value(":failure", text(failure)),
            None => update,
        };
        Ok(self.update(update).await?.into())
    }

    /// A page of the launches of a client in a window that were not over in time, the latest first.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn all_overdue(
        &self,
        client: &ClientId,
        window: Window,
        page: PageOf,
    ) -> Result<Page<Overdue>> {
        let place = |at: DateTime<Utc>| format!("{:012}|", at.timestamp());
        let last = format!("{}~", place(shifted(window.to(), -seconds(1))));
        let query = Query {
            sorted: Sorted::Between(place(window.from()), last),
            descending: true,
            ..Query::of(Table::Events, partition(client))
        };
        Ok(self.query(query.page(page)).await?.read(Table::Events, read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_an_overdue_launch_is_pinned() {
        let seen_at = DateTime::from_timestamp(1_795_262_640, 0).unwrap();
        let overdue = Overdue {
            run: "nightly.3.1795262000".parse().unwrap(),
            within_seconds: 600,
            state: OverdueState::Stopped,
            reason: Some("deadline".to_owned()),
            seen_at,
            told: None,
        };
        let stored = row(&"acme".parse().unwrap(), &overdue, HistoryDays::DEFAULT).into_attributes();
        let pinned = [
            ("pk", text("acme|overdue")),
            ("sk", text("001795262000|nightly|0000000003")),
            ("run", text("nightly.3.1795262000")),
            ("within", number(600)),
            ("state", text("stopped")),
            ("reason", text("deadline")),
            ("seen_at", number(1_795_262_640_000_i64)),
            ("expires_at", number(1_795_262_640 + 14 * 86_400)),
        ];
        assert_eq!(stored, pinned.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(read(&stored).unwrap(), overdue);
    }
}
