//! Clients that call the API while something else goes on: one that creates jobs, and many that call without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use tidegate_domain::clock::Clock as _;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::{Report, minutes};
use crate::cloud::Cloud;

/// Who calls.
const CALLER: &str = "caller";
/// How many seconds ahead of their launch jobs are created.
const AHEAD_SECONDS: i64 = 20;
/// How long a client waits before it repeats a call that was not answered.
const AGAIN: Duration = Duration::from_secs(1);
/// How many call without end, and how soon they call again when there was no room.
const CALLERS: usize = 24;
const AT_ONCE: Duration = Duration::from_millis(20);

/// Has a client create so many jobs, one a second, and repeat each call until it is answered; how many were repeated.
pub(super) async fn create_each_second(
    cloud: &Cloud,
    jobs: usize,
) -> Result<(usize, JoinHandle<Result<u64>>)> {
    let (caller, clock, key) = (cloud.caller(), cloud.clock(), cloud.register(CALLER).await?);
    let queue_url = cloud.target("caller").await?;
    let created = tokio::spawn(async move {
        let (mut calls, mut repeated) = (JoinSet::new(), 0);
        for number in 0..jobs {
            let at = clock.now() + chrono::Duration::seconds(AHEAD_SECONDS);
            let job =
                json!({"trigger": {"at": at.to_rfc3339()}, "target": {"sqs": {"queue_url": queue_url}}});
            let (caller, key) = (caller.clone(), key.clone());
            calls.spawn(async move {
                let (path, mut repeated) = (format!("/v1/jobs/created-{number}"), 0);
                loop {
                    let (status, body) = caller.call("PUT", &path, &key, &job).await?;
                    if status.is_success() {
                        return Ok(repeated);
                    }
                    let is_for_later = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                    ensure!(is_for_later, "{path}: {status} {body}");
                    repeated += 1;
                    sleep(AGAIN).await;
                }
            });
            sleep(Duration::from_secs(1)).await;
        }
        while let Some(call) = calls.join_next().await {
            repeated += call??;
        }
        Ok(repeated)
    });
    Ok((jobs, created))
}

/// Holds that all were accepted in the end, and delivered.
pub(super) async fn must_be_created(
    report: &mut Report,
    cloud: &Cloud,
    (jobs, created): (usize, JoinHandle<Result<u64>>),
) -> Result<()> {
    let repeated = created.await??;
    let came = |cloud: &Cloud| cloud.arrivals.count_of(CALLER) >= jobs;
    cloud.until(minutes(30), came).await;
    let came = cloud.arrivals.count_of(CALLER);
    report.must(
        came == jobs,
        format!("{came} of {jobs} jobs came that were created meanwhile; {repeated} calls were repeated"),
    );
    Ok(())
}

/// Calls without end; they end when it is dropped.
pub(super) struct Flood {
    answered: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    _callers: JoinSet<()>,
}

impl Flood {
    /// Ends it: how many calls were answered, and for how many there was no room.
    pub(super) fn end(self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }
}

/// Has many clients list their jobs again and again.
pub(super) async fn flood(cloud: &Cloud) -> Result<Flood> {
    let key = cloud.register(CALLER).await?;
    let (answered, refused) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (caller, key) = (cloud.caller(), key.clone());
        let (answered, refused) = (Arc::clone(&answered), Arc::clone(&refused));
        callers.spawn(async move {
            loop {
                match caller.call("GET", "/v1/jobs", &key, &Value::Null).await {
                    Ok((StatusCode::TOO_MANY_REQUESTS, _)) => {
                        refused.fetch_add(1, Ordering::Relaxed);
                        sleep(AT_ONCE).await;
                    }
                    Ok((status, _)) if status.is_success() => drop(answered.fetch_add(1, Ordering::Relaxed)),
                    _ => sleep(AT_ONCE).await,
                }
            }
        });
    }
    Ok(Flood { answered, refused, _callers: callers })
}
