//! A request that is refused in the middle of granting: what holds a token is sent all the same, and does not wait for the end
//! of its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tidegate_domain::flow::Flow;
use tidegate_embedded::{Call, Fault, FaultPlan, Refusal, Service};
use tidegate_engine::{Outcome, Release};
use tidegate_simulation::world::Received;

use super::stage::{Stage, client, terms};

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

/// Requests that a test refuses one after the other, at the most.
const MOST: i64 = 200;

/// Three jobs of so many events under a policy of two slot groups.
async fn stage_of(events: u64) -> Stage {
    let stage = Stage::new().await;
    stage.policy("small", terms(24)).await;
    for job in ["one", "two", "three"] {
        stage.job(job, events, "small", Flow::default()).await;
    }
    stage
}

/// What holds a token is what arrives within seconds, though a request is refused after so many from here on, of those of a
/// release too. How many events that are, and whether one was refused: there may be fewer requests.
async fn arrived_though_refused(stage: &Stage, after: i64, released: &[Received]) -> (usize, bool) {
    let left = Arc::new(AtomicI64::new(after));
    stage.world.embedded.inject(RefusesOne(Arc::clone(&left)));
    stage.world.engine.tokens().release(&client(), releases(released)).await.unwrap();
    let arrived = stage.wait(5).await.len();
    stage.world.embedded.inject_nothing();
    let held = stage.load("small").await.in_flight;
    assert_eq!(held as usize, arrived, "request {after} was refused");
    (arrived, left.load(Ordering::Relaxed) < 0)
}

fn releases(events: &[Received]) -> Vec<Release> {
    events.iter().map(|event| Release::new(event.token.clone().unwrap(), Outcome::Succeeded)).collect()
}

/// Found by the model of AWS: of a group that was granted events of one pack and refused a read of the next, nothing was sent
/// for a minute.
#[tokio::test]
async fn what_is_granted_is_sent_whatever_request_is_refused() {
    for after in 0..MOST {
        let (arrived, is_refused) = arrived_though_refused(&stage_of(7).await, after, &[]).await;
        if !is_refused {
            assert!(after > 20 && arrived == 21, "{after} requests, {arrived} events");
            return;
        }
    }
    panic!("there are more than {MOST} requests");
}

#[tokio::test]
async fn what_a_release_grants_is_sent_whatever_request_is_refused() {
    for after in 0..MOST {
        let stage = stage_of(14).await;
        let first = stage.wait(5).await;
        assert_eq!(first.len(), 24);
        let (arrived, is_refused) = arrived_though_refused(&stage, after, &first).await;
        if !is_refused {
            assert!(after > 6 && arrived == 18, "{after} requests, {arrived} events");
            return;
        }
    }
    panic!("there are more than {MOST} requests");
}
