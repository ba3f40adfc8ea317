//! The master: the REST API behind a function URL.

use tidegate_api::ApiState;
use tidegate_aws::Environment;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tidegate_aws::log_as_json();
    let environment = Environment::read()?;
    let engine = tidegate_aws::engine(&environment).await;
    let router = tidegate_api::router(ApiState::new(engine, environment.admin_key_sha256()));
    lambda_http::run(router).await.map_err(|e| anyhow::anyhow!(e))
}
