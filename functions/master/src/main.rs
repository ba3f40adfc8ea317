//! The master: the REST API behind a function URL.

use tidegate_api::ApiState;
use tidegate_aws::Environment;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let environment = Environment::read()?;
    let figures = tidegate_aws::log_as_json(&environment);
    let engine = tidegate_aws::engine(&environment, &figures).await;
    let router = tidegate_api::router(ApiState::new(engine, environment.admin_key_sha256()));
    let observed = ServiceExt::<lambda_http::Request>::map_result(router, move |answer| {
        figures.write();
        answer
    });
    lambda_http::run(observed).await.map_err(|e| anyhow::anyhow!(e))
}
