//! Shards are raised while jobs run: old rows stay where they are, new ones are spread, all are found.

use std::collections::BTreeSet;

use tidegate_domain::clock::Clock as _;
use tidegate_domain::job::Job;
use tidegate_domain::time::{LaunchExpression, parse_zone};
use tidegate_engine::JobDelete;
use tidegate_simulation::World;
use tidegate_simulation::world::{Account, CLIENT, JobSpec};

async fn job(world: &World, name: &str) -> Job {
    world.engine.jobs().get(&CLIENT.parse().unwrap(), &name.parse().unwrap()).await.unwrap().unwrap()
}

async fn shards_of(world: &World, names: impl Iterator<Item = usize>) -> BTreeSet<u32> {
    let mut shards = BTreeSet::new();
    for number in names {
        shards.extend(job(world, &format!("job-{number}")).await.children.iter().map(|place| place.shard));
    }
    shards
}

async fn minutes(world: &World, account: &mut Account, queue: &str, minutes: usize) {
    for _ in 0..minutes {
        world.advance(60);
        world.engine.tick().await.unwrap();
        account.collect(world, queue).await.unwrap();
    }
}

#[tokio::test]
async fn raising_the_shards_loses_nothing() {
    let world = World::new().await.unwrap();
    let queue = world.queue("jobs").await.unwrap();
    let zone = parse_zone("Europe/Berlin").unwrap();
    let spec = |number: usize, expression: &str| {
        let spec = JobSpec::cron(expression, "Europe/Berlin", &queue).unwrap();
        spec.failures_only().named(&format!("job-{number}"))
    };
    let mut account = Account::default();
    let start = world.clock.now().timestamp();
    world.engine.tick().await.unwrap();
    for number in 0..20 {
        world.create(spec(number, "*/5 * * * *")).await.unwrap();
    }
    minutes(&world, &mut account, &queue, 7).await;
    assert_eq!(shards_of(&world, 0..20).await, BTreeSet::from([0]));

    // Another process raises them; this one believes for a while that there is one.
    let expressions: BTreeSet<LaunchExpression> =
        job(&world, "job-0").await.children.iter().map(|place| place.key.launch_expression()).collect();
    for expression in &expressions {
        assert_eq!(
            world.engine.index().raise_shards(zone, expression, 8).await.unwrap().shards_of(zone, expression),
            8
        );
        assert_eq!(
            world.engine.index().raise_shards(zone, expression, 4).await.unwrap().shards_of(zone, expression),
            8,
            "it never falls"
        );
    }
    world.create(spec(20, "*/5 * * * *")).await.unwrap();
    minutes(&world, &mut account, &queue, 1).await;
    for number in 21..60 {
        world.create(spec(number, "*/5 * * * *")).await.unwrap();
    }
    assert!(shards_of(&world, 21..60).await.len() > 5, "new rows are spread");
    assert_eq!(shards_of(&world, 0..20).await, BTreeSet::from([0]), "old rows stay");
    minutes(&world, &mut account, &queue, 11).await;

    // Old rows and new ones are found by whoever changes their jobs.
    let client = CLIENT.parse().unwrap();
    for number in [0, 30] {
        let deleted =
            world.engine.jobs().delete(&client, &format!("job-{number}").parse().unwrap(), None).await;
        assert_eq!(deleted.unwrap(), JobDelete::Done);
    }
    for number in [1, 31] {
        world.replace(spec(number, "1-59/5 * * * *")).await.unwrap();
    }
    minutes(&world, &mut account, &queue, 21).await;

    let launches = |from: i64, to: i64, revision: u32| -> Vec<(u32, i64)> {
        (from..=to).step_by(5).map(|minute| (revision, start + minute * 60)).collect()
    };
    for number in (2..30).chain(32..60) {
        let first = if number < 20 { 0 } else { 10 };
        let delivered = account.delivered(&format!("job-{number}")).unwrap();
        assert_eq!(delivered, launches(first, 40, 1), "job-{number}");
    }
    assert_eq!(account.delivered("job-0").unwrap(), launches(0, 15, 1));
    assert_eq!(account.delivered("job-30").unwrap(), launches(10, 15, 1));
    for (number, first) in [(1, 0), (31, 10)] {
        let expected = [launches(first, 15, 1), launches(21, 40, 2)].concat();
        assert_eq!(account.delivered(&format!("job-{number}")).unwrap(), expected, "job-{number}");
    }
}
