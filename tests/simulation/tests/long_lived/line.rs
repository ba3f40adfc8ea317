//! The waiting line: what cannot be read is set aside, and what waits behind it goes on.

use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::flow::{Flow, Overlap};
use tidegate_simulation::world::JobSpec;

use super::stage::{Row, Stage, client, id, of, text};

impl Stage {
    /// Why entries of the line were set aside. Nothing of them is left in it.
    async fn aside(&self) -> Vec<String> {
        let (store, small) = (self.world.engine.store(), "small".parse().unwrap());
        assert_eq!(store.line(&client(), &small, None).await.unwrap().rows, []);
        let aside = store.entries_set_aside(&client(), &small).await.unwrap();
        aside.into_iter().map(|entry| entry.reason).collect()
    }
}

#[tokio::test]
async fn a_pack_that_cannot_be_read_is_set_aside_under_its_jobs() {
    let stage = Stage::new().await;
    for name in ["first-a", "first-b"] {
        stage.throttled(name, 1, 0).await;
    }
    stage.throttled("behind", 1, 5).await;
    stage.emit().await;
    let newer = |row: &mut Row| drop(row.insert("v".to_owned(), AttributeValue::N("9".to_owned())));
    assert_eq!(stage.change("runs", |row| of(row, "sk").starts_with("small|0."), newer).await, 1);
    assert_eq!(stage.launch().await, ["behind"]);
    let aside = stage.aside().await;
    assert!(aside.len() == 1 && aside[0].contains("newer version"), "{aside:?}");
    for name in ["first-a", "first-b"] {
        assert_eq!(stage.reasons(name).await, ["not_emittable"]);
    }
}

/// A tick that repeats one that died looks which single events are packed. What it cannot read it packs anew.
#[tokio::test]
async fn a_pack_that_cannot_be_read_spoils_no_repeated_tick() {
    let stage = Stage::new().await;
    stage.throttled("first", 1, 0).await;
    stage.throttled("behind", 1, 5).await;
    stage.emit().await;
    let spoil = |row: &mut Row| drop(row.insert("pack".to_owned(), text("written by nobody")));
    assert_eq!(stage.change("runs", |row| of(row, "sk").starts_with("small|0."), spoil).await, 1);
    let has_died = |row: &mut Row| drop(row.insert("scanned_to".to_owned(), row["taken_over_to"].clone()));
    assert_eq!(stage.change("ticker", |row| of(row, "pk") == "watermark", has_died).await, 1);
    assert_eq!(stage.launch().await, ["behind", "first"]);
    assert_eq!(stage.aside().await.len(), 1);
    for name in ["first", "behind"] {
        assert!(stage.reasons(name).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_read_is_set_aside() {
    let stage = Stage::new().await;
    stage.throttled("first", 5, 0).await;
    stage.throttled("behind", 2, 5).await;
    stage.emit().await;
    let spoil = |row: &mut Row| drop(row.insert("terms".to_owned(), text("written by nobody")));
    assert_eq!(stage.change("runs", |row| of(row, "run").starts_with("first."), spoil).await, 1);
    assert_eq!(stage.launch().await, ["behind", "behind"]);
    assert_eq!(stage.aside().await.len(), 1);
    // Its job's runs say so; the row is as it was.
    let page = stage.world.engine.queries().runs(&client(), &id("first"), None).await.unwrap();
    assert!(page.rows.is_empty() && page.unreadable[0].sort_key.starts_with("first.1."), "{page:?}");
    assert!(page.unreadable[0].reason.contains("cannot be read"), "{page:?}");
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_set_aside() {
    let stage = Stage::new().await;
    stage.throttled("first", 5, 0).await;
    stage.throttled("single", 1, 1).await;
    stage.throttled("behind", 2, 5).await;
    stage.emit().await;
    for (priority, attribute) in [("0|", "cur"), ("1|", "pack")] {
        let spoil = |row: &mut Row| drop(row.insert(attribute.to_owned(), text("written by nobody")));
        assert_eq!(stage.change("policies", |row| of(row, "sk").starts_with(priority), spoil).await, 1);
    }
    assert_eq!(stage.launch().await, ["behind", "behind"]);
    assert_eq!(stage.aside().await.len(), 2);
    for name in ["first", "single"] {
        assert_eq!(stage.reasons(name).await, ["not_emittable"]);
    }
}

/// A group that has begun to take of what cannot be read lets go of it.
#[tokio::test]
async fn a_refill_that_was_begun_ends() {
    for (count, name) in [(5, "terms"), (1, "pack")] {
        let stage = Stage::new().await;
        stage.throttled("first", count, 0).await;
        stage.throttled("behind", 2, 5).await;
        stage.emit().await;
        let rows = stage.rows("policies").await;
        let place = rows.iter().map(|row| of(row, "sk")).find(|place| place.starts_with("0|")).unwrap();
        let begun = |row: &mut Row| drop(row.insert("want".to_owned(), text(place)));
        assert_eq!(stage.change("policies", |row| of(row, "sk") == "slots", begun).await, 1);
        let is_first =
            |row: &Row| of(row, "run").starts_with("first.") || of(row, "sk").starts_with("small|0.");
        let spoil = |row: &mut Row| drop(row.insert(name.to_owned(), text("written by nobody")));
        assert_eq!(stage.change("runs", is_first, spoil).await, 1, "{name}");
        assert_eq!(stage.launch().await, ["behind", "behind"], "{name}");
        assert_eq!(stage.aside().await.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_slot_group_that_cannot_be_read_stops_no_other() {
    let stage = Stage::new().await;
    stage.world.policy("wide", 60, 600).await.unwrap();
    let spec = stage.spec().of(60).unwrap().under("wide").unwrap();
    stage.create("batch", spec).await;
    let is_second = |row: &Row| of(row, "pk") == "acme|wide|0001";
    let spoil = |row: &mut Row| drop(row.insert("held".to_owned(), text("written by nobody")));
    assert_eq!(stage.change("policies", is_second, spoil).await, 1);
    stage.emit().await;
    let came = stage.launch().await.len();
    assert!((30..60).contains(&came), "{came}");
    let status =
        stage.world.engine.queries().policy(&client(), &"wide".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(status.load.in_flight as usize, came);
}

/// What an overlap rule says of a run does not hang on a row that nobody can read.
#[tokio::test]
async fn an_earlier_run_that_cannot_be_read_is_not_waited_for() {
    let stage = Stage::new().await;
    let cron = JobSpec::cron("* * * * *", "UTC", &stage.queue).unwrap();
    let mut draft = cron.of(2).unwrap().under("small").unwrap().into_draft();
    draft.terms.flow = Flow { overlap: Overlap::BufferOne, ..Flow::default() };
    stage.world.engine.jobs().create(&client(), Some(id("each")), draft).await.unwrap();
    for _ in 0..5 {
        stage.world.advance(60);
        stage.world.engine.tick().await.unwrap();
        stage.world.pump().await.unwrap();
    }
    // The first run is at work, and nobody releases it.
    let first = stage.world.consume(&stage.queue).await.unwrap();
    assert_eq!(first.len(), 2);
    let run = &first[0].body.run_id;
    let spoil = |row: &mut Row| drop(row.insert("terms".to_owned(), text("written by nobody")));
    assert_eq!(stage.change("runs", |row| of(row, "run") == run, spoil).await, 1);
    assert_eq!(stage.launch().await.len(), 2);
}
