//! What consumers' addresses answer: HTTP endpoints over real sockets, SQS through the fault plans of the embedded one.

mod answer;
mod endpoint;
mod queue;

pub use answer::{Answer, Ending};
pub use endpoint::Endpoint;
pub use queue::QueueAnswer;
