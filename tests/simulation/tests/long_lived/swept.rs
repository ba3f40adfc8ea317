//! What each tick sweeps: a row that cannot be read is passed over or set aside, and the tick goes on.

use tidegate_simulation::world::JobSpec;

use super::stage::{Row, Stage, of, text};

#[tokio::test]
async fn a_policy_that_cannot_be_read_stops_no_tick() {
    let stage = Stage::new().await;
    stage.world.policy("sound", 10, 600).await.unwrap();
    stage.throttled("spoiled", 1, 0).await;
    stage.create("beside", stage.spec().under("sound").unwrap()).await;
    stage.create("free", stage.spec()).await;
    stage.spoil("policies", "policy|small", "max_in_flight").await;
    stage.emit().await;
    assert_eq!(stage.launch().await, ["beside", "free"]);
}

#[tokio::test]
async fn owed_launches_that_cannot_be_read_are_recorded_under_their_job() {
    let stage = Stage::new().await;
    let row = [("pk", "OUTBOX|0"), ("sk", "acme|lost"), ("terms", "written by nobody")];
    let row: Row = row.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    stage.put("launch", row).await;
    stage.create("each", JobSpec::cron("* * * * *", "UTC", &stage.queue).unwrap()).await;
    assert!(stage.launch().await.len() >= 3);
    assert_eq!(stage.reasons("lost").await, ["not_emittable"]);
}

/// A policy is woken each minute by the name in its key, whatever else the row says.
#[tokio::test]
async fn an_active_policy_is_woken_though_its_row_cannot_be_read() {
    let stage = Stage::new().await;
    stage.throttled("single", 1, 0).await;
    stage.emit().await;
    let is_active = |row: &Row| of(row, "pk").starts_with("active|");
    let spoil = |row: &mut Row| drop(row.insert("touched_at".to_owned(), text("written by nobody")));
    assert_eq!(stage.change("policies", is_active, spoil).await, 1);
    // The wake-up of its launch is lost.
    stage.world.advance(60);
    stage.world.take_dispatched().await.unwrap();
    assert_eq!(stage.launch().await, ["single"]);
}

/// Every job of the client is looked up then: none of them is lost.
#[tokio::test]
async fn a_mark_of_changes_that_cannot_be_read_stops_no_delivery() {
    let stage = Stage::new().await;
    stage.create("a", stage.spec()).await;
    stage.throttled("b", 1, 0).await;
    stage.emit().await;
    let mark = [("pk", "dirty|acme"), ("sk", "-"), ("dirty_until", "written by nobody")];
    stage
        .put("clients", mark.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect())
        .await;
    assert_eq!(stage.launch().await, ["a", "b"]);
}
