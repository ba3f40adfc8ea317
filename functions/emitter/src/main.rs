//! The emitter: one tick a minute, and the parts of scans that are too large for a tick.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use tidegate_aws::{Environment, Failures, Figures};
use tidegate_engine::Engine;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let environment = Environment::read()?;
    let figures = tidegate_aws::log_as_json(&environment);
    let engine = tidegate_aws::engine(&environment, &figures).await;
    let emit = service_fn(move |event: LambdaEvent<Value>| emit(engine.clone(), figures.clone(), event));
    lambda_runtime::run(emit).await.map_err(|e| anyhow::anyhow!(e))
}

async fn emit(engine: Engine, figures: Figures, event: LambdaEvent<Value>) -> Result<Failures, Error> {
    let emitted = tidegate_aws::before(
        event.context.deadline,
        engine.clock().now(),
        tidegate_aws::emit(&engine, event.payload),
    )
    .await;
    figures.write();
    Ok(emitted?)
}
