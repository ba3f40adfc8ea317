//! The summary: what was promised beside what happened.

use std::fmt;

use serde::Serialize;

use super::LIMIT;
use super::due::Plan;
use super::look_around::LookAround;
use super::score::{Fate, Score};

/// The figures of a demonstration, restarts included.
///
/// *lost* is what was due, did not arrive, and does not wait for a token either. *lateness* is the time from an event's
/// launch to its first arrival at the consumer, for the events that had nothing to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    due: u64,
    delivered: u64,
    released: u64,
    lost: u64,
    duplicates: u64,
    max_in_flight: u64,
    limit: u64,
    lateness_ms: Lateness,
    /// The key and the calls that were shown at the start of one that prints text.
    look_around: LookAround,
    /// Not part of the JSON.
    #[serde(skip)]
    waiting: u64,
}

/// Percentiles by nearest rank; `None` when nothing arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Lateness {
    p50: Option<i64>,
    p99: Option<i64>,
    max: Option<i64>,
}

impl Lateness {
    fn of(mut late_ms: Vec<i64>) -> Self {
        late_ms.sort_unstable();
        let rank = |percent: usize| {
            let rank = (late_ms.len() * percent).div_ceil(100);
            late_ms.get(rank.max(1) - 1).copied()
        };
        Self { p50: rank(50), p99: rank(99), max: rank(100) }
    }
}

impl Summary {
    /// Sums up what was due by `ended_ms`. `waiting` events were due, did not arrive, and are known to wait.
    pub(super) fn new(
        score: &Score,
        plan: Plan,
        ended_ms: i64,
        waiting: u64,
        look_around: LookAround,
    ) -> Self {
        let counted: Vec<&Fate> = score.events.values().filter(|fate| plan.counts(fate, ended_ms)).collect();
        let late_ms = counted.iter().filter(|fate| Plan::is_unhindered(fate)).map(|fate| fate.late_ms);
        let (due, delivered) = (plan.due(ended_ms), counted.len() as u64);
        Self {
            due,
            delivered,
            released: counted.iter().filter(|fate| fate.released).count() as u64,
            lost: due.saturating_sub(delivered + waiting),
            duplicates: score.duplicates() as u64,
            max_in_flight: score.max_in_flight as u64,
            limit: LIMIT.into(),
            lateness_ms: Lateness::of(late_ms.collect()),
            look_around,
            waiting,
        }
    }

    /// Whether nothing was lost and the limit was kept.
    pub(super) fn is_good(&self) -> bool {
        self.lost == 0 && self.max_in_flight <= self.limit
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |late: Option<i64>| late.map_or("-".to_owned(), |ms| ms.to_string());
        let Lateness { p50, p99, max } = self.lateness_ms;
        writeln!(f, "\n  due            {:>5}", self.due)?;
        writeln!(f, "  delivered      {:>5}   ({} more wait for a token)", self.delivered, self.waiting)?;
        writeln!(f, "  released       {:>5}", self.released)?;
        writeln!(f, "  lost           {:>5}", self.lost)?;
        writeln!(f, "  duplicates     {:>5}", self.duplicates)?;
        writeln!(f, "  max in flight  {:>5}   of {}", self.max_in_flight, self.limit)?;
        writeln!(
            f,
            "  lateness       {:>5} ms (median), {} ms (p99), {} ms (most)",
            ms(p50),
            ms(p99),
            ms(max)
        )?;
        match (self.lost, self.max_in_flight <= self.limit) {
            (0, true) => writeln!(f, "\nNothing was lost and the limit was kept."),
            (_, true) => writeln!(f, "\nEVENTS WERE LOST."),
            (0, false) => writeln!(f, "\nTHE LIMIT WAS PASSED."),
            (_, false) => writeln!(f, "\nEVENTS WERE LOST AND THE LIMIT WAS PASSED."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::score::Entry;
    use super::super::score::tests::arrived;
    use super::*;

    fn arrivals(events: u32) -> Score {
        let mut score = Score::default();
        for index in 0..events {
            let event = format!("batch-of-twenty.1.60.{index}");
            score.apply(&arrived(&event, &event, true, 60_000, 60_010 + i64::from(index)));
            score.apply(&Entry::Finished { at_ms: 61_000, event: event.clone() });
            score.apply(&Entry::Released { at_ms: 61_000, event });
        }
        score.apply(&arrived("every-minute.1.120.0", "c", false, 120_000, 120_004));
        score
    }

    fn look_around(plan: Plan) -> LookAround {
        LookAround::new("http://127.0.0.1:1", "tg_demo", plan)
    }

    #[test]
    fn the_json_has_exactly_the_promised_fields() {
        let plan = Plan::new(60_000, 60_500, 60_500);
        let summary = Summary::new(&arrivals(20), plan, 121_000, 0, look_around(plan));
        let json = serde_json::to_string(&summary).unwrap();
        let (json, look_around) = json.split_once(r#","look_around":"#).unwrap();
        let command = "curl -s http://127.0.0.1:1/v1/events/batch-of-twenty.1.60.19/explain -H 'authorization: Bearer tg_demo'";
        assert!(
            look_around.starts_with(r#"{"api_key":"tg_demo","calls":["#) && look_around.contains(command),
            "{look_around}"
        );
        let promised = r#"{"due":22,"delivered":21,"released":20,"lost":1,"duplicates":0,"max_in_flight":1,"limit":3,"lateness_ms":{"p50":10,"p99":12,"max":12}"#;
        assert_eq!(json, promised);
    }

    #[test]
    fn what_waits_is_not_lost_and_what_neither_waits_nor_arrived_is() {
        let plan = Plan::new(60_000, 61_000, 61_000);
        let summary = |waiting| Summary::new(&arrivals(8), plan, 121_000, waiting, look_around(plan));
        assert_eq!((summary(12).lost, summary(12).delivered, summary(12).is_good()), (0, 9, true));
        assert_eq!((summary(11).lost, summary(11).is_good()), (1, false));
    }

    #[test]
    fn more_in_flight_than_the_limit_is_not_good() {
        let mut score = arrivals(0);
        for index in 0..4 {
            let event = format!("batch-of-twenty.1.60.{index}");
            score.apply(&arrived(&event, &event, true, 60_000, 60_010));
        }
        let plan = Plan::new(60_000, 61_000, 61_000);
        let summary = Summary::new(&score, plan, 121_000, 16, look_around(plan));
        assert_eq!((summary.lost, summary.max_in_flight, summary.is_good()), (0, 4, false));
        assert!(summary.to_string().ends_with("THE LIMIT WAS PASSED.\n"));
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Lateness::of(Vec::new()), Lateness { p50: None, p99: None, max: None });
        assert_eq!(
            Lateness::of((1..=200).collect()),
            Lateness { p50: Some(100), p99: Some(198), max: Some(200) }
        );
    }
}
