//! What a forecast counts of small loads, each for one thing that it must not forget.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use tidegate_forecast::Use;
use tidegate_forecast::account::Account;
use tidegate_forecast::facts::{Created, Job, Policy, Setting, Target};
use tidegate_forecast::load::Load;
use tidegate_forecast::report::Report;
use tidegate_forecast::steps::Step;

/// An account whose event source grows.
fn account() -> Account {
    Account { lambda_concurrency: 1_000.0, dispatch_maximum: 1_000.0, ..Account::default() }
}

/// A policy of so many tokens, whose consumers work for a second.
fn policy(tokens: u32) -> Policy {
    Policy { id: "mail".to_owned(), tokens, rate: None, work_seconds: 1.0, released_together: 1 }
}

fn setting(jobs: Vec<Job>, policies: Vec<Policy>) -> Setting {
    Setting {
        jobs,
        policies,
        zones: 1,
        from_s: 0,
        to_s: 600,
        scale: 1.0,
        created_together: 1.0,
        creates_per_second: None,
        largest_partition: None,
        handover_seconds: 0.0,
        account: account(),
    }
}

/// Each job fires once, two minutes after the window begins.
fn fired_once(setting: &Setting) -> Report {
    let mut load = Load::new(setting);
    (0..setting.jobs.len()).for_each(|place| load.fire(120, place));
    Report::of(load, setting)
}

fn of_limit<'a>(report: &'a Report, limit: &str, of: &str) -> &'a Use {
    let mut limits = report.limits.iter();
    limits
        .find(|found| found.limit == limit && found.of.contains(of))
        .unwrap_or_else(|| panic!("{limit} {of}"))
}

const THROTTLED: Job = Job { policy: Some(0), is_packed: true, ..SINGLE };

const SINGLE: Job = Job {
    policy: None,
    count: 1,
    keeps_record: true,
    is_packed: false,
    priority: 5,
    cost: 1,
    target: Target::Queue,
    item_bytes: 270,
    row_reads: 0,
    row_units: 1,
    body_bytes: 300,
    releases_itself: false,
    is_delivered_once: false,
    created: Created::Before,
};

#[test]
fn throttled_events_for_http_targets_go_through_the_dispatch_queue() {
    let of = |target| {
        let job = Job { count: 500, target, is_packed: false, ..THROTTLED };
        fired_once(&setting(vec![job], vec![policy(10)])).steps
    };
    let (queue, http) = (of(Target::Queue), of(Target::Http));
    let more = |step| http.of(step) - queue.of(step);
    for step in [Step::DispatchSend, Step::HandlerCall, Step::HttpWait] {
        assert!((490.0..=500.0).contains(&more(step)), "{step:?}: {}", more(step));
    }
    assert!(http.of(Step::Send).abs() < 1.0, "{} sends to a queue", http.of(Step::Send));
    assert_eq!(http.of(Step::ReleaseCall), 500.0);
    let answered =
        Job { count: 500, target: Target::Http, releases_itself: true, is_packed: false, ..THROTTLED };
    let report = fired_once(&setting(vec![answered], vec![policy(10)]));
    assert_eq!(report.steps.of(Step::ReleaseCall), 0.0, "the answer of the target releases the token");
}

#[test]
fn a_policy_paces_what_comes_to_a_fifo_queue_and_what_reads_its_job() {
    let job = Job { target: Target::Fifo(0), row_reads: 1, ..THROTTLED };
    let throttled = fired_once(&setting(vec![job; 5_000], vec![policy(10)]));
    let plain = Job { policy: None, is_packed: false, ..job };
    let plain = fired_once(&setting(vec![plain; 5_000], Vec::new()));
    // Ten tokens at once, and ten that come back within the second.
    assert_eq!(throttled.seconds.fifo.value, 20.0);
    assert_eq!(plain.seconds.fifo.value, 5_000.0);
    assert_eq!(of_limit(&throttled, "partition_reads", "jobs: the client").used, 20.0);
    assert_eq!(of_limit(&plain, "partition_reads", "jobs: the client").used, 5_000.0);
}

#[test]
fn a_large_payload_takes_units_where_it_is_kept_and_read() {
    let named = Job { row_reads: 1, row_units: 2, created: Created::Named, ..SINGLE };
    let report = fired_once(&setting(vec![named; 100], Vec::new()));
    assert_eq!([Step::RowRead, Step::RowUnit].map(|step| report.steps.of(step)), [100.0, 100.0]);
    assert_eq!(of_limit(&report, "partition_reads", "jobs: the client").used, 100.0);
    // That of a generated job travels, and its record holds it.
    let generated = Job { row_reads: 0, created: Created::Generated, ..named };
    let report = fired_once(&setting(vec![generated; 100], Vec::new()));
    assert_eq!([Step::RowRead, Step::RowUnit].map(|step| report.steps.of(step)), [0.0, 200.0]);
}

#[test]
fn the_lateness_of_what_nothing_throttles_is_its_own() {
    let throttled = Job { count: 1_000_000, is_packed: false, ..THROTTLED };
    let setting = setting(vec![Job { count: 100_000, ..SINGLE }, SINGLE, throttled], vec![policy(10)]);
    let mut load = Load::new(&setting);
    // 1,000 chunks, which take seconds; then an event that is on time, with a million of a policy in its second.
    load.fire(120, 0);
    load.fire(300, 1);
    load.fire(300, 2);
    let median = Report::of(load, &setting).unthrottled_lateness.median_s;
    assert!(median > 0.5, "half of 100,001 events come {median} s late at the most");
}

#[test]
fn packs_of_a_client_and_minute_are_a_key() {
    let report = fired_once(&setting(vec![THROTTLED; 50_000], vec![policy(100)]));
    for (limit, at_least) in [("partition_writes", 1_300.0), ("partition_reads", 1_900.0)] {
        let packs = of_limit(&report, limit, "runs: the packs of a client and minute");
        assert!(packs.used >= at_least, "{packs:?}");
    }
}

#[test]
fn what_a_minute_cannot_emit_is_late_in_the_minutes_after_it_too() {
    let job = Job { created: Created::Generated, ..SINGLE };
    let mut millions = Setting { scale: 1_000_000.0, ..setting(vec![job; 10], Vec::new()) };
    millions.account =
        Account { lambda_concurrency: 1e6, minimum_pollers: 200.0, maximum_pollers: 1e6, ..account() };
    let first = fired_once(&millions).unthrottled_lateness;
    // 10,000,000 rows at 30,000 a second, from a minute before they are due.
    assert!((270.0..280.0).contains(&first.most_s), "{first:?}");
    let mut load = Load::new(&millions);
    (0..10).for_each(|place| load.fire(120, place));
    (0..10).for_each(|place| load.fire(180, place));
    let both = Report::of(load, &millions).unthrottled_lateness;
    assert!((540.0..560.0).contains(&both.most_s), "the second minute waits behind the first: {both:?}");
}

#[test]
fn every_limit_that_an_account_names_can_be_met() {
    let jobs = vec![Job { row_reads: 1, ..SINGLE }; 100];
    let mut small = setting(jobs, Vec::new());
    small.account = Account { table_reads: 1.0, table_quota_reads: 1.0, ..account() };
    let report = fired_once(&small);
    for limit in ["table_reads", "table_quota_reads"] {
        let met: Vec<&str> = report
            .limits
            .iter()
            .filter(|of| of.limit == limit && of.share >= 1.0)
            .map(|of| &*of.of)
            .collect();
        assert!(met.contains(&"table jobs"), "{limit}: {met:?}");
    }
}

#[test]
fn a_job_with_several_instants_is_created_once() {
    let job = Job { created: Created::Listed(6), ..SINGLE };
    let setting = setting(vec![job], Vec::new());
    let mut load = Load::new(&setting);
    (0..6).for_each(|minute| load.fire(60 * minute, 0));
    let steps = Report::of(load, &setting).steps;
    let counts = [Step::ListedJob, Step::ListedInstant, Step::CreateCall].map(|step| steps.of(step).round());
    assert_eq!(counts, [1.0, 6.0, 1.0]);
}

#[test]
fn only_calls_of_the_api_and_ticks_log() {
    let report = fired_once(&setting(vec![SINGLE; 10_000], Vec::new()));
    assert!(report.unthrottled.cost.lambda_requests > 0.0);
    assert_eq!(report.unthrottled.bill.logs, 0.0, "a batch without trouble logs nothing");
    assert_eq!(report.idle.cost.log_bytes, 10.0 * 500.0);
}

#[test]
fn more_emitters_emit_more() {
    let of = |scan_maximum| {
        let job = Job { created: Created::Generated, ..SINGLE };
        let mut millions = Setting { scale: 1_000_000.0, ..setting(vec![job; 10], Vec::new()) };
        let large =
            Account { lambda_concurrency: 1e6, minimum_pollers: 200.0, maximum_pollers: 1e6, ..account() };
        millions.account = Account { scan_maximum, ..large };
        fired_once(&millions).unthrottled_lateness.most_s
    };
    assert!(of(8.0) < of(2.0) / 3.0, "{} {}", of(8.0), of(2.0));
}
