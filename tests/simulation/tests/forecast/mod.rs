//! A forecast of a small day equals what the engine consumes on the embedded stores.
//!
//! Each case plays some minutes of one kind of load: ticks, the dispatch queue second by second, a consumer. Write units,
//! read units and requests to SQS are compared with the forecast of the same firings. Each test prints its figures.

mod day;

use day::{Day, Jobs, Throttle};

/// By how much of what is consumed a forecast may be wrong, in both directions.
const ERROR: f64 = 0.10;
/// What may be wrong of it in any case, in units or requests: a minute has that much to round.
const ROUNDING: f64 = 6.0;

/// Plays a day and holds the forecast against it.
async fn hold(name: &str, day: Day) {
    let may_exceed = day.may_exceed;
    let (used, forecast) = (day.play().await, day.forecast());
    let mut wrong = Vec::new();
    for (what, used, forecast) in [
        ("write units", used.write_units, forecast.write_units),
        ("read units", used.read_units, forecast.read_units),
        ("requests", used.sqs_requests, forecast.sqs_requests),
    ] {
        println!(
            "{name}: {what}: {used:.1} used, {forecast:.1} forecast, {:+.1} %",
            100.0 * (forecast / used - 1.0)
        );
        if used - forecast > used * ERROR + ROUNDING || forecast - used > used * may_exceed + ROUNDING {
            wrong.push(format!("{what}: {used:.1} used, {forecast:.1} forecast"));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}

const NOTHING: Day = Day { jobs: Vec::new(), throttle: None, zones: 0, may_exceed: ERROR };

fn unthrottled(jobs: Jobs) -> Day {
    Day { jobs: vec![jobs], ..NOTHING }
}

fn throttled(jobs: Jobs, tokens: u32, together: u32, work_seconds: u32) -> Day {
    Day {
        jobs: vec![jobs],
        throttle: Some(Throttle { policies: 1, tokens, together, work_seconds }),
        ..NOTHING
    }
}

/// The same, of which the forecast may be so far above what is used.
fn above(may_exceed: f64, day: Day) -> Day {
    Day { may_exceed, ..day }
}

/// The same under so many policies.
fn under(policies: usize, day: Day) -> Day {
    let throttle = day.throttle.map(|throttle| Throttle { policies, ..throttle });
    Day { throttle, ..day }
}

macro_rules! days {
    ($($test:ident = $day:expr;)*) => {$(
        #[tokio::test]
        async fn $test() {
            hold(stringify!($test), $day).await;
        }
    )*};
}

days! {
    nothing_fires = NOTHING;
    nothing_fires_in_eight_zones = Day { zones: 8, ..NOTHING };
    one_time_jobs_of_one_second = unthrottled(Jobs::one_time(1_000));
    one_time_jobs_with_names = unthrottled(Jobs::one_time(300).named());
    one_time_jobs_over_a_minute = unthrottled(Jobs::one_time(1_200).apart_ms(50));
    one_time_jobs_over_six_minutes = unthrottled(Jobs::one_time(360).apart_ms(1_000));
    one_time_jobs_of_which_failures_are_kept = unthrottled(Jobs::one_time(500).failures_only());
    more_than_a_tick_emits = unthrottled(Jobs::one_time(4_000));
    cron_jobs_of_one_second = unthrottled(Jobs::cron(500));
    a_lone_job = unthrottled(Jobs::one_time(1));
    a_batch = unthrottled(Jobs::one_time(1).of(10_000));
    small_batches = unthrottled(Jobs::cron(50).of(20));
    a_throttled_batch_singly = throttled(Jobs::one_time(1).of(3_000), 10, 1, 0);
    a_throttled_batch_in_tens = throttled(Jobs::one_time(1).of(3_000), 10, 10, 0);
    a_throttled_batch_under_many_tokens = throttled(Jobs::one_time(1).of(5_000), 100, 10, 2);
    a_throttled_batch_of_one_delivery_singly = throttled(Jobs::one_time(1).of(3_000).once(), 10, 1, 0);
    a_throttled_batch_of_one_delivery_in_tens = throttled(Jobs::one_time(1).of(3_000).once(), 100, 10, 0);
    throttled_batches = throttled(Jobs::cron(40).of(20), 10, 10, 0);
    throttled_singles_singly = throttled(Jobs::one_time(1_000), 10, 1, 0);
    throttled_singles_in_tens = throttled(Jobs::one_time(1_000), 10, 10, 0);
    throttled_cron_jobs_in_tens = throttled(Jobs::cron(1_000), 10, 10, 0);
    throttled_singles_over_a_minute = throttled(Jobs::one_time(1_000).apart_ms(60), 10, 1, 0);
    throttled_singles_that_wait = throttled(Jobs::one_time(1_000).apart_ms(60), 10, 1, 1);
    lone_throttled_singles = throttled(Jobs::one_time(6).apart_ms(61_000), 10, 1, 0);
    throttled_singles_two_seconds_apart = throttled(Jobs::one_time(56).apart_ms(2_000), 10, 1, 0);
    throttled_singles_in_pairs = throttled(Jobs::one_time(240).apart_ms(500), 10, 1, 1);
    a_few_throttled_singles_of_one_second = throttled(Jobs::one_time(8), 10, 1, 0);
    few_throttled_singles = throttled(Jobs::one_time(30).apart_ms(12_000), 10, 1, 0);
    one_time_jobs_with_payloads = unthrottled(Jobs::one_time(300).payload(1_000));
    named_one_time_jobs_with_payloads = unthrottled(Jobs::one_time(300).named().payload(1_000));
    one_time_jobs_of_six_instants = unthrottled(Jobs::one_time(100).instants(6));
    one_time_jobs_for_http = unthrottled(Jobs::one_time(200).http());
    a_batch_for_http = unthrottled(Jobs::one_time(1).of(400).http());
    // Ten messages are handled together here; on AWS each comes when its token was granted.
    a_throttled_batch_for_http = above(1.6, throttled(Jobs::one_time(1).of(300).http(), 10, 1, 0));
    throttled_batches_of_heavy_events = throttled(Jobs::cron(20).of(20).cost(6), 12, 1, 0);
    singles_under_many_policies = above(0.5, under(100, throttled(Jobs::one_time(1_000), 2, 1, 0)));
    singles_and_batches = Day {
        jobs: vec![Jobs::one_time(500), Jobs::cron(20).of(30), Jobs::one_time(100).apart_ms(500)],
        ..NOTHING
    };
}
