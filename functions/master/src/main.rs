//! The master: the REST API behind a function URL.

use std::net::IpAddr;

use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use tidegate_api::ApiState;
use tidegate_aws::Environment;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let environment = Environment::read()?;
    let figures = tidegate_aws::log_as_json(&environment);
    let engine = tidegate_aws::engine(&environment, &figures).await;
    let state = ApiState::new(engine.clone(), environment.admin_key_sha256()).with_targets_named();
    let router = tidegate_api::router(state);
    let answer = lambda_http::service_fn(move |mut request: lambda_http::Request| {
        let (engine, router, figures) = (engine.clone(), router.clone(), figures.clone());
        async move {
            // Without a context, as some emulators call, nobody knows when time is over.
            let deadline = request.lambda_context_ref().map_or(u64::MAX, |context| context.deadline);
            if let Some(address) = source_of(&request) {
                tidegate_api::came_from(&mut request, address);
            }
            let answer = tidegate_aws::before(deadline, engine.clock().now(), router.oneshot(request)).await;
            figures.write();
            answer
        }
    });
    lambda_http::run(answer).await.map_err(|e| anyhow::anyhow!(e))
}

/// Where a request came from, as the function's URL says.
fn source_of(request: &lambda_http::Request) -> Option<IpAddr> {
    let RequestContext::ApiGatewayV2(context) = request.request_context_ref()? else { return None };
    context.http.source_ip.as_deref()?.parse().ok()
}
