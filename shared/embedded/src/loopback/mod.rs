//! HTTP on loopback: how the API and the queues of local mode are served to other processes of this machine.
//!
//! Whoever is on this machine may connect, and so may a web page that a browser on it shows. So a request must name this
//! server by a loopback name ([`Refusal`]), and the time and number of connections are bounded ([`Limits`]).
//!
//! Deliberately absent: TLS, and keys or signatures, which are the API's.

mod connections;
mod guard;
mod sqs;

pub use connections::{Limits, serve, to_its_end};
pub use guard::Refusal;
pub(crate) use sqs::serve_sqs;
