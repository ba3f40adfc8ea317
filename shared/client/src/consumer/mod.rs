//! Consumers of events: of a queue, and of a Lambda function with an SQS event source.

mod calls;
mod heartbeats;
mod lambda;
mod lease;
pub(crate) mod limits;
mod periodic;
#[cfg(feature = "sqs")]
mod queue;
mod recent;
mod releases;
mod worker;

#[cfg(test)]
pub(crate) mod fakes;

pub(crate) use calls::Calls;
pub(crate) use heartbeats::{Beating, Heartbeats, Held};
pub use lambda::{BatchItemFailure, LambdaConsumer, SqsBatchResponse, SqsEvent, SqsRecord};
pub use lease::{Lease, LeaseLost};
#[cfg(feature = "sqs")]
pub use queue::QueueConsumer;
pub use worker::EventResult;
