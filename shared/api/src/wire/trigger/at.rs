//! `at` triggers as they are sent: one instant or many, with offsets or as local times of a zone.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use tidegate_domain::job::Trigger;
use tidegate_domain::limits::AT_GRACE_SECONDS;
use tidegate_domain::time::{Instants, seconds, shifted, whole_second};
use tidegate_protocol::At;
use utoipa::ToSchema;

use super::{Findings, PastInstant, TriggerBody};
use crate::wire::when::{
    Resolved, Written, bounded, is_past, local, no_offset, read, resolve, within_horizon,
};

/// What becomes of instants that are past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Past)]
pub(crate) enum PastWord {
    /// They are refused, but for those that the stored job has already.
    #[default]
    Refuse,
    /// They fire at once.
    Fire,
}

/// Each text with the field that it stands in.
fn texts(at: &At) -> impl Iterator<Item = (String, &str)> {
    let (one, many) = match at {
        At::One(text) => (Some(text), &[][..]),
        At::Many(texts) => (None, &texts[..]),
    };
    let one = one.map(|text| ("trigger.at".to_owned(), text.as_str()));
    let many = many.iter().enumerate();
    one.into_iter().chain(many.map(|(index, text)| (format!("trigger.at[{index}]"), text.as_str())))
}

impl TriggerBody {
    pub(super) fn check_at(&self, at: &At, now: DateTime<Utc>, findings: &mut Findings) -> Option<Trigger> {
        let clean = self.refuse_strays(&["zone", "past"], findings);
        let zone = self.named_zone(findings);
        let (mut instants, mut faults, mut any_local) = (Vec::new(), 0, false);
        for (field, text) in texts(at) {
            // A zone that is wrong is told once, not again for each local time.
            let reading = Reading { text, zone: zone.unwrap_or(Some(Tz::UTC)), now };
            match reading.instant(&mut any_local, &mut findings.warnings) {
                Ok(at) => {
                    self.note_past(&field, text, at, now, findings);
                    instants.push(at);
                }
                Err(message) => {
                    faults += 1;
                    findings.errors.add(field, text, message);
                }
            }
        }
        if let (Some(given), false, 0) = (&self.zone, any_local, faults) {
            let message = "zone goes with 'cron' and with local times in 'at'; the offset of each instant says which \
                one is meant, so leave zone out";
            findings.errors.add("trigger.zone", &**given, message);
            return None;
        }
        if faults > 0 {
            return None;
        }
        let instants = findings.errors.keep("trigger.at", (), Instants::new(instants));
        clean?;
        zone?;
        instants.map(Trigger::At)
    }

    fn note_past(
        &self,
        field: &str,
        text: &str,
        at: DateTime<Utc>,
        now: DateTime<Utc>,
        findings: &mut Findings,
    ) {
        let refused = self.past.unwrap_or_default() == PastWord::Refuse;
        if refused && at < shifted(now, seconds(-AT_GRACE_SECONDS)) {
            let refusal = format!(
                "{}; give an instant that is to come, or \"past\": \"fire\" to fire it at once",
                is_past("at", text, at, now)
            );
            findings.past.push(PastInstant { field: field.to_owned(), given: text.to_owned(), at, refusal });
        }
    }
}

/// One text of the list.
struct Reading<'t> {
    text: &'t str,
    zone: Option<Tz>,
    now: DateTime<Utc>,
}

impl Reading<'_> {
    fn instant(&self, any_local: &mut bool, warnings: &mut Vec<String>) -> Result<DateTime<Utc>, String> {
        let at = match read("at", self.text)? {
            Written::Instant(at) => at,
            Written::Local(wall_clock) => {
                let Some(zone) = self.zone else {
                    return Err(format!("{}, or name its zone in 'zone'", no_offset("at", self.text)));
                };
                *any_local = true;
                let resolved = resolve(wall_clock, zone);
                warnings.extend(self.warning(resolved, zone));
                let (Resolved::Once(at) | Resolved::AfterGap(at) | Resolved::First(at)) = resolved;
                at
            }
        };
        let at = bounded("at", self.text, whole_second(at))?;
        within_horizon("at", self.text, at, self.now).map(|()| at)
    }

    fn warning(&self, resolved: Resolved, zone: Tz) -> Option<String> {
        let (text, name) = (self.text, zone.name());
        match resolved {
            Resolved::Once(_) => None,
            Resolved::AfterGap(at) => Some(format!(
                "at '{text}' does not exist in {name}: the clocks jump over it, so the first instant after, {}, is taken",
                local(at, zone)
            )),
            Resolved::First(at) => Some(format!(
                "at '{text}' happens twice in {name}: the first, {}, is taken; write its offset to mean the other",
                local(at, zone)
            )),
        }
    }
}
