//! Single events under a policy: one-time and cron jobs, together in their minute or alone.

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::Usage;
use tidegate_engine::{Handled, Written};
use tidegate_simulation::World;
use tidegate_simulation::world::{CLIENT, JobSpec, Received};
use tidegate_testkit::queue::receive_count;

use super::{Budget, fire_at, hold};

const EVENTS: u64 = 1_000;

/// A consumer of a policy.
struct Consumer {
    queue: String,
    limit: u32,
    at_once: usize,
    held: Vec<Received>,
    released: u64,
}

impl Consumer {
    fn new(queue: &str, limit: u32, at_once: usize) -> Self {
        Self { queue: queue.to_owned(), limit, at_once, held: Vec::new(), released: 0 }
    }

    /// Takes and releases what there is, until nothing comes any more.
    async fn work(&mut self, world: &World) {
        loop {
            self.held.extend(world.consume(&self.queue).await.unwrap());
            assert!(self.held.len() <= self.limit as usize, "{} are in flight", self.held.len());
            let done: Vec<Received> = self.held.drain(..self.held.len().min(self.at_once)).collect();
            if done.is_empty() {
                return;
            }
            world.release(&done).await.unwrap();
            self.released += done.len() as u64;
        }
    }
}

/// A world with a policy of so many tokens, and its consumer.
async fn world_of(tokens: u32, at_once: usize) -> (World, Consumer) {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    world.policy("shared", tokens, 600).await.unwrap();
    (world, Consumer::new(&queue, tokens, at_once))
}

/// One-time jobs with generated ids, launched `apart_ms` apart within one minute, three hours from their creation.
async fn one_time(at_once: usize, apart_ms: i64) -> Usage {
    let (world, mut consumer) = world_of(10, at_once).await;
    let before = world.embedded.meter().snapshot();
    let minute = world.clock.now() + Duration::minutes(180);
    for number in 0..EVENTS as i64 {
        let launch_at = minute + Duration::seconds(number * apart_ms / 1_000);
        world
            .create(JobSpec::at(launch_at, &consumer.queue).unwrap().under("shared").unwrap())
            .await
            .unwrap();
    }
    fire_at(&world, 180).await;
    for _ in 0..60 {
        consumer.work(&world).await;
        world.advance(1);
        world.pump().await.unwrap();
    }
    consumer.work(&world).await;
    assert_eq!(consumer.released, EVENTS);
    world.embedded.meter().snapshot().since(&before)
}

#[tokio::test]
async fn one_time_jobs_of_one_second_released_one_by_one() {
    let used = one_time(1, 0).await;
    let budget = Budget { write_units: 2.6, read_units: 0.4, requests: 1.3 };
    hold("throttled one-time jobs, singly", &used, EVENTS, &budget);
}

#[tokio::test]
async fn one_time_jobs_of_one_second_released_ten_at_a_time() {
    let used = one_time(10, 0).await;
    let budget = Budget { write_units: 1.6, read_units: 0.4, requests: 0.4 };
    hold("throttled one-time jobs, in tens", &used, EVENTS, &budget);
}

#[tokio::test]
async fn one_time_jobs_spread_over_a_minute_released_one_by_one() {
    let used = one_time(1, 60).await;
    let budget = Budget { write_units: 3.2, read_units: 1.0, requests: 1.6 };
    hold("throttled one-time jobs over a minute, singly", &used, EVENTS, &budget);
}

/// One-time jobs with generated ids, created one by one within the last minute before the second in which they are due.
async fn late(at_once: usize) -> Usage {
    let (world, mut consumer) = world_of(10, at_once).await;
    let due = world.clock.now() + Duration::minutes(180);
    fire_at(&world, 179).await;
    let before = world.embedded.meter().snapshot();
    for number in 1..=EVENTS as i64 {
        world.create(JobSpec::at(due, &consumer.queue).unwrap().under("shared").unwrap()).await.unwrap();
        if number % 20 == 0 {
            world.advance(1);
            world.pump().await.unwrap();
        }
    }
    world.advance(60 - EVENTS as i64 / 20);
    assert!(world.engine.tick().await.unwrap().won);
    world.pump().await.unwrap();
    consumer.work(&world).await;
    assert_eq!(consumer.released, EVENTS);
    world.embedded.meter().snapshot().since(&before)
}

#[tokio::test]
async fn one_time_jobs_created_within_the_last_minute() {
    let used = late(1).await;
    let budget = Budget { write_units: 5.0, read_units: 2.0, requests: 2.5 };
    hold("throttled one-time jobs, late, singly", &used, EVENTS, &budget);
}

/// The same, created by ten calls of a hundred jobs each.
async fn late_in_bulk(tokens: u32, at_once: usize) -> Usage {
    let (world, mut consumer) = world_of(tokens, at_once).await;
    let due = world.clock.now() + Duration::minutes(180);
    fire_at(&world, 179).await;
    let before = world.embedded.meter().snapshot();
    for _ in 0..10 {
        let draft = JobSpec::at(due, &consumer.queue).unwrap().under("shared").unwrap().into_draft();
        let created =
            world.engine.jobs().create_all(&CLIENT.parse().unwrap(), vec![(None, draft); 100]).await;
        assert!(created.iter().all(|answer| matches!(answer, Ok(Written::Created(_)))));
        world.advance(5);
        world.pump().await.unwrap();
    }
    world.advance(10);
    assert!(world.engine.tick().await.unwrap().won);
    world.pump().await.unwrap();
    consumer.work(&world).await;
    assert_eq!(consumer.released, EVENTS);
    world.embedded.meter().snapshot().since(&before)
}

#[tokio::test]
async fn one_time_jobs_created_in_bulk_within_the_last_minute() {
    let used = late_in_bulk(10, 1).await;
    let budget = Budget { write_units: 2.6, read_units: 1.0, requests: 1.3 };
    hold("throttled one-time jobs, late, in bulk, singly", &used, EVENTS, &budget);
}

/// Under five slot groups, which take of ten packs: each of several events of those that wait, and not a dozen at a time.
#[tokio::test]
async fn one_time_jobs_under_a_policy_of_several_groups() {
    let used = late_in_bulk(50, 10).await;
    let budget = Budget { write_units: 1.8, read_units: 0.9, requests: 0.2 };
    hold("throttled one-time jobs under five groups, in tens", &used, EVENTS, &budget);
}

/// One-time jobs that nothing throttles, created by ten calls of a hundred jobs each in the last minute before they are due.
#[tokio::test]
async fn unthrottled_one_time_jobs_created_in_bulk_within_the_last_minute() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let due = world.clock.now() + Duration::minutes(180);
    fire_at(&world, 179).await;
    let before = world.embedded.meter().snapshot();
    for _ in 0..10 {
        let draft = JobSpec::at(due, &queue).unwrap().failures_only().into_draft();
        let created =
            world.engine.jobs().create_all(&CLIENT.parse().unwrap(), vec![(None, draft); 100]).await;
        assert!(created.iter().all(|answer| matches!(answer, Ok(Written::Created(_)))));
    }
    world.advance(60);
    world.pump().await.unwrap();
    assert_eq!(world.consume(&queue).await.unwrap().len() as u64, EVENTS);
    let used = world.embedded.meter().snapshot().since(&before);
    // Whoever receives a hundred of them reads one note.
    let budget = Budget { write_units: 1.1, read_units: 0.02, requests: 0.15 };
    hold("one-time jobs, late, in bulk", &used, EVENTS, &budget);
}

/// A one-time job whose event is alone in its minute, from its creation to the release of its token, without the ticks'
/// own units: what a tick before it used that had nothing to emit. The consumer has had an event before. With `company` its client
/// had another job in its ten minutes, which was deleted.
async fn lone(company: bool, job: impl AsyncFn(&World, &str, DateTime<Utc>) -> JobSpec) -> Usage {
    let (world, consumer) = world_of(10, 1).await;
    let used = || world.embedded.meter().snapshot();
    let fire = async |minutes: i64| {
        let past_ten = world.clock.now().timestamp() % 600;
        world.advance(600 - past_ten);
        let launch_at = world.clock.now() + Duration::minutes(minutes);
        if company {
            let later = launch_at + Duration::minutes(9);
            let other = world.create(job(&world, &consumer.queue, later).await).await.unwrap();
            let (client, other) = (CLIENT.parse().unwrap(), other.parse().unwrap());
            world.engine.jobs().delete(&client, &other, None).await.unwrap();
        }
        let began = used();
        world.create(job(&world, &consumer.queue, launch_at).await).await.unwrap();
        let created = used();
        // Minutes in which nothing is due: then no tick has anything to catch up, or a policy to look after.
        world.advance(minutes * 60 - 300);
        for _ in 0..3 {
            world.engine.tick().await.unwrap();
            world.pump().await.unwrap();
            world.advance(60);
        }
        let before_idle = used();
        assert!(world.engine.tick().await.unwrap().won);
        let after_idle = used();
        world.pump().await.unwrap();
        let ready = used();
        world.advance(60);
        assert!(world.engine.tick().await.unwrap().won);
        world.advance(60);
        let messages = world.receive_dispatched().await.unwrap();
        let [message] = &messages[..] else { panic!("{} messages", messages.len()) };
        let message = [(message.body().unwrap(), receive_count(message))];
        assert_eq!(world.engine.handle_all(&message).await, [Handled::Done]);
        world.delete_dispatched(&messages).await.unwrap();
        let received = world.consume(&consumer.queue).await.unwrap();
        assert_eq!(received.len(), 1);
        if received[0].token.is_some() {
            world.release(&received).await.unwrap();
        }
        used().since(&began).since(&ready.since(&created)).since(&after_idle.since(&before_idle))
    };
    fire(180).await;
    fire(180).await
}

#[tokio::test]
async fn a_lone_throttled_event() {
    let job = async |_: &World, queue: &str, at| JobSpec::at(at, queue).unwrap().under("shared").unwrap();
    let used = lone(true, job).await;
    hold("a lone throttled event", &used, 1, &Budget { write_units: 6.0, read_units: 6.0, requests: 4.0 });
    let used = lone(false, job).await;
    hold(
        "the first of its ten minutes",
        &used,
        1,
        &Budget { write_units: 7.0, read_units: 6.5, requests: 4.0 },
    );
}

#[tokio::test]
async fn a_lone_event_that_nothing_throttles() {
    let job = async |_: &World, queue: &str, at| JobSpec::at(at, queue).unwrap();
    let used = lone(true, job).await;
    hold("a lone event", &used, 1, &Budget { write_units: 2.0, read_units: 1.0, requests: 4.0 });
    let used = lone(false, job).await;
    hold(
        "the first of its ten minutes",
        &used,
        1,
        &Budget { write_units: 3.0, read_units: 1.5, requests: 4.0 },
    );
}

/// Cron jobs, all due in one minute; their creation is not counted.
async fn cron(at_once: usize) -> Usage {
    let (world, mut consumer) = world_of(10, at_once).await;
    for number in 0..EVENTS {
        let job = JobSpec::cron("0 3 * * *", "UTC", &consumer.queue).unwrap().under("shared").unwrap();
        world.create(job.named(&format!("nightly-{number}"))).await.unwrap();
    }
    let now = world.clock.now();
    let minutes = (180 - now.timestamp().div_euclid(60)).rem_euclid(1_440);
    world.advance(minutes * 60 - 600);
    // A minute in which nothing is due, and after which no tick has anything to catch up.
    world.engine.tick().await.unwrap();
    world.advance(480);
    world.engine.tick().await.unwrap();
    let before = world.embedded.meter().snapshot();
    fire_at(&world, 2).await;
    consumer.work(&world).await;
    assert_eq!(consumer.released, EVENTS);
    world.embedded.meter().snapshot().since(&before)
}

#[tokio::test]
async fn cron_jobs_of_one_minute_released_one_by_one() {
    let used = cron(1).await;
    hold(
        "throttled cron jobs, singly",
        &used,
        EVENTS,
        &Budget { write_units: 1.6, read_units: 0.4, requests: 1.3 },
    );
}

#[tokio::test]
async fn cron_jobs_of_one_minute_released_ten_at_a_time() {
    let used = cron(10).await;
    hold(
        "throttled cron jobs, in tens",
        &used,
        EVENTS,
        &Budget { write_units: 0.6, read_units: 0.4, requests: 0.4 },
    );
}

#[tokio::test]
async fn a_packed_event_is_found_by_its_run_while_it_waits_and_when_it_ended() {
    let (world, mut consumer) = world_of(10, 10).await;
    let minute = world.clock.now() + Duration::minutes(180);
    let mut ids = Vec::new();
    for _ in 0..30 {
        let job = JobSpec::at(minute, &consumer.queue).unwrap().under("shared").unwrap();
        ids.push(world.create(job).await.unwrap());
    }
    fire_at(&world, 180).await;
    let client = CLIENT.parse().unwrap();
    let states = async || {
        let mut states = Vec::new();
        for id in &ids {
            let run = format!("{id}.1.{}", minute.timestamp()).parse().unwrap();
            let detail = world.engine.queries().run_detail(&client, &run).await.unwrap().unwrap();
            states.push((detail.summary.state.as_str(), detail.in_flight));
        }
        states.sort_unstable();
        states.dedup_by_key(|state| *state);
        states
    };
    assert_eq!(states().await, [("running", 1), ("waiting", 0)]);
    consumer.work(&world).await;
    assert_eq!(states().await, [("finished", 0)]);
}
