//! Works on the events of a queue: prints their ids, takes as many `seconds` as a payload has, and fails with its `error`.
//!
//! Settings are environment variables: TIDEGATE_URL, TIDEGATE_API_KEY, QUEUE_URL, those of AWS (such as AWS_REGION and
//! AWS_ENDPOINT_URL), and COUNT, after how many events it ends; without COUNT it goes on until SIGTERM or Ctrl-C.

#![allow(clippy::print_stdout)]

use std::env::var;
use std::error::Error;
use std::io::stderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use tidegate_client::{Client, Event, Lease, QueueConsumer};
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(stderr).init();
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let aws = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    let client = Client::new(var("TIDEGATE_URL")?, var("TIDEGATE_API_KEY")?)?;

    let count = var("COUNT").map_or(Ok(u64::MAX), |count| count.parse())?;
    let (worked_on, enough) = (AtomicU64::new(0), Arc::new(Notify::new()));
    let stop = Arc::clone(&enough);
    let work = move |event: Event, _: Lease| {
        println!("{}", event.event_id);
        if worked_on.fetch_add(1, Ordering::Relaxed) + 1 == count {
            enough.notify_one();
        }
        async move {
            sleep(Duration::from_secs(event.payload["seconds"].as_u64().unwrap_or(0))).await;
            event.payload["error"].as_str().map_or(Ok(()), |error| Err(error.to_owned()))
        }
    };
    let mut terminated = signal(SignalKind::terminate())?;
    let consumer = QueueConsumer::new(&client, aws_sdk_sqs::Client::new(&aws), var("QUEUE_URL")?, work);
    consumer
        .run_until(async {
            tokio::select! {
                () = stop.notified() => {}
                _ = terminated.recv() => {}
                _ = ctrl_c() => {}
            }
        })
        .await;
    Ok(())
}
