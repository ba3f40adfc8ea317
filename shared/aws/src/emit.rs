//! What the emitter is called for: a tick, or the parts of large emissions.

use serde_json::Value;
use thiserror::Error;
use tidegate_engine::{Engine, EngineError};

use crate::{Failures, Records};

/// Why the emitter answers with an error.
#[derive(Debug, Error)]
pub enum EmitError {
    /// It has records, and they are not those of an SQS event source.
    #[error("failed to read the event of the scan queue: {0}")]
    Event(#[from] serde_json::Error),
    /// The tick failed: the next one goes on from where it came.
    #[error("the tick failed: {0}")]
    Tick(#[from] EngineError),
}

/// Does what the emitter is called for: the scan queue's events have records; whatever else comes is the schedule's tick.
///
/// # Errors
/// [`EmitError::Event`] when the records cannot be read, [`EmitError::Tick`] when the tick failed. A message that failed
/// is no error: the answer names it.
pub async fn emit(engine: &Engine, event: Value) -> Result<Failures, EmitError> {
    if event.get("Records").is_some() {
        let records: Records = serde_json::from_value(event)?;
        return Ok(records.handle(engine).await);
    }
    engine.tick().await.inspect_err(|error| tracing::error!(%error, "the tick failed"))?;
    Ok(Failures::none())
}
