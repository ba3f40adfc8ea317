//! Calls that release tokens side by side: they share their writes, and each is answered as if it were alone.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::join_all;
use tidegate_domain::flow::Flow;
use tidegate_domain::token::Token;
use tidegate_engine::{Engine, Outcome, Release, Released};
use tidegate_simulation::pace::Pace;

use super::stage::{Stage, client, terms};

/// Tokens of one slot group.
const TOKENS: u32 = 10;
/// Events of the batch: each slot goes on twice.
const EVENTS: u64 = 30;

/// A stage where a consumer has as many events as there are tokens, their tokens, and a process whose updates of slot groups are
/// counted.
async fn all_held() -> (Stage, Vec<Token>, Engine, Arc<Pace>) {
    let stage = Stage::new().await;
    stage.policy("small", terms(TOKENS)).await;
    stage.job("batch", EVENTS, "small", Flow::default()).await;
    let held = stage.arrived().await;
    let tokens: Vec<Token> = held.iter().filter_map(|event| event.token.clone()).collect();
    assert_eq!(tokens.len(), TOKENS as usize);
    let (process, updates) = stage.counted();
    (stage, tokens, process, updates)
}

async fn release(process: &Engine, tokens: &[Token]) -> Vec<Released> {
    let releases = tokens.iter().map(|token| Release::new(token.clone(), Outcome::Succeeded)).collect();
    let answers = process.tokens().release(&client(), releases).await.unwrap();
    assert_eq!(answers.len(), tokens.len());
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[tokio::test]
async fn a_slot_group_is_written_once_for_all_calls_that_wait() {
    let (stage, tokens, process, updates) = all_held().await;
    let calls = tokens.chunks(2).map(|two| release(&process, two));
    let answers = join_all(calls).await.concat();
    assert_eq!(answers, [Released::Released; TOKENS as usize]);
    // The first call, and the four that came meanwhile.
    assert_eq!(updates.seen(), 2);
    assert_eq!(stage.arrived().await.len(), TOKENS as usize, "each slot went on to the next event");
    assert_eq!(stage.load("small").await.in_flight, TOKENS);
}

#[tokio::test]
async fn a_token_that_two_calls_name_is_released_by_one_of_them() {
    let (stage, tokens, process, _) = all_held().await;
    let same = &tokens[..1];
    let calls = [&tokens[1..2], same, same].map(|tokens| release(&process, tokens));
    let answers = join_all(calls).await.concat();
    assert_eq!(answers, [Released::Released, Released::Released, Released::AlreadyReleased]);
    assert_eq!(stage.arrived().await.len(), 2);
}

#[tokio::test]
async fn calls_that_wait_for_one_that_is_given_up_are_made_alone() {
    let (stage, tokens, process, _) = all_held().await;
    let mut given_up = Box::pin(release(&process, &tokens[..1]));
    assert!((&mut given_up).now_or_never().is_none(), "its write is under way");
    let others = join_all(tokens[1..].chunks(3).map(|three| release(&process, three)));
    let (others, ()) = tokio::join!(others, async { drop(given_up) });
    assert_eq!(others.concat(), [Released::Released; TOKENS as usize - 1]);
    assert_eq!(stage.arrived().await.len(), TOKENS as usize - 1);
    assert_eq!(release(&process, &tokens[..1]).await, [Released::Released], "nothing was written for it");
}
