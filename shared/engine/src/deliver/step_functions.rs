//! Delivery to state machines: an execution for each delivery of an event, whose input is the event.
//!
//! The execution's name follows from client, event and attempt. So a delivery that is repeated, because nobody knows whether it
//! arrived, starts nothing twice; a further attempt is an execution of its own. State machines of the type Express do not look
//! at names: there a repeat starts another one.

use futures::FutureExt as _;
use serde::Serialize;
use tidegate_domain::arn::Arn;
use tidegate_domain::limits::EXECUTION_NAME_BYTES;

use super::aws_call::{self, AwsCall};
use super::event::text;
use super::{Delivery, EventToSend, Sent};

/// What a repeat of a delivery is answered with whose execution was started.
const STARTED_BEFORE: &str = "ExecutionAlreadyExists";
/// Digits of the hash that makes a name unique.
const HASH_DIGITS: usize = 32;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StartExecution<'a> {
    state_machine_arn: &'a str,
    name: String,
    /// The event, as JSON text.
    input: String,
}

impl Delivery {
    /// Starts executions of the state machines of the chosen events.
    pub(super) async fn send_to_machines(
        &self,
        deliveries: &[EventToSend],
        chosen: &[usize],
    ) -> Vec<(usize, Sent)> {
        let events = aws_call::by_arn(deliveries, chosen).into_iter();
        let calls = events.flat_map(|(machine, events)| {
            events.into_iter().map(move |(index, delivery)| self.start(machine, index, delivery).boxed())
        });
        aws_call::all(Box::new(calls)).await
    }

    async fn start(&self, machine: &Arn, index: usize, delivery: &EventToSend) -> Vec<(usize, Sent)> {
        let start = StartExecution {
            state_machine_arn: machine.as_str(),
            name: name(delivery),
            input: text(&delivery.event()),
        };
        let call = AwsCall {
            to: machine,
            action: "states:StartExecution",
            path: "/".to_owned(),
            content_type: "application/x-amz-json-1.0",
            headers: &[("x-amz-target", "AWSStepFunctions.StartExecution")],
            body: serde_json::to_string(&start).unwrap_or_default(),
        };
        let sent = match self.aws.call(call, self.clock.now()).await {
            Ok(_) => Sent::Done,
            Err(refusal) if refusal.code == STARTED_BEFORE => Sent::Done,
            Err(refusal) => refusal.sent,
        };
        vec![(index, sent)]
    }
}

/// The name of the execution: what can be read of the event's id, and a hash of all that tells deliveries apart.
fn name(delivery: &EventToSend) -> String {
    let readable = delivery.event.to_string();
    let readable = readable.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let readable: String = readable.take(EXECUTION_NAME_BYTES - HASH_DIGITS - 1).collect();
    format!("{readable}-{}", delivery.digest(HASH_DIGITS / 2))
}
