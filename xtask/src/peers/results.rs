//! What was played: figures and checks of each round, and their medians.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::peers::systems::System;
use crate::peers::works::Work;

/// One play of one work on one system, as the player printed it.
#[derive(Debug, Clone, Default)]
pub struct Played {
    pub figures: Map<String, Value>,
    /// What the consumer counted; a work that only creates has no consumer.
    pub check: Option<Check>,
}

/// What the consumer counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Check {
    pub wanted: u64,
    pub arrived: u64,
    /// Arrivals before the instant that was asked for.
    pub early: u64,
    /// The most events that were in the consumer's hands at once.
    pub most_in_hand: u64,
}

impl Played {
    /// From the player's line.
    pub fn read(line: &Value) -> Self {
        let figures = line["figures"].as_object().cloned().unwrap_or_default();
        let check = line.get("check").map(|check| Check {
            wanted: check["wanted"].as_u64().unwrap_or_default(),
            arrived: check["arrived"].as_u64().unwrap_or_default(),
            early: check["early"].as_u64().unwrap_or_default(),
            most_in_hand: check["most_in_hand"].as_u64().unwrap_or_default(),
        });
        Self { figures, check }
    }

    /// What did not hold that must hold at any speed.
    fn broken(&self, work: &Work) -> Vec<String> {
        let mut broken = Vec::new();
        for figure in &work.figures {
            if self.figures.get(figure.key).and_then(Value::as_f64).is_none() {
                broken.push(format!("gave no figure for {}", figure.title));
            }
        }
        broken.extend(self.remark(work));
        broken
    }

    /// What a figure of this play must not be shown without.
    pub fn remark(&self, work: &Work) -> Option<String> {
        let Check { wanted, arrived, early, most_in_hand } = self.check?;
        let limit = work.play["limit"].as_u64().unwrap_or(u64::MAX);
        if arrived < wanted {
            Some(format!("only {arrived} of {wanted} came"))
        } else if most_in_hand > limit {
            Some(format!("limit exceeded: {most_in_hand} of {limit}"))
        } else {
            (early > 0).then(|| format!("{early} came early"))
        }
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.figures {
            match value.as_f64() {
                Some(number) => write!(f, "{name} {number:.3}  ")?,
                None => write!(f, "{name} -  ")?,
            }
        }
        match self.check {
            Some(Check { wanted, arrived, most_in_hand, .. }) => {
                write!(f, "({arrived} of {wanted}, {most_in_hand} at once)")
            }
            None => Ok(()),
        }
    }
}

/// All plays of a run.
#[derive(Debug, Default)]
pub struct Results {
    plays: BTreeMap<(&'static str, System), Vec<Played>>,
    failures: Vec<(&'static str, System, String)>,
}

impl Results {
    pub fn add(&mut self, work: &'static str, system: System, played: Played) {
        self.plays.entry((work, system)).or_default().push(played);
    }

    pub fn failed(&mut self, work: &'static str, system: System, error: &anyhow::Error) {
        self.failures.push((work, system, format!("{error:#}")));
    }

    /// Whether no play of a work could be finished on a system, and at least one was begun.
    pub fn only_failed(&self, work: &str, system: System) -> bool {
        let began = self.failures.iter().any(|(name, of, _)| *name == work && *of == system);
        began && self.of(work, system).is_empty()
    }

    pub fn of(&self, work: &str, system: System) -> &[Played] {
        let found = self.plays.iter().find(|((name, of), _)| *name == work && *of == system);
        found.map_or(&[], |(_, plays)| plays)
    }

    /// The median over the rounds of a figure; nothing when no round has it.
    pub fn median(&self, work: &str, system: System, key: &str) -> Option<f64> {
        let of_rounds = self.of(work, system).iter();
        median(of_rounds.filter_map(|played| played.figures.get(key)?.as_f64()).collect())
    }

    /// Everything that must hold at any speed and did not.
    pub fn broken(&self, works: &[Work]) -> Vec<String> {
        let failed =
            |(work, system, why): &(&str, System, String)| format!("{work} on {}: {why}", system.name());
        let mut broken: Vec<String> = self.failures.iter().map(failed).collect();
        for work in works {
            for system in System::ALL {
                for played in self.of(work.name, system) {
                    let of_play = played.broken(work);
                    broken.extend(
                        of_play.iter().map(|what| format!("{} on {}: {what}", work.name, system.name())),
                    );
                }
            }
        }
        broken
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[half]),
        _ => Some((values[half - 1] + values[half]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::peers::options::Options;
    use crate::peers::works;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn a_play_that_lost_an_event_or_exceeded_its_limit_is_broken() {
        let options = Options::read(&["--quick".to_owned()]).unwrap();
        let works = works::all(&options);
        let work = works.iter().find(|work| work.name == "batch").unwrap();
        let cases = [
            (json!({"wanted": 500, "arrived": 500, "early": 0, "most_in_hand": 50}), 50.0.into(), 0),
            (json!({"wanted": 500, "arrived": 499, "early": 0, "most_in_hand": 50}), 50.0.into(), 1),
            (json!({"wanted": 500, "arrived": 500, "early": 0, "most_in_hand": 51}), 50.0.into(), 1),
            (json!({"wanted": 500, "arrived": 500, "early": 0, "most_in_hand": 50}), Value::Null, 1),
        ];
        for (check, figure, broken) in cases {
            let line = json!({"figures": {"from_first_per_second": figure}, "check": check});
            let mut results = Results::default();
            results.add("batch", System::Tidegate, Played::read(&line));
            assert_eq!(results.broken(std::slice::from_ref(work)).len(), broken, "{line}");
        }
    }
}
