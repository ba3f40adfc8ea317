//! Fair shares: what waits for the values of one key takes turns.

use chrono::Duration;
use tidegate_domain::clock::Clock as _;
use tidegate_domain::fair::{FairBy, Lane, Pointer};
use tidegate_domain::flow::{Flow, Priority};
use tidegate_simulation::world::{JobSpec, Received};

use super::stage::{Stage, jobs_of, terms};

/// How the events of a customer go through a policy.
fn of(customer: &str) -> Flow {
    let lane = Lane::of(&format!("\"{customer}\""));
    Flow { fair_by: Some(FairBy { pointer: Pointer::new("/customer").unwrap(), lane }), ..Flow::default() }
}

/// Takes what comes and releases it, one by one, until nothing comes any more. The jobs of the events, in their order.
async fn served(stage: &Stage) -> Vec<String> {
    let (mut jobs, mut held) = (Vec::new(), stage.arrived().await);
    while !held.is_empty() {
        jobs.extend(jobs_of(&held).into_iter().map(str::to_owned));
        let mut next = Vec::new();
        for event in &held {
            stage.release(std::slice::from_ref(event)).await;
            next.extend(stage.arrived().await);
        }
        held = next;
    }
    jobs
}

/// Where the last event of the jobs whose names begin so was served, from 1.
fn last(jobs: &[String], prefix: &str) -> usize {
    jobs.iter().rposition(|job| job.starts_with(prefix)).unwrap() + 1
}

#[tokio::test]
async fn a_large_run_of_one_customer_leaves_the_others_their_turns() {
    for (flows, within) in
        [(["large", "small"].map(of), 8 + 5 * 4), ([Flow::default(), Flow::default()], 206)]
    {
        let stage = Stage::new().await;
        stage.policy("small", terms(4)).await;
        let [large, small] = flows;
        stage.job("large", 200, "small", large).await;
        let first = stage.arrived().await;
        stage.job("small", 6, "small", small.clone()).await;
        let mut jobs: Vec<String> = jobs_of(&first).into_iter().map(str::to_owned).collect();
        stage.release(&first).await;
        jobs.extend(served(&stage).await);
        assert_eq!(jobs.len(), 206);
        let (is_fair, last) = (small.fair_by.is_some(), last(&jobs, "small"));
        assert!(last <= within && is_fair == (last < 200), "{last} {within} {jobs:?}");
    }
}

#[tokio::test]
async fn single_events_of_many_customers_take_turns() {
    let mut stage = Stage::new().await;
    // Also those that are few wait in packs.
    stage.world.engine = stage.world.engine.with_few(0);
    stage.policy("small", terms(2)).await;
    let launch_at = stage.world.clock.now() + Duration::seconds(30 * 60);
    for (customer, count) in [("a", 40), ("b", 3), ("c", 3), ("d", 3), ("none", 3)] {
        for number in 0..count {
            let spec = JobSpec::at(launch_at, &stage.queue).unwrap().under("small").unwrap();
            let flow = if customer == "none" { Flow::default() } else { of(customer) };
            stage.put(&format!("{customer}-{number}"), spec, flow).await;
        }
    }
    stage.world.advance(29 * 60);
    stage.world.engine.tick().await.unwrap();
    stage.world.advance(60);
    let jobs = served(&stage).await;
    assert_eq!(jobs.len(), 52);
    for customer in ["b", "c", "d", "none"] {
        // Three rounds of five lanes, two events at a time.
        assert!(last(&jobs, customer) <= 3 * 5 + 4, "{customer} {jobs:?}");
    }
}

#[tokio::test]
async fn a_lane_that_is_not_due_hides_none_that_is() {
    let mut stage = Stage::new().await;
    stage.world.engine = stage.world.engine.with_few(0);
    stage.policy("small", terms(1)).await;
    let now = stage.world.clock.now();
    let mut customers: Vec<String> = (0..30).map(|number| format!("customer-{number}")).collect();
    customers.sort_by_key(|customer| Lane::of(&format!("\"{customer}\"")));
    let (due, early) = customers.split_last().unwrap();
    // Their packs are in the line a minute before they are due, ahead of the one that is, which is the last lane.
    for (seconds, customers) in [(30 * 60 + 50, early), (30 * 60, std::slice::from_ref(due))] {
        for customer in customers {
            let at = now + Duration::seconds(seconds);
            let spec = JobSpec::at(at, &stage.queue).unwrap().under("small").unwrap();
            stage.put(customer, spec, of(customer)).await;
        }
    }
    stage.world.advance(29 * 60);
    stage.world.engine.tick().await.unwrap();
    stage.world.advance(60);
    assert_eq!(served(&stage).await, std::slice::from_ref(due));
    stage.world.advance(50);
    assert_eq!(served(&stage).await.len(), early.len());
}

#[tokio::test]
async fn priority_comes_before_turns() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    stage.job("first", 1, "small", Flow::default()).await;
    let held: Vec<Received> = stage.arrived().await;
    let urgent = Flow { priority: Priority::new(2).unwrap(), ..of("a") };
    stage.job("later", 3, "small", of("b")).await;
    stage.job("urgent", 3, "small", urgent).await;
    stage.release(&held).await;
    assert_eq!(served(&stage).await, ["urgent", "urgent", "urgent", "later", "later", "later"]);
}

#[tokio::test]
async fn what_is_cancelled_leaves_its_lane() {
    let stage = Stage::new().await;
    stage.policy("small", terms(1)).await;
    stage.job("first", 1, "small", Flow::default()).await;
    let held = stage.arrived().await;
    stage.job("gone", 300, "small", of("a")).await;
    stage.job("kept", 2, "small", of("b")).await;
    let gone = stage.runs("gone").await.remove(0);
    stage.world.engine.jobs().cancel_run(&super::stage::client(), &gone.id).await.unwrap();
    stage.release(&held).await;
    assert_eq!(served(&stage).await, ["kept", "kept"]);
    let stopped = stage.runs("gone").await.remove(0);
    assert_eq!((stopped.tally.left_out, stopped.has_ended()), (300, true));
}
