//! Releases that come by messages: handled together, each message by itself.

use tidegate_domain::flow::Flow;
use tidegate_engine::Handled;

use super::stage::{Stage, terms};

fn body(tokens: &[String]) -> (String, u32) {
    (serde_json::json!({"client_id": "acme", "tokens": tokens}).to_string(), 1)
}

#[tokio::test]
async fn messages_release_what_they_name_and_a_bad_one_spoils_no_other() {
    let stage = Stage::new().await;
    stage.policy("small", terms(10)).await;
    stage.job("batch", 40, "small", Flow::default()).await;
    let held = stage.arrived().await;
    let tokens: Vec<String> = held.iter().map(|e| e.body.token.clone().unwrap()).collect();
    let before = stage.world.embedded.meter().snapshot();
    let messages = [
        body(&tokens[..4]),
        ("{\"client_id\":\"acme\"".to_owned(), 1),
        body(&["nonsense".to_owned(), tokens[4].clone()]),
        body(&[tokens[5].clone()]),
        (serde_json::json!({"client_id": "zeta", "tokens": [tokens[6]]}).to_string(), 1),
        body(&tokens[..2]),
    ];
    let messages: Vec<(&str, u32)> = messages.iter().map(|(body, received)| (&**body, *received)).collect();
    let handled = stage.world.engine.handle_releases(&messages).await;
    // The one that is none is set aside.
    assert_eq!(handled, [Handled::Done; 6]);
    let used = stage.world.embedded.meter().snapshot().since(&before);
    assert!(used.write_units() <= 2.0, "six tokens of one group are one write: {}", used.write_units());
    assert_eq!(stage.arrived().await.len(), 6);
    assert_eq!(stage.load("small").await.in_flight, 10);
    // The same messages a second time change nothing.
    stage.world.engine.handle_releases(&messages).await;
    assert_eq!(stage.arrived().await.len(), 0);
}
