//! A run of a million events under a policy of 10,000 tokens, all of which are in use.
//!
//! Every slot group of some parts has outcomes in the run's history before anything is counted, so that the rows of these parts, which
//! know something of each group, are as large as they become. Then some of these groups are taken through a whole range.

use std::collections::{BTreeMap, VecDeque};

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::limits::{
    EVENTS_PER_COMPACTION, GRANT_EVENTS, GROUPS_PER_PART, MAX_IN_FLIGHT, TOKENS_PER_GROUP,
};
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, Received};
use tidegate_store::Spread;

use super::{Budget, fire_at, hold};

/// The parts whose groups are looked at.
const PARTS: [u32; 2] = [0, 17];
/// Of how many of their groups one is taken through a range.
const SAMPLED: usize = 3;

/// What a consumer holds, by slot group.
struct Held {
    world: World,
    queue: String,
    events: BTreeMap<u32, VecDeque<Received>>,
}

impl Held {
    async fn of_a_million_events() -> Self {
        let world = World::new().await.unwrap();
        let queue = world.queue("jobs").await.unwrap();
        world.policy("large", MAX_IN_FLIGHT, 43_200).await.unwrap();
        let job = JobSpec::at(world.clock.now() + Duration::minutes(180), &queue).unwrap();
        let job = job.of(1_000_000).unwrap().under("large").unwrap().named("batch");
        world.create(job).await.unwrap();
        fire_at(&world, 180).await;
        let mut held = Self { world, queue, events: BTreeMap::new() };
        held.receive().await;
        assert_eq!(held.events.values().map(VecDeque::len).sum::<usize>(), MAX_IN_FLIGHT as usize);
        held
    }

    async fn receive(&mut self) {
        for event in self.world.consume(&self.queue).await.unwrap() {
            let group = event.token.as_ref().unwrap().group.group;
            self.events.entry(group).or_default().push_back(event);
        }
    }

    /// Releases events of a group, so many to a call.
    async fn release(&mut self, group: u32, events: u32, at_once: u32) {
        for _ in 0..events / at_once {
            let held = self.events.get_mut(&group).unwrap();
            let done: Vec<Received> = held.drain(..at_once as usize).collect();
            self.world.release(&done).await.unwrap();
            self.receive().await;
        }
    }
}

#[tokio::test]
async fn a_batch_under_ten_thousand_tokens() {
    let mut held = Held::of_a_million_events().await;
    // The last group has the rest of the tokens.
    let groups = held.events.keys().copied().take(MAX_IN_FLIGHT.div_euclid(TOKENS_PER_GROUP) as usize);
    let groups: Vec<u32> =
        groups.filter(|group| PARTS.contains(&Spread::default().part_of(*group))).collect();
    assert_eq!(groups.len(), PARTS.len() * GROUPS_PER_PART as usize);
    for group in &groups {
        held.release(*group, EVENTS_PER_COMPACTION + 10, 10).await;
    }
    let sample: Vec<u32> = groups.iter().copied().step_by(SAMPLED).collect();
    let events = u64::from(GRANT_EVENTS) * sample.len() as u64;
    for (how, at_once, write_units) in [("in tens", 10, 0.25), ("singly", 1, 1.2)] {
        let before = held.world.embedded.meter().snapshot();
        for group in &sample {
            held.release(*group, GRANT_EVENTS, at_once).await;
        }
        let used = held.world.embedded.meter().snapshot().since(&before);
        let budget = Budget { write_units, read_units: 0.1, requests: 1.2 };
        hold(&format!("10,000 tokens, {how}"), &used, events, &budget);
    }
}
