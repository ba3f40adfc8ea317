//! The emitter: one tick a minute.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use tidegate_aws::Environment;
use tidegate_engine::Engine;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tidegate_aws::log_as_json();
    let engine = tidegate_aws::engine(&Environment::read()?).await;
    let tick = service_fn(move |_: LambdaEvent<Value>| tick(engine.clone()));
    lambda_runtime::run(tick).await.map_err(|e| anyhow::anyhow!(e))
}

async fn tick(engine: Engine) -> Result<(), Error> {
    engine.tick().await.inspect_err(|error| tracing::error!(%error, "the tick failed"))?;
    Ok(())
}
