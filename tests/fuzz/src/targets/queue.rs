//! What SQS answers to a delivery: the faults that the embedded one can be made to show.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate_embedded::{Call, Fault, FaultPlan, Refusal, Service};
use tidegate_simulation::sim::Dice;

/// How SQS fails the next calls for the consumer's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueAnswer {
    /// How.
    pub fault: Fault,
    /// How many calls.
    pub calls: u32,
    /// Events of the delivery.
    pub events: u32,
}

impl QueueAnswer {
    /// Draws one.
    pub fn draw(dice: &Dice) -> Self {
        let faults = [
            Fault::Refuse(Refusal::Throttled),
            Fault::Refuse(Refusal::Internal),
            Fault::DropBefore,
            Fault::LoseReply,
        ];
        let fault = dice.pick(&faults).copied().unwrap_or(Fault::None);
        Self { fault, calls: dice.within(1..=4) as u32, events: dice.within(1..=25) as u32 }
    }

    /// The plan that makes calls for `queue` fail so.
    pub fn plan(self, queue: &str) -> impl FaultPlan + use<> {
        Plan { queue: queue.to_owned(), fault: self.fault, left: AtomicU32::new(self.calls) }
    }
}

struct Plan {
    queue: String,
    fault: Fault,
    left: AtomicU32,
}

impl FaultPlan for Plan {
    fn on_request(&self, call: &Call) -> Fault {
        let is_ours = call.service == Service::Sqs && call.resource() == self.queue;
        let take = |left: u32| left.checked_sub(1);
        let fails = is_ours && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
        if fails { self.fault } else { Fault::None }
    }
}

impl fmt::Display for QueueAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SQS answers {} calls for {} events with {:?}", self.calls, self.events, self.fault)
    }
}
