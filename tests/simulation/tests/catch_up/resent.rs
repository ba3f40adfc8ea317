//! Jobs that are sent again: what stays the same goes on as if nothing had happened.

use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::time::Rate;
use tidegate_engine::Written;
use tidegate_simulation::world::{CLIENT, JobSpec};

use super::{Site, instants};

async fn put(site: &Site, job: JobSpec, name: &str) -> Written<Job> {
    let (client, id) = (CLIENT.parse().unwrap(), name.parse().unwrap());
    site.world.engine.jobs().replace(&client, id, job.into_draft(), None).await.unwrap()
}

/// Kept instants fire once, dropped ones are cancelled, those that are over do not fire again.
#[tokio::test]
async fn a_set_of_instants_is_replaced_by_the_one_that_is_sent_again() {
    let mut site = Site::new().await;
    // 90 is near enough to be on its way when the set is replaced; 400 and 2,000 are the emitter's.
    site.create(site.job(instants([10, 70, 90, 150, 400, 500, 2_000, 3_000]), "set")).await;
    site.world.advance(75);
    site.collect().await;
    assert_eq!(site.delivered("set"), [10, 70]);
    let again = site.job(instants([10, 70, 150, 160, 400, 2_000, 2_500]), "set");
    assert!(matches!(put(&site, again, "set").await, Written::Replaced(_)));
    site.world.advance(-15);
    site.minutes(60).await;
    assert_eq!(site.delivered("set"), [10, 70, 150, 160, 400, 2_000, 2_500]);
    let skipped = site.skipped("set").await;
    assert!(skipped.iter().all(|(.., reason)| reason == "rescheduled"), "{skipped:?}");
    let dropped: Vec<i64> = skipped.iter().map(|record| record.0).collect();
    assert!(dropped.contains(&90) && !dropped.contains(&3_000), "{skipped:?}");
}

/// What is late at the moment of the change is still delivered, once.
#[tokio::test]
async fn an_instant_that_is_over_does_not_fire_again() {
    let mut site = Site::new().await;
    site.create(site.job(instants([400, 1_000]), "set")).await;
    site.minutes(10).await;
    assert_eq!(site.delivered("set"), [400]);
    put(&site, site.job(instants([400, 1_001]), "set"), "set").await;
    site.minutes(10).await;
    assert_eq!(site.delivered("set"), [400, 1_001]);
}

#[tokio::test]
async fn the_same_set_sent_again_changes_nothing() {
    let mut site = Site::new().await;
    let set = || instants([100, 300, 700]);
    site.create(site.job(set(), "set")).await;
    for _ in 0..4 {
        assert!(matches!(put(&site, site.job(set(), "set"), "set").await, Written::Unchanged(_)));
        site.minutes(4).await;
    }
    assert_eq!(site.delivered("set"), [100, 300, 700]);
    assert_eq!(site.skipped("set").await, []);
}

/// The anchor that a client leaves open is that of the first call.
#[tokio::test]
async fn a_rate_without_an_anchor_keeps_its_beat_when_it_is_sent_again() {
    let mut site = Site::new().await;
    let beat = |site: &Site, every: u64| {
        let rate = Rate::new(every, site.ahead(every as i64)).unwrap();
        site.job(Trigger::Rate { rate, anchored: false }, "beat")
    };
    site.create(beat(&site, 100)).await;
    for _ in 0..5 {
        site.minutes(3).await;
        site.world.advance(7);
        assert!(matches!(put(&site, beat(&site, 100), "beat").await, Written::Unchanged(_)));
        site.world.advance(-7);
    }
    let beats: Vec<i64> = (1..=9).map(|beat| beat * 100).collect();
    assert_eq!(site.delivered("beat"), beats);
    // Another interval is another beat.
    assert!(matches!(put(&site, beat(&site, 250), "beat").await, Written::Replaced(_)));
    site.minutes(10).await;
    assert_eq!(site.delivered("beat")[9..], [1_150, 1_400]);
}
