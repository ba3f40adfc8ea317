//! Tables that are restored from snapshots of different instants, and repaired.

mod listed;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidegate_domain::ids::ClientId;
use tidegate_domain::job::Attempts;
use tidegate_engine::{RepairOptions, RepairReport};
use tidegate_store::tables::Table;
use tidegate_testkit::rows::{self, Row};
use tokio::time::{Instant, sleep};

use super::herd::options;
use super::jobs::{HERD, SMALL, batch, two_kinds};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};

/// Jobs of each kind, and events of a batch, of the full scenario.
const JOBS: usize = 10_000;
/// The first snapshot is taken so long after midnight, and the last a second later.
const FIRST_CUT: Duration = Duration::from_secs(4);
const BETWEEN_CUTS: Duration = Duration::from_millis(160);
/// How long everything went on after that, which is lost, and how long the restore takes.
const LOST: Duration = Duration::from_secs(45);
const RESTORE_TAKES: u64 = 60;
const LEASE_SECONDS: u32 = 60;
/// Before midnight the region has run for so many minutes: some of what waits launched before what is emitted again.
const AHEAD: u64 = 20;
/// How far before the first snapshot launches are emitted again.
const LOOK_BACK: chrono::Duration = chrono::Duration::minutes(2);

/// In the middle of a herd, tables are cut within a second, in an order that the seed says.
pub(super) async fn repaired(seed: u64, share: f64) -> Result<Report> {
    let jobs = part(JOBS, share);
    let tokens = (jobs / 50).max(3) as u32;
    let mut options = options(seed)?;
    options.began_at = midnight()? - minutes(AHEAD);
    let mut cloud = Cloud::new(options).await?;
    let engine = cloud.engine();
    let (plain, throttled) = (cloud.target("plain").await?, cloud.target("throttled").await?);
    let under =
        two_kinds(&cloud, jobs, (&plain, &throttled), (tokens, LEASE_SECONDS, Attempts::new(5)?)).await?;
    batch(&cloud, jobs, under).await?;
    listed::add(&cloud).await?;
    let key = cloud.register(HERD).await?;
    let work = Work { takes: Duration::from_millis(300), releases_together: 10, result: None };
    let consume = |cloud: &Cloud| Consumer::start(cloud, &throttled, &key, (tokens as usize, work));
    let before = consume(&cloud)?;
    cloud.start()?;

    cloud.until_instant(midnight()? + FIRST_CUT).await;
    listed::change(&cloud).await?;
    let mut snapshots = cut(&cloud, seed).await?;
    listed::cut_earlier(&mut snapshots)?;
    let came_before = cloud.arrivals.count_of(HERD);
    sleep(LOST).await;
    let (came, most_before) = (cloud.arrivals.count_of(HERD), before.most_at_once());
    drop(before);
    cloud.stop();
    for (table, rows) in snapshots {
        rows::replace_all(&cloud.tables(), table, rows).await?;
    }
    cloud.empty_own_queues().await?;
    cloud.until_instant(cloud.now() + minutes(RESTORE_TAKES)).await;

    let mut report = Report::default();
    let began = Instant::now();
    let found =
        cloud.repair(RepairOptions { apply: true, look_back: LOOK_BACK, ..RepairOptions::default() }).await?;
    report.tell(
        "repair",
        format!("took {:?}, emits from {} on, found {:?}", began.elapsed(), found.back_to, by_kind(&found)),
    );
    listed::must_be_found(&mut report, &found);
    let again = cloud.repair(RepairOptions { look_back: LOOK_BACK, ..RepairOptions::default() }).await?;
    let left = again.findings.iter().filter(|finding| !finding.kind.is_for_a_person()).count();
    report.must(left == 0, format!("a second repair finds {left}"));
    report.must(
        came_before < 3 * jobs,
        format!("the tables were cut in the middle: {came_before} of {} had come", 3 * jobs),
    );
    report.tell("came in the time that was lost", (came - came_before).to_string());

    let after = consume(&cloud)?;
    cloud.start()?;
    cloud.until(minutes(60), |cloud| cloud.arrivals.count_of(HERD) >= 3 * jobs).await;
    cloud.until_instant(cloud.now() + minutes(15)).await;
    let late = report.must_arrive(&cloud, HERD, 3 * jobs);
    report.tell("came twice", late.repeated.to_string());
    let most = most_before.max(after.most_at_once());
    report.must(most <= tokens as usize, format!("the limit was kept: {most} at once of {tokens}"));
    let client: ClientId = HERD.parse()?;
    let status = engine.queries().policy(&client, &SMALL.parse()?).await?.context("the policy is gone")?;
    let (held, waiting) = (status.load.in_flight, status.load.waiting);
    report.must((held, waiting) == (0, 0), format!("{held} are held and {waiting} wait at the end"));
    let runs = engine.queries().runs(&client, &"batch".parse()?, None).await?.rows;
    let counted: Vec<u32> = runs.iter().map(|run| run.tally.total()).collect();
    report.must(*counted == [jobs as u32], format!("the batch counts {counted:?} of {jobs} events"));
    report.must_miss_no_minute(&cloud);
    report.must_give_nothing_up(&cloud).await?;
    Ok(report)
}

/// Snapshots of all tables, each some time after the one before.
async fn cut(cloud: &Cloud, seed: u64) -> Result<Vec<(Table, Vec<Row>)>> {
    let mut tables = Table::ALL;
    fastrand::Rng::with_seed(seed).shuffle(&mut tables);
    let mut snapshots = Vec::new();
    for table in tables {
        snapshots.push((table, rows::all(&cloud.tables(), table).await?));
        sleep(BETWEEN_CUTS).await;
    }
    Ok(snapshots)
}

/// How many findings there are of each kind.
fn by_kind(report: &RepairReport) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for finding in &report.findings {
        *kinds.entry(format!("{:?}", finding.kind)).or_default() += 1;
    }
    kinds
}
