//! One line of the file: a short row, a job or a calendar as the API takes it, or the reason why it is none of these.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::{Map, Value, json};
use tidegate_api::documents;
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::flow::Flow;
use tidegate_domain::ids::{CalendarId, JobId, ONE_TIME_PREFIX};
use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms, Trigger};
use tidegate_domain::target::Target;
use tidegate_domain::time::{Expression, Rate, parse_zone};
use tidegate_engine::JobDraft;

/// Where nothing is sent: a dry run delivers nothing, so a row need not say where to.
const NO_TARGET: &str = "http://dry-run.invalid/0/nowhere";

/// What a line holds.
pub(crate) enum Row {
    Job(Box<JobRow>),
    Calendar(CalendarId, Exclusions),
}

/// A job that has been checked.
pub(crate) struct JobRow {
    pub(crate) id: JobId,
    pub(crate) draft: JobDraft,
    /// Whose wall clock its launches are shown in.
    pub(crate) zone: Tz,
    pub(crate) paused: bool,
    /// Whether its row gives it a name.
    pub(crate) is_named: bool,
}

/// Why a line is neither.
pub(crate) struct RowError {
    /// Its id, as far as it has one.
    pub(crate) id: Option<String>,
    pub(crate) reason: String,
}

/// Reads line `number`. `from` is when the window begins and the job would have been created.
pub(crate) fn read(line: &[u8], number: u64, from: DateTime<Utc>) -> Result<Row, RowError> {
    let without_id = |reason: String| RowError { id: None, reason };
    let row: Value = serde_json::from_slice(line).map_err(|error| without_id(not_json(number, &error)))?;
    let Value::Object(row) = row else {
        return Err(without_id(format!("line {number} is no JSON object: {}", FORMS)));
    };
    let id = ["id", "job_id", "calendar_id"].iter().find_map(|key| row.get(*key)?.as_str());
    let id = id.map(str::to_owned);
    let read = if row.contains_key("trigger") {
        full(row, number, from)
    } else if row.contains_key("calendar_id") {
        calendar(row)
    } else {
        short(&row, from)
    };
    read.map_err(|reason| RowError { id, reason })
}

const FORMS: &str = "give {\"id\": \"nightly\", \"expression\": \"0 3 * * *\", \"zone\": \"Europe/Berlin\"}, or a \
    job or calendar as the API takes it, with 'job_id' and 'trigger' or with 'calendar_id'";

fn not_json(number: u64, error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.rfind(" at line ").map_or(&*text, |place| &text[..place]);
    format!("line {number} is not JSON: {reason} at column {}", error.column())
}

/// `{"id", "expression", "zone"}`; whatever else a row has is somebody else's.
fn short(row: &Map<String, Value>, from: DateTime<Utc>) -> Result<Row, String> {
    let id = word(row, "id")?.ok_or("id is missing: give each job one, such as \"id\": \"nightly\"")?;
    let id = job_id(id)?;
    let Some(expression) = word(row, "expression")? else {
        return Err(format!("expression is missing: {FORMS}"));
    };
    let (prefix, expression) = Expression::parse(expression).map_err(|error| error.to_string())?;
    let zone = zone(word(row, "zone")?, prefix)?;
    let trigger = match expression {
        Expression::Cron(spec) => Trigger::Cron { spec, zone },
        Expression::Rate { every_seconds } => {
            let rate = Rate::new(every_seconds, from).map_err(|error| error.to_string())?;
            Trigger::Rate { rate, anchored: true }
        }
    };
    let draft = JobDraft::new(trigger, terms()?);
    Ok(Row::Job(Box::new(JobRow { id, draft, zone, paused: false, is_named: true })))
}

/// A text, `None` when the row has none.
fn word<'a>(row: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match row.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key} is {other}; it must be text in quotes")),
    }
}

fn job_id(text: &str) -> Result<JobId, String> {
    if text.starts_with(ONE_TIME_PREFIX) {
        return Err(format!(
            "id '{text}' begins with '{ONE_TIME_PREFIX}', which is kept for generated ids; choose another name"
        ));
    }
    text.parse::<JobId>().map_err(|error| error.to_string())
}

/// The zone by its field or by the expression's prefix; when both name one, it must be the same.
fn zone(given: Option<&str>, prefix: Option<&str>) -> Result<Tz, String> {
    let parse = |text: &str| parse_zone(text).map_err(|error| error.to_string());
    match (given, prefix) {
        (None, None) => Ok(Tz::UTC),
        (Some(text), None) | (None, Some(text)) => parse(text),
        (Some(given), Some(prefix)) => match (parse(given)?, parse(prefix)?) {
            (zone, prefixed) if zone == prefixed => Ok(zone),
            _ => Err(format!(
                "zone is '{given}', but the expression begins with the zone '{prefix}'; leave one of them out"
            )),
        },
    }
}

fn terms() -> Result<Terms, String> {
    Ok(Terms {
        count: Count::new(1).map_err(|error| error.to_string())?,
        policy: None,
        target: Target::sqs(NO_TARGET).map_err(|error| error.to_string())?,
        payload: Payload::Inline("null".to_owned()),
        history: History::default(),
        history_days: HistoryDays::DEFAULT,
        max_attempts: None,
        retry: Default::default(),
        relevancy: None,
        flow: Flow::default(),
        unknown: Default::default(),
    })
}

/// A job as the API takes it, though it need not say where to; `paused` as the API answers it.
fn full(mut row: Map<String, Value>, number: u64, from: DateTime<Utc>) -> Result<Row, String> {
    let paused = match row.remove("paused") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(paused)) => paused,
        Some(other) => return Err(format!("paused is {other}; it must be true or false")),
    };
    let named = row.get("trigger").and_then(|trigger| trigger.get("zone")).and_then(Value::as_str);
    let named = named.and_then(|name| parse_zone(name).ok());
    row.entry("target").or_insert_with(|| json!({"sqs": {"queue_url": NO_TARGET}}));
    let (id, draft) = documents::read_job(Value::Object(row), from).map_err(|reasons| reasons.join("; "))?;
    let is_named = id.is_some();
    let id = id.map_or_else(|| job_id(&format!("line-{number}")), Ok)?;
    let zone = match &draft.trigger {
        Trigger::Cron { zone, .. } => *zone,
        trigger => named.unwrap_or_else(|| trigger.zone()),
    };
    Ok(Row::Job(Box::new(JobRow { id, draft, zone, paused, is_named })))
}

fn calendar(row: Map<String, Value>) -> Result<Row, String> {
    let read = documents::read_calendar(Value::Object(row)).map_err(|reasons| reasons.join("; "));
    read.map(|(id, exclusions)| Row::Calendar(id, exclusions))
}
