//! The SDK clients, built for a service in the same process.
//!
//! Whatever the SDK does to cross a network is left out: signing, endpoint rules, identity cache and the guard against
//! stalled streams. What belongs to the contract stays: serialisation, error parsing, retries.

use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{ConfigBag, RuntimeComponents, StalledStreamProtectionConfig};
use aws_smithy_runtime_api::client::auth::{AuthSchemeId, AuthSchemeOption, AuthSchemeOptionsFuture};
use aws_smithy_runtime_api::client::endpoint::EndpointFuture;
use aws_smithy_types::endpoint::Endpoint;

use super::Seam;
use crate::dynamodb::SDK_TOKEN;
use crate::faults::Faults;
use crate::sqs::REGION;

/// How a client of the embedded services behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The SDK's own retries; its standard mode (three attempts, backoff in real time) by default. Every client has a
    /// retry budget of its own.
    pub retry: RetryConfig,
    /// The SDK's own time-outs; none by default, since the services in the process answer at once.
    pub timeouts: TimeoutConfig,
    /// The faults that this client meets, none by default. Clients that share a clone also share a crash.
    pub faults: Option<Faults>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { retry: RetryConfig::standard(), timeouts: TimeoutConfig::disabled(), faults: None }
    }
}

impl ClientOptions {
    /// No retries and no faults: every failure reaches the caller, for tests that look at one.
    pub fn without_retries() -> Self {
        Self { retry: RetryConfig::disabled(), ..Self::default() }
    }

    /// The same options with `faults` in force.
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults: Some(faults), ..self }
    }
}

/// Sends every request to the seam, unsigned.
#[derive(Debug, Clone)]
struct InProcess(Endpoint);

impl InProcess {
    fn new() -> Self {
        Self(Endpoint::builder().url("http://127.0.0.1").build())
    }

    fn endpoint(&self) -> EndpointFuture<'_> {
        EndpointFuture::ready(Ok(self.0.clone()))
    }
}

/// The SDK registers a scheme of this name in every client: it signs nothing.
const NO_AUTH: AuthSchemeId = AuthSchemeId::new("noAuth");

macro_rules! client {
    ($build:ident, $sdk:ident, $service:literal $(, $option:ident($value:expr))?) => {
        impl $sdk::config::endpoint::ResolveEndpoint for InProcess {
            fn resolve_endpoint<'a>(&'a self, _: &'a $sdk::config::endpoint::Params) -> EndpointFuture<'a> {
                self.endpoint()
            }
        }

        impl $sdk::config::auth::ResolveAuthScheme for InProcess {
            fn resolve_auth_scheme<'a>(
                &'a self,
                _: &'a $sdk::config::auth::Params,
                _: &'a ConfigBag,
                _: &'a RuntimeComponents,
            ) -> AuthSchemeOptionsFuture<'a> {
                AuthSchemeOptionsFuture::ready(Ok(vec![AuthSchemeOption::from(NO_AUTH)]))
            }
        }

        /// The SDK client whose requests end at `seam`.
        pub(crate) fn $build(seam: Seam, options: &ClientOptions) -> $sdk::Client {
            let config = $sdk::Config::builder()
                .behavior_version($sdk::config::BehaviorVersion::latest())
                .region($sdk::config::Region::from_static(REGION))
                .credentials_provider($sdk::config::Credentials::new(
                    "local", "local", None, None, "tidegate",
                ))
                .endpoint_resolver(InProcess::new())
                .auth_scheme_resolver(InProcess::new())
                .http_client(seam)
                .identity_cache($sdk::config::IdentityCache::no_cache())
                .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
                .timeout_config(options.timeouts.clone())
                .retry_partition(RetryPartition::custom(concat!("embedded-", $service)).build())
                .retry_config(options.retry.clone())
                $(.$option($value))?
                .build();
            $sdk::Client::from_conf(config)
        }
    };
}

client!(dynamodb_client, aws_sdk_dynamodb, "dynamodb", idempotency_token_provider(SDK_TOKEN));
client!(sqs_client, aws_sdk_sqs, "sqs");
