//! The handler: messages of the dispatch queue, each handled by itself, and of the release queue, handled together.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use tidegate_aws::{Environment, Failures, Records};
use tidegate_engine::Engine;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tidegate_aws::log_as_json();
    let engine = tidegate_aws::engine(&Environment::read()?).await;
    let handle = service_fn(move |event: LambdaEvent<Records>| handle(engine.clone(), event.payload));
    lambda_runtime::run(handle).await.map_err(|e| anyhow::anyhow!(e))
}

async fn handle(engine: Engine, records: Records) -> Result<Failures, Error> {
    Ok(records.handle(&engine).await)
}
