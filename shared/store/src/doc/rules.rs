//! What a job says about its launches beside its trigger.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_domain::ids::CalendarId;
use tidegate_domain::rules::{Jitter, Misfire, MisfireLaunches, Rules};
use tidegate_domain::time::{OnClosedDay, clamped};

use super::Rest;

/// The rules of a job; what is absent is as by default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RulesDoc {
    /// Start, in seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    s: Option<i64>,
    /// End, in seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    e: Option<i64>,
    /// Width of the flexible window, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    j: Option<u32>,
    /// Missed launches that are made up for: 0 for `skip`, -1 for `latest`, else the most of `all`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    m: Option<i64>,
    /// Calendars.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    x: Vec<String>,
    /// Calendars on whose days alone it launches.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    o: Vec<String>,
    /// Where launches are moved that these leave out: 1 to the next open day, -1 to the previous one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    d: Option<i8>,
    /// Launches that are left out, in seconds since the epoch.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    l: Vec<i64>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&Rules> for RulesDoc {
    fn from(rules: &Rules) -> Self {
        let misfire = match rules.misfire {
            Misfire::Skip => 0,
            Misfire::Latest => -1,
            Misfire::All(most) => most.get().into(),
        };
        Self {
            s: rules.start_at.map(|at| at.timestamp()),
            e: rules.end_at.map(|at| at.timestamp()),
            j: Some(rules.jitter.seconds()).filter(|seconds| *seconds > 0),
            m: (rules.misfire != Misfire::default()).then_some(misfire),
            x: rules.calendars.iter().map(ToString::to_string).collect(),
            o: rules.only_on.iter().map(ToString::to_string).collect(),
            d: match rules.on_closed_day {
                OnClosedDay::LeaveOut => None,
                OnClosedDay::NextOpenDay => Some(1),
                OnClosedDay::PreviousOpenDay => Some(-1),
            },
            l: rules.skip.iter().map(DateTime::timestamp).collect(),
            rest: Rest::from(&rules.unknown),
        }
    }
}

impl RulesDoc {
    /// The rules that it stands for.
    ///
    /// # Errors
    /// A text that says which part no version of Tidegate would have written: a number or instant out of bounds, or a
    /// malformed name of a calendar.
    pub fn read(&self) -> Result<Rules, String> {
        let instant = |name: &str, second: i64| -> Result<DateTime<Utc>, String> {
            DateTime::from_timestamp(second, 0).map(clamped).ok_or(format!("'{name}': no instant"))
        };
        let names = |name: &str, ids: &[String]| -> Result<Vec<CalendarId>, String> {
            ids.iter().map(|id| id.parse().map_err(|e| format!("'{name}': {e}"))).collect()
        };
        Ok(Rules {
            start_at: self.s.map(|second| instant("s", second)).transpose()?,
            end_at: self.e.map(|second| instant("e", second)).transpose()?,
            jitter: Jitter::new(self.j.unwrap_or(0).into()).map_err(|e| e.to_string())?,
            misfire: match self.m {
                None => Misfire::default(),
                Some(0) => Misfire::Skip,
                Some(-1) => Misfire::Latest,
                Some(most) => {
                    let most = u64::try_from(most).map_err(|e| format!("'m': {e}"))?;
                    Misfire::All(MisfireLaunches::new(most).map_err(|e| e.to_string())?)
                }
            },
            calendars: names("x", &self.x)?,
            only_on: names("o", &self.o)?,
            on_closed_day: match self.d {
                None => OnClosedDay::LeaveOut,
                Some(1) => OnClosedDay::NextOpenDay,
                Some(-1) => OnClosedDay::PreviousOpenDay,
                Some(other) => return Err(format!("'d': {other} is no way to go")),
            },
            skip: self.l.iter().map(|second| instant("l", *second)).collect::<Result<_, _>>()?,
            unknown: self.rest.unknown(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_back_and_their_stored_form_is_pinned() {
        let all = Misfire::All(MisfireLaunches::new(7).unwrap());
        let (left_out, next, previous) =
            (OnClosedDay::LeaveOut, OnClosedDay::NextOpenDay, OnClosedDay::PreviousOpenDay);
        for (misfire, on_closed_day, pinned) in [
            (
                Misfire::Skip,
                left_out,
                r#"{"s":10,"e":20,"j":30,"m":0,"x":["holidays"],"o":["open"],"l":[12,15]}"#,
            ),
            (
                Misfire::Latest,
                next,
                r#"{"s":10,"e":20,"j":30,"m":-1,"x":["holidays"],"o":["open"],"d":1,"l":[12,15]}"#,
            ),
            (
                all,
                previous,
                r#"{"s":10,"e":20,"j":30,"m":7,"x":["holidays"],"o":["open"],"d":-1,"l":[12,15]}"#,
            ),
        ] {
            let rules = Rules {
                start_at: DateTime::from_timestamp(10, 0),
                end_at: DateTime::from_timestamp(20, 0),
                jitter: Jitter::new(30).unwrap(),
                misfire,
                calendars: vec!["holidays".parse().unwrap()],
                only_on: vec!["open".parse().unwrap()],
                on_closed_day,
                skip: [12, 15].map(|second| DateTime::from_timestamp(second, 0).unwrap()).to_vec(),
                ..Rules::default()
            };
            let text = serde_json::to_string(&RulesDoc::from(&rules)).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<RulesDoc>(&text).unwrap().read(), Ok(rules));
        }
        assert_eq!(serde_json::to_string(&RulesDoc::from(&Rules::default())).unwrap(), "{}");
        assert_eq!(RulesDoc::default().read(), Ok(Rules::default()));
    }

    #[test]
    fn what_a_newer_version_stored_is_kept() {
        let newer = r#"{"s":10,"moon":{"full":true}}"#;
        let rules = serde_json::from_str::<RulesDoc>(newer).unwrap().read().unwrap();
        assert_eq!(serde_json::to_string(&RulesDoc::from(&rules)).unwrap(), newer);
    }
}
