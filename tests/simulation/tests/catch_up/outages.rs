//! Outages: what was missed is made up for as each job says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use tidegate_domain::clock::ManualClock;
use tidegate_domain::job::Trigger;
use tidegate_domain::rules::{Misfire, MisfireLaunches, Rules};
use tidegate_embedded::{Call, Fault, FaultPlan};

use super::{Site, cron, instants, rate};

fn misfire(misfire: Misfire) -> Rules {
    Rules { misfire, ..Rules::default() }
}

fn all(most: u64) -> Misfire {
    Misfire::All(MisfireLaunches::new(most).unwrap())
}

/// The kinds of trigger, each with launches all through the first hours after noon.
fn triggers() -> [(&'static str, Trigger); 4] {
    [
        ("cron", cron("*/10 * * * *")),
        ("seconds", cron("0,20 5,25 * * * *")),
        ("rate", rate(420, 13)),
        ("at", instants((0..40).map(|n| 300 + n * 257))),
    ]
}

/// Some work, an outage of two hours, some work; where the outage began and ended.
async fn outage(site: &mut Site, rule: Misfire) -> (DateTime<Utc>, DateTime<Utc>) {
    for (name, trigger) in triggers() {
        site.create(site.job(trigger, name).ruled(misfire(rule))).await;
    }
    site.minutes(20).await;
    let began_at = site.now();
    site.world.advance(7_200);
    let ended_at = site.now();
    site.tick().await;
    site.minutes(10).await;
    (began_at, ended_at)
}

/// The launches of the outage that no tick had planned and that were missed when it ended.
fn missed(trigger: &Trigger, (began_at, ended_at): (DateTime<Utc>, DateTime<Utc>)) -> Vec<i64> {
    let (from, to) = (began_at.timestamp() + 120, ended_at.timestamp() - 120);
    let window = tidegate_domain::time::Window::new(
        DateTime::from_timestamp(from, 0).unwrap(),
        DateTime::from_timestamp(to, 0).unwrap(),
    );
    let firings = trigger.cadence().firings(window.unwrap());
    firings.iter().map(|firing| firing.launch_at.timestamp() - super::NOON).collect()
}

async fn makes_up_for(rule: Misfire, kept: usize) {
    let mut site = Site::new().await;
    let times = outage(&mut site, rule).await;
    for (name, trigger) in triggers() {
        let missed = missed(&trigger, times);
        assert!(missed.len() > 5, "{name}");
        let records = site.settled(name, &trigger).await;
        let skipped = missed.len().saturating_sub(kept);
        let expected =
            if skipped > 0 { vec![("misfire_skipped".to_owned(), skipped as u32)] } else { vec![] };
        assert_eq!(records, expected, "{name}");
        let delivered = site.delivered(name);
        let made: Vec<i64> = missed.iter().copied().filter(|at| delivered.contains(at)).collect();
        assert_eq!(made, missed[skipped..], "{name}: the latest are made up for");
    }
}

#[tokio::test]
async fn skip_makes_up_for_none() {
    makes_up_for(Misfire::Skip, 0).await;
}

#[tokio::test]
async fn latest_makes_up_for_the_latest() {
    makes_up_for(Misfire::Latest, 1).await;
}

#[tokio::test]
async fn all_makes_up_for_so_many() {
    makes_up_for(all(4), 4).await;
}

#[tokio::test]
async fn all_makes_up_for_all_when_they_are_not_too_many() {
    makes_up_for(all(100), 100).await;
}

/// A bounded rule counts what was missed, not what a step of the catch-up sees of it.
#[tokio::test]
async fn a_record_says_how_many_were_skipped_and_until_when() {
    let mut site = Site::new().await;
    site.create(site.job(cron("* * * * *"), "each").ruled(misfire(Misfire::Skip))).await;
    site.minutes(5).await;
    site.world.advance(3_600);
    site.tick().await;
    let records = site.skipped("each").await;
    // Noon + 5 minutes and the look-ahead were planned before; two minutes before now are no misfire.
    let (first, last) = (records.first().unwrap(), records.last().unwrap());
    assert_eq!((first.0, last.1), (420, 3_720), "{records:?}");
    assert_eq!(records.iter().map(|record| record.2).sum::<u32>(), 56);
    assert!(records.len() <= 4, "one record for each step of the catch-up: {records:?}");
    assert!(records.iter().all(|(.., reason)| reason == "misfire_skipped"));
}

/// The clock goes on with each request, as it does outside of tests.
struct Slowly {
    clock: Arc<ManualClock>,
    ms: i64,
    requests: Arc<AtomicU64>,
}

impl FaultPlan for Slowly {
    fn on_request(&self, _: &Call) -> Fault {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.clock.advance_ms(self.ms);
        Fault::None
    }
}

/// Three days are caught up in several ticks; a tick stops when its time is over, and the next goes on.
#[tokio::test]
async fn three_days_are_caught_up_in_several_ticks() {
    let mut site = Site::new().await;
    let hourly = cron("7 * * * *");
    for (name, rule) in [("all", all(1_000)), ("some", all(5)), ("latest", Misfire::Latest)] {
        site.create(site.job(hourly.clone(), name).ruled(misfire(rule))).await;
    }
    site.minutes(5).await;
    site.world.advance(3 * 86_400);
    let requests = Arc::new(AtomicU64::new(0));
    let mut ticks = 0;
    loop {
        let slowly = Slowly { clock: site.world.clock.clone(), ms: 12, requests: Arc::clone(&requests) };
        site.world.embedded.inject(slowly);
        site.world.engine.tick().await.unwrap();
        site.world.embedded.inject_nothing();
        ticks += 1;
        let watermark = site.world.engine.store().watermark().await.unwrap().unwrap();
        if watermark.scanned_to == watermark.planned_to {
            break;
        }
        assert!(ticks < 50, "{watermark:?}");
        site.world.advance(60);
    }
    assert!(ticks > 2, "{ticks} ticks, {requests:?} requests: time was no bound");
    site.minutes(5).await;
    assert_eq!(site.settled("all", &hourly).await, []);
    for (name, kept) in [("some", 5), ("latest", 1)] {
        let records = site.settled(name, &hourly).await;
        let [(reason, skipped)] = &records[..] else { panic!("{name}: {records:?}") };
        assert_eq!(reason, "misfire_skipped");
        assert!((72 - kept..=73 - kept).contains(skipped), "{name}: {records:?}");
    }
}

/// A repeated tick evaluates what a dead one had evaluated as that one did.
#[tokio::test]
async fn a_tick_that_died_is_repeated_with_its_own_judgement() {
    let mut site = Site::new().await;
    site.create(site.job(cron("* * * * *"), "latest").ruled(misfire(Misfire::Latest))).await;
    site.minutes(5).await;
    site.world.advance(1_800);
    struct DiesAfterSending;
    impl FaultPlan for DiesAfterSending {
        fn on_request(&self, call: &Call) -> Fault {
            if call.operation.starts_with("SendMessageBatch") { Fault::CrashAfter } else { Fault::None }
        }
    }
    site.world.embedded.inject(DiesAfterSending);
    assert!(site.world.engine.tick().await.is_err());
    site.world.embedded.inject_nothing();
    // The tick's message lies in the queue, its window is not done; the next one comes minutes later.
    site.world.advance(240);
    site.tick().await;
    site.minutes(5).await;
    // 1,920 was the latest of those that the dead tick found missed. By the clock of the next one it would be 2,160.
    let delivered: BTreeSet<i64> = site.delivered("latest").into_iter().collect();
    let expected = (0..=6).chain(32..=44).map(|minute| minute * 60).collect::<BTreeSet<i64>>();
    assert_eq!(delivered, expected);
    let mut skipped = BTreeSet::new();
    for (first, last, _, reason) in site.skipped("latest").await {
        assert_eq!(reason, "misfire_skipped");
        skipped.extend((first..=last).step_by(60));
    }
    assert_eq!(skipped, (7..=31).map(|minute| minute * 60).collect());
}

/// So does the tick after several that died: each had moved the watermark on, and none had repeated what the first one
/// judged. The run of a batch that the first had begun would otherwise be missed by now, and have neither events nor a reason.
#[tokio::test]
async fn what_a_tick_began_is_finished_however_many_ticks_die_after_it() {
    struct DiesAt(&'static str);
    impl FaultPlan for DiesAt {
        fn on_request(&self, call: &Call) -> Fault {
            if call.operation == self.0 { Fault::Crash } else { Fault::None }
        }
    }
    for deaths in 1..=3 {
        let mut site = Site::new().await;
        let job = site.job(cron("* * * * *"), "batch").of(2).unwrap();
        site.create(job.ruled(misfire(Misfire::Latest))).await;
        site.minutes(3).await;
        // The first begins runs and sends nothing; the others die before they read a row.
        for dies_at in ["SendMessageBatch", "Query", "Query"].into_iter().take(deaths) {
            site.world.advance(200);
            site.world.embedded.inject(DiesAt(dies_at));
            assert!(site.world.engine.tick().await.is_err());
            site.world.embedded.inject_nothing();
        }
        site.world.advance(200);
        site.tick().await;
        site.minutes(4).await;
        let delivered: BTreeSet<i64> = site.delivered("batch").into_iter().collect();
        let mut settled = delivered.clone();
        for (first, last, _, reason) in site.skipped("batch").await {
            assert_eq!(reason, "misfire_skipped");
            settled.extend((first..=last).step_by(60));
        }
        let now_s = site.now().timestamp() - super::NOON;
        let due: BTreeSet<i64> = (0..=now_s).step_by(60).collect();
        assert_eq!(settled, due, "after {deaths} deaths, delivered: {delivered:?}");
    }
}

#[tokio::test]
async fn what_is_older_than_the_relevancy_window_is_recorded_as_expired() {
    let mut site = Site::new().await;
    let job = site.job(cron("*/5 * * * *"), "fresh").ruled(misfire(all(1_000)));
    site.create(job.relevant_for(900).unwrap()).await;
    site.minutes(6).await;
    site.world.advance(7_200);
    site.tick().await;
    let skipped = site.settled("fresh", &cron("*/5 * * * *")).await;
    assert_eq!(skipped, [("expired".to_owned(), 21)]);
    let now_s = site.now().timestamp() - super::NOON;
    let late: Vec<i64> = site.delivered("fresh").into_iter().filter(|at| *at > 480).collect();
    assert!(late.iter().all(|at| now_s - at <= 900) && late.len() == 3, "{late:?} at {now_s}");
}

/// A chunk that waits in the dispatch queue grows old there too.
#[tokio::test]
async fn what_grows_too_old_on_its_way_is_recorded_as_expired() {
    let mut site = Site::new().await;
    site.create(site.job(instants([60]), "fresh").relevant_for(120).unwrap()).await;
    site.world.advance(181);
    site.collect().await;
    assert_eq!(site.skipped("fresh").await, [(60, 60, 1, "expired".to_owned())]);
    assert!(site.delivered("fresh").is_empty());
}

/// What waits in its policy's line grows too old there.
#[tokio::test]
async fn what_waits_too_long_in_its_policy_s_line_is_recorded_as_expired() {
    let mut site = Site::new().await;
    site.world.policy("small", 1, 3_600).await.unwrap();
    let of = |name, second, site: &Site| site.job(instants([second]), name).under("small").unwrap();
    site.create(of("first", 1, &site)).await;
    site.world.advance(1);
    site.world.pump().await.unwrap();
    let held = site.world.consume(&site.queue).await.unwrap();
    assert_eq!(held.len(), 1);
    for (name, relevancy) in [("impatient", 60), ("patient", 6_000)] {
        site.create(of(name, 5, &site).relevant_for(relevancy).unwrap()).await;
    }
    site.minutes(4).await;
    site.world.release(&held).await.unwrap();
    site.minutes(2).await;
    assert_eq!((site.delivered("impatient"), site.delivered("patient")), (vec![], vec![5]));
    assert_eq!(site.skipped("impatient").await, [(5, 5, 1, "expired".to_owned())]);
}
