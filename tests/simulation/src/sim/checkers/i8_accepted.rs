//! I8: accepted means durable: after an answer that says so, a crash of anything loses nothing.
//!
//! Jobs that a client was told of are the model's, so that I2 misses their occurrences. Here: what a client asks for is
//! accepted in the end, and is not refused for what crashes and repeats left behind.

use super::{Verdict, Violation};

/// A write of a job that was answered with something else than that it was done.
pub(crate) fn refused(name: &str, answer: &str) -> Violation {
    Violation::new("I8", "a write of a job is refused", format!("{name} was answered {answer}"))
}

/// Without any fault, every write succeeds.
pub(crate) fn written(job: usize, is_written: bool) -> Verdict {
    match is_written {
        true => Ok(()),
        false => Err(Violation::new("I8", "a job cannot be written without any fault", format!("job {job}"))),
    }
}
