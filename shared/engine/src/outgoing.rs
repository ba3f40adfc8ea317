//! What calls out of the deployment have in common, whoever makes them: over HTTP, and to SQS.

use std::error::Error as StdError;
use std::iter;
use std::time::Duration;

/// How long a connection may take.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// What all calls out of the deployment have in common.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    // A second call in one process finds the provider in place, which is as good.
    let _already_there = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
}

/// An error and what caused it, down to the first cause.
pub(crate) fn causes<'e>(error: &'e reqwest::Error) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    let mut next: Option<&'e (dyn StdError + 'static)> = Some(error);
    iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// A JSON text as SQS takes it: the two characters of JSON that SQS refuses are written as escapes, which mean the same.
pub(crate) fn sqs_text(json: String) -> String {
    // Control characters are escaped in every JSON string, and surrogates cannot stand in a text.
    match json.contains(['\u{fffe}', '\u{ffff}']) {
        true => json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff"),
        false => json,
    }
}
