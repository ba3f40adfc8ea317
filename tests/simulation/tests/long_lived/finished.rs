//! Jobs that are over: they are kept for a while, and then not for ever.

use tidegate_domain::limits::AT_ROW_DAYS;
use tidegate_engine::Expect;
use tidegate_simulation::world::JobSpec;

use super::stage::{Stage, client, id};

impl Stage {
    /// Whether there is a job under an id.
    async fn has_job(&self, name: &str) -> bool {
        self.world.engine.jobs().get(&client(), &id(name)).await.unwrap().is_some()
    }

    /// Lets days pass, and deletes what has expired.
    async fn days(&self, days: i64) {
        self.world.advance(days * 86_400);
        self.world.embedded.sweep_ttl().unwrap();
    }
}

#[tokio::test]
async fn a_one_time_job_with_an_id_of_its_own_is_kept_for_a_while_and_not_for_ever() {
    let stage = Stage::new().await;
    stage.create("once", stage.spec()).await;
    stage.create("each", JobSpec::cron("0 3 * * *", "UTC", &stage.queue).unwrap()).await;
    stage.days(AT_ROW_DAYS - 1).await;
    assert!(stage.has_job("once").await);
    stage.days(2).await;
    assert_eq!((stage.has_job("once").await, stage.has_job("each").await), (false, true));
}

#[tokio::test]
async fn a_one_time_job_that_became_a_cron_job_stays() {
    let stage = Stage::new().await;
    stage.create("changed", stage.spec()).await;
    let cron = JobSpec::cron("0 3 * * *", "UTC", &stage.queue).unwrap();
    stage
        .world
        .engine
        .jobs()
        .replace(&client(), id("changed"), cron.into_draft(), Expect::Anything)
        .await
        .unwrap();
    stage.days(2 * AT_ROW_DAYS).await;
    assert!(stage.has_job("changed").await);
}
