//! A request that is refused in the middle of granting: what holds a token is sent all the same, and does not wait for the end
//! of its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tidegate_domain::flow::Flow;
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal, Service};
use tidegate_engine::{Outcome, Release};
use tidegate_simulation::world::Received;

use crate::stage::{Stage, client, terms};

/// Refuses one request to DynamoDB: the one before which so many are answered.
struct RefusesOne(Arc<AtomicI64>);

impl FaultPlan for RefusesOne {
    fn on_request(&self, call: &Call) -> Fault {
        match call.service == Service::DynamoDb && self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            true => Fault::Refuse(Refusal::Throttled),
            false => Fault::None,
        }
    }
}

/// What holds a token is what arrived.
async fn nothing_waits_for_its_lease(stage: &Stage, arrived: usize, after: i64) {
    let held = stage.load("small").await.in_flight;
    assert_eq!(held as usize, arrived, "request {after} was refused");
}

fn releases(events: &[Received]) -> Vec<Release> {
    events.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Succeeded)).collect()
}

/// Found by the model of AWS: of a group that was granted events of one pack and refused a read of the next, nothing was sent
/// for a minute.
#[tokio::test]
async fn what_is_granted_is_sent_whatever_request_is_refused() {
    for after in 0.. {
        let stage = Stage::new().await;
        stage.policy("small", terms(24)).await;
        for job in ["one", "two", "three"] {
            stage.job(job, 7, "small", Flow::default()).await;
        }
        let left = Arc::new(AtomicI64::new(after));
        stage.world.embedded.inject(RefusesOne(Arc::clone(&left)));
        let arrived = stage.wait(5).await.len();
        stage.world.embedded.inject_nothing();
        nothing_waits_for_its_lease(&stage, arrived, after).await;
        if left.load(Ordering::Relaxed) >= 0 {
            assert!(after > 20 && arrived == 21, "{after} requests, {arrived} events");
            return;
        }
    }
}

#[tokio::test]
async fn what_a_release_grants_is_sent_whatever_request_is_refused() {
    for after in 0.. {
        let stage = Stage::new().await;
        stage.policy("small", terms(24)).await;
        for job in ["one", "two", "three"] {
            stage.job(job, 14, "small", Flow::default()).await;
        }
        let first = stage.wait(5).await;
        assert_eq!(first.len(), 24);
        let left = Arc::new(AtomicI64::new(after));
        stage.world.embedded.inject(RefusesOne(Arc::clone(&left)));
        stage.world.engine.tokens().release(&client(), releases(&first)).await.unwrap();
        let arrived = stage.wait(5).await.len();
        stage.world.embedded.inject_nothing();
        nothing_waits_for_its_lease(&stage, arrived, after).await;
        if left.load(Ordering::Relaxed) >= 0 {
            assert!(after > 6 && arrived == 18, "{after} requests, {arrived} events");
            return;
        }
    }
}
