//! Functions that are killed between any two of their requests.

use anyhow::Result;

use super::herd::options;
use super::jobs::{HERD, NEIGHBOUR, two_kinds};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::lambda::Function;

/// Jobs of each kind that are due at once.
const JOBS: usize = 60;
/// After how many requests a function is killed at the most, in the full scenario.
const REQUESTS: usize = 60;
/// How many invocations are killed one after the other.
const KILLS: u32 = 3;

/// Every function, after each number of requests, three invocations running.
pub(super) async fn anywhere(seed: u64, share: f64) -> Result<Report> {
    let mut report = Report::default();
    let (mut killed, mut repeated) = (0, 0);
    for function in [Function::Emitter, Function::Handler] {
        for requests in 0..part(REQUESTS, share) {
            let found = killed_at(seed, function, requests as u64).await?;
            killed += found.killed;
            repeated += found.repeated;
            let holds = found.events == 2 * JOBS && found.minutes >= found.minutes_due && found.dead == 0;
            if !holds {
                report.must(false, format!("{function:?} killed after {requests} requests: {found:?}"));
            }
        }
    }
    report.must(killed > 0, format!("{killed} invocations were killed, and nothing was lost"));
    report.tell("came twice", repeated.to_string());
    Ok(report)
}

/// What one region showed.
#[derive(Debug)]
struct Found {
    killed: u64,
    events: usize,
    repeated: u32,
    minutes: usize,
    minutes_due: usize,
    dead: usize,
}

async fn killed_at(seed: u64, function: Function, requests: u64) -> Result<Found> {
    let mut cloud = Cloud::new(options(seed)?).await?;
    let queue = cloud.target("herd").await?;
    two_kinds(&cloud, JOBS, (&queue, &queue), (JOBS as u32, 600)).await?;
    cloud.start()?;
    // The emitter plans two minutes ahead.
    let ahead = if function == Function::Emitter { 2 } else { 0 };
    cloud.until_instant(midnight()? - minutes(ahead)).await;
    for _ in 0..KILLS {
        cloud.kill_after(function, requests);
        cloud.until_instant(cloud.now() + minutes(1)).await;
    }
    // What a killed function had in hand comes again after six times its time-out.
    cloud.until_instant(midnight()? + minutes(30)).await;
    let arrivals = cloud.arrivals.of(HERD);
    Ok(Found {
        killed: cloud.invoked(function).killed,
        events: arrivals.len(),
        repeated: arrivals.iter().map(|arrival| arrival.times - 1).sum(),
        minutes: cloud.arrivals.count_of(NEIGHBOUR),
        minutes_due: 30,
        dead: cloud.dead_letters().await?.len(),
    })
}
