//! What of a client is sidelined, and the chunks that were set aside meanwhile: a row for each, until it is drained. They do not
//! expire.
//!
//! Who is sidelined stands in the row that every delivery of a chunk reads anyway (`clients`): while nobody is, nothing more is
//! read. Of what waits under a policy the policy's row says so.

use chrono::{DateTime, Utc};
use tidegate_domain::change::{Change, Kind};
use tidegate_domain::ids::ClientId;
use tidegate_domain::quota::{EventsPace, EventsPerMinute, MostWaiting, Quotas};
use tidegate_domain::sideline::{Sideline, SidelineOf, Sidelines};

use crate::changes::{Changed, named_row};
use crate::doc::SidelinesDoc;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Update};
use crate::tables::Table;
use crate::{Page, Result, Store, Write};

/// Events that go in a minute, by the quotas of the client.
const PER_MINUTE: &str = "events_per_minute";
/// Events that may wait for a later one.
const WAITING: &str = "events_waiting";

/// What is said of a client before its chunks are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recheck {
    /// What was planned before is checked against its jobs; `None`: nothing is.
    pub until: Option<DateTime<Utc>>,
    /// What of it is sidelined.
    pub sidelines: Sidelines,
    /// How fast its events go that nothing throttles, by its quotas; `None`: as they come.
    pub pace: Option<EventsPace>,
    /// The same as it is stored; `None`: nothing is.
    seen: Option<String>,
}

/// A chunk that was set aside, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidelinedChunk {
    /// Its place among those of its client or job: by launch.
    pub place: String,
    /// Its message.
    pub body: String,
    /// How many events it has.
    pub events: u32,
    /// Drawn when it was set aside: a later one of the same place has another.
    pub draw: u64,
}

/// The row that every delivery of a chunk reads.
pub(crate) fn recheck_key(client: &ClientId) -> Key {
    Key::new(format!("dirty|{client}"), "-")
}

/// Has deliveries go by the quotas of a client from now on.
pub(crate) fn paced(client: &ClientId, quotas: &Quotas) -> Update {
    let said = [
        (PER_MINUTE, ":per_minute", quotas.events_per_minute.map(|most| most.get())),
        (WAITING, ":waiting", quotas.waiting.map(|most| most.get())),
    ];
    let (mut set, mut remove) = (Vec::new(), Vec::new());
    for (name, value, most) in said {
        match most {
            Some(_) => set.push(format!("{name} = {value}")),
            None => remove.push(name),
        }
    }
    let parts = [("SET", set.join(", ")), ("REMOVE", remove.join(", "))];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let changes: Vec<String> = parts.map(|(verb, names)| format!("{verb} {names}")).collect();
    let update = Update::new(Table::Clients, recheck_key(client), changes.join(" "));
    said.into_iter().fold(update, |update, (_, value, most)| match most {
        Some(most) => update.value(value, number(most)),
        None => update,
    })
}

/// What cannot be read bounds nothing: it holds up no delivery.
fn pace(item: &Item<'_>) -> Option<EventsPace> {
    let most = |name| item.find_number::<u64>(name).ok().flatten();
    let per_minute = most(PER_MINUTE).and_then(|most| EventsPerMinute::new(most).ok())?;
    let waiting = most(WAITING).and_then(|most| MostWaiting::new(most).ok());
    Some(EventsPace { per_minute, waiting })
}

fn partition(client: &ClientId, of: &SidelineOf) -> String {
    match of {
        SidelineOf::Client => format!("{client}|sidelined"),
        SidelineOf::Job(job) => format!("{client}|sidelined|{job}"),
    }
}

fn read(row: &Attributes) -> Result<SidelinedChunk> {
    let item = Item::read(Table::Events, row)?;
    Ok(SidelinedChunk {
        place: item.text("sk")?.to_owned(),
        body: item.text("body")?.to_owned(),
        events: item.number("events")?,
        draw: item.number("draw")?,
    })
}

/// What is recorded of a client or a job that is sidelined, or drained.
fn change_of(client: &ClientId, of: &SidelineOf, change: &Change) -> Row {
    let (kind, id) = match of {
        SidelineOf::Client => (Kind::Client, client.as_str()),
        SidelineOf::Job(id) => (Kind::Job, id.as_str()),
    };
    named_row(Changed { client, kind, id, revision: None }, None, Vec::new(), change)
}

impl Store {
    /// What is said of a client before its chunks are sent, read consistently. What cannot be read has every job looked up, and
    /// nothing sent.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn recheck(&self, client: &ClientId) -> Result<Recheck> {
        self.read_recheck(client, true).await
    }

    /// What of a client is sidelined, as some replica has it.
    ///
    /// # Errors
    /// As [`Self::recheck`].
    pub async fn sidelines(&self, client: &ClientId) -> Result<Sidelines> {
        Ok(self.read_recheck(client, false).await?.sidelines)
    }

    async fn read_recheck(&self, client: &ClientId, consistent: bool) -> Result<Recheck> {
        let Some(row) = self.get(Table::Clients, &recheck_key(client), consistent).await? else {
            return Ok(Recheck::default());
        };
        let Ok(item) = Item::read(Table::Clients, &row) else {
            let sidelines = Sidelines::default().with(&SidelineOf::Client, Some(unreadable()));
            return Ok(Recheck { until: Some(DateTime::<Utc>::MAX_UTC), sidelines, pace: None, seen: None });
        };
        let seen = item.find_text("sidelined").map(str::to_owned);
        let sidelines = seen
            .as_deref()
            .map(SidelinesDoc::decode)
            .transpose()
            .unwrap_or_else(|_| Some(Sidelines::default().with(&SidelineOf::Client, Some(unreadable()))));
        let until = item.find_instant_ms("dirty_until").unwrap_or(Some(DateTime::<Utc>::MAX_UTC));
        Ok(Recheck { until, sidelines: sidelines.unwrap_or_default(), pace: pace(&item), seen })
    }

    /// Says what of a client is sidelined from now on, and records the change of one, if there is one: both or neither. `Refused`
    /// unless it is still as it was `seen`.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn replace_sidelines(
        &self,
        client: &ClientId,
        sidelines: &Sidelines,
        seen: &Recheck,
        change: Option<(&SidelineOf, &Change)>,
    ) -> Result<Write> {
        let update = Update::new(Table::Clients, recheck_key(client), "SET sidelined = :new")
            .value(":new", text(SidelinesDoc::encode(sidelines)));
        let update = match &seen.seen {
            Some(seen) => update.when("sidelined = :seen").value(":seen", text(seen)),
            None => update.when("attribute_not_exists(sidelined)"),
        };
        match change {
            None => Ok(self.update(update).await?.into()),
            Some((of, change)) => {
                let update = self.update_item_of(update)?;
                self.recorded(update, Some(change_of(client, of, change))).await
            }
        }
    }

    /// Sets a chunk aside under a client or a job. The same once more takes the place of the first.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn set_chunk_aside(
        &self,
        client: &ClientId,
        of: &SidelineOf,
        chunk: &SidelinedChunk,
    ) -> Result<()> {
        let row = Row::new(&Key::new(partition(client, of), chunk.place.clone()))
            .with("body", text(&*chunk.body))
            .with("events", number(chunk.events))
            .with("draw", number(chunk.draw));
        self.put(Table::Events, row).await
    }

    /// A page of the chunks that are set aside under a client or a job, at most `limit`, read consistently: by launch.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it is among the
    /// `unreadable` ones of the page.
    pub async fn chunks_set_aside(
        &self,
        client: &ClientId,
        of: &SidelineOf,
        after: Option<String>,
        limit: i32,
    ) -> Result<Page<SidelinedChunk>> {
        let query = Query {
            limit: Some(limit),
            consistent: true,
            after,
            ..Query::of(Table::Events, partition(client, of))
        };
        Ok(self.query(query).await?.read(Table::Events, read))
    }

    /// Forgets a chunk that was sent, as it was seen. `Refused` when it is gone, or was set aside once more since.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn forget_chunk(
        &self,
        client: &ClientId,
        of: &SidelineOf,
        seen: &SidelinedChunk,
    ) -> Result<Write> {
        let key = Key::new(partition(client, of), seen.place.clone());
        let values = Attributes::from([(":seen".to_owned(), number(seen.draw))]);
        self.remove_when(Table::Events, &key, "draw = :seen", values).await
    }
}

fn unreadable() -> Sideline {
    Sideline::new(DateTime::UNIX_EPOCH, "what is stored of it cannot be read")
}
