//! What consumers say of the events of a large run: more a second than one key takes.

use std::collections::BTreeMap;

use tidegate_engine::{Outcome, Release};
use tidegate_store::tables::Table;
use tidegate_testkit::rows;

use super::stage::{Stage, client, terms};

/// More than lie under one key, several times.
const EVENTS: u32 = 700;
/// How many may lie under one key: a fraction of what it takes in a second.
const MOST_PER_KEY: usize = 256;

#[tokio::test]
async fn what_is_said_of_a_large_run_lies_under_several_keys_and_is_shown_with_its_events() {
    let stage = Stage::new().await;
    stage.policy("many", terms(EVENTS)).await;
    stage.job("batch", EVENTS.into(), "many", Default::default()).await;
    let said = |index: u32| format!("rows of event {index}");
    let mut ended = 0;
    while ended < EVENTS {
        let arrived = stage.arrived().await;
        assert!(!arrived.is_empty(), "{ended} of {EVENTS} events came");
        ended += u32::try_from(arrived.len()).unwrap();
        for some in arrived.chunks(100) {
            let release = |event: &tidegate_simulation::world::Received| Release {
                token: event.token.clone().unwrap(),
                outcome: Outcome::Succeeded,
                text: Some(said(event.body.index)),
            };
            let releases = some.iter().map(release).collect();
            stage.world.engine.tokens().release(&client(), releases).await.unwrap();
        }
    }
    let run = stage.runs("batch").await.pop().unwrap().id;
    let (mut shown, mut after) = (BTreeMap::new(), None);
    loop {
        let page = stage.world.engine.queries().events(&client(), &run, after).await.unwrap().unwrap();
        shown.extend(page.rows.into_iter().map(|event| (event.id.index(), event.text.unwrap_or_default())));
        after = page.next.map(|next| next.parse().unwrap());
        if after.is_none() {
            break;
        }
    }
    assert_eq!(shown, (0..EVENTS).map(|index| (index, said(index))).collect());
    let mut per_key = BTreeMap::<String, usize>::new();
    for row in rows::all(&stage.world.embedded.dynamodb(), Table::Events).await.unwrap() {
        let text = |name: &str| row[name].as_s().unwrap().clone();
        if text("sk").starts_with('t') {
            *per_key.entry(text("pk")).or_default() += 1;
        }
    }
    assert_eq!(per_key.values().sum::<usize>(), EVENTS as usize);
    assert!(per_key.values().all(|notes| *notes <= MOST_PER_KEY), "{per_key:?}");
}
