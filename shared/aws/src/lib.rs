//! Where Tidegate stands on AWS: from a function's environment to an engine with real clients.
//!
//! `tidegate-runtime` is the other place to stand. Deliberately absent: anything that decides; the functions' mains
//! translate their events, the engine does the work.

// Values from outside come here: nothing may panic on them.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

mod calls;
mod emit;
mod environment;
mod figures;
mod records;

use std::sync::Arc;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::SharedHttpClient;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use chrono::{DateTime, Utc};
use tidegate_engine::clock::SystemClock;
use tidegate_engine::random::SystemRandom;
use tidegate_engine::{Config, Engine, Parts, Services, Way, within};
use tidegate_store::Store;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::Targets;

use calls::Counted;
pub use calls::permissions;
pub use emit::{EmitError, emit};
pub use environment::{Environment, EnvironmentError};
pub use figures::{Figures, metrics};
pub use records::{Failures, Records};

/// Writes structured logs to standard output, a JSON object a line, filtered by `TIDEGATE_LOG` (`info` when it is not
/// set), and gives the figures that are to be written at the end of each invocation. The first call of a process counts.
pub fn log_as_json(environment: &Environment) -> Figures {
    use tracing_subscriber::filter::FilterExt as _;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
    use tracing_subscriber::util::SubscriberInitExt as _;
    use tracing_subscriber::{filter, fmt};
    let filter = asked_for(Level::INFO);
    let lines = fmt::layer().json().flatten_event(true).with_current_span(true).without_time();
    let lines = lines.with_filter(filter.and(filter::filter_fn(may_be_logged)));
    let figures = Figures::of(environment.stack());
    let listener = figures.listener().with_filter(filter::filter_fn(figures::may_tell));
    // A second call in one process keeps the first subscriber.
    let _already_set = tracing_subscriber::registry().with(lines).with(listener).try_init();
    figures
}

/// What `TIDEGATE_LOG` asks for, a level or targets with levels such as `info,tidegate_engine=debug`; otherwise all from `level` on.
pub fn asked_for(level: Level) -> Targets {
    let targets = std::env::var("TIDEGATE_LOG").ok().and_then(|targets| targets.parse().ok());
    targets.unwrap_or_else(|| Targets::new().with_default(level))
}

/// Below `info` only Tidegate's own crates are heard: the SDK and the HTTP libraries write whole requests and rows there, with
/// keys and webhook secrets in them.
pub fn may_be_logged(of: &Metadata<'_>) -> bool {
    *of.level() <= Level::INFO || of.target().starts_with("tidegate")
}

/// How long the SDK waits for a service: a call that does not answer must not take its invocation along, nor the messages
/// that are handled with it.
///
/// An attempt of DynamoDB or SQS takes some milliseconds, a page of 1 MB some hundred; the functions have 29 seconds and
/// more.
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(1))
        .operation_attempt_timeout(Duration::from_secs(3))
        .operation_timeout(Duration::from_secs(10))
        .build()
}

/// What is left of an invocation's time when it begins nothing long any more, in milliseconds: what was begun just before can
/// end, for the longest operation and some more.
const RESERVE_MS: i64 = 11_000;

/// Does the work of an invocation. `now` is when it begins, and `deadline_ms` when Lambda stops it, as the invocation's context
/// says, in milliseconds since 1970. Some time before, what is left is left to others; of a short time, half of it before.
pub async fn before<F: Future>(deadline_ms: u64, now: DateTime<Utc>, work: F) -> F::Output {
    let deadline_ms = i64::try_from(deadline_ms).unwrap_or(i64::MAX);
    let time_ms = deadline_ms.saturating_sub(now.timestamp_millis()).max(0);
    let until_ms = deadline_ms.saturating_sub(RESERVE_MS.min(time_ms / 2));
    match DateTime::from_timestamp_millis(until_ms) {
        Some(until) => within(until, work).await,
        None => work.await,
    }
}

/// How the SDK tries again, with jitter, what was throttled or got no answer: soon, since what comes after waits for it, and
/// seldom, since every message and every row is tried again later anyway.
pub fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(4)
        .with_initial_backoff(Duration::from_millis(100))
        .with_max_backoff(Duration::from_secs(2))
}

/// The tables of a deployment for a person who works on them: credentials and region are found in the environment, in a
/// profile, or where AWS provides them. `None`: no region is named. Makes no call but for credentials and region. The endpoint
/// of an emulator comes from `AWS_ENDPOINT_URL`.
pub async fn tables(table_prefix: &str) -> Option<Store> {
    let sdk = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        .retry_config(retries())
        .timeout_config(timeouts())
        .load()
        .await;
    sdk.region()?;
    Some(Store::new(aws_sdk_dynamodb::Client::new(&sdk), table_prefix))
}

fn http_client() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

/// An engine over the tables and queues that the environment names, whose requests are counted. Makes no call.
///
/// Credentials come from the environment alone, as Lambda gives them: no provider chain is tried, so a cold start waits
/// for nothing. The endpoint of an emulator comes from `AWS_ENDPOINT_URL`.
pub async fn engine(environment: &Environment, figures: &Figures) -> Engine {
    let sdk = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        .credentials_provider(EnvironmentVariableCredentialsProvider::new())
        .retry_config(retries())
        .timeout_config(timeouts())
        .load()
        .await;
    let credentials = EnvironmentVariableCredentialsProvider::new();
    let services = Services::on_aws(credentials, environment.endpoints().clone());
    let config = Config { services, ..environment.config() };
    let own_queues = config.own_queues().map(str::to_owned).into();
    let counted = Counted::new(figures.under_way(), own_queues);
    let dynamodb = aws_sdk_dynamodb::config::Builder::from(&sdk).interceptor(counted.clone()).build();
    let sqs = aws_sdk_sqs::config::Builder::from(&sdk).interceptor(counted).build();
    let parts = Parts {
        store: Store::new(aws_sdk_dynamodb::Client::from_conf(dynamodb), environment.table_prefix()),
        sqs: aws_sdk_sqs::Client::from_conf(sqs),
        way: Way::default(),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        config,
    };
    Engine::new(parts).with_heartbeat(environment.heartbeat().cloned())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn what_is_begun_just_before_the_reserve_can_end() {
        let timeouts = timeouts();
        let operation = timeouts.operation_timeout().unwrap();
        assert!(timeouts.operation_attempt_timeout().unwrap() < operation);
        assert!(operation < Duration::from_millis(RESERVE_MS.unsigned_abs()), "{operation:?}");
    }

    #[test]
    fn an_invocation_leaves_a_reserve_and_a_short_one_half_of_its_time() {
        let now = DateTime::from_timestamp_millis(1_790_000_000_000).unwrap();
        for (time_ms, until_ms) in [(30_000, 19_000), (10_000, 5_000), (0, 0)] {
            let deadline_ms = (now.timestamp_millis() + time_ms).unsigned_abs();
            let work = before(deadline_ms, now, async { tidegate_engine::until() });
            let until = work.now_or_never().flatten().unwrap();
            assert_eq!((until - now).num_milliseconds(), until_ms, "of {time_ms} ms");
        }
    }
}
