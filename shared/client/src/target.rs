//! Addresses: where events go, and who is told when a run has come to its end.

use serde::{Deserialize, Serialize};

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A standard or FIFO queue. A FIFO queue gets the job's id as group and the event id for deduplication.
    Sqs {
        /// Its URL, `https://sqs.<region>.amazonaws.com/<account>/<name>` or an emulator's form of it.
        queue_url: String,
    },
    /// An endpoint that takes a POST for each event. 408, 425, 429, 5xx and failed connections are tried again; any other
    /// answer than 2xx is final.
    Http {
        /// Its URL, `http://` or `https://`.
        url: String,
        /// Who ends the lease of a throttled event; the consumer when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        release: Option<ReleaseRule>,
    },
}

/// Who ends the lease of a throttled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseRule {
    /// A 2xx answer: the work was done in the call.
    OnResponse,
    /// The consumer, by [`Client::release`](crate::Client::release) or by a message to the release queue.
    ByConsumer,
}

impl Target {
    /// A queue by its URL.
    pub fn sqs(queue_url: impl Into<String>) -> Self {
        Self::Sqs { queue_url: queue_url.into() }
    }

    /// An endpoint by its URL. A throttled event keeps its token until the consumer releases it.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), release: None }
    }

    /// An endpoint by its URL, whose 2xx answer releases the token.
    pub fn http_released_on_response(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), release: Some(ReleaseRule::OnResponse) }
    }
}
