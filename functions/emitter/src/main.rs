//! The emitter: one tick a minute, and the parts of scans that are too large for a tick.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use tidegate_aws::{Environment, Failures};
use tidegate_engine::Engine;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tidegate_aws::log_as_json();
    let engine = tidegate_aws::engine(&Environment::read()?).await;
    let emit = service_fn(move |event: LambdaEvent<Value>| emit(engine.clone(), event.payload));
    lambda_runtime::run(emit).await.map_err(|e| anyhow::anyhow!(e))
}

async fn emit(engine: Engine, event: Value) -> Result<Failures, Error> {
    Ok(tidegate_aws::emit(&engine, event).await?)
}
