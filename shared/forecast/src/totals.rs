//! What is added when everything has fired: ticks and polls, creates, and the busiest seconds of all together.

use crate::counted::Counted;
use crate::facts::{Created, Setting};
use crate::peak::Peak;
use crate::quotas::{INDEX_READ, LEAD_SECONDS};
use crate::steps::{Step, Steps};
use crate::tables::{Table, runs_part};

/// Ticks and polls of the window.
pub(crate) fn idle(setting: &Setting, counted: &mut Counted) {
    let mut minute = Steps::default();
    minute.add(Step::Tick, 1.0);
    minute.add(Step::TickZone, setting.zones as f64);
    minute.add(Step::PolledMinute, 1.0);
    let minutes = setting.minutes();
    counted.idle = minute.scaled(minutes as f64);
    counted.minutes.iter_mut().take(minutes).for_each(|load| load.cost += minute.cost());
}

/// The busiest seconds: of releases, of creates, of what all of it takes, and of each table.
pub(crate) fn add_totals(setting: &Setting, first_minute: i64, counted: &mut Counted) {
    let seconds = &mut counted.seconds;
    for (minute, load) in (first_minute..).zip(&counted.minutes) {
        seconds.released.see(load.released / 60.0, minute * 60);
        let rest = load.cost - load.handled;
        let at_s = if load.busiest.write_units > 0.0 { load.busiest_s } else { minute * 60 };
        seconds.cost.see(load.busiest + rest * (1.0 / 60.0), at_s);
    }
    creates(setting, counted);
    tables(setting, counted);
}

/// The most jobs that are created in a second: as was said, or as many as launch in the busiest minute.
fn creates(setting: &Setting, counted: &mut Counted) {
    let created: f64 = fired(setting, counted, |created| created != Created::Before);
    let busiest = counted.busiest_tick;
    let of_busiest = (busiest.value / 60.0).min(created);
    let value = setting.creates_per_second.unwrap_or(if created > 0.0 { of_busiest } else { 0.0 });
    counted.seconds.creates = Peak { value, at_s: busiest.at_s };
}

/// How often jobs fired that are created in some way.
fn fired(setting: &Setting, counted: &Counted, is: impl Fn(Created) -> bool) -> f64 {
    let fired = setting.jobs.iter().zip(&counted.fired);
    fired.filter(|(job, _)| is(job.created)).map(|(_, fired)| fired).sum()
}

/// What tables are asked for beside what is due: releases, creates, and the rows that a tick reads.
fn tables(setting: &Setting, counted: &mut Counted) {
    let events: f64 = counted.policies.iter().map(|policy| policy.events).sum();
    let of_steps = |steps: &[Step], part: fn(Step) -> f64| -> f64 {
        let of = |step: &Step| {
            let times: f64 = counted.policies.iter().map(|policy| policy.shared.of(*step)).sum();
            times * step.cost().write_units * part(*step)
        };
        steps.iter().map(of).sum::<f64>() / events.max(1.0)
    };
    let released = counted.seconds.released;
    let times = |peak: Peak, units: f64| Peak { value: peak.value * units, ..peak };
    let of_release = [Step::SlotWrite, Step::Compaction, Step::Range];
    let policies = times(released, of_steps(&of_release, |step| 1.0 - runs_part(step).0));
    let runs = times(released, of_steps(&of_release, |step| runs_part(step).0));
    let all = fired(setting, counted, |created| created != Created::Before).max(1e-9);
    let under_client =
        fired(setting, counted, |created| matches!(created, Created::Named | Created::Listed(_))) / all;
    let units = setting.jobs.iter().filter(|job| job.created != Created::Before);
    let units = units.map(|job| f64::from(job.row_units)).fold(1.0, f64::max);
    let creates = counted.seconds.creates;
    let read = times(counted.busiest_tick, INDEX_READ / LEAD_SECONDS);
    let tables = &mut counted.seconds.tables;
    tables.add(Table::Policies, policies, Peak::default());
    tables.add(Table::Runs, runs, Peak::default());
    let launch = times(creates, (1.0 - under_client) * units + under_client);
    tables.add(Table::Launch, launch, read);
    tables.add(Table::Jobs, times(creates, under_client * units), Peak::default());
}
