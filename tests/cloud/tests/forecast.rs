//! A forecast of time and lateness equals what the model of AWS shows: invocations and GB-seconds of functions, and how late
//! events come. Units and requests are held on the embedded stores, in `tests/simulation/tests/forecast`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints its figures"
)]

use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, TimeZone as _, Utc};
use serde_json::{Value, json};
use tidegate_cloud::arrivals::Lateness;
use tidegate_cloud::cloud::{Cloud, Options};
use tidegate_cloud::consumer::{Consumer, Work};
use tidegate_cloud::lambda::{AllPollers, Function, Pollers, Schedule};
use tidegate_cloud::limits::NEW_ACCOUNT_CONCURRENCY;
use tidegate_domain::limits::TOKENS_PER_GROUP;
use tidegate_forecast::account::Account;
use tidegate_forecast::facts::{Created, Job, Policy, Setting};
use tidegate_forecast::limits::HANDOVER;
use tidegate_forecast::load::Load;
use tidegate_forecast::report::Report;

const CLIENT: &str = "acme";
/// Jobs of one bulk call.
const AT_ONCE: usize = 500;
/// Minutes that are played, and when the first event is due.
const MINUTES: i64 = 12;
const FIRST_MINUTE: i64 = 6;
/// By how much of what the model shows a forecast of time may be wrong.
const ERROR: f64 = 0.25;
/// The same in a new account.
const NEW_ERROR: f64 = 0.65;
/// By how much of what the model shows a forecast of lateness may be wrong, and by how many seconds in any case.
const LATE_ERROR: f64 = 0.25;
const LATE_SECONDS: f64 = 0.25;
/// By how much of what the model shows a forecast of units may be wrong, where it is compared: conflicts and reads that lag are
/// in what the model shows.
const UNITS_ERROR: f64 = 0.25;
/// How far a forecast may lie above what the model shows where consumers release tens of several slot groups: the model's queues
/// keep their order, so that what was granted together is released together, and forecasts do not count on it.
const IN_ORDER_ERROR: f64 = 0.65;
/// By how much those of reads may differ: which packs a process still knows is a matter of which one gets a call, and seeds
/// differ by a tenth.
const READS_ERROR: f64 = 0.35;
/// What the first tick of a new deployment reads more than others, in read units.
const FIRST_READS: f64 = 420.0;

/// A load: so many one-time jobs of so many events, so far apart.
#[derive(Clone, Copy)]
struct Case {
    jobs: usize,
    count: u32,
    apart_ms: i64,
    /// Tokens, how many are released together, and for how long an event is worked on, in milliseconds.
    throttle: Option<(u32, u32, u64)>,
    /// Policies that the jobs lie under in turn.
    policies: usize,
    account: In,
}

/// Where it runs.
#[derive(Clone, Copy, PartialEq)]
enum In {
    /// An account with 1,000 invocations at once, whose dispatch queue may have all of them.
    Large,
    /// The same, with provisioned pollers.
    Provisioned,
    /// A new account, with the template as it is.
    New,
}

/// What the model shows, in the mean of some plays.
#[derive(Default)]
struct Shown {
    invocations: f64,
    gb_seconds: f64,
    median_s: f64,
    p99_s: f64,
    most_s: f64,
    /// From the first instant to the last event.
    drained_s: f64,
    writes: f64,
    reads: f64,
}

const NOTHING: Case =
    Case { jobs: 0, count: 1, apart_ms: 0, throttle: None, policies: 1, account: In::Large };

fn began_at() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 24, 12, 0, 0).unwrap()
}

impl Case {
    fn launches(self) -> impl Iterator<Item = DateTime<Utc>> {
        let first = began_at() + chrono::Duration::minutes(FIRST_MINUTE);
        (0..self.jobs as i64)
            .map(move |place| first + chrono::Duration::seconds(place * self.apart_ms / 1_000))
    }

    /// Seeds that are played. In a new account it is chance which handlers are sent away: the median lateness of one seed is a third
    /// above that of another.
    fn seeds(self) -> Range<u64> {
        match self.account {
            In::New => 7..15,
            In::Large | In::Provisioned => 7..8,
        }
    }

    async fn play_all(self) -> Shown {
        let (mut mean, plays) = (Shown::default(), self.seeds().count() as f64);
        for seed in self.seeds() {
            let shown = self.play(seed).await;
            mean.invocations += shown.invocations / plays;
            mean.gb_seconds += shown.gb_seconds / plays;
            mean.median_s += shown.median_s / plays;
            mean.p99_s += shown.p99_s / plays;
            mean.most_s += shown.most_s / plays;
            mean.drained_s += shown.drained_s / plays;
            mean.writes += shown.writes / plays;
            mean.reads += shown.reads / plays;
        }
        mean
    }

    async fn play(self, seed: u64) -> Shown {
        let mut options = Options::new(seed, began_at());
        options.schedule = Schedule { phase: Duration::from_secs(20), ..Schedule::default() };
        match self.account {
            In::Large => {}
            In::Provisioned => options.pollers.dispatch = Pollers::Provisioned { minimum: 20, maximum: 100 },
            In::New => {
                options.concurrency = NEW_ACCOUNT_CONCURRENCY;
                options.pollers = AllPollers::as_deployed();
            }
        }
        let mut cloud = Cloud::new(options).await.unwrap();
        cloud.engine().tick().await.unwrap();
        let key = cloud.register(CLIENT).await.unwrap();
        let queue = cloud.target("inbox").await.unwrap();
        let mut consumer = None;
        if let Some((tokens, together, work_ms)) = self.throttle {
            for number in 0..self.policies {
                let policy =
                    json!({"policy_id": policy(number), "max_in_flight": tokens, "lease_seconds": 60});
                post(&cloud, "/v1/policies", &key, &policy).await;
            }
            let takes = Duration::from_millis(work_ms);
            let work = Work { takes, releases_together: together as usize, result: None };
            let workers = tokens.div_ceil(together) as usize * self.policies + 2;
            consumer = Some(Consumer::start(&cloud, &queue, &key, (workers, work)).unwrap());
        }
        let before = (totals(&cloud), cloud.usage());
        let launches: Vec<_> = self.launches().collect();
        let launches: Vec<_> = launches.into_iter().enumerate().collect();
        for some in launches.chunks(AT_ONCE) {
            let jobs = some.iter().map(|(place, at)| {
                let mut job = json!({"trigger": {"at": at.to_rfc3339()}, "target": {"sqs": {"queue_url": queue}}, "count": self.count});
                if self.throttle.is_some() {
                    job["policy_id"] = json!(policy(place % self.policies));
                }
                job
            });
            post(&cloud, "/v1/jobs/bulk", &key, &json!({"jobs": jobs.collect::<Vec<_>>()})).await;
        }
        cloud.start().unwrap();
        cloud.until_instant(began_at() + chrono::Duration::minutes(MINUTES)).await;
        let after = totals(&cloud);
        let used = cloud.usage().since(&before.1);
        let arrivals = cloud.arrivals.of(CLIENT);
        let late = Lateness::of(&arrivals);
        let first = began_at() + chrono::Duration::minutes(FIRST_MINUTE);
        let last = arrivals.iter().map(|arrival| arrival.first_at).max().unwrap_or(first);
        let (writes, reads) = cloud.hottest();
        println!("    {writes:?}\n    {reads:?}");
        assert_eq!(late.events, self.jobs * self.count as usize);
        drop(consumer);
        Shown {
            invocations: after.0 - before.0.0,
            gb_seconds: after.1 - before.0.1,
            median_s: late.median_ms as f64 / 1e3,
            p99_s: late.p99_ms as f64 / 1e3,
            most_s: late.most_ms as f64 / 1e3,
            drained_s: (last - first).num_milliseconds() as f64 / 1e3,
            writes: used.write_units(),
            reads: used.read_units(),
        }
    }

    fn forecast(self) -> Report {
        let job = Job {
            policy: self.throttle.map(|_| 0),
            count: self.count,
            is_packed: self.throttle.is_some() && self.count == 1,
            created: Created::Generated,
            ..Job::default()
        };
        let policies = self.throttle.iter().flat_map(|of| std::iter::repeat_n(of, self.policies));
        let policies = policies.enumerate().map(|(number, (tokens, together, work_ms))| Policy {
            id: policy(number),
            tokens: *tokens,
            rate: None,
            work_seconds: *work_ms as f64 / 1e3,
            released_together: *together,
        });
        let large = Account { lambda_concurrency: 1_000.0, dispatch_maximum: 1_000.0, ..Account::default() };
        let provisioned = Account { minimum_pollers: 20.0, maximum_pollers: 100.0, ..large };
        let setting = Setting {
            jobs: (0..self.jobs)
                .map(|place| Job { policy: job.policy.map(|_| place % self.policies), ..job })
                .collect(),
            policies: policies.collect(),
            zones: 1,
            from_s: began_at().timestamp(),
            to_s: began_at().timestamp() + MINUTES * 60,
            scale: 1.0,
            created_together: AT_ONCE.min(self.jobs.max(1)) as f64,
            creates_per_second: None,
            largest_partition: None,
            handover_seconds: HANDOVER.as_secs_f64(),
            account: match self.account {
                In::Large => large,
                In::Provisioned => provisioned,
                In::New => Account::default(),
            },
        };
        let mut load = Load::new(&setting);
        self.launches().enumerate().for_each(|(place, at)| load.fire(at.timestamp(), place));
        let report = Report::of(load, &setting);
        for (step, count) in report.steps.counted() {
            println!("    {step:?}: {count:.1}");
        }
        report
    }
}

fn policy(number: usize) -> String {
    format!("policy-{number}")
}

/// The latest of all policies, or of what none throttles; and when the last event of all comes, in seconds after the first
/// instant.
fn latest(report: &Report, case: Case) -> (tidegate_forecast::report::Lateness, f64) {
    let of_policies = report.policies.iter().map(|policy| policy.lateness);
    let late = of_policies.max_by(|a, b| a.p99_s.total_cmp(&b.p99_s)).unwrap_or(report.unthrottled_lateness);
    let span_s = case.apart_ms as f64 * (case.jobs.saturating_sub(1)) as f64 / 1e3;
    (late, span_s + late.most_s)
}

async fn post(cloud: &Cloud, path: &str, key: &str, body: &Value) {
    let (status, answer) = cloud.caller().call("POST", path, key, body).await.unwrap();
    assert!(status.is_success(), "{status} {answer}");
}

/// Invocations and GB-seconds of all functions.
fn totals(cloud: &Cloud) -> (f64, f64) {
    let invoked = Function::ALL.map(|function| cloud.invoked(function));
    for (function, of) in Function::ALL.iter().zip(&invoked) {
        println!(
            "    {function:?}: {} invocations, {} at once, {:.2} GB-s",
            of.begun, of.at_once, of.gb_seconds
        );
    }
    (invoked.iter().map(|of| of.begun as f64).sum(), invoked.iter().map(|of| of.gb_seconds).sum())
}

/// Plays a case and holds the forecast against it.
async fn hold(name: &str, case: Case) {
    let Shown { invocations, gb_seconds, median_s, p99_s, most_s, drained_s, writes, reads } =
        case.play_all().await;
    let report = case.forecast();
    let (forecast_late, forecast_drained_s) = latest(&report, case);
    let mut wrong = Vec::new();
    let mut compare = |what: &str, shown: f64, forecast: f64, may_be: f64| {
        println!(
            "{name}: {what}: {shown:.2} shown, {forecast:.2} forecast, {:+.1} %",
            100.0 * (forecast / shown - 1.0)
        );
        if (shown - forecast).abs() > may_be {
            wrong.push(format!("{what}: {shown:.2} shown, {forecast:.2} forecast"));
        }
    };
    let cost = report.total.cost;
    // Few handlers at once are sent away now and then: they come again with fewer messages each, which is not counted.
    let error = if case.account == In::New { NEW_ERROR } else { ERROR };
    let is_in_order =
        case.throttle.is_some_and(|(tokens, together, _)| together > 1 && tokens > TOKENS_PER_GROUP);
    let beside = |error: f64| if is_in_order { IN_ORDER_ERROR } else { error };
    compare("invocations", invocations, cost.lambda_requests, invocations * error + 3.0);
    compare("GB-seconds", gb_seconds, cost.gb_seconds, gb_seconds * beside(error) + 0.1);
    if case.jobs > 0 {
        for (what, shown, forecast) in [
            ("median lateness", median_s, forecast_late.median_s),
            ("p99 lateness", p99_s, forecast_late.p99_s),
            ("most lateness", most_s, forecast_late.most_s),
        ] {
            compare(what, shown, forecast, shown * beside(LATE_ERROR) + LATE_SECONDS);
        }
        let may_be = drained_s * beside(LATE_ERROR) + LATE_SECONDS;
        compare("the last event after", drained_s, forecast_drained_s, may_be);
        compare("write units", writes, cost.write_units, writes * beside(UNITS_ERROR) + 10.0);
        compare("read units", reads, cost.read_units, reads * READS_ERROR + FIRST_READS);
    }
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}

macro_rules! cases {
    ($($test:ident = $case:expr;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            hold(stringify!($test), $case).await;
        }
    )*};
}

cases! {
    nothing_fires = NOTHING;
    a_herd = Case { jobs: 5_000, ..NOTHING };
    a_herd_with_provisioned_pollers = Case { jobs: 5_000, account: In::Provisioned, ..NOTHING };
    a_herd_on_a_new_account = Case { jobs: 20_000, account: In::New, ..NOTHING };
    jobs_over_a_minute = Case { jobs: 600, apart_ms: 100, ..NOTHING };
    a_batch = Case { jobs: 1, count: 30_000, ..NOTHING };
    a_throttled_batch_singly = Case { jobs: 1, count: 500, throttle: Some((10, 1, 500)), ..NOTHING };
    a_throttled_batch_in_tens = Case { jobs: 1, count: 2_000, throttle: Some((10, 10, 500)), ..NOTHING };
    throttled_jobs_over_a_minute = Case { jobs: 240, apart_ms: 250, throttle: Some((10, 1, 100)), ..NOTHING };
    throttled_jobs_of_one_second = Case { jobs: 500, throttle: Some((10, 1, 500)), ..NOTHING };
    many_policies = Case { jobs: 1_000, policies: 100, throttle: Some((2, 1, 20)), ..NOTHING };
    one_policy = Case { jobs: 5_000, throttle: Some((100, 10, 20)), ..NOTHING };
}
