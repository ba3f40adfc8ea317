//! The handler: messages of the dispatch queue, each handled by itself, and of the release queue, handled together.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use tidegate_aws::{Environment, Failures, Figures, Records};
use tidegate_engine::Engine;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let environment = Environment::read()?;
    let figures = tidegate_aws::log_as_json(&environment);
    let engine = tidegate_aws::engine(&environment, &figures).await;
    let handle =
        service_fn(move |event: LambdaEvent<Records>| handle(engine.clone(), figures.clone(), event));
    lambda_runtime::run(handle).await.map_err(|e| anyhow::anyhow!(e))
}

async fn handle(engine: Engine, figures: Figures, event: LambdaEvent<Records>) -> Result<Failures, Error> {
    let failures =
        tidegate_aws::before(event.context.deadline, engine.clock().now(), event.payload.handle(&engine))
            .await;
    figures.write();
    Ok(failures)
}
