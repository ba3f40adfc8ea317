//! What functions are given, and what they answer.

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::Value;

use crate::function::Function;

/// What an invocation is given.
pub(crate) enum Work {
    /// The event of a schedule or an event source.
    Event(Value),
    /// A request to the function's URL.
    Call(Box<Request<Body>>),
}

/// What an invocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An event of the schedule.
    Tick,
    /// A record of the scan queue: a part of a large emission.
    Part,
    /// Records of the dispatch or release queue.
    Batch,
    /// A request to the URL.
    Call,
}

impl Work {
    /// What it is for, when this function is given it.
    pub(crate) fn kind(&self, function: Function) -> Kind {
        match self {
            Self::Call(_) => Kind::Call,
            Self::Event(event) if event["Records"].is_array() => match function {
                Function::Emitter => Kind::Part,
                _ => Kind::Batch,
            },
            Self::Event(_) => Kind::Tick,
        }
    }
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
