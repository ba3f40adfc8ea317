//! Exclusion calendars, by client.

use chrono::{NaiveDate, NaiveTime, Weekday, WeekdaySet};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use tidegate_domain::calendar::{Calendar, Day, EarlyClose, Exclusions};
use tidegate_domain::change::{Change, Kind, calendar_fields_that_differ};
use tidegate_domain::ids::{CalendarId, ClientId};
use tidegate_domain::time::{Window, clamped, parse_zone};

use crate::changes::{ChangeRow, Changed, Told, change_row};
use crate::doc::Rest;
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::rows::{Query, Update};
use crate::tables::Table;
use crate::{Create, Page, PageOf, Result, Store, StoreError, Write};

/// What a calendar excludes, as stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExclusionsDoc {
    /// Zone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    z: Option<String>,
    /// Dates, as `2026-12-25`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    d: Vec<String>,
    /// Month and day.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    y: Vec<(u8, u8)>,
    /// Days of every week: 1 is Monday, 7 is Sunday.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    w: Vec<u8>,
    /// Early closes: the date as above, or month and day as `12-24`, and the time as `13:00`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    e: Vec<(String, String)>,
    /// Intervals in seconds since the epoch.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    i: Vec<(i64, i64)>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&Exclusions> for ExclusionsDoc {
    fn from(exclusions: &Exclusions) -> Self {
        let seconds = |window: &Window| (window.from().timestamp(), window.to().timestamp());
        Self {
            z: exclusions.zone.map(|zone| zone.name().to_owned()),
            d: exclusions.dates.iter().map(ToString::to_string).collect(),
            y: exclusions.yearly.clone(),
            w: exclusions.weekdays.iter(Weekday::Mon).map(|day| day.number_from_monday() as u8).collect(),
            e: exclusions.early_close.iter().map(stored_close).collect(),
            i: exclusions.intervals.iter().map(seconds).collect(),
            rest: Rest::from(&exclusions.unknown),
        }
    }
}

impl ExclusionsDoc {
    fn read(&self) -> std::result::Result<Exclusions, String> {
        let instant = |second| {
            chrono::DateTime::from_timestamp(second, 0).map(clamped).ok_or("no such instant".to_owned())
        };
        let window =
            |(from, to): &(i64, i64)| Window::new(instant(*from)?, instant(*to)?).map_err(|e| e.to_string());
        let zone = |name: &String| parse_zone(name).map_err(|e| e.to_string());
        let zone: Option<Tz> = self.z.as_ref().map(zone).transpose()?;
        let dates: std::result::Result<Vec<NaiveDate>, _> = self.d.iter().map(|date| date.parse()).collect();
        Ok(Exclusions {
            zone,
            dates: dates.map_err(|e: chrono::ParseError| e.to_string())?,
            yearly: self.y.clone(),
            weekdays: self.w.iter().map(|number| read_weekday(*number)).collect::<Read<WeekdaySet>>()?,
            early_close: self.e.iter().map(read_close).collect::<Read<_>>()?,
            intervals: self.i.iter().map(window).collect::<std::result::Result<_, _>>()?,
            unknown: self.rest.unknown(),
        })
    }
}

/// What a part of the document means, or why it cannot be read.
type Read<T> = std::result::Result<T, String>;

/// How the time of an early close is written.
const TIME: &str = "%H:%M";

fn stored_close(early: &EarlyClose) -> (String, String) {
    let day = match early.day {
        Day::Once(date) => date.to_string(),
        Day::Yearly(month, day) => format!("{month:02}-{day:02}"),
    };
    (day, early.from.format(TIME).to_string())
}

fn read_close((day, from): &(String, String)) -> Read<EarlyClose> {
    let yearly = day.split_once('-').and_then(|(month, day)| Some((month.parse().ok()?, day.parse().ok()?)));
    let day = match yearly {
        Some((month, day)) => Day::Yearly(month, day),
        None => Day::Once(day.parse().map_err(|_| format!("'{day}' is no day"))?),
    };
    let from = NaiveTime::parse_from_str(from, TIME).map_err(|e| format!("'{from}': {e}"))?;
    Ok(EarlyClose { day, from })
}

fn read_weekday(number: u8) -> Read<Weekday> {
    let from_0 = number.checked_sub(1).and_then(|number| Weekday::try_from(number).ok());
    from_0.ok_or_else(|| format!("{number} is no day of the week"))
}

pub(crate) fn partition(client: &ClientId) -> String {
    format!("calendar|{client}")
}

fn key(client: &ClientId, id: &CalendarId) -> Key {
    Key::new(partition(client), id.as_str())
}

fn row(calendar: &Calendar) -> Result<Row> {
    let doc = serde_json::to_string(&ExclusionsDoc::from(&calendar.exclusions));
    let doc = doc.map_err(|e| StoreError::Corrupt {
        table: Table::Clients,
        key: calendar.id.to_string(),
        reason: e.to_string(),
    })?;
    Ok(Row::new(&key(&calendar.client, &calendar.id))
        .with("client", text(calendar.client.as_str()))
        .with("revision", number(calendar.revision))
        .with("excluded", text(doc)))
}

fn read(row: &Attributes) -> Result<Calendar> {
    let item = Item::read(Table::Clients, row)?;
    let doc: ExclusionsDoc =
        serde_json::from_str(item.text("excluded")?).map_err(|e| item.corrupt(e.to_string()))?;
    Ok(Calendar {
        client: item.id("client")?,
        id: item.id("sk")?,
        revision: item.number("revision")?,
        exclusions: doc.read().map_err(|e| item.corrupt(format!("'excluded': {e}")))?,
    })
}

/// What is recorded of a change from one version of a calendar, or nothing, to another, or nothing.
fn change_of(old: Option<&Calendar>, new: Option<&Calendar>, change: &Change) -> Result<Option<Row>> {
    let Some(calendar) = new.or(old) else { return Ok(None) };
    let changed = Changed {
        client: &calendar.client,
        kind: Kind::Calendar,
        id: calendar.id.as_str(),
        revision: new.map(|new| new.revision),
    };
    let fields = old.zip(new).map(|(old, new)| calendar_fields_that_differ(&old.exclusions, &new.exclusions));
    let told = Told {
        before_revision: old.map(|old| old.revision),
        fields: fields.unwrap_or_default(),
        before: old.map(row).transpose()?,
        after: new.map(row).transpose()?,
        of: None,
    };
    Ok(Some(change_row(changed, change, told)))
}

impl ChangeRow {
    /// What a calendar said before and after the change; `None`: it was not there, or it is no change of a calendar.
    ///
    /// # Errors
    /// `StoreError::Corrupt` when one of them cannot be read.
    pub fn calendars(&self) -> Result<(Option<Calendar>, Option<Calendar>)> {
        let is_one = self.kind == Kind::Calendar.as_str();
        let told = |row: &Option<Attributes>| row.as_ref().filter(|_| is_one).map(read).transpose();
        Ok((told(&self.before)?, told(&self.after)?))
    }
}

impl Store {
    /// A calendar, read consistently; `None` when the client has none of this name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, `StoreError::Corrupt` when the row cannot
    /// be read.
    pub async fn calendar(&self, client: &ClientId, id: &CalendarId) -> Result<Option<Calendar>> {
        self.get(Table::Clients, &key(client, id), true).await?.as_ref().map(read).transpose()
    }

    /// A page of a client's calendars, by name.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer. A row that cannot be read is no error: it
    /// is among the `unreadable` ones of the page.
    pub async fn calendars(&self, client: &ClientId, page: impl Into<PageOf>) -> Result<Page<Calendar>> {
        let query = Query::of(Table::Clients, partition(client)).page(page.into());
        Ok(self.query(query).await?.read(Table::Clients, read))
    }

    /// Adds a calendar, and records the change: both or neither. `Exists` when the client has one of this name, which stays as it
    /// is.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer, or when the transaction still conflicts
    /// with others after `WRITE_ROUNDS` more attempts: nothing is written then.
    pub async fn create_calendar(&self, calendar: &Calendar, change: &Change) -> Result<Create> {
        let put = self.put_new_item_of(Table::Clients, row(calendar)?)?;
        Ok(match self.recorded(put, change_of(None, Some(calendar), change)?).await? {
            Write::Done => Create::Done,
            Write::Refused => Create::Exists,
        })
    }

    /// Writes a calendar over the one that was seen, and records the change: both or neither. `Refused` when another revision is
    /// stored, or none.
    ///
    /// # Errors
    /// As [`Self::create_calendar`].
    pub async fn replace_calendar(
        &self,
        calendar: &Calendar,
        seen: &Calendar,
        change: &Change,
    ) -> Result<Write> {
        let update = Update::rewrite(Table::Clients, row(calendar)?).when("revision = :old");
        let update = self.update_item_of(update.value(":old", number(seen.revision)))?;
        self.recorded(update, change_of(Some(seen), Some(calendar), change)?).await
    }

    /// Removes a calendar at the revision that was seen, and records the change: both or neither. `Refused` when another revision
    /// is stored, or none.
    ///
    /// # Errors
    /// As [`Self::create_calendar`].
    pub async fn delete_calendar(&self, calendar: &Calendar, change: &Change) -> Result<Write> {
        let values = Attributes::from([(":seen".to_owned(), number(calendar.revision))]);
        let key = key(&calendar.client, &calendar.id);
        let gone = self.delete_when_item_of(Table::Clients, &key, "revision = :seen", values)?;
        self.recorded(gone, change_of(Some(calendar), None, change)?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_read_back_and_their_stored_form_is_pinned() {
        let christmas = NaiveDate::from_ymd_opt(2026, 12, 24).unwrap();
        let at = |hour| NaiveTime::from_hms_opt(hour, 30, 0).unwrap();
        let early_close = vec![
            EarlyClose { day: Day::Once(christmas), from: at(13) },
            EarlyClose { day: Day::Yearly(2, 29), from: at(0) },
        ];
        let weekdays = [Weekday::Sun, Weekday::Mon].into_iter().collect();
        let dates = vec![christmas];
        let yearly = vec![(1, 1)];
        let all = Exclusions { dates, yearly, weekdays, early_close, ..Exclusions::default() };
        for (exclusions, pinned) in [
            (
                all.clone(),
                r#"{"d":["2026-12-24"],"y":[[1,1]],"w":[1,7],"e":[["2026-12-24","13:30"],["02-29","00:30"]]}"#,
            ),
            (Exclusions { weekdays, ..Exclusions::default() }, r#"{"w":[1,7]}"#),
            // As rows were before there were days of every week.
            (Exclusions { dates: all.dates, ..Exclusions::default() }, r#"{"d":["2026-12-24"]}"#),
        ] {
            let text = serde_json::to_string(&ExclusionsDoc::from(&exclusions)).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<ExclusionsDoc>(pinned).unwrap().read(), Ok(exclusions));
        }
    }

    #[test]
    fn what_no_calendar_can_mean_is_not_read() {
        for bad in
            [r#"{"w":[0]}"#, r#"{"w":[8]}"#, r#"{"e":[["soon","13:00"]]}"#, r#"{"e":[["12-24","25:00"]]}"#]
        {
            assert!(serde_json::from_str::<ExclusionsDoc>(bad).unwrap().read().is_err(), "{bad}");
        }
    }
}
