//! The two servers on loopback: the API, and the queues for consumers' SDKs.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::json;
use tidegate_api::ApiState;
use tidegate_embedded::loopback::{self, Limits, Refusal};
use tidegate_runtime::Runtime;
use tidegate_store::KeyHash;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::error;

use super::queue_urls;

/// How long requests under way may take when the servers stop; a consumer's long poll is cut off then.
const GRACE: Duration = Duration::from_secs(1);

/// What stands at `/` until the dashboard does.
const FRONT_PAGE: &str = "Tidegate is running.\n\n\
    The dashboard will be here. The API is described at /v1/docs; /v1/health says that it answers.\n";

/// The ports, taken.
pub(super) struct Listeners {
    api: TcpListener,
    sqs: TcpListener,
}

impl Listeners {
    pub(super) async fn bind(port: u16, sqs_port: u16) -> anyhow::Result<Self> {
        Ok(Self {
            api: bind(port, "the API", "--port").await?,
            sqs: bind(sqs_port, "the queues", "--sqs-port").await?,
        })
    }
}

async fn bind(port: u16, what: &str, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.with_context(|| {
        format!(
            "failed to listen on 127.0.0.1:{port} for {what}: choose another port with {option} (0 takes any that is free)"
        )
    })
}

/// The servers, serving.
pub(super) struct Servers {
    api_url: String,
    sqs_url: String,
    stop: watch::Sender<bool>,
    serving: [(&'static str, JoinHandle<std::io::Result<()>>); 2],
}

impl Servers {
    /// `beside` has the routes on the API's port that are no part of the API.
    pub(super) fn start(
        runtime: &Runtime,
        listeners: Listeners,
        admin_key: &str,
        beside: Router,
    ) -> anyhow::Result<Self> {
        let Listeners { api, sqs } = listeners;
        let (api_url, sqs_url) = (url(&api)?, url(&sqs)?);
        let (stop, stopped) = watch::channel(false);
        let stopped = move || {
            let mut stopped = stopped.clone();
            async move { drop(stopped.wait_for(|stop| *stop).await) }
        };
        let state = ApiState::new(runtime.engine().clone(), Some(KeyHash::of(admin_key).as_str()));
        let state = state.with_queue_hints(queue_urls::hints(&sqs_url));
        let router: Router =
            tidegate_api::router(state).merge(beside).route("/", get(|| async { FRONT_PAGE }));
        // What a call grants is sent, though whoever released the tokens is gone.
        let router = router.layer(from_fn(loopback::to_its_end));
        let limits = Limits::default();
        let serve_api = loopback::serve(api, router, limits, refuse, stopped());
        let serve_sqs = runtime.embedded().serve_sqs(sqs, limits, stopped());
        let serving = [("API", tokio::spawn(serve_api)), ("SQS", tokio::spawn(serve_sqs))];
        Ok(Self { api_url, sqs_url, stop, serving })
    }

    pub(super) fn api_url(&self) -> &str {
        &self.api_url
    }

    pub(super) fn sqs_url(&self) -> &str {
        &self.sqs_url
    }

    /// Stops taking requests; those under way get a moment to end.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        for (name, mut serving) in self.serving {
            match timeout(GRACE, &mut serving).await {
                Err(_) => serving.abort(),
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => error!(%error, "the {name} server had failed"),
                Ok(Err(error)) => error!(%error, "the {name} server had died"),
            }
        }
    }
}

/// Answers a request that this server does not serve as the API answers what it refuses.
fn refuse(refusal: &Refusal) -> Response {
    let what = ("not-served-here", "The request is not served here");
    problem(refusal.status(), what, &refusal.to_string())
}

/// What is wrong with a request: what kind of problem it is and its title, and what this one is.
pub(super) fn problem(status: StatusCode, (kind, title): (&str, &str), detail: &str) -> Response {
    let body = json!({
        "type": format!("urn:tidegate:problem:{kind}"), "title": title, "status": status.as_u16(), "detail": detail,
    });
    let problem = [(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))];
    (status, problem, body.to_string()).into_response()
}

fn url(listener: &TcpListener) -> anyhow::Result<String> {
    let address = listener.local_addr().context("failed to ask for the address of a port")?;
    Ok(format!("http://{address}"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::routing::post;
    use tidegate_runtime::{Options, Place};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpStream;
    use tokio::sync::{Notify, oneshot};

    use super::*;

    #[tokio::test]
    async fn a_call_whose_client_hangs_up_is_carried_out() {
        let [began, leave] = std::array::from_fn(|_| Arc::new(Notify::new()));
        let (done, mut is_done) = oneshot::channel();
        let (told, done) = ([&began, &leave].map(Arc::clone), Arc::new(Mutex::new(Some(done))));
        let call = async move || {
            let ([began, leave], done) = (told, done.lock().unwrap().take());
            began.notify_one();
            leave.notified().await;
            done.unwrap().send(()).unwrap();
        };
        let runtime = Runtime::start(Options::new(Place::Memory)).await.unwrap();
        let listeners = Listeners::bind(0, 0).await.unwrap();
        let beside = Router::new().route("/slow", post(call));
        let servers = Servers::start(&runtime, listeners, "key", beside).unwrap();
        let mut stream = TcpStream::connect(servers.api_url().trim_start_matches("http://")).await.unwrap();
        let request = b"POST /slow HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(request).await.unwrap();
        began.notified().await;
        drop(stream);
        assert!(timeout(Duration::from_millis(50), &mut is_done).await.is_err(), "it goes on");
        leave.notify_one();
        assert_eq!(is_done.await, Ok(()));
        servers.stop().await;
        runtime.stop().await;
    }
}
