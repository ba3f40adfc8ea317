//! Rate triggers as they are sent.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use tidegate_domain::bounded::Bounded;
use tidegate_domain::job::Trigger;
use tidegate_domain::time::{Rate, RateSeconds, parse_interval, whole_second};
use utoipa::ToSchema;

use super::{Findings, TriggerBody};
use crate::wire::bounds::bounded_fields;
use crate::wire::number::Number;
use crate::wire::when::read_ahead;

/// The interval of a rate.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Rate)]
pub(crate) enum RateBody {
    /// As text: a number and seconds, minutes, hours or days, such as `5 minutes`, `90s` or `2d`.
    #[schema(example = "5 minutes")]
    Text(String),
    /// As an object.
    Every(EveryBody),
}

/// An interval as an object.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Every)]
pub(crate) struct EveryBody {
    /// In seconds.
    #[schema(value_type = u32, example = 300)]
    every_seconds: Number<RateSeconds>,
}

bounded_fields!(EveryBody: every_seconds);

impl<'de> Deserialize<'de> for RateBody {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = RateBody;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an interval such as \"5 minutes\", or {\"every_seconds\": 300}")
            }

            fn visit_str<E>(self, text: &str) -> Result<RateBody, E> {
                Ok(RateBody::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RateBody, A::Error> {
                EveryBody::deserialize(MapAccessDeserializer::new(map)).map(RateBody::Every)
            }
        }
        reader.deserialize_any(Reading)
    }
}

impl TriggerBody {
    pub(super) fn check_rate(
        &self,
        rate: &RateBody,
        now: DateTime<Utc>,
        findings: &mut Findings,
    ) -> Option<Trigger> {
        let clean = self.refuse_strays(&["anchor"], findings);
        let (field, every_seconds) = match rate {
            RateBody::Text(text) => {
                let every = findings.errors.keep("trigger.rate", &**text, parse_interval(text));
                ("trigger.rate", every)
            }
            RateBody::Every(EveryBody { every_seconds }) => {
                let every = every_seconds.check(&mut findings.errors);
                (RateSeconds::NAME, every.map(|every| every.get().into()))
            }
        };
        clean.and(self.rate_trigger(field, every_seconds?, now, findings))
    }

    /// A beat from its anchor, or from one interval after now.
    pub(super) fn rate_trigger(
        &self,
        field: &str,
        every_seconds: u64,
        now: DateTime<Utc>,
        findings: &mut Findings,
    ) -> Option<Trigger> {
        let anchor = match &self.anchor {
            Some(text) => {
                let read = read_ahead("anchor", text, now);
                findings.errors.keep("trigger.anchor", &**text, read).map(Some)
            }
            None => Some(None),
        };
        let from_now = || {
            let interval = TimeDelta::try_seconds(i64::try_from(every_seconds).ok()?)?;
            now.checked_add_signed(interval).map(whole_second)
        };
        let anchored = self.anchor.is_some();
        // An interval that reaches beyond all time is refused by its bounds, whatever it begins at.
        let anchor = anchor?.or_else(from_now).unwrap_or(now);
        let rate = findings.errors.keep(field, every_seconds, Rate::new(every_seconds, anchor))?;
        Some(Trigger::Rate { rate, anchored })
    }
}
