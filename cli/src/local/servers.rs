//! The two servers on loopback: the API, and the queues for consumers' SDKs.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use tidegate_api::ApiState;
use tidegate_local::runtime::Runtime;
use tidegate_store::KeyHash;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::error;

/// How long requests under way may take when the servers stop; a consumer's long poll is cut off then.
const GRACE: Duration = Duration::from_secs(1);

/// What stands at `/` until the dashboard does.
const FRONT_PAGE: &str = "Tidegate is running.\n\n\
    The dashboard will be here. The API is described at /v1/openapi.json; /v1/health says that it answers.\n";

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
    pub(super) fn start(runtime: &Runtime, listeners: Listeners, admin_key: &str) -> anyhow::Result<Self> {
        let Listeners { api, sqs } = listeners;
        let (api_url, sqs_url) = (url(&api)?, url(&sqs)?);
        let (stop, stopped) = watch::channel(false);
        let stopped = move || {
            let mut stopped = stopped.clone();
            async move { drop(stopped.wait_for(|stop| *stop).await) }
        };
        let state = ApiState::new(runtime.engine().clone(), Some(KeyHash::of(admin_key).as_str()));
        let router: Router = tidegate_api::router(state).route("/", get(|| async { FRONT_PAGE }));
        let serve_api = axum::serve(api, router).with_graceful_shutdown(stopped());
        let (embedded, sqs_stopped) = (runtime.embedded().clone(), stopped());
        let serving = [
            ("API", tokio::spawn(async move { serve_api.await })),
            ("SQS", tokio::spawn(async move { embedded.serve_sqs(sqs, sqs_stopped).await })),
        ];
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

fn url(listener: &TcpListener) -> anyhow::Result<String> {
    let address = listener.local_addr().context("failed to ask for the address of a port")?;
    Ok(format!("http://{address}"))
}
