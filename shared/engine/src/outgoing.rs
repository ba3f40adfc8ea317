//! What calls out of the deployment have in common, whoever makes them: over HTTP, and to SQS.

use std::error::Error as StdError;
use std::iter;
use std::time::Duration;

use reqwest::Url;

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

/// An address one step beneath another: before the query, where there is one.
pub(crate) fn step_beneath(url: &Url, step: &str) -> Url {
    let mut beneath = url.clone();
    if let Ok(mut path) = beneath.path_segments_mut() {
        path.pop_if_empty().push(step);
    }
    beneath
}

/// The same of a text, which stays as it is when it is no address.
pub(crate) fn beneath(url: &str, step: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| step_beneath(&url, step).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_comes_behind_the_path_and_before_the_query() {
        for (url, failed) in [
            ("https://hc-ping.com/uuid", "https://hc-ping.com/uuid/fail"),
            ("https://hc-ping.com/uuid/", "https://hc-ping.com/uuid/fail"),
            ("https://x.example:8443/a?key=1", "https://x.example:8443/a/fail?key=1"),
            ("https://x.example", "https://x.example/fail"),
        ] {
            assert_eq!(beneath(url, "fail"), failed);
        }
    }
}
