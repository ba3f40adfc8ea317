//! Many instants of one minute: no partition is hot when they are written, or when they are read.

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::limits::AT_SHARDS;
use tidegate_domain::time::AtMinute;
use tidegate_engine::message::Message;
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_store::launch::Shard;

/// Instants of the minute.
const INSTANTS: usize = 10_000;
/// Of them, those of jobs whose clients chose the id.
const KEYED: usize = 2_000;

#[tokio::test]
async fn ten_thousand_instants_of_one_minute_are_spread() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.engine.tick().await.unwrap();
    let minute = world.clock.now() + Duration::minutes(30);
    let drafts: Vec<_> = (0..INSTANTS)
        .map(|number| {
            let launch_at = minute + Duration::seconds(number as i64 % 60);
            let id = (number < KEYED).then(|| format!("order-{number}").parse().unwrap());
            (id, JobSpec::at(launch_at, &queue).unwrap().failures_only().into_draft())
        })
        .collect();
    for calls in drafts.chunks(1_000) {
        for answer in world.engine.jobs().create_all(&CLIENT.parse().unwrap(), calls.to_vec()).await {
            answer.unwrap();
        }
    }

    let mut rows = Vec::new();
    for shard in 0..AT_SHARDS {
        let (first, last) = (AtMinute::of(minute), AtMinute::of(minute));
        let (mut count, mut after) = (0, None);
        loop {
            let shard = Shard::Minutes { first, last, shard };
            let page = world.engine.store().children(&shard, after).await.unwrap();
            count += page.rows.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        rows.push(count);
    }
    assert_eq!(rows.iter().sum::<usize>(), INSTANTS);
    let (max, mean) = (rows.iter().max().unwrap(), INSTANTS as f64 / f64::from(AT_SHARDS));
    let told =
        format!("{INSTANTS} instants of one minute: {mean:.0} writes per partition key, {max} the most");
    assert!((*max as f64) < 1.4 * mean, "{told}: {rows:?}");

    world.clock.set(minute - Duration::minutes(1));
    for _ in 0..3 {
        world.engine.tick().await.unwrap();
        world.pump_scans().await.unwrap();
        world.advance(60);
    }
    let mut emitted = 0;
    for message in world.take_dispatched().await.unwrap() {
        let Message::Chunk(chunk) = message else { panic!("{message:?}") };
        emitted += chunk.items.len();
    }
    assert_eq!(emitted, INSTANTS, "{told}");
}
