//! Events leave at their second: not the second before, and not the one after.

use super::{Site, cron, instants, rate};

/// Moves on second by second with a tick in each minute, and notes when each event came.
async fn second_by_second(site: &mut Site, seconds: i64) {
    for _ in 0..seconds {
        site.world.advance(1);
        if site.now().timestamp() % 60 == 0 {
            site.world.engine.tick().await.unwrap();
        }
        site.collect().await;
    }
}

fn on_time(site: &Site, job: &str) -> Vec<i64> {
    let arrivals = site.account.arrivals(job).unwrap();
    for (launch_s, came_s) in &arrivals {
        assert_eq!(launch_s, came_s, "{job}");
    }
    arrivals.iter().map(|(launch_s, _)| launch_s - super::NOON).collect()
}

#[tokio::test]
async fn a_cron_job_with_seconds_leaves_at_its_seconds() {
    let mut site = Site::new().await;
    site.create(site.job(cron("*/10 * * * * *"), "tens")).await;
    site.create(site.job(cron("7 * * * * *"), "seventh")).await;
    site.create(site.job(rate(13, 4), "beat")).await;
    site.collect().await;
    // Past the handover from the master to the emitter.
    second_by_second(&mut site, 400).await;
    assert_eq!(on_time(&site, "tens"), (0..=40).map(|n| n * 10).collect::<Vec<_>>());
    assert_eq!(on_time(&site, "seventh"), (0..7).map(|n| n * 60 + 7).collect::<Vec<_>>());
    assert_eq!(on_time(&site, "beat"), (0..=30).map(|n| n * 13 + 4).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_job_that_was_created_seconds_before_its_time_leaves_at_its_second() {
    let mut site = Site::new().await;
    for start in [0_i64, 31, 54] {
        site.world.clock.set(super::at_second(start));
        let name = format!("after-{start}");
        site.create(site.job(instants([start + 5]), &name)).await;
        let cron_name = format!("cron-{start}");
        site.create(site.job(cron(&format!("{} * * * * *", (start + 5) % 60)), &cron_name)).await;
        second_by_second(&mut site, 4).await;
        assert_eq!(on_time(&site, &name), [] as [i64; 0]);
        second_by_second(&mut site, 1).await;
        assert_eq!((on_time(&site, &name), on_time(&site, &cron_name)), (vec![start + 5], vec![start + 5]));
    }
}

/// A clock within a second rounds up: the message may be seen a second late, never early.
#[tokio::test]
async fn nothing_is_early_within_a_second() {
    let mut site = Site::new().await;
    site.world.clock.advance_ms(600);
    site.create(site.job(instants([5]), "once")).await;
    site.world.clock.set(super::at_second(5) - chrono::Duration::milliseconds(1));
    site.collect().await;
    assert!(site.delivered("once").is_empty());
    site.world.clock.advance_ms(601);
    site.collect().await;
    assert_eq!(site.delivered("once"), [5]);
}
