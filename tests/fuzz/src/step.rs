//! A step of a round: an input, or a minute that passes.

use crate::input::Input;
use crate::stage::{Outcome, Stage};

/// A step of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An input.
    Input(Input),
    /// The clock moves to the next minute.
    Minute,
}

impl Step {
    /// Takes the step.
    ///
    /// # Errors
    /// When the machinery itself fails.
    pub async fn take(&self, stage: &mut Stage) -> Outcome {
        match self {
            Self::Input(input) => stage.feed(input).await,
            Self::Minute => stage.minute().await,
        }
    }
}
