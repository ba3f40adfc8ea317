//! Clients of services that are reached over HTTP.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedHttpClient, retry::RetryConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// A client of the DynamoDB at `endpoint`, without retries, with credentials that no emulator checks.
pub fn dynamodb_client_of(endpoint: &str) -> aws_sdk_dynamodb::Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(REGION)
        .credentials_provider(credentials())
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(http())
        .build();
    aws_sdk_dynamodb::Client::from_conf(config)
}

/// A client of the SQS at `endpoint`, as that of DynamoDB.
pub fn client_of(endpoint: &str) -> Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(REGION)
        .credentials_provider(credentials())
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(http())
        .build();
    Client::from_conf(config)
}

const REGION: Region = Region::from_static("us-east-1");

fn credentials() -> Credentials {
    Credentials::new("test", "test", None, None, "contract")
}

fn http() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}
