//! Rows of the index: what they say, and how they are read.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;
use tidegate_domain::job::{Job, Terms, Trigger};
use tidegate_domain::limits::{AT_ROW_DAYS, HISTORY_DAYS};
use tidegate_domain::rules::Rules;
use tidegate_domain::time::{
    AtMinute, Cadence, ChildKey, CompiledCron, Instants, Rate, Window, clamped, days, parse_zone, shifted,
};

use super::shard::{at_key, child_key, owed_key};
use super::{Child, OutboxEntry, Part};
use crate::doc::{RulesDoc, TermsDoc, tags_attribute};
use crate::item::{Attributes, Item, Key, Row, number, text};
use crate::tables::Table;
use crate::{Result, Spread, StoreError};

fn json<T: serde::Serialize>(doc: &T) -> Result<AttributeValue> {
    serde_json::to_string(doc).map(text).map_err(|e| StoreError::Corrupt {
        table: Table::Launch,
        key: String::new(),
        reason: e.to_string(),
    })
}

fn terms_attribute(terms: &Terms) -> Result<AttributeValue> {
    json(&TermsDoc::from(terms))
}

/// What every row of a job says.
fn common(key: &Key, job: &Job) -> Result<Row> {
    let row = terms_row(key, &job.terms.to_travel(), &job.rules, job.paused)?;
    Ok(row.with("rev", number(job.revision)).with("since", number(job.emit_from.timestamp())))
}

/// What a row says of the terms and rules that it launches under.
fn terms_row(key: &Key, terms: &Terms, rules: &Rules, paused: bool) -> Result<Row> {
    let rules = RulesDoc::from(rules);
    let rules = (rules != RulesDoc::default()).then(|| json(&rules)).transpose()?;
    Ok(Row::new(key)
        .with("terms", terms_attribute(terms)?)
        .with_some("rules", rules)
        .with_some("paused", paused.then(|| number(1))))
}

fn rate_text(rate: &Rate) -> AttributeValue {
    text(format!("{}@{}", rate.every_seconds(), rate.anchor().timestamp()))
}

/// One instant as a number, several as a list.
fn due(instants: impl IntoIterator<Item = DateTime<Utc>>) -> AttributeValue {
    let mut seconds: Vec<i64> = instants.into_iter().map(|at| at.timestamp()).collect();
    match (seconds.pop(), seconds.is_empty()) {
        (Some(only), true) => number(only),
        (last, _) => AttributeValue::L(seconds.into_iter().chain(last).map(number).collect()),
    }
}

/// The keys of a job's rows in the index.
pub(crate) fn keys_of(job: &Job, spread: Spread) -> Vec<Key> {
    let zone = job.trigger.zone();
    let children = job.children.iter().map(|place| child_key(&job.client, &job.id, zone, place));
    let minutes = minutes_of(job).into_iter();
    children.chain(minutes.map(|minute| at_key(&job.client, &job.id, minute.starts_at(), spread))).collect()
}

/// The minutes that the instants of a job lie in: a row each.
fn minutes_of(job: &Job) -> Vec<AtMinute> {
    let Trigger::At(instants) = &job.trigger else { return Vec::new() };
    let mut minutes: Vec<_> = instants.iter().map(AtMinute::of).collect();
    minutes.dedup();
    minutes
}

/// The rows of a job in the index.
pub(crate) fn rows_of(job: &Job, spread: Spread) -> Result<Vec<Row>> {
    let zone = job.trigger.zone();
    let mut rows = Vec::with_capacity(job.children.len().max(1));
    for place in &job.children {
        let row = common(&child_key(&job.client, &job.id, zone, place), job)?;
        let (cron, rate) = match &job.trigger {
            Trigger::Cron { spec, .. } => (Some(text(spec.compiled().encode())), None),
            Trigger::Rate { rate, .. } => (None, Some(rate_text(rate))),
            Trigger::At(_) => (None, None),
        };
        // A changed job may have the other trigger under the same key.
        rows.push(row.with_some("cron", cron).with_some("rate", rate));
    }
    if let Trigger::At(instants) = &job.trigger {
        for minute in minutes_of(job) {
            rows.push(at_row(job, instants, minute, spread)?);
        }
    }
    Ok(rows)
}

/// The row of a minute. It names all instants of its job: which of them an outage missed depends on the others.
fn at_row(job: &Job, instants: &Instants, minute: AtMinute, spread: Spread) -> Result<Row> {
    let expires_at = shifted(minute.starts_at().max(job.changed_at), days(AT_ROW_DAYS));
    let row = common(&at_key(&job.client, &job.id, minute.starts_at(), spread), job)?
        .with("due", due(instants.iter()))
        .with_some("void", None)
        .expiring(expires_at);
    match job.id.one_time_shard() {
        // The row is the whole job: it keeps a large payload too.
        Some(_) => Ok(row
            .with("changed_at", number(job.changed_at.timestamp_millis()))
            .with("terms", terms_attribute(&job.terms)?)
            .with_some("paused_because", job.paused_because.as_deref().map(text))
            .with_some("tags", tags_attribute(&job.tags))),
        None => Ok(row),
    }
}

pub(crate) fn outbox_row(outbox: &OutboxEntry) -> Result<Row> {
    let child = &outbox.child;
    let row = terms_row(&owed_key(child), &child.terms, &child.rules, child.paused)?
        .with("rev", number(child.revision))
        .with("since", number(child.emit_from.timestamp()))
        .with("from_s", number(outbox.window.from().timestamp()))
        .with("written_at", number(outbox.written_at.timestamp_millis()))
        .with_some("triggered", (child.part == Part::Triggered).then(|| number(1)))
        .with_some("backfilled", (child.part == Part::Backfilled).then(|| number(1)))
        .expiring(shifted(outbox.written_at, days(HISTORY_DAYS)));
    Ok(match &child.cadence {
        Cadence::Cron { cron, zone } => row.with("cron", text(cron.encode())).with("zone", text(zone.name())),
        Cadence::Rate(rate) => row.with("rate", rate_text(rate)),
        Cadence::At(instants) => row.with("due", due(instants.iter())),
    })
}

/// Why no revision of a job launches in a minute that it has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Void {
    /// It was deleted, or launches at other times.
    Gone,
    /// Whoever was to store it was too slow.
    NeverStored,
}

impl Void {
    fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::NeverStored => "never stored",
        }
    }
}

/// A row of a minute in which no revision of its job launches. No new job takes its place unseen.
pub(super) fn void_row(key: &Key, minute: DateTime<Utc>, why: Void) -> Row {
    Row::new(key).with("void", text(why.word())).expiring(shifted(minute, days(AT_ROW_DAYS)))
}

/// What is left of the rows of a job in the index, by their keys, when it goes or launches at other times. Those of minutes
/// become void, so that no later job under its id is stored there as if it were the first.
pub(crate) fn remains_of(job: &Job, spread: Spread) -> Vec<(Key, Option<Row>)> {
    let zone = job.trigger.zone();
    let children = job.children.iter().map(|place| (child_key(&job.client, &job.id, zone, place), None));
    let minutes = minutes_of(job).into_iter().map(|minute| {
        let key = at_key(&job.client, &job.id, minute.starts_at(), spread);
        let void = void_row(&key, minute.starts_at().max(job.changed_at), Void::Gone);
        (key, Some(void))
    });
    children.chain(minutes).collect()
}

/// Whether a row says that there is no job.
pub(super) fn is_void(row: &Attributes) -> bool {
    row.contains_key("void")
}

/// Whether there is a job, or was one.
pub(super) fn was_stored(row: &Attributes) -> bool {
    Item::new(Table::Launch, row).find_text("void") != Some(Void::NeverStored.word())
}

/// A row of a zone and LaunchExpression, or of an instant.
pub(super) fn read_indexed(row: &Attributes) -> Result<Child> {
    let item = Item::read(Table::Launch, row)?;
    let pk = item.text("pk")?;
    if let Some(place) = pk.strip_prefix("AT|") {
        let ten = place.split('|').next().unwrap_or_default();
        let digit = item.text("sk")?.split('|').next().unwrap_or_default();
        let minute = NaiveDateTime::parse_from_str(&format!("{ten}{digit}"), "%Y-%m-%dT%H:%M");
        let minute = minute.map_err(|e| item.corrupt(e.to_string()))?;
        return read_child(item, None, Part::Minute(AtMinute::of(minute.and_utc())));
    }
    let mut parts = pk.split('|');
    let (zone, expression) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let zone = parse_zone(zone).map_err(|e| item.corrupt(e.to_string()))?;
    let minute = item.text("sk")?.split('|').next().unwrap_or_default();
    let key = ChildKey::parse(expression, minute).map_err(|e| item.corrupt(e.to_string()))?;
    read_child(item, Some(zone), Part::Key(key))
}

pub(super) fn read_owed(row: &Attributes) -> Result<OutboxEntry> {
    let item = Item::read(Table::Launch, row)?;
    let zone = item.find_text("zone").map(parse_zone).transpose().map_err(|e| item.corrupt(e.to_string()))?;
    let part = match (item.number_or("triggered", 0)?, item.number_or("backfilled", 0)?) {
        (1, _) => Part::Triggered,
        (_, 1) => Part::Backfilled,
        _ => Part::All,
    };
    let child = read_child(item, zone, part)?;
    let window = Window::new(item.instant_s("from_s")?, child.emit_from);
    let window = window.map_err(|e| item.corrupt(e.to_string()))?;
    Ok(OutboxEntry { child, window, written_at: item.instant_ms("written_at")? })
}

fn read_child(item: Item<'_>, zone: Option<Tz>, part: Part) -> Result<Child> {
    let mut name = item.text("sk")?.rsplit('|');
    let (job, client) = (name.next().unwrap_or_default(), name.next().unwrap_or_default());
    let doc: TermsDoc = serde_json::from_str(item.text("terms")?).map_err(|e| item.corrupt(e.to_string()))?;
    let rules = match item.find_text("rules") {
        None => RulesDoc::default(),
        Some(rules) => serde_json::from_str(rules).map_err(|e| item.corrupt(e.to_string()))?,
    };
    Ok(Child {
        client: item.parsed("sk", client)?,
        job: item.parsed("sk", job)?,
        revision: item.number("rev")?,
        cadence: read_cadence(item, zone)?,
        part,
        rules: rules.read().map_err(|e| item.corrupt(format!("'rules': {e}")))?,
        paused: item.number_or("paused", 0)? == 1,
        emit_from: item.instant_s("since")?,
        terms: doc.read().map_err(|e| item.corrupt(format!("'terms': {e}")))?,
    })
}

fn read_cadence(item: Item<'_>, zone: Option<Tz>) -> Result<Cadence> {
    if let Some(encoded) = item.find_text("cron") {
        let cron = CompiledCron::decode(encoded).map_err(|e| item.corrupt(e.to_string()))?;
        return Ok(Cadence::Cron { cron, zone: zone.ok_or_else(|| item.corrupt("'zone' is missing"))? });
    }
    if let Some(rate) = item.find_text("rate") {
        return read_rate(rate).map(Cadence::Rate).ok_or_else(|| item.corrupt("'rate' is no rate"));
    }
    Instants::new(item.instants_s("due")?).map(Cadence::At).map_err(|e| item.corrupt(e.to_string()))
}

fn read_rate(text: &str) -> Option<Rate> {
    let (every, anchor) = text.split_once('@')?;
    let anchor = DateTime::from_timestamp(anchor.parse().ok()?, 0).map(clamped)?;
    Rate::new(every.parse().ok()?, anchor).ok()
}
