//! A dead letter that was redriven does not come back because a message comes twice.

use std::sync::Arc;

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_engine::{DeadLetterFilter, Handled, Redriven};
use tidegate_simulation::World;
use tidegate_simulation::gate::{Gate, Task};
use tidegate_simulation::world::JobSpec;

use super::Kind;
use super::stage::{client, refused};

/// More requests than one granted event makes.
const REQUESTS: usize = 40;
/// Within so many the end of an event is compacted.
const MINUTES: u32 = 2;

/// The message of an event that holds a token and whose endpoint may not be called.
async fn granted(world: &World) -> String {
    let jobs = world.queue("jobs").await.unwrap();
    world.policy("small", 1, 600).await.unwrap();
    let launch_at = world.clock.now() + Duration::seconds(1);
    world.create(refused(JobSpec::at(launch_at, &jobs).unwrap().named("one"))).await.unwrap();
    world.advance(1);
    for _ in 0..REQUESTS {
        for message in world.take_dispatched().await.unwrap() {
            if Kind::of(&message) == Kind::Event {
                return message.encode();
            }
            assert_eq!(world.engine.handle(&message.encode(), 1).await, Handled::Done);
        }
        world.advance(1);
        world.engine.tick().await.unwrap();
    }
    panic!("nothing was granted");
}

/// Whether a letter is there, when one process handles the message, and its letter is redriven, after another one made so many
/// requests for the same; `None`: it made no more.
async fn comes_back(requests: usize) -> Option<bool> {
    let world = World::new().await.unwrap();
    let text = granted(&world).await;
    let gate = Arc::new(Gate::default());
    let slow = world.process(&gate).unwrap();
    let again = text.clone();
    let mut slow = Task::new(&gate, async move { slow.handle(&again, 1).await });
    slow.steps(requests);
    if slow.is_over() {
        return None;
    }
    assert_eq!(world.engine.handle(&text, 1).await, Handled::Done);
    let (letters, client) = (world.engine.dead_letters(), client());
    let all = async || letters.list(&client, &DeadLetterFilter::default(), None).await.unwrap().rows;
    for _ in 0..MINUTES {
        world.advance(60);
        world.engine.tick().await.unwrap();
        world.pump().await.unwrap();
    }
    let [letter] = <[_; 1]>::try_from(all().await).unwrap();
    let redriven = letters.redrive(&client, &[(letter.event, world.clock.now())]).await.remove(0);
    assert_eq!(redriven.unwrap(), Redriven::Done);
    slow.finish().unwrap();
    Some(!all().await.is_empty())
}

#[tokio::test]
async fn a_granted_event_that_two_processes_handle_leaves_no_letter_when_it_was_redriven() {
    let (mut points, mut back) = (0, Vec::new());
    for requests in 0..REQUESTS {
        let Some(comes_back) = comes_back(requests).await else { break };
        points += 1;
        back.extend(comes_back.then_some(requests));
    }
    assert!((4..REQUESTS).contains(&points), "{points}");
    assert!(back.is_empty(), "{back:?} of {points}");
}
