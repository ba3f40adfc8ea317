//! Triggers as they travel: a cron expression with its zone, or one instant.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use tidegate_domain::job::Trigger;
use tidegate_domain::limits::{AT_GRACE_SECONDS, AT_HORIZON_DAYS};
use tidegate_domain::time::{CronError, CronFields, CronSpec, Field, parse_zone, split_zone_prefix};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::instant;

/// When a job fires: `cron` with `zone`, or `at`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"cron": "0 9 * * MON-FRI", "zone": "Europe/London"}))]
pub(crate) struct TriggerBody {
    /// A cron expression of five fields, or an object of its fields.
    cron: Option<CronBody>,
    /// The IANA zone whose wall clock the expression follows; UTC when left out. Only with `cron`.
    #[schema(example = "Europe/London")]
    zone: Option<String>,
    /// One instant in ISO 8601, with its offset from UTC.
    #[schema(format = DateTime, example = "2026-11-21T12:00:00Z")]
    at: Option<String>,
}

/// A cron expression.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum CronBody {
    /// As text: minute, hour, day of month, month, day of week. A prefix `CRON_TZ=<zone>` or `TZ=<zone>` names the zone.
    #[schema(example = "0 9 * * MON-FRI")]
    Text(String),
    /// As an object of its fields.
    Fields(CronFieldsBody),
}

/// A cron expression as an object. Months and days that are left out are `*`; hour and minute are needed.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(crate) struct CronFieldsBody {
    /// 1 to 12, or names.
    month: Option<String>,
    /// 1 to 31.
    day_of_month: Option<String>,
    /// 0 to 7, or names; 0 and 7 are Sunday.
    day_of_week: Option<String>,
    /// 0 to 23.
    hour: Option<String>,
    /// 0 to 59.
    minute: Option<String>,
}

impl<'de> Deserialize<'de> for CronBody {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = CronBody;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a cron expression such as \"0 9 * * MON-FRI\", or an object of its fields")
            }

            fn visit_str<E>(self, text: &str) -> Result<CronBody, E> {
                Ok(CronBody::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CronBody, A::Error> {
                CronFieldsBody::deserialize(MapAccessDeserializer::new(map)).map(CronBody::Fields)
            }
        }
        reader.deserialize_any(Reading)
    }
}

impl TriggerBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<Trigger> {
        match (&self.cron, &self.at) {
            (Some(cron), None) => self.check_cron(cron, errors),
            (None, Some(at)) => self.check_at(at, now, errors),
            (Some(_), Some(_)) => {
                errors.add("trigger", (), "trigger has both 'cron' and 'at'; give one, or make two jobs");
                None
            }
            (None, None) => {
                let message = "trigger has neither 'cron' nor 'at'; give \
                    {\"cron\": \"0 9 * * MON-FRI\", \"zone\": \"Europe/London\"} or {\"at\": \"2026-11-21T12:00:00Z\"}";
                errors.add("trigger", (), message);
                None
            }
        }
    }

    fn check_cron(&self, cron: &CronBody, errors: &mut FieldErrors) -> Option<Trigger> {
        let (spec, prefix) = match cron {
            CronBody::Text(text) => {
                let (prefix, expression) = split_zone_prefix(text);
                (errors.keep("trigger.cron", &**text, CronSpec::parse(expression)), prefix)
            }
            CronBody::Fields(fields) => {
                let spec = CronSpec::from_fields(&fields.to_domain());
                (spec.map_err(|error| fields.note(&error, errors)).ok(), None)
            }
        };
        let zone = self.check_zone(prefix, errors);
        Some(Trigger::Cron { spec: spec?, zone: zone? })
    }

    /// The zone by its field or by the expression's prefix; when both name one, it must be the same.
    fn check_zone(&self, prefix: Option<&str>, errors: &mut FieldErrors) -> Option<Tz> {
        let Some(given) = &self.zone else {
            let Some(prefix) = prefix else { return Some(Tz::UTC) };
            return errors.keep("trigger.cron", prefix, parse_zone(prefix));
        };
        let zone = errors.keep("trigger.zone", &**given, parse_zone(given))?;
        let Some(prefix) = prefix else { return Some(zone) };
        let prefixed = errors.keep("trigger.cron", prefix, parse_zone(prefix))?;
        if zone != prefixed {
            let message = format!(
                "zone is '{given}', but the expression begins with the zone '{prefix}'; leave one of them out"
            );
            errors.add("trigger.zone", &**given, message);
            return None;
        }
        Some(zone)
    }

    fn check_at(&self, at: &str, now: DateTime<Utc>, errors: &mut FieldErrors) -> Option<Trigger> {
        if let Some(zone) = &self.zone {
            let message =
                "zone goes with 'cron'; the offset of 'at' says which instant is meant, so leave zone out";
            errors.add("trigger.zone", &**zone, message);
        }
        let launch_at = errors.keep("trigger.at", at, read_instant(at, now))?;
        self.zone.is_none().then_some(Trigger::At { launch_at })
    }
}

impl CronFieldsBody {
    fn to_domain(&self) -> CronFields<'_> {
        CronFields {
            month: self.month.as_deref(),
            day_of_month: self.day_of_month.as_deref(),
            day_of_week: self.day_of_week.as_deref(),
            hour: self.hour.as_deref(),
            minute: self.minute.as_deref(),
        }
    }

    /// Notes an error at the field of the object that it is about.
    fn note(&self, error: &CronError, errors: &mut FieldErrors) {
        match error {
            CronError::Field { field, .. } | CronError::MissingField { field } => {
                let given = match field {
                    Field::Minute => &self.minute,
                    Field::Hour => &self.hour,
                    Field::DayOfMonth => &self.day_of_month,
                    Field::Month => &self.month,
                    Field::DayOfWeek => &self.day_of_week,
                };
                errors.add(format!("trigger.cron.{}", field.key()), given.clone(), error.to_string());
            }
            _ => errors.add("trigger.cron", (), error.to_string()),
        }
    }
}

/// An instant to the second, rounded up: an event is never early.
fn read_instant(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let given = DateTime::parse_from_rfc3339(text).map_err(|_| {
        let without_offset = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
        if without_offset.iter().any(|form| NaiveDateTime::parse_from_str(text, form).is_ok()) {
            return format!("at '{text}' has no offset; end it in Z for UTC or in an offset such as +01:00");
        }
        format!("at '{text}' is no instant in ISO 8601; write it as 2026-11-21T12:00:00Z or 2026-11-21T13:00:00+01:00")
    })?;
    let given = given.to_utc();
    let past_the_second = TimeDelta::nanoseconds(given.timestamp_subsec_nanos().into());
    let launch_at =
        if past_the_second.is_zero() { given } else { given - past_the_second + TimeDelta::seconds(1) };
    if launch_at < now - TimeDelta::seconds(AT_GRACE_SECONDS) {
        return Err(format!(
            "at '{text}' is {} ago (it is {} now); give an instant that is to come",
            span(now - launch_at),
            instant(now)
        ));
    }
    if launch_at > now + TimeDelta::days(AT_HORIZON_DAYS) {
        return Err(format!(
            "at '{text}' is {} ahead; {AT_HORIZON_DAYS} days is the most",
            span(launch_at - now)
        ));
    }
    Ok(launch_at)
}

/// A length of time in its largest whole unit.
fn span(length: TimeDelta) -> String {
    let (number, unit) = match length.num_seconds() {
        seconds @ ..120 => (seconds, "seconds"),
        seconds @ 120..7_200 => (seconds / 60, "minutes"),
        seconds @ 7_200..172_800 => (seconds / 3_600, "hours"),
        seconds => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
}

/// A trigger as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trigger)]
pub(crate) struct TriggerView {
    /// The expression as text, without a zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// The zone whose wall clock it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'static str>,
    /// The only instant, to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    at: Option<String>,
}

impl From<&Trigger> for TriggerView {
    fn from(trigger: &Trigger) -> Self {
        match trigger {
            Trigger::Cron { spec, zone } => {
                Self { cron: Some(spec.canonical().to_owned()), zone: Some(zone.name()), at: None }
            }
            Trigger::At { launch_at } => Self { cron: None, zone: None, at: Some(instant(*launch_at)) },
        }
    }
}

/// What a trigger means, in words.
pub(crate) fn in_words(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Cron { spec, zone } => format!("{} ({})", spec.describe(), zone.name()),
        Trigger::At { launch_at } => format!("Once, at {}", instant(*launch_at)),
    }
}
