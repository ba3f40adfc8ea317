//! Launches that are skipped on purpose: each is recorded with its reason.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::rules::{Jitter, Misfire, Rules};
use tidegate_domain::time::Window;
use tidegate_embedded::{Call, Fault, FaultPlan};
use tidegate_engine::{JobDelete, LeftOut};
use tidegate_simulation::World;
use tidegate_simulation::world::CLIENT;

use super::{NOON, Site, at_second, cron, instants};

async fn pause(world: &World, job: &str, paused: bool) {
    let written =
        world.engine.jobs().pause(&CLIENT.parse().unwrap(), &job.parse().unwrap(), paused, None).await;
    written.unwrap();
}

async fn exclude(world: &World, from: DateTime<Utc>, to: DateTime<Utc>) {
    let intervals = vec![Window::new(from, to).unwrap()];
    let exclusions = Exclusions { intervals, ..Exclusions::default() }.checked().unwrap();
    let (client, id) = (CLIENT.parse().unwrap(), "holidays".parse().unwrap());
    world.engine.calendars().put(&client, id, exclusions, None).await.unwrap();
}

async fn delete(world: &World, job: &str) {
    let deleted = world.engine.jobs().delete(&CLIENT.parse().unwrap(), &job.parse().unwrap(), None).await;
    assert_eq!(deleted.unwrap(), JobDelete::Done);
}

#[tokio::test]
async fn a_paused_job_records_each_launch_and_goes_on_when_it_is_resumed() {
    let mut site = Site::new().await;
    site.create(site.job(cron("* * * * *"), "each")).await;
    site.minutes(6).await;
    site.world.advance(30);
    pause(&site.world, "each", true).await;
    site.world.advance(-30);
    site.minutes(10).await;
    site.world.advance(30);
    pause(&site.world, "each", false).await;
    site.world.advance(-30);
    site.minutes(10).await;
    let paused: BTreeSet<i64> = (7..=16).map(|minute| minute * 60).collect();
    let mut seen = BTreeSet::new();
    for record in site.world.skipped("each").await.unwrap() {
        assert_eq!(record.reason, "paused");
        seen.extend((record.first_s - NOON..=record.last_s - NOON).step_by(60));
    }
    // What the paused revision had planned when it was resumed stays recorded; the next revision launches all the same.
    seen.retain(|at| *at <= 990);
    assert_eq!(seen, paused);
    let expected: Vec<i64> = (0..=26).map(|minute| minute * 60).filter(|at| !paused.contains(at)).collect();
    assert_eq!(site.delivered("each"), expected);
}

/// A pause holds right up to delivery: what was planned and lies in the queue is skipped.
#[tokio::test]
async fn a_pause_stops_what_is_on_its_way() {
    let mut site = Site::new().await;
    site.create(site.job(instants([100]), "once")).await;
    pause(&site.world, "once", true).await;
    site.world.advance(100);
    site.collect().await;
    assert!(site.delivered("once").is_empty());
    assert!(site.skipped("once").await.iter().all(|(.., reason)| reason == "paused"));
    assert!(!site.skipped("once").await.is_empty());
}

#[tokio::test]
async fn what_a_calendar_excludes_is_recorded_as_excluded() {
    let mut site = Site::new().await;
    exclude(&site.world, at_second(600), at_second(1_200)).await;
    let rules = Rules { calendars: vec!["holidays".parse().unwrap()], ..Rules::default() };
    site.create(site.job(cron("*/2 * * * *"), "each").ruled(rules)).await;
    site.minutes(30).await;
    let skipped = site.settled("each", &cron("*/2 * * * *")).await;
    assert_eq!(skipped, [("excluded".to_owned(), 5)]);
    assert!(site.delivered("each").iter().all(|at| !(600..1_200).contains(at)));
}

/// One calendar, which one job leaves out and another goes by: each launch is made by exactly one of them.
#[tokio::test]
async fn what_lies_outside_of_the_days_to_launch_on_is_recorded_as_excluded() {
    let mut site = Site::new().await;
    exclude(&site.world, at_second(600), at_second(1_200)).await;
    let holidays = || vec!["holidays".parse().unwrap()];
    let without = Rules { calendars: holidays(), ..Rules::default() };
    let within = Rules { only_on: holidays(), ..Rules::default() };
    site.create(site.job(cron("*/2 * * * *"), "without").ruled(without)).await;
    site.create(site.job(cron("*/2 * * * *"), "within").ruled(within.clone())).await;
    site.create(site.job(super::rate(120, 0), "beat").ruled(within)).await;
    site.minutes(30).await;
    assert_eq!(site.settled("without", &cron("*/2 * * * *")).await, [("excluded".to_owned(), 5)]);
    site.settled("within", &cron("*/2 * * * *")).await;
    site.settled("beat", &super::rate(120, 0)).await;
    let (without, within) = (site.delivered("without"), site.delivered("within"));
    assert_eq!(within, [600, 720, 840, 960, 1_080]);
    assert_eq!(site.delivered("beat"), within);
    assert!(without.iter().all(|at| !within.contains(at)));
}

/// A misfire rule counts firings of the trigger: the latest missed one lies outside of the days, so none is made up for.
#[tokio::test]
async fn a_misfire_rule_counts_what_a_calendar_leaves_out() {
    let mut site = Site::new().await;
    exclude(&site.world, at_second(0), at_second(2_000)).await;
    let rules =
        Rules { only_on: vec!["holidays".parse().unwrap()], misfire: Misfire::Latest, ..Rules::default() };
    site.create(site.job(cron("*/5 * * * *"), "each").ruled(rules)).await;
    site.minutes(8).await;
    site.world.advance(3_600);
    site.tick().await;
    site.minutes(2).await;
    assert_eq!(site.delivered("each"), [0, 300], "what came before the outage");
    let skipped = site.settled("each", &cron("*/5 * * * *")).await;
    assert!(skipped.iter().any(|(reason, _)| reason == "misfire_skipped"), "{skipped:?}");
    assert!(skipped.iter().any(|(reason, _)| reason == "excluded"), "{skipped:?}");
}

/// The launch at 600 seconds is left out before it is planned, and when its chunk is on its way.
#[tokio::test]
async fn a_launch_that_is_left_out_is_recorded_and_those_beside_it_are_made() {
    for minutes in [6, 8] {
        let mut site = Site::new().await;
        site.create(site.job(cron("*/5 * * * *"), "each")).await;
        site.minutes(minutes).await;
        site.world.advance(30);
        let (client, job) = (CLIENT.parse().unwrap(), "each".parse().unwrap());
        for _ in 0..2 {
            let left_out =
                site.world.engine.jobs().skip(&client, &job, Some(at_second(600)), None).await.unwrap();
            assert_eq!(left_out, LeftOut::Launch { revision: 2, launch_at: at_second(600) });
        }
        site.world.advance(-30);
        site.minutes(18 - minutes).await;
        assert_eq!(site.delivered("each"), [0, 300, 900], "after {minutes} minutes");
        let skipped = site.settled("each", &cron("*/5 * * * *")).await;
        assert_eq!(skipped, [("skipped_on_request".to_owned(), 1)], "after {minutes} minutes");
    }
}

/// The calendar of a job has one interval, and another one when the chunk of the launch at 600 seconds is on its way, which that
/// leaves out.
async fn changes_late(rules: Rules, before: (i64, i64), after: (i64, i64)) {
    let mut site = Site::new().await;
    exclude(&site.world, at_second(before.0), at_second(before.1)).await;
    site.create(site.job(cron("*/5 * * * *"), "each").ruled(rules)).await;
    site.minutes(8).await;
    site.world.advance(30);
    // It was planned at minute 8.
    exclude(&site.world, at_second(after.0), at_second(after.1)).await;
    site.world.advance(-30);
    site.minutes(4).await;
    assert_eq!(site.skipped("each").await, [(600, 600, 1, "excluded".to_owned())]);
    assert_eq!(site.delivered("each"), [0, 300]);
}

#[tokio::test]
async fn days_to_launch_on_that_change_late_still_count() {
    let rules = Rules { only_on: vec!["holidays".parse().unwrap()], ..Rules::default() };
    changes_late(rules, (0, 3_600), (0, 590)).await;
}

#[tokio::test]
async fn a_calendar_that_changes_late_still_counts() {
    let rules = Rules { calendars: vec!["holidays".parse().unwrap()], ..Rules::default() };
    changes_late(rules, (90_000, 90_060), (590, 610)).await;
}

#[tokio::test]
async fn what_a_deleted_job_had_on_its_way_is_recorded_with_the_reason() {
    let mut site = Site::new().await;
    site.create(site.job(cron("*/5 * * * *"), "each")).await;
    site.minutes(9).await;
    delete(&site.world, "each").await;
    site.minutes(10).await;
    assert_eq!(site.skipped("each").await, [(600, 600, 1, "job_deleted".to_owned())]);
    assert_eq!(site.delivered("each"), [0, 300]);
}

#[tokio::test]
async fn what_a_changed_job_had_on_its_way_is_recorded_as_rescheduled() {
    let mut site = Site::new().await;
    site.create(site.job(cron("*/5 * * * *"), "each")).await;
    site.minutes(9).await;
    site.world.replace(site.job(cron("2-59/10 * * * *"), "each")).await.unwrap();
    site.minutes(10).await;
    assert_eq!(site.skipped("each").await, [(600, 600, 1, "rescheduled".to_owned())]);
    assert_eq!(site.delivered("each"), [0, 300, 720]);
}

#[tokio::test]
async fn nothing_is_launched_outside_of_start_and_end() {
    let mut site = Site::new().await;
    let rules = |from: i64, to: i64| Rules {
        start_at: Some(at_second(from)),
        end_at: Some(at_second(to)),
        ..Rules::default()
    };
    site.create(site.job(cron("* * * * *"), "soon").ruled(rules(120, 240))).await;
    site.create(site.job(cron("* * * * *"), "later").ruled(rules(601, 780))).await;
    site.create(site.job(super::rate(45, 0), "beat").ruled(rules(90, 900))).await;
    site.minutes(20).await;
    assert_eq!(site.delivered("soon"), [120, 180]);
    assert_eq!(site.delivered("later"), [660, 720]);
    let beats: Vec<i64> = (2..20).map(|beat| beat * 45).collect();
    assert_eq!(site.delivered("beat"), beats);
    for job in ["soon", "later", "beat"] {
        assert_eq!(site.skipped(job).await, [], "what lies outside is no launch");
    }
}

/// The offset is the job's own, the same each time, and longer than a message can be delayed.
#[tokio::test]
async fn jitter_is_stable_and_never_early() {
    let mut site = Site::new().await;
    site.world.policy("wide", 100, 43_200).await.unwrap();
    let jitter = Jitter::new(3_600).unwrap();
    let rules = || Rules { jitter, ..Rules::default() };
    let names: Vec<String> = (0..12).map(|number| format!("job-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let job = site.job(cron("0 * * * *"), name).ruled(rules());
        let job = if number % 3 == 0 { job.under("wide").unwrap() } else { job };
        site.create(job).await;
    }
    site.minutes(130).await;
    let mut offsets = Vec::new();
    for name in &names {
        let offset = jitter.offset(&CLIENT.parse().unwrap(), &name.parse().unwrap()).num_seconds();
        let expected: Vec<i64> = (0..3).map(|hour| hour * 3_600 + offset).filter(|at| *at <= 7_800).collect();
        let delivered = site.delivered(name);
        assert_eq!(delivered[..expected.len()], expected, "{name}");
        for (launch_s, came_s) in site.account.arrivals(name).unwrap() {
            assert!((0..60).contains(&(came_s - launch_s)), "{name} at {launch_s} came at {came_s}");
        }
        offsets.push(offset);
    }
    assert!(offsets.iter().any(|offset| *offset > 1_800), "some wait for more than two delays: {offsets:?}");
}

/// A change that comes while jitter holds a launch back comes after it: what the trigger said is due already.
#[tokio::test]
async fn a_launch_that_jitter_holds_back_outlives_a_change() {
    let mut site = Site::new().await;
    let rules = Rules { jitter: Jitter::new(3_600).unwrap(), ..Rules::default() };
    let offset = rules.jitter.offset(&CLIENT.parse().unwrap(), &"held".parse().unwrap()).num_seconds();
    assert!(offset > 1_000, "{offset}");
    let job = || site.job(cron("0 * * * *"), "held").ruled(rules.clone());
    let (first, changed) = (job(), job().of(2).unwrap());
    site.create(first).await;
    site.minutes(64).await;
    site.world.replace(changed).await.unwrap();
    site.minutes(120).await;
    let due = site.delivered("held");
    let expected = [offset, 3_600 + offset, 7_200 + offset, 7_200 + offset];
    assert_eq!(due[..4], expected, "the launch at 13:00 is of one event still");
    assert_eq!(site.skipped("held").await, []);
}

/// A tick died when it had recorded some launches of a row; the next one finds more of them. Its record begins with the
/// same launch, and was taken for a repetition of the shorter one.
#[tokio::test]
async fn a_record_grows_when_a_later_tick_finds_more() {
    struct DiesAfterRecording;
    impl FaultPlan for DiesAfterRecording {
        fn on_request(&self, call: &Call) -> Fault {
            if call.operation == "PutItem" { Fault::CrashAfter } else { Fault::None }
        }
    }
    let mut site = Site::new().await;
    site.create(site.job(cron("* * * * *"), "each")).await;
    pause(&site.world, "each", true).await;
    site.minutes(6).await;
    site.world.advance(180);
    site.world.embedded.inject(DiesAfterRecording);
    assert!(site.world.engine.tick().await.is_err());
    site.world.embedded.inject_nothing();
    site.world.advance(180);
    site.tick().await;
    let mut recorded = BTreeSet::new();
    for (first, last, _, reason) in site.skipped("each").await {
        assert_eq!(reason, "paused");
        recorded.extend((first..=last).step_by(60));
    }
    let now = site.now().timestamp() - NOON;
    let missing: Vec<i64> = (60..=now).step_by(60).filter(|at| !recorded.contains(at)).collect();
    assert!(missing.is_empty(), "{missing:?} of {:?}", site.skipped("each").await);
}
