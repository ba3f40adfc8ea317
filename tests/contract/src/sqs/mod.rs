//! The cases for SQS, by what they are about.

pub mod batches;
pub mod fifo;
pub mod groups;
pub mod messages;
pub mod queues;
pub mod redrive;
pub mod time;
