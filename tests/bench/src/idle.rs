//! The idle minute: what a tick costs in which nothing is due, in forty zones, with more and more jobs stored.
//!
//! Units and requests are counted at the seam, so these figures are the same on any machine.

use anyhow::{Result, bail};
use chrono::{DateTime, Duration, Utc};
use tidegate_domain::limits::LOOK_AHEAD_SECONDS;

use crate::crowd::{Maker, Often};
use crate::stage::Stage;
use crate::{Row, midday};

const MINUTES_PER_DAY: u32 = 1_440;
/// Minutes from the measured one on in which nothing is due.
const QUIET_MINUTES: u32 = 30;

pub(crate) async fn run(jobs: u32) -> Result<Vec<Row>> {
    let now = midday()?;
    let stage = Stage::open(None, now).await?;
    let maker = Maker::new(now)?;
    stage.emit().await?;
    let (mut rows, mut stored, mut tick_at) = (Vec::new(), 0, now);
    for share in [1_000, 10, 1] {
        let wanted = jobs / share;
        stage.import((stored..wanted).map(|number| job(&maker, number, now))).await?;
        stored = wanted;
        tick_at += Duration::minutes(1);
        rows.push(idle_minute(&stage, stored, tick_at).await?);
    }
    Ok(rows)
}

/// Jobs of all kinds, due all over the day but for the minutes that are measured.
fn job(maker: &Maker, number: u32, now: DateTime<Utc>) -> Result<tidegate_domain::job::Job> {
    let minute = QUIET_MINUTES + number / 5 * 7 % (MINUTES_PER_DAY - 2 * QUIET_MINUTES);
    let due_at = now + Duration::minutes(minute.into());
    match number % 5 {
        0 => maker.cron(number, Often::Daily, due_at),
        1 => maker.cron(number, Often::Weekly, due_at),
        2 => maker.cron(number, Often::Monthly, due_at),
        3 => maker.cron(number, Often::Yearly, due_at),
        _ => Ok(maker.one_time(number, due_at)),
    }
}

async fn idle_minute(stage: &Stage, stored: u32, tick_at: DateTime<Utc>) -> Result<Row> {
    stage.clock.set(tick_at);
    let before = stage.embedded.meter().snapshot();
    let report = stage.emit().await?;
    let used = stage.embedded.meter().snapshot().since(&before);
    if report.occurrences > 0 {
        bail!("{} occurrences were due in a minute that was to be idle", report.occurrences);
    }
    let result = format!(
        "{:.1} write units, {:.1} read units, {} DynamoDB requests, {} SQS requests; {} rows read",
        used.write_units(),
        used.read_units(),
        used.dynamodb_requests(),
        used.sqs_requests(),
        report.rows_read,
    );
    let window = LOOK_AHEAD_SECONDS / 60;
    Ok((format!("an idle minute, 40 zones, {stored} jobs stored, none due within {window} minutes"), result))
}
