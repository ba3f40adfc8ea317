//! One large run under one policy, with consumers that release over the API.

use std::time::Duration;

use anyhow::Result;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Count, Terms};

use super::herd::options;
use super::jobs::{HERD, one_times, policy, terms};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};

/// How long a consumer may hold a token.
const LEASE_SECONDS: u32 = 60;

/// Write and read units of tables that were warmed up: 5,000 releases a second take more than new tables have.
const WARM: (f64, f64) = (20_000.0, 60_000.0);

/// A run, its policy and its consumers.
struct Load {
    events: usize,
    tokens: u32,
    /// Workers that each receive up to ten events.
    workers: usize,
    work: Work,
    /// Write units that an event may take.
    units: f64,
    /// Releases a second that are asked for, between the first and the last tenth of the events; told only when `None`.
    per_second: Option<f64>,
    /// Write and read units a second that the tables take as they begin; those of new tables when `None`.
    warm: Option<(f64, f64)>,
}

/// 1,000,000 events under 1,000 tokens, 5,000 releases a second, each with a text.
pub(super) async fn large(seed: u64, share: f64) -> Result<Report> {
    let takes = Duration::from_millis(100);
    let work = Work { takes, releases_together: 10, result: Some("42 rows were written") };
    let events = part(1_000_000, share);
    // In a shorter one the ramp is most of it.
    let per_second = (share >= 1.0).then_some(5_000.0);
    let load = Load { events, tokens: 1_000, workers: 400, work, units: 2.3, per_second, warm: Some(WARM) };
    run(seed, &load).await
}

/// 10 tokens and jobs of 20 ms, released one by one.
pub(super) async fn short(seed: u64, share: f64) -> Result<Report> {
    let work = Work { takes: Duration::from_millis(20), releases_together: 1, result: None };
    let load = Load {
        events: part(10_000, share),
        tokens: 10,
        workers: 10,
        work,
        units: 2.0,
        per_second: None,
        warm: None,
    };
    run(seed, &load).await
}

async fn run(seed: u64, load: &Load) -> Result<Report> {
    let mut options = options(seed)?;
    options.tables.warm = load.warm;
    let mut cloud = Cloud::new(options).await?;
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    engine.tick().await?;
    let id: PolicyId = "large".parse()?;
    policy(&engine, &id, load.tokens, LEASE_SECONDS).await?;
    let count = Count::new(u64::try_from(load.events)?)?;
    let of_many = Terms { count, policy: Some(id), ..terms(&queue)? };
    one_times(&engine, midnight()?, std::iter::once(of_many)).await?;
    let key = cloud.register(HERD).await?;
    let consumer = Consumer::start(&cloud, &queue, &key, (load.workers, load.work))?;
    cloud.start()?;
    cloud.until_instant(midnight()?).await;
    let before = cloud.usage();
    let came = |events: usize| {
        let cloud = &cloud;
        async move { cloud.until(minutes(90), |cloud| cloud.arrivals.count_of(HERD) >= events).await }
    };
    let tenth = load.events / 10;
    let (first, steady, rest) = (came(tenth).await, came(9 * tenth).await, came(load.events).await);
    let took = first.zip(steady).zip(rest).map(|((first, steady), rest)| first + steady + rest);
    let used = cloud.usage().since(&before);
    cloud.until_instant(cloud.now() + minutes(3)).await;
    let mut report = Report::default();
    let ideal = load.work.takes.mul_f64(load.events as f64 / f64::from(load.tokens));
    report.tell("took", format!("{took:?} from midnight on, {ideal:?} at best"));
    if let Some(took) = took {
        let share = 100.0 * ideal.as_secs_f64() / took.as_secs_f64();
        report.tell(
            "efficiency",
            format!("{share:.0} %, {:.0} a second", load.events as f64 / took.as_secs_f64()),
        );
    }
    if let Some(steady) = steady {
        let rate = 8.0 * tenth as f64 / steady.as_secs_f64();
        let rate_told = format!("{rate:.0} releases a second between the first and the last tenth");
        match load.per_second {
            Some(least) => report.must(rate >= least, rate_told),
            None => report.tell("in between", rate_told),
        }
    }
    let late = report.must_arrive(&cloud, HERD, load.events);
    report.tell("came twice", late.repeated.to_string());
    report.tell("releases", format!("{:?}", consumer.answers()));
    let most = consumer.most_at_once();
    report.must(most <= load.tokens as usize, format!("the limit was kept: {most} at once"));
    report.must_heat_no_key(&cloud);
    let per_event = used.write_units() / load.events as f64;
    report.must(per_event <= load.units, format!("{per_event:.2} W per event, {} at the most", load.units));
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, load.events);
    Ok(report)
}
