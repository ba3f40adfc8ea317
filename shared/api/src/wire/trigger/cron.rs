//! Cron triggers as they are sent: text in any of the known spellings, or an object of fields.

use std::fmt;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_domain::job::Trigger;
use tidegate_domain::time::{
    CronError, CronFields, CronSpec, Expression, Field, parse_zone, split_zone_prefix,
};
use utoipa::ToSchema;

use super::{Findings, NeverFires, TriggerBody, dst};
use crate::problem::FieldErrors;

/// A cron expression.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum CronBody {
    /// As text: minute, hour, day of month, month, day of week; with seconds in front when there are six fields. A prefix
    /// `CRON_TZ=<zone>` or `TZ=<zone>` names the zone.
    #[schema(example = "0 9 * * MON-FRI")]
    Text(String),
    /// As an object of its fields.
    Fields(CronFieldsBody),
}

/// A cron expression as an object. Months and days that are left out are `*`; hour and minute are needed.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
#[schema(example = json!({"Hour": "3", "Minute": "0"}))]
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
    pub(super) fn check_cron(
        &self,
        cron: &CronBody,
        now: DateTime<Utc>,
        findings: &mut Findings,
    ) -> Option<Trigger> {
        let (prefix, parsed) = match cron {
            CronBody::Text(text) => {
                let parsed = Expression::parse(text).map(|(_, expression)| expression);
                (split_zone_prefix(text).0, parsed)
            }
            CronBody::Fields(fields) => {
                (None, CronSpec::from_fields(&fields.to_domain()).map(Expression::Cron))
            }
        };
        let parsed = match parsed {
            Ok(Expression::Rate { every_seconds }) => {
                return self.check_rate_in_cron(every_seconds, prefix, now, findings);
            }
            Ok(Expression::Cron(spec)) => Some(spec),
            Err(error) => {
                cron.note(&error, findings);
                None
            }
        };
        let zone = self.check_zone(prefix, findings);
        if let (Some(never), Some(zone)) = (&mut findings.never_fires, zone) {
            never.zone = zone;
        }
        let clean = self.refuse_strays(&["zone", "dst"], findings);
        let dst = dst::rules(self.dst.unwrap_or_default())?;
        clean.and(Some(Trigger::Cron { spec: parsed?.with_dst(dst), zone: zone? }))
    }

    /// A rate that was written where expressions go. Its zone means nothing, but those who write one mean no harm.
    fn check_rate_in_cron(
        &self,
        every_seconds: u64,
        prefix: Option<&str>,
        now: DateTime<Utc>,
        findings: &mut Findings,
    ) -> Option<Trigger> {
        let zone = self.check_zone(prefix, findings)?;
        if zone != Tz::UTC {
            findings.warnings.push(format!(
                "zone '{}' is not used: a rate counts real time, whatever the clocks show",
                zone.name()
            ));
        }
        self.refuse_strays(&["zone", "anchor"], findings)?;
        self.rate_trigger("trigger.cron", every_seconds, now, findings)
    }

    /// The zone by its field or by the expression's prefix; when both name one, it must be the same.
    fn check_zone(&self, prefix: Option<&str>, findings: &mut Findings) -> Option<Tz> {
        let Some(given) = &self.zone else {
            let Some(prefix) = prefix else { return Some(Tz::UTC) };
            return findings.errors.keep("trigger.cron", prefix, parse_zone(prefix));
        };
        let zone = findings.errors.keep("trigger.zone", &**given, parse_zone(given))?;
        let Some(prefix) = prefix else { return Some(zone) };
        let prefixed = findings.errors.keep("trigger.cron", prefix, parse_zone(prefix))?;
        if zone != prefixed {
            let message = format!(
                "zone is '{given}', but the expression begins with the zone '{prefix}'; leave one of them out"
            );
            findings.errors.add("trigger.zone", &**given, message);
            return None;
        }
        Some(zone)
    }
}

impl CronBody {
    /// Notes why the expression is refused, at the field of the object that it is about if it is one.
    fn note(&self, error: &CronError, findings: &mut Findings) {
        let given = match self {
            Self::Text(text) => Value::from(&**text),
            Self::Fields(_) => Value::Null,
        };
        match (self, error) {
            (_, CronError::NeverFires { .. }) => {
                let field = "trigger.cron".to_owned();
                findings.never_fires =
                    Some(NeverFires { field, given, reason: error.to_string(), zone: Tz::UTC });
            }
            (Self::Fields(fields), _) => fields.note(error, &mut findings.errors),
            (Self::Text(_), _) => findings.errors.add("trigger.cron", given, error.to_string()),
        }
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

    fn note(&self, error: &CronError, errors: &mut FieldErrors) {
        let (CronError::Field { field, .. } | CronError::MissingField { field }) = error else {
            return errors.add("trigger.cron", (), error.to_string());
        };
        let given = match field {
            Field::Minute => &self.minute,
            Field::Hour => &self.hour,
            Field::DayOfMonth => &self.day_of_month,
            Field::Month => &self.month,
            Field::DayOfWeek => &self.day_of_week,
            Field::Second | Field::Year => &None,
        };
        errors.add(format!("trigger.cron.{}", field.key()), given.clone(), error.to_string());
    }
}
