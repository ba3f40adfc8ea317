//! Delivery: an event whose job or terms cannot be read is set aside, and its companions are delivered.

use serde_json::json;
use tidegate_domain::job::Payload;
use tidegate_engine::Handled;

use super::stage::{Stage, client, id};

/// A payload that stays in its job: each event needs the job's row.
fn large() -> Payload {
    Payload::new(json!("x".repeat(40_000)).to_string()).unwrap()
}

#[tokio::test]
async fn a_job_that_cannot_be_read_spoils_no_chunk() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c"] {
        stage.create(name, stage.spec()).await;
    }
    let mut large_one = stage.spec().into_draft();
    large_one.terms.payload = large();
    stage.world.engine.jobs().create(&client(), Some(id("large")), large_one).await.unwrap();
    stage.emit().await;
    // A change of another job: all of the client's are looked up before they are sent.
    stage.world.engine.jobs().pause(&client(), &id("c"), true, None).await.unwrap();
    stage.spoil("jobs", "b", "terms").await;
    stage.spoil("jobs", "large", "when").await;
    assert_eq!(stage.launch().await, ["a"]);
    for name in ["b", "large"] {
        assert_eq!(stage.reasons(name).await, ["not_emittable"], "{name}");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_read_stops_no_policy() {
    let stage = Stage::new().await;
    for (name, count) in [("batch", 3), ("single", 1)] {
        let mut draft = stage.spec().of(count).unwrap().under("small").unwrap().into_draft();
        draft.terms.payload = large();
        stage.world.engine.jobs().create(&client(), Some(id(name)), draft).await.unwrap();
    }
    stage.throttled("behind", 2, 9).await;
    stage.emit().await;
    for name in ["batch", "single"] {
        stage.spoil("jobs", name, "terms").await;
    }
    assert_eq!(stage.launch().await, ["behind", "behind"]);
    for name in ["batch", "single"] {
        assert_eq!(stage.reasons(name).await, ["not_emittable"], "{name}");
    }
    let load = stage
        .world
        .engine
        .queries()
        .policy(&client(), &"small".parse().unwrap())
        .await
        .unwrap()
        .unwrap()
        .load;
    assert_eq!((load.in_flight, load.waiting), (2, 0));
}

/// What was granted before its row became unreadable gives its token back.
#[tokio::test]
async fn a_granted_event_whose_pack_cannot_be_read_gives_its_token_back() {
    let stage = Stage::new().await;
    for number in 0..20 {
        stage.throttled(&format!("single-{number:02}"), 1, 0).await;
    }
    stage.emit().await;
    stage.world.advance(60);
    stage.world.pump().await.unwrap();
    let held = stage.world.consume(&stage.queue).await.unwrap();
    assert_eq!(held.len(), 10);
    stage.throttled("behind", 2, 5).await;
    stage.spoil("runs", "small|0.", "pack").await;
    // The group has the rest of the pack: none of it can be sent.
    let engine = stage.fresh();
    let releases = held.into_iter().map(|event| {
        tidegate_engine::Release::new(event.token.unwrap(), tidegate_domain::slots::Outcome::Succeeded)
    });
    engine.tokens().release(&client(), releases.collect()).await.unwrap();
    assert_eq!(stage.launch().await, ["behind", "behind"]);
}

#[tokio::test]
async fn terms_that_cannot_be_read_spoil_no_chunk() {
    let stage = Stage::new().await;
    let launch_s = stage.launch_at.timestamp() - 1_800;
    let item = |job: &str, attempts: u8| json!({"j": job, "r": 1, "a": 0, "b": 1, "d": {"n": 1, "q": stage.queue, "b": "1", "m": attempts}});
    let items = [item("sound", 5), item("spoiled", 0), item("beside", 5)];
    let chunk =
        json!({"v": 1, "chunk": {"c": "acme", "l": launch_s, "o": launch_s * 1_000, "t": 1, "i": items}});
    assert_eq!(stage.world.engine.handle(&chunk.to_string(), 1).await, Handled::Done);
    let came = stage.world.consume(&stage.queue).await.unwrap();
    let mut jobs: Vec<_> = came.iter().map(|event| &*event.body.job_id).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["beside", "sound"]);
    assert_eq!(stage.reasons("spoiled").await, ["not_emittable"]);
    // A message of a newer format is left to a process that knows it, or to the dead letters.
    let newer = json!({"v": 2, "wake": {"client": "acme", "policy": "small"}});
    assert_eq!(stage.world.engine.handle(&newer.to_string(), 1).await, Handled::Retry);
}

#[tokio::test]
async fn terms_that_cannot_be_read_spoil_no_arrival() {
    let stage = Stage::new().await;
    let launch_s = stage.launch_at.timestamp() - 1_800;
    for job in ["sound", "beside"] {
        stage.throttled(job, 1, 5).await;
    }
    let item = |job: &str, attempts: u8| json!({"j": job, "r": 1, "a": 0, "b": 1, "d": {"n": 1, "p": "small", "q": stage.queue, "b": "1", "m": attempts}});
    let items = [item("sound", 5), item("spoiled", 0), item("beside", 5)];
    let arrival =
        json!({"v": 1, "arrival": {"c": "acme", "l": launch_s, "o": launch_s * 1_000, "t": 1, "i": items}});
    assert_eq!(stage.world.engine.handle(&arrival.to_string(), 1).await, Handled::Done);
    let came = stage.world.consume(&stage.queue).await.unwrap();
    let mut jobs: Vec<_> = came.iter().map(|event| &*event.body.job_id).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["beside", "sound"]);
    assert_eq!(stage.reasons("spoiled").await, ["not_emittable"]);
}
