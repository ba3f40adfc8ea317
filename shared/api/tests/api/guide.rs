//! The guide to throttling: what it shows is taken.

use http::StatusCode;
use serde_json::json;

use crate::page::Page;
use crate::script::Script;
use crate::world::{QUEUE, World};

const GUIDE: Page = Page(include_str!("../../../../docs/throttling.md"));

#[tokio::test]
async fn every_call_of_the_guide_is_answered_as_it_says() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut guide = Script::new(GUIDE, &world, &key);
    guide.set("QUEUE", QUEUE);
    // The policy; a release, an extension, the holders, a token freed; the job.
    guide.steps(6).await;
    // The run that it talks of is nobody's here.
    for _ in 0..4 {
        guide.step_as(StatusCode::NOT_FOUND).await;
    }
    guide.end();
    let shown = world.get("/v1/jobs/nightly", &key).await.json;
    assert_eq!((&shown["cost"], &shown["window"]["pace"]), (&json!(2), &json!("even")));
}
