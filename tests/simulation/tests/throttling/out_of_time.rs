//! Calls whose time is over: what they did not come to is done by others, soon.

use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::Flow;
use tidegate_domain::limits::TOKENS_PER_GROUP;
use tidegate_domain::policy::PolicyTerms;
use tidegate_engine::{EngineError, Handled, Outcome, Release, Released, within};

use super::stage::{Stage, client, terms};

/// More than are looked at together.
const GROUPS: u32 = 12;
const TOKENS: u32 = GROUPS * TOKENS_PER_GROUP;

/// What follows a call that has no time is left to a message, and nothing of it is lost.
#[tokio::test]
async fn what_follows_is_left_to_the_next_call() {
    let stage = Stage::new().await;
    stage.policy("wide", terms(TOKENS)).await;
    stage.pause("wide", true).await;
    stage.job("batch", u64::from(TOKENS), "wide", Flow::default()).await;
    assert!(stage.arrived().await.is_empty());
    let now = stage.world.clock.now();
    within(now, stage.pause("wide", false)).await;
    let at_once = stage.world.consume(&stage.queue).await.unwrap().len();
    assert!(at_once < TOKENS as usize, "{at_once} came in a call without time");
    // No tick comes in between.
    assert_eq!(at_once + stage.arrived().await.len(), TOKENS as usize);
}

/// What may have been done before is looked at last: without time for it, it comes again.
#[tokio::test]
async fn messages_that_there_is_no_time_for_come_again() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    let wake = |policy: &str| {
        serde_json::json!({"v": 1, "wake": {"client": client().as_str(), "policy": policy}}).to_string()
    };
    let (now, body) = (stage.world.clock.now(), wake("small"));
    let messages = [(&*body, 1)];
    assert_eq!(within(now, stage.world.engine.handle_all(&messages)).await, [Handled::Retry]);
    assert_eq!(stage.world.engine.handle_all(&messages).await, [Handled::Done]);
}

/// A consumer is answered though there is no time to release what it names: its tokens are left to messages.
#[tokio::test]
async fn releases_that_there_is_no_time_for_are_left_to_messages() {
    let stage = Stage::new().await;
    // Leases that outlast the wait.
    stage.policy("wide", PolicyTerms::new(TOKENS, 600).unwrap()).await;
    stage.job("batch", u64::from(2 * TOKENS), "wide", Flow::default()).await;
    let first = stage.arrived().await;
    assert_eq!(first.len(), TOKENS as usize);
    let releases = first.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Succeeded));
    let (now, tokens) = (stage.world.clock.now(), stage.world.engine.tokens());
    let answers = within(now, tokens.release(&client(), releases.collect())).await.unwrap();
    assert_eq!(answers.len(), TOKENS as usize);
    assert!(answers.iter().all(|(_, answer)| *answer == Released::Deferred), "{answers:?}");
    // A tick evens out what full groups have left and others have room for.
    assert_eq!(stage.wait(130).await.len(), TOKENS as usize);
}

/// Nothing is half done: who extends or frees tokens without time for it hears that, and may ask again.
#[tokio::test]
async fn extensions_that_there_is_no_time_for_are_refused() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    stage.job("single", 2, "small", Flow::default()).await;
    let first = stage.arrived().await;
    let held = || first.iter().map(|event| event.token.clone().unwrap()).collect::<Vec<_>>();
    let (now, tokens) = (stage.world.clock.now(), stage.world.engine.tokens());
    let extended = within(now, tokens.extend(&client(), held(), None)).await;
    assert!(matches!(extended, Err(EngineError::OutOfTime)), "{extended:?}");
    let freed = within(now, tokens.free_held(&client(), held(), false)).await;
    assert!(matches!(freed, Err(EngineError::OutOfTime)), "{freed:?}");
    stage.release(&first).await;
}
