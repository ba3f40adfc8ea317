//! Connections: how many there are at once, how long they may take to say what they want, and what becomes of a request whose
//! client hangs up.
//!
//! Deliberately absent: a bound on the time of an answer. A long poll takes twenty seconds, and a bulk call its own time.

use std::io;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{Response, StatusCode};
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use futures::stream::{self, StreamExt};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, warn};

use super::guard::{self, Refuse};

/// How long the server rests when the system gives it no connection, because it has too many files open for example.
const REST: Duration = Duration::from_millis(500);

/// What a connection may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long the headers of a request may take, and how long a connection may be idle before them.
    pub headers_within: Duration,
    /// How long the body may take after them.
    pub body_within: Duration,
    /// How many connections there are at once, those included whose request goes on without them; the system lets further ones
    /// wait.
    pub connections: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            headers_within: Duration::from_secs(30),
            body_within: Duration::from_secs(30),
            connections: 1_024,
        }
    }
}

/// A connection's place among those that there are, kept by it and by what it asks for.
type Place = Arc<OwnedSemaphorePermit>;

/// Serves `router` until `shutdown` resolves, then ends the requests that are under way. What [`Refusal`](super::Refusal)
/// describes is answered by `refuse`. Each request says whose connection it came by, as `ConnectInfo`.
///
/// # Errors
/// Never at present: a connection that fails ends alone.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    refuse: Refuse,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let router = router
        .layer(middleware::from_fn(move |request, next| bound_body(limits.body_within, request, next)))
        .layer(middleware::from_fn(move |request, next| guard::guard(refuse, request, next)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.headers_within);
    let places = Arc::new(Semaphore::new(limits.connections as usize));
    let (connections, mut shutdown) = (GracefulShutdown::new(), pin!(shutdown));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            next = next => next,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                sleep(REST).await;
                continue;
            }
        };
        // Nobody closes the semaphore.
        let Ok(place) = place.map(Place::new) else { break };
        // Answers are small and awaited: nothing is gained by collecting them.
        let _unchanged = stream.set_nodelay(true);
        let router = TowerToHyperService::new(router.clone());
        let kept = Place::clone(&place);
        let told = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(Place::clone(&kept));
            router.call(request)
        });
        let serving = http.serve_connection(TokioIo::new(stream), told);
        let serving = connections.watch(serving);
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    connections.shutdown().await;
    let _all_of_them = places.acquire_many(limits.connections).await;
    Ok(())
}

/// A layer of what others may wait for: a request goes on when its client hangs up, as it does on Lambda.
pub async fn to_its_end(request: Request, next: Next) -> Response<Body> {
    let place = request.extensions().get::<Place>().cloned();
    let working = tokio::spawn(async move {
        let answer = next.run(request).await;
        drop(place);
        answer
    });
    match working.await.map_err(JoinError::try_into_panic) {
        Ok(answer) => answer,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime ends.
        Err(Err(_)) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The body of the request took too long.
#[derive(Debug, thiserror::Error)]
#[error("the body did not arrive within {0:?}")]
struct TooSlow(Duration);

/// Passes a request on with a body that fails when it takes too long.
async fn bound_body(within: Duration, request: Request, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let now = Instant::now();
    let until = now.checked_add(within).unwrap_or(now);
    let bounded = stream::try_unfold(body.into_data_stream(), move |mut body| async move {
        match timeout_at(until, body.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some((bytes, body))),
            Ok(Some(Err(error))) => Err(error.into_inner()),
            Err(_) => Err(TooSlow(within).into()),
        }
    });
    next.run(Request::from_parts(parts, Body::from_stream(bounded))).await
}
