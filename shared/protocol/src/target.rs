//! Addresses: where events go, and who is told when a run has come to its end.

use serde::{Deserialize, Serialize};

/// Where events go: `sqs` or `http`.
///
/// Exactly one of them is given. An answer that has neither names a kind of target of a later version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        description = "Where events go: `sqs` or `http`.",
        example = json!({"sqs": {"queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"}})
    )
)]
pub struct Target {
    /// A standard or FIFO queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqs: Option<SqsTarget>,
    /// An HTTP endpoint that takes a POST for each event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpTarget>,
}

/// A queue as a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SqsTarget {
    /// The queue's URL. The queue must exist.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs")
    )]
    pub queue_url: String,
    /// Only `by_consumer`, which holds anyway: a queue gives no answer that could end a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseRule>,
}

/// An endpoint as a target. An answer of 2xx means that it took the event. After 408, 425, 429 or 5xx, and when the
/// connection fails or no answer comes in time, the event is sent again, as the job's `retry` and `max_attempts` say, and no
/// earlier than a `Retry-After` says. A 307 or 308
/// to the same host is followed once. Any other answer is final, other redirects included: the event is `dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HttpTarget {
    /// Its URL.
    #[cfg_attr(feature = "openapi", schema(example = "https://example.com/hook"))]
    pub url: String,
    /// Who ends the lease of a throttled event; `by_consumer` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseRule>,
}

/// Who ends the lease of a throttled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReleaseRule {
    /// A 2xx answer: the work was done in the call. Other answers mean what they mean without it: 408, 425, 429, 5xx and
    /// failed connections are tried again, any other answer is final and the event is dead.
    OnResponse,
    /// The consumer, by `POST /v1/tokens/release` or by a message to the release queue.
    ByConsumer,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

impl Target {
    /// A queue by its URL, `https://sqs.<region>.amazonaws.com/<account>/<name>` or an emulator's form of it. A FIFO queue
    /// gets the job's id as group and the event id for deduplication.
    pub fn sqs(queue_url: impl Into<String>) -> Self {
        let sqs = SqsTarget { queue_url: queue_url.into(), release: None };
        Self { sqs: Some(sqs), http: None }
    }

    /// An endpoint by its URL, `http://` or `https://`. A throttled event keeps its token until the consumer releases it.
    pub fn http(url: impl Into<String>) -> Self {
        Self { sqs: None, http: Some(HttpTarget { url: url.into(), release: None }) }
    }

    /// An endpoint by its URL, whose 2xx answer releases the token.
    pub fn http_released_on_response(url: impl Into<String>) -> Self {
        let release = Some(ReleaseRule::OnResponse);
        Self { sqs: None, http: Some(HttpTarget { url: url.into(), release }) }
    }
}
