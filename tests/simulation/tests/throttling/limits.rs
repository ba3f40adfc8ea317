//! Limits that change, weights and rates.

use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::flow::{Cost, Flow};
use tidegate_domain::rate_limit::{Per, RateLimit};
use tidegate_testkit::PREFIX;

use super::stage::{Stage, terms};

/// Two slot groups: neither sees what the other holds.
#[tokio::test]
async fn a_lowered_limit_drains_and_nothing_is_granted_until_less_is_in_flight() {
    let stage = Stage::new().await;
    stage.policy("small", terms(24)).await;
    stage.job("batch", 200, "small", Flow::default()).await;
    let mut held = stage.arrived().await;
    assert_eq!(held.len(), 24);
    stage.change("small", terms(8)).await;
    assert_eq!(stage.load("small").await.in_flight, 24);
    // From either end: the groups drain in any order.
    for round in 0..16 {
        let event = if round % 2 == 0 { held.pop().unwrap() } else { held.remove(0) };
        stage.release(&[event]).await;
        assert_eq!(stage.arrived().await.len(), 0, "{} were in flight", held.len());
    }
    assert_eq!((held.len(), stage.load("small").await.in_flight), (8, 8));
    for _ in 0..40 {
        stage.release(&[held.remove(0)]).await;
        held.extend(stage.wait(3).await);
        assert!(held.len() <= 8);
    }
    assert_eq!(held.len(), 8, "no slot stays idle");
}

#[tokio::test]
async fn a_raised_limit_is_used_at_once_also_while_a_lowered_one_drains() {
    let stage = Stage::new().await;
    stage.policy("small", terms(30)).await;
    stage.job("batch", 200, "small", Flow::default()).await;
    let held = stage.arrived().await;
    assert_eq!(held.len(), 30);
    stage.change("small", terms(5)).await;
    stage.change("small", terms(40)).await;
    assert_eq!(stage.arrived().await.len(), 10);
    assert_eq!(stage.load("small").await.in_flight, 40);
}

#[tokio::test]
async fn a_paused_policy_admits_nothing_and_goes_on_where_it_was() {
    let stage = Stage::new().await;
    stage.policy("small", terms(20)).await;
    stage.job("batch", 60, "small", Flow::default()).await;
    let held = stage.arrived().await;
    assert_eq!(held.len(), 20);
    stage.pause("small", true).await;
    stage.release(&held[..15]).await;
    assert_eq!(stage.wait(30).await.len(), 0);
    assert_eq!(stage.load("small").await.in_flight, 5);
    stage.pause("small", false).await;
    assert_eq!(stage.arrived().await.len(), 15);
}

#[tokio::test]
async fn heavy_events_take_as_many_tokens_as_they_weigh() {
    let stage = Stage::new().await;
    stage.policy("small", terms(10)).await;
    let heavy = Flow { cost: Cost::new(4).unwrap(), ..Flow::default() };
    stage.job("heavy", 9, "small", heavy).await;
    stage.job_in(1, "light", 20, "small", Flow::default()).await;
    let mut held = stage.wait(2).await;
    // Two of four; the next of them waits for room, and what is behind it waits with it.
    assert_eq!((held.len(), stage.load("small").await.in_flight), (2, 8));
    let mut done = 0;
    while !held.is_empty() {
        stage.release(&[held.remove(0)]).await;
        done += 1;
        held.extend(stage.arrived().await);
        let weight: u32 = held.iter().map(|event| event.token.as_ref().unwrap().lease.cost).sum();
        assert!(weight <= 10 && weight == stage.load("small").await.in_flight, "{weight}");
    }
    assert_eq!(done, 29);
}

#[tokio::test]
async fn an_event_heavier_than_the_whole_limit_takes_all_of_it() {
    let stage = Stage::new().await;
    stage.policy("small", terms(12)).await;
    let heavy = Flow { cost: Cost::new(9).unwrap(), ..Flow::default() };
    stage.job("heavy", 3, "small", heavy).await;
    let first = stage.arrived().await;
    assert_eq!(first.len(), 1);
    stage.change("small", terms(5)).await;
    stage.release(&first).await;
    let second = stage.arrived().await;
    assert_eq!((second.len(), stage.load("small").await.in_flight), (1, 5));
    stage.release(&second).await;
    assert_eq!(stage.arrived().await.len(), 1);
}

#[tokio::test]
async fn a_rate_lets_a_burst_through_and_then_so_many_a_second() {
    let stage = Stage::new().await;
    let rate = RateLimit::new(5, Per::Second, Some(8)).unwrap();
    stage.policy("small", terms(100).with_rate(Some(rate))).await;
    stage.job("batch", 60, "small", Flow::default()).await;
    let mut by_second = vec![stage.arrived().await.len()];
    for _ in 0..5 {
        by_second.push(stage.wait(1).await.len());
    }
    assert_eq!(by_second, [8, 5, 5, 5, 5, 5]);
}

#[tokio::test]
async fn a_rate_holds_for_tokens_that_are_released_at_once() {
    let stage = Stage::new().await;
    let rate = RateLimit::new(30, Per::Minute, None).unwrap();
    stage.policy("small", terms(4).with_rate(Some(rate))).await;
    stage.job("batch", 100, "small", Flow::default()).await;
    let (mut arrived, from) = (0, stage.world.clock.now());
    while (stage.world.clock.now() - from).num_seconds() < 60 {
        let events = stage.wait(1).await;
        arrived += events.len();
        stage.release(&events).await;
        let events = stage.arrived().await;
        arrived += events.len();
        stage.release(&events).await;
    }
    assert!((30..=31).contains(&arrived), "{arrived}");
}

/// What one slot group granted is sent, though the one beside it fails: nobody else would send it before its lease ends.
#[tokio::test]
async fn a_group_that_fails_keeps_no_other_from_sending() {
    let stage = Stage::new().await;
    stage.policy("small", terms(20)).await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let row = stage.world.embedded.dynamodb().put_item().table_name(format!("{PREFIX}-policies"));
    let row = row.item("pk", text("acme|small|0001")).item("sk", text("slots")).item("held", text("none"));
    row.send().await.unwrap();
    stage.job("batch", 40, "small", Flow::default()).await;
    assert_eq!(stage.arrived().await.len(), 10);
}
