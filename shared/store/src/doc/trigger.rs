//! When a job launches, as its client wrote it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_domain::job::Trigger;
use tidegate_domain::time::{CronSpec, DstRules, Gap, Instants, Overlap, Rate, clamped, parse_zone};

/// The trigger of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TriggerDoc {
    /// A cron expression, its zone, and what it says about changes of the clocks.
    #[serde(rename = "c")]
    Cron(String, String, String),
    /// An interval in seconds, its anchor in seconds since the epoch, and whether the client named the anchor.
    #[serde(rename = "r")]
    Rate(u32, i64, bool),
    /// Seconds since the epoch.
    #[serde(rename = "t")]
    At(Vec<i64>),
}

impl From<&Trigger> for TriggerDoc {
    fn from(trigger: &Trigger) -> Self {
        match trigger {
            Trigger::Cron { spec, zone } => {
                Self::Cron(spec.canonical().to_owned(), zone.name().to_owned(), dst_text(spec.dst()))
            }
            Trigger::Rate { rate, anchored } => {
                Self::Rate(rate.every_seconds(), rate.anchor().timestamp(), *anchored)
            }
            Trigger::At(instants) => Self::At(instants.iter().map(|at| at.timestamp()).collect()),
        }
    }
}

impl TriggerDoc {
    pub(crate) fn read(&self) -> Result<Trigger, String> {
        match self {
            Self::Cron(text, zone, dst) => Ok(Trigger::Cron {
                spec: CronSpec::parse(text).map_err(|e| e.to_string())?.with_dst(dst_rules(dst)?),
                zone: parse_zone(zone).map_err(|e| e.to_string())?,
            }),
            Self::Rate(every_seconds, anchor_s, anchored) => {
                let rate = Rate::new((*every_seconds).into(), instant(*anchor_s)?);
                Ok(Trigger::Rate { rate: rate.map_err(|e| e.to_string())?, anchored: *anchored })
            }
            Self::At(seconds) => {
                let instants =
                    seconds.iter().map(|second| instant(*second)).collect::<Result<Vec<_>, _>>()?;
                Ok(Trigger::At(Instants::new(instants).map_err(|e| e.to_string())?))
            }
        }
    }
}

fn instant(second: i64) -> Result<DateTime<Utc>, String> {
    DateTime::from_timestamp(second, 0).map(clamped).ok_or_else(|| "no such instant".to_owned())
}

/// A letter for each rule that is given: `n` or `s` for gaps, `f` or `b` for times that happen twice.
fn dst_text(dst: DstRules) -> String {
    let gap = dst.gap.map(|gap| match gap {
        Gap::NextValid => 'n',
        Gap::Skip => 's',
    });
    let overlap = dst.overlap.map(|overlap| match overlap {
        Overlap::First => 'f',
        Overlap::Both => 'b',
    });
    gap.into_iter().chain(overlap).collect()
}

fn dst_rules(text: &str) -> Result<DstRules, String> {
    let mut dst = DstRules::default();
    for letter in text.chars() {
        match letter {
            'n' => dst.gap = Some(Gap::NextValid),
            's' => dst.gap = Some(Gap::Skip),
            'f' => dst.overlap = Some(Overlap::First),
            'b' => dst.overlap = Some(Overlap::Both),
            other => return Err(format!("'{other}' is no rule for changes of the clocks")),
        }
    }
    Ok(dst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_read_back_and_their_stored_forms_are_pinned() {
        let dst = DstRules { gap: Some(Gap::Skip), overlap: Some(Overlap::Both) };
        let spec = CronSpec::parse("0 9 * * MON-FRI").unwrap().with_dst(dst);
        let zone = parse_zone("Europe/London").unwrap();
        let rate = Rate::new(90, instant(1_790_000_000).unwrap()).unwrap();
        let instants = Instants::new([instant(20).unwrap(), instant(10).unwrap()]).unwrap();
        for (trigger, pinned) in [
            (Trigger::Cron { spec, zone }, r#"{"c":["0 9 * * MON-FRI","Europe/London","sb"]}"#),
            (Trigger::Rate { rate, anchored: true }, r#"{"r":[90,1790000000,true]}"#),
            (Trigger::At(instants), r#"{"t":[10,20]}"#),
        ] {
            let text = serde_json::to_string(&TriggerDoc::from(&trigger)).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<TriggerDoc>(&text).unwrap().read(), Ok(trigger));
        }
    }
}
