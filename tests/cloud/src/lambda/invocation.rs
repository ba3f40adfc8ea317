//! What functions are given, and what they answer.

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::Value;

/// What an invocation is given.
pub(crate) enum Work {
    /// The event of a schedule or an event source.
    Event(Value),
    /// A request to the function's URL.
    Call(Box<Request<Body>>),
}

/// What it answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// To an event.
    Event(Value),
    /// To a request.
    Call(StatusCode, Value),
}

/// Why it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// No more invocations at once: it did not begin.
    Throttled,
    /// Its time was over.
    TimedOut,
    /// It was killed between two requests.
    Killed,
    /// It answered with an error.
    Error,
}
