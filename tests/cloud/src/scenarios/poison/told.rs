//! What is said of each kind of poison, and where.

use anyhow::Result;
use tidegate_domain::occurrence::SkipReason;
use tidegate_store::tables::Table;
use tidegate_testkit::rows::{self, Row};

use super::super::{Report, minutes};
use super::kinds::{BROKEN, DOUBLING, GROUPED, MARKED, SPOILT, key};
use super::{FOREIGN, NEWER, ZONE};
use crate::cloud::Cloud;

/// Rows: each is recorded under its job, or lies aside with the reason.
pub(super) async fn of_rows(report: &mut Report, cloud: &Cloud) -> Result<()> {
    for (job, what) in [
        ("index-at", "a row of the index"),
        ("index-cron", "a row of the index under a time of day"),
        ("job-row", "a job with a large payload"),
        ("job-granted", "a granted event, whose job has a large payload,"),
    ] {
        let recorded = not_emittable(cloud, job).await?;
        report
            .must(recorded > 0, format!("{what} cannot be read: {recorded} launches say so under their job"));
    }
    for (policy, what) in [("pack", "a pack"), ("entry", "an entry of a line"), ("run", "a run that waits")] {
        let aside = set_aside(cloud, policy).await?;
        report.must(!aside.is_empty(), format!("{what} cannot be read: it lies aside because of {aside:?}"));
    }
    let came_of = |job: &str| cloud.arrivals.of(SPOILT).iter().filter(|arrival| arrival.job == job).count();
    let came = came_of("groups");
    report.must(
        came == GROUPED,
        format!("a slot group cannot be read: the others deliver {came} of {GROUPED}"),
    );
    for job in ["doubling", "doubling-throttled"] {
        let (came, recorded) = (came_of(job), ended_dead(cloud, job).await?);
        report.must(
            came + recorded == DOUBLING,
            format!("{job}: {came} of {DOUBLING} events came, {recorded} are recorded as dead"),
        );
    }
    let unknown = cloud.store().index_shape().await?.unreadable;
    report.must(unknown == [ZONE], format!("the zones that are not known are {unknown:?}"));
    Ok(())
}

/// Messages: what no version wrote, or what is about a client that cannot be read, is a dead letter with its reason; what a
/// newer version wrote waits.
pub(super) async fn of_messages(report: &mut Report, cloud: &mut Cloud) -> Result<()> {
    let dead = cloud.dead_letters_with_reasons().await?;
    let reasons_of = |is_meant: &dyn Fn(&str) -> bool| {
        let of = dead.iter().filter(|dead| is_meant(&dead.text));
        of.map(|dead| dead.reason.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    for text in FOREIGN {
        let reasons = reasons_of(&|dead| dead == text);
        // One of the dispatch queue, one of the scan queue and one of the release queue.
        report.must(
            reasons.len() == 3 && reasons.iter().all(|reason| !reason.is_empty()),
            format!("{text} is a dead letter of each queue, because of {reasons:?}"),
        );
    }
    let (reasons, came) = (reasons_of(&|dead| dead.contains(MARKED)), cloud.arrivals.count_of(MARKED));
    report.must(
        reasons.iter().all(|reason| !reason.is_empty()) && came + reasons.len() == 1,
        format!("a client cannot be read: {came} event came, or is a dead letter because of {reasons:?}"),
    );
    // In the release queue, whose messages have no version, a newer one is as foreign as any.
    let is_meant = |text: &str| {
        FOREIGN.contains(&text)
            || text == NEWER
            || [SPOILT, BROKEN, MARKED].iter().any(|of| text.contains(of))
    };
    let strange: Vec<_> = dead.iter().filter(|dead| !is_meant(&dead.text)).collect();
    report.must(strange.is_empty(), format!("only what nobody can handle is a dead letter, not {strange:?}"));
    // When nobody takes anything any more, and what was taken is to be seen again.
    cloud.stop();
    cloud.until_instant(cloud.now() + minutes(15)).await;
    let waits = cloud.take_from_dispatch().await?.iter().filter(|text| *text == NEWER).count();
    report.must(waits == 1, format!("{waits} message of a newer version waits for it"));
    Ok(())
}

/// How many launches of a job are recorded as not emittable. Its rows are looked at: a job that cannot be read has no list of runs.
async fn not_emittable(cloud: &Cloud, job: &str) -> Result<usize> {
    let (partition, word) = (format!("{SPOILT}|{job}"), SkipReason::NotEmittable.as_str());
    let rows = rows::all(&cloud.tables(), Table::Runs).await?;
    let says =
        |row: &&Row| row.values().filter_map(|value| value.as_s().ok()).any(|text| text.contains(word));
    Ok(rows.iter().filter(|row| key(row, "pk") == partition).filter(says).count())
}

/// How many events of a job are counted as dead.
async fn ended_dead(cloud: &Cloud, job: &str) -> Result<usize> {
    let runs = cloud.engine().queries().runs(&SPOILT.parse()?, &job.parse()?, None).await?.rows;
    Ok(runs.iter().map(|run| run.tally.dead as usize).sum())
}

/// Why entries of a policy's line were set aside.
async fn set_aside(cloud: &Cloud, policy: &str) -> Result<Vec<String>> {
    let partition = format!("{SPOILT}|{policy}|aside");
    let rows = rows::all(&cloud.tables(), Table::Policies).await?;
    let of = rows.iter().filter(|row| key(row, "pk") == partition);
    Ok(of.filter_map(|row| row.get("set_aside_because")?.as_s().ok().cloned()).collect())
}
