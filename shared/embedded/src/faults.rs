//! Faults at the seam: what can go wrong between an SDK client and AWS, injected where it really happens.
//!
//! A [`FaultPlan`] is asked once for every request that reaches the connector (each retry of the SDK is a request of its
//! own) and answers with the [`Fault`] to inject. The plan decides; this module only carries it and remembers a crash.
//! It does not draw random numbers and keeps no schedule: both belong to the simulator that writes the plan.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which of the embedded services a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// The embedded DynamoDB.
    DynamoDb,
    /// The embedded SQS.
    Sqs,
}

/// One request, as a fault plan sees it, before anything has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The service it is for.
    pub service: Service,
    /// The API operation, as AWS spells it (`PutItem`, `SendMessageBatch`).
    pub operation: String,
    /// The tables or the queue it names, each once, in the order in which the request names them.
    pub resources: Vec<String>,
}

impl Call {
    /// The first table or queue that the request names; empty for a request that names none.
    pub fn resource(&self) -> &str {
        self.resources.first().map_or("", String::as_str)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the request is served.
    None,
    /// The service answers with an error and does nothing.
    Refuse(Refusal),
    /// The connection breaks before the request arrives: nothing happened.
    DropBefore,
    /// The request is served, then the connection breaks before the reply arrives.
    LoseReply,
    /// The caller dies here: like [`Fault::DropBefore`], and every later call of this client fails until
    /// [`Faults::reset`].
    Crash,
    /// The caller dies right after the service has acted: like [`Fault::LoseReply`], and every later call of this
    /// client fails until [`Faults::reset`].
    CrashAfter,
}

/// The error of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The service's throttling error, which the SDK retries.
    Throttled,
    /// The service's internal error (status 500), which the SDK retries.
    Internal,
    /// The caller has no permission, which nobody retries.
    Denied,
}

/// Decides the fault of each request.
pub trait FaultPlan: Send + Sync + 'static {
    /// The fault for `call`. Called once for each request that reaches the seam, retries included.
    fn on_request(&self, call: &Call) -> Fault;
}

/// A fault plan in force, shared by all clients it was given to; clones are the same plan and the same crash.
#[derive(Clone)]
pub struct Faults {
    plan: Arc<dyn FaultPlan>,
    crashed: Arc<AtomicBool>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("crashed", &self.is_crashed()).finish_non_exhaustive()
    }
}

impl Faults {
    /// Puts `plan` in force, not crashed.
    pub fn new(plan: impl FaultPlan) -> Self {
        Self { plan: Arc::new(plan), crashed: Arc::new(AtomicBool::new(false)) }
    }

    /// Whether a [`Fault::Crash`] or [`Fault::CrashAfter`] has happened since the last reset.
    pub fn is_crashed(&self) -> bool {
        self.crashed.load(Ordering::SeqCst)
    }

    /// Ends a crash: the clients work again, under the same plan.
    pub fn reset(&self) {
        self.crashed.store(false, Ordering::SeqCst);
    }

    /// The fault of a request, a crash remembered.
    pub(crate) fn on_request(&self, call: &Call) -> Fault {
        if self.is_crashed() {
            return Fault::DropBefore;
        }
        let fault = self.plan.on_request(call);
        if matches!(fault, Fault::Crash | Fault::CrashAfter) {
            self.crashed.store(true, Ordering::SeqCst);
        }
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(Fault);

    impl FaultPlan for Always {
        fn on_request(&self, _call: &Call) -> Fault {
            self.0
        }
    }

    fn call() -> Call {
        Call { service: Service::Sqs, operation: "SendMessage".into(), resources: vec!["q".into()] }
    }

    #[test]
    fn a_crash_lasts_until_reset() {
        let faults = Faults::new(Always(Fault::CrashAfter));
        assert_eq!(faults.on_request(&call()), Fault::CrashAfter);
        assert_eq!(faults.on_request(&call()), Fault::DropBefore);
        assert!(faults.is_crashed());
        faults.reset();
        assert_eq!(faults.on_request(&call()), Fault::CrashAfter);
    }

    #[test]
    fn other_faults_are_not_remembered() {
        let faults = Faults::new(Always(Fault::LoseReply));
        assert_eq!(faults.on_request(&call()), Fault::LoseReply);
        assert!(!faults.is_crashed());
    }
}
