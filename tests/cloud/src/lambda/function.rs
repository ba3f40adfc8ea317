//! The functions of the template, what they are given, and what they answer.

use std::time::Duration;

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::Value;

/// A function of the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Function {
    /// The API.
    Master,
    /// Ticks, and parts of large emissions.
    Emitter,
    /// Delivery and throttling.
    Handler,
}

/// How a function is configured.
#[derive(Debug, Clone, Copy)]
pub struct Configured {
    /// Its memory, by which it is given a share of a processor.
    pub memory_mb: u32,
    /// After this it is stopped, wherever it is.
    pub timeout: Duration,
    /// Invocations that nobody else has, and the most that it has; those that others leave over when `None`.
    pub reserved: Option<usize>,
}

impl Function {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Master, Self::Emitter, Self::Handler];

    /// As `template.yaml` has it.
    pub fn as_deployed(self) -> Configured {
        let (memory_mb, seconds) = match self {
            Self::Master => (256, 29),
            Self::Emitter => (512, 55),
            Self::Handler => (512, 30),
        };
        Configured { memory_mb, timeout: Duration::from_secs(seconds), reserved: None }
    }
}

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
