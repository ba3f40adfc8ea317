use tidegate_domain::flow::Deadline;
use tidegate_domain::policy::{Policy, PolicyTerms};
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_domain::shares::SharePlan;

use super::*;
use crate::queries::Load;

fn at(second: i64) -> DateTime<Utc> {
    // 21 November 2026, 09:00:00 UTC.
    DateTime::from_timestamp(1_795_251_600 + second, 0).unwrap()
}

/// 310 of 1,000 in 25 s, begun at 09:00:03.
fn progress(policy: Option<&PolicyStatus>) -> Progress<'_> {
    Progress {
        launch_at: at(0),
        count: 1_000,
        state: RunState::Running,
        done: 310,
        in_flight: 8,
        waiting: 682,
        started_at: Some(at(3)),
        last_outcome_at: Some(at(28)),
        window: None,
        throttled: true,
        policy,
        now: at(28),
    }
}

fn policy(in_flight: u32, rate: Option<RateLimit>, paused: bool) -> PolicyStatus {
    let policy = Policy {
        client: "acme".parse().unwrap(),
        id: "small".parse().unwrap(),
        revision: 1,
        terms: PolicyTerms::new(8, 60).unwrap().with_rate(rate),
        paused,
        backpressure: None,
        sidelined: None,
        plan: SharePlan::new(1, 8),
    };
    PolicyStatus { policy, load: Load { in_flight, waiting: 682, waiting_runs: 1 } }
}

fn window(seconds: u64, on_deadline: OnDeadline, paced: bool) -> Option<BatchWindow> {
    Some(BatchWindow { deadline: Deadline::after(seconds).unwrap(), on_deadline, paced })
}

#[test]
fn a_prediction_shows_its_numbers() {
    let plain = policy(8, None, false);
    let forecast = Forecast::of(&progress(Some(&plain)));
    let so_far = SoFar { done: 310, count: 1_000, since: at(3), per_second: Some(12.4) };
    let takes = Duration::milliseconds(55_645);
    assert_eq!(forecast.basis, [ForecastBasis::SoFar(so_far), ForecastBasis::Left { events: 690, takes }]);
    assert_eq!(forecast.rate_per_second, Some(12.4));
    assert_eq!(forecast.finish_at.map(|at| at.timestamp()), Some(at(28 + 55).timestamp()));
}

#[test]
fn what_bounds_the_rest_is_said_and_counted() {
    let slow = policy(8, Some(RateLimit::new(60, Per::Minute, None).unwrap()), false);
    let forecast = Forecast::of(&progress(Some(&slow)));
    assert_eq!(forecast.finish_at, Some(at(28 + 682)));
    let rate = RateLimit::new(60, Per::Minute, None).unwrap();
    assert_eq!(forecast.basis.last(), Some(&ForecastBasis::Rate(rate)));

    let plain = policy(8, None, false);
    let paced = Progress { window: window(3_600, OnDeadline::Continue, true), ..progress(Some(&plain)) };
    let forecast = Forecast::of(&paced);
    assert_eq!(forecast.finish_at, Some(at(3_600)));
    let last_at = at(3_596) + Duration::milliseconds(400);
    let paced = ForecastBasis::Paced { ends_at: at(3_600), last_at };
    assert_eq!(forecast.basis.last(), Some(&paced));

    let short = Progress { window: window(60, OnDeadline::Expire, false), ..progress(Some(&plain)) };
    let forecast = Forecast::of(&short);
    assert_eq!(forecast.finish_at, Some(at(60)));
    assert_eq!(forecast.basis.last(), Some(&ForecastBasis::LeftOutAtDeadline(at(60))));

    let over = Progress { window: window(60, OnDeadline::Continue, false), ..progress(Some(&plain)) };
    let forecast = Forecast::of(&over);
    assert_eq!(forecast.finish_at.map(|at| at.timestamp()), Some(at(83).timestamp()));
    assert_eq!(forecast.basis.last(), Some(&ForecastBasis::ContinuesAfterDeadline(at(60))));
}

#[test]
fn what_cannot_be_predicted_is_not() {
    let paused = policy(8, None, true);
    let forecast = Forecast::of(&progress(Some(&paused)));
    assert_eq!(forecast.finish_at, None);
    assert_eq!(forecast.basis.last(), Some(&ForecastBasis::PolicyPaused));
    let drains = |basis: &ForecastBasis| matches!(basis, ForecastBasis::Draining { .. });
    assert!(!forecast.basis.iter().any(drains), "{forecast:?}");

    let lowered = policy(12, None, false);
    let fresh = Progress { done: 0, waiting: 988, in_flight: 12, ..progress(Some(&lowered)) };
    assert_eq!(
        Forecast::of(&fresh),
        Forecast {
            rate_per_second: None,
            finish_at: None,
            basis: vec![
                ForecastBasis::SoFar(SoFar { done: 0, count: 1_000, since: at(3), per_second: None }),
                ForecastBasis::Draining { held: 12, limit: 8 },
            ],
        }
    );
    let forecast = Forecast::of(&progress(None));
    assert_eq!(forecast.basis.last(), Some(&ForecastBasis::PolicyDeleted));
    assert_eq!(forecast.finish_at, None);

    let tomorrow = Progress { launch_at: at(86_400), state: RunState::Waiting, ..progress(Some(&lowered)) };
    assert_eq!(Forecast::of(&tomorrow).basis, [ForecastBasis::NotLaunched(at(86_400))]);
}

#[test]
fn a_run_that_is_over_says_how_it_went() {
    let done =
        Progress { state: RunState::Finished, done: 1_000, last_outcome_at: Some(at(103)), ..progress(None) };
    let forecast = Forecast::of(&done);
    assert_eq!(forecast.basis, [ForecastBasis::Finished { since: at(3) }]);
    assert_eq!((forecast.rate_per_second, forecast.finish_at), (Some(10.0), None));
    let stopped = Progress { state: RunState::Stopped, ..progress(None) };
    assert_eq!(Forecast::of(&stopped).basis, [ForecastBasis::Stopped { done: 310 }]);
}
