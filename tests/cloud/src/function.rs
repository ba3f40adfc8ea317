//! The functions of the template, and how they are configured.

use std::time::Duration;

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

    /// As `docs/operations.md` has it for an account of 1,000 concurrent.
    pub fn in_large_account(self) -> Configured {
        let reserved = match self {
            Self::Master => 300,
            Self::Emitter => 25,
            Self::Handler => 450,
        };
        Configured { reserved: Some(reserved), ..self.as_deployed() }
    }
}
