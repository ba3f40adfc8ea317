//! The AWS that lives inside the process: a DynamoDB and an SQS behind the real SDK clients.
//!
//! Storage and queue code is written once, against `aws-sdk-dynamodb` and `aws-sdk-sqs`. [`Embedded`] gives it clients whose
//! requests end in this process instead of on a network: in memory for tests and the simulator, in a data folder for
//! `tidegate local`. What passes is counted ([`Meter`]) and can be made to fail ([`Faults`]).
//!
//! It is no emulator of an AWS account: no identity, no policies, no other services. And it knows nothing of the engine: what
//! runs one on these services is `tidegate-runtime`.

// Values from outside come here: nothing may panic on them.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::string_slice)
)]

mod around;
mod backup;
mod connector;
mod disk;
mod dynamodb;
mod embedded;
mod faults;
mod folder;
pub mod loopback;
mod meter;
mod reply;
mod sqs;

pub use around::around;
pub use backup::{Backup, BackupError};
pub use connector::ClientOptions;
pub use embedded::{Embedded, OpenError};
pub use faults::{Call, Fault, FaultPlan, Faults, Refusal, Service};
pub use folder::{Durability, holds_data, open_private};
pub use meter::{Meter, QueueUse, Units, Usage};
pub use sqs::{OwnQueues, QueueName, place_of_queues};
