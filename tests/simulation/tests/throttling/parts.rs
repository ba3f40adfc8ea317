//! A large run under a policy of many slot groups: it waits in parts, and its outcomes are counted in parts.

use std::collections::BTreeSet;

use tidegate_domain::flow::{Flow, Overlap};
use tidegate_domain::limits::{GROUPS_PER_PART, TOKENS_PER_GROUP};
use tidegate_engine::RunCancel;
use tidegate_simulation::world::Received;
use tidegate_store::line::LineEntry;

use super::stage::{Stage, client, terms};

/// Two parts, of which the second has few groups.
const TOKENS: u32 = GROUPS_PER_PART * TOKENS_PER_GROUP + 2 * TOKENS_PER_GROUP;
const EVENTS: u32 = 3 * TOKENS;

/// A stage with a run that waits, none of whose events was admitted.
async fn waiting(flow: Flow) -> Stage {
    let stage = Stage::new().await;
    stage.policy("many", terms(TOKENS)).await;
    stage.pause("many", true).await;
    stage.job("batch", EVENTS.into(), "many", flow).await;
    stage.world.pump().await.unwrap();
    stage
}

async fn line(stage: &Stage) -> Vec<LineEntry> {
    let store = stage.world.engine.store();
    store.line(&client(), &"many".parse().unwrap(), None).await.unwrap().rows
}

#[tokio::test]
async fn each_event_of_a_run_in_parts_comes_once_and_is_counted_once() {
    let stage = waiting(Flow::default()).await;
    let entries = line(&stage).await;
    assert_eq!(
        entries.iter().map(|entry| (entry.cursor, entry.count)).collect::<Vec<_>>(),
        [(0, EVENTS / 2), (EVENTS / 2, EVENTS)]
    );
    let load = stage.load("many").await;
    assert_eq!((load.waiting, load.waiting_runs), (EVENTS, 1));
    stage.pause("many", false).await;
    let (mut came, mut groups) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..EVENTS {
        let arrived = stage.arrived().await;
        if arrived.is_empty() {
            break;
        }
        assert!(stage.load("many").await.in_flight <= TOKENS);
        for event in &arrived {
            assert!(came.insert(event.body.index), "event {} came twice", event.body.index);
            groups.insert(event.token.as_ref().unwrap().group.group);
        }
        for some in arrived.chunks(100) {
            stage.release(some).await;
        }
    }
    assert_eq!((came.len(), groups.len()), (EVENTS as usize, (TOKENS / TOKENS_PER_GROUP) as usize));
    stage.wait(60).await;
    let runs = stage.runs("batch").await;
    assert_eq!(runs[0].tally.succeeded, EVENTS);
    assert!(runs[0].started_at.is_some() && line(&stage).await.is_empty());
}

/// A group takes of its own part while there is something left in it.
#[tokio::test]
async fn a_group_takes_of_its_own_part() {
    let stage = waiting(Flow::default()).await;
    stage.pause("many", false).await;
    let is_second = |event: &Received| event.body.index >= EVENTS / 2;
    let arrived = stage.arrived().await;
    assert_eq!(arrived.len(), TOKENS as usize);
    for event in &arrived {
        let group = event.token.as_ref().unwrap().group.group;
        assert_eq!(
            is_second(event),
            group >= GROUPS_PER_PART,
            "event {} is in group {group}",
            event.body.index
        );
    }
}

#[tokio::test]
async fn all_parts_of_a_run_are_cancelled() {
    let stage = waiting(Flow::default()).await;
    stage.pause("many", false).await;
    let arrived = stage.arrived().await;
    let run = stage.runs("batch").await.remove(0).id;
    assert_eq!(stage.world.engine.jobs().cancel_run(&client(), &run).await.unwrap(), RunCancel::Done);
    for some in arrived.chunks(100) {
        stage.release(some).await;
    }
    assert_eq!(stage.wait(60).await.len(), 0);
    let tally = stage.runs("batch").await.remove(0).tally;
    assert_eq!((tally.succeeded, tally.left_out), (TOKENS, EVENTS - TOKENS));
    assert!(line(&stage).await.is_empty());
}

/// It is decided about as a whole.
#[tokio::test]
async fn a_run_that_an_overlap_rule_decides_about_waits_whole() {
    let stage = waiting(Flow { overlap: Overlap::Skip, ..Flow::default() }).await;
    assert_eq!(line(&stage).await.len(), 1);
}
