use tidegate_domain::ids::RunId;
use tidegate_domain::rate_limit::Per;
use tidegate_engine::{ForecastBasis, RunDetail, RunState, RunSummary};
use tidegate_store::runs::Tally;

use super::*;

fn at(second: i64) -> DateTime<Utc> {
    // 21 November 2026, 09:00:00 UTC.
    DateTime::from_timestamp(1_795_251_600 + second, 0).unwrap()
}

/// A run of 1,000 events that was launched at 09:00:00, seen at 09:00:28.
fn run(state: RunState, basis: Vec<ForecastBasis>) -> RunDetail {
    let summary = RunSummary {
        id: RunId::new("nightly".parse().unwrap(), 1, at(0)),
        count: 1_000,
        state,
        tally: Tally::default(),
        reason: None,
        skipped: None,
        last_outcome_at: None,
    };
    RunDetail {
        summary,
        in_flight: 0,
        waiting: 0,
        started_at: None,
        deadline: None,
        rate_per_second: None,
        predicted_finish_at: None,
        basis,
        as_of: at(28),
    }
}

#[test]
fn each_part_of_a_forecast_shows_its_numbers() {
    let so_far = SoFar { done: 310, count: 1_000, since: at(3), per_second: Some(12.4) };
    let none = SoFar { done: 0, per_second: None, ..so_far };
    let rate = RateLimit::new(60, Per::Minute, None).unwrap();
    for (basis, text) in [
        (ForecastBasis::SoFar(so_far), "310 of 1000 events have ended since 09:00:03 UTC, 12.4 a second"),
        (ForecastBasis::SoFar(none), "none of its 1000 events has ended yet, so its speed is not known"),
        (
            ForecastBasis::Left { events: 690, takes: Duration::milliseconds(55_645) },
            "690 are left, so about 56 s more",
        ),
        (ForecastBasis::Rate(rate), "its policy's rate lets no more than 60 a minute begin"),
        (ForecastBasis::Draining { held: 12, limit: 8 }, "its policy drains: 12 in flight, limit 8"),
        (
            ForecastBasis::Paced { ends_at: at(3_600), last_at: at(3_596) },
            "it is paced over its window, which ends at 10:00:00 UTC: its last event begins at 09:59:56 UTC",
        ),
        (ForecastBasis::LeftOutAtDeadline(at(60)), "what is not admitted by 09:01:00 UTC is left out"),
        (
            ForecastBasis::ContinuesAfterDeadline(at(60)),
            "its window ends at 09:01:00 UTC, and it goes on after that",
        ),
        (ForecastBasis::PolicyPaused, "its policy is paused: nothing is admitted until it is resumed"),
        (
            ForecastBasis::PolicyClosed(at(60)),
            "its policy is closed until 09:01:00 UTC: nothing is admitted before",
        ),
        (ForecastBasis::Sidelined, "its client is sidelined: nothing is admitted until it is drained"),
        (ForecastBasis::PolicyDeleted, "its policy was deleted: nothing more is admitted"),
        (ForecastBasis::NotLaunched(at(86_400)), "its launch is in the future, at 2026-11-22 09:00:00 UTC"),
    ] {
        assert_eq!(forecast(&run(RunState::Running, vec![basis])), text);
    }
    let both = vec![ForecastBasis::SoFar(none), ForecastBasis::PolicyDeleted];
    let text = forecast(&run(RunState::Running, both));
    assert!(text.ends_with("not known; its policy was deleted: nothing more is admitted"), "{text}");
}

#[test]
fn a_run_that_is_over_says_how_it_went() {
    let mut done = run(RunState::Finished, vec![ForecastBasis::Finished { since: at(3) }]);
    assert_eq!(forecast(&done), "all 1000 events have ended");
    done.summary.last_outcome_at = Some(at(103));
    done.rate_per_second = Some(10.0);
    assert_eq!(
        forecast(&done),
        "all 1000 events have ended, from 09:00:03 UTC to 09:01:43 UTC, 10.0 a second"
    );

    let mut stopped = run(RunState::Stopped, vec![ForecastBasis::Stopped { done: 310 }]);
    stopped.summary.reason = Some("deadline".to_owned());
    stopped.summary.tally.left_out = 682;
    stopped.in_flight = 8;
    assert_eq!(
        forecast(&stopped),
        "it was stopped (deadline); 310 of 1000 events have ended; 682 were left out; 8 are still with their consumers"
    );
}

#[test]
fn lengths_and_speeds_are_as_exact_as_people_read_them() {
    for (ms, text) in [(0, "0 s"), (1, "1 s"), (119_000, "119 s"), (119_001, "2 min"), (7_200_000, "2.0 h")] {
        assert_eq!(length_text(Duration::milliseconds(ms)), text);
    }
    for (speed, text) in [(0.01234, "0.012"), (0.5, "0.5"), (12.44, "12.4"), (250.4, "250")] {
        assert_eq!(speed_text(speed), text);
    }
}
