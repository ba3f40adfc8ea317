//! Addresses: where events go, and who is told when a run has come to its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where events go: `sqs`, `http`, `event_bridge`, `sns`, `lambda` or `step_functions`.
///
/// Exactly one of them is given. An answer that has none names a kind of target of a later version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        description = "Where events go: `sqs`, `http`, `event_bridge`, `sns`, `lambda` or `step_functions`. Completions go to \
            the first two.",
        example = json!({"sqs": {"queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"}})
    )
)]
pub struct Target {
    /// A standard or FIFO queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqs: Option<SqsTarget>,
    /// An HTTP endpoint that is called once for each event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpTarget>,
    /// An event bus of EventBridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bridge: Option<EventBridgeTarget>,
    /// A standard or FIFO topic of SNS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sns: Option<SnsTarget>,
    /// A function of Lambda.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<LambdaTarget>,
    /// A state machine of Step Functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_functions: Option<StepFunctionsTarget>,
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
    /// What the messages of a FIFO queue are in order by: `job`, when left out; `policy`, which is the job where there is none; or a
    /// name of 1 to 64 letters, digits, '-', '_' and '.', the same for all of them. Other clients have groups of their own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "openapi", schema(example = "policy"))]
    pub message_group: Option<String>,
}

/// An endpoint as a target. Without further fields it gets a signed POST of each event. An answer of 2xx means that it took the
/// event. After 408, 425, 429 or 5xx, and when the connection fails or no answer comes in time, the event is sent again, as the
/// job's `retry` and `max_attempts` say, and no earlier than a `Retry-After` says. A 307 or 308
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
    /// The method; `POST` when left out. GET and DELETE have no body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<HttpMethod>,
    /// Headers beside those that Tidegate sends: at most 20, and 2 KiB of names and values. Values may have `{{event_id}}` and
    /// the other placeholders of `payload_template`, and `{{secret:<secret_id>}}` for the value of a secret. They are stored and
    /// shown as they are written. Not `host`, not those of the connection, and none that begins with `webhook-` or `tidegate-`.
    #[cfg_attr(feature = "openapi", schema(example = json!({"x-api-key": "k", "x-page": "{{index1}}"})))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// What the body is; `event` when left out. Not with GET and DELETE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<HttpBody>,
    /// How long a call may take, in seconds; 10 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// The answers that mean that the endpoint took the event: codes such as `204`, and classes such as `2xx`; `["2xx"]` when
    /// left out. With `release: on_response` they release the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_statuses: Option<Vec<String>>,
    /// The answers after which the event is sent again, written in the same way; `["408", "425", "429", "5xx"]` when left out. An
    /// answer that is in neither list is final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_statuses: Option<Vec<String>>,
}

/// The method of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// With a body.
    Post,
    /// With a body.
    Put,
    /// With a body.
    Patch,
    /// Without a body: what the event says is in headers.
    Get,
    /// Without a body: what the event says is in headers.
    Delete,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// What the body of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// The event, with its payload in it.
    Event,
    /// The payload alone: what the event says beside it is in headers that begin with `tidegate-`.
    Payload,
    /// A word of a later version. Cannot be sent.
    #[serde(other, skip_serializing)]
    Other,
}

/// An event bus as a target. Each event is an entry whose detail is the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventBridgeTarget {
    /// The bus's ARN.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "arn:aws:events:eu-west-1:123456789012:event-bus/default")
    )]
    pub bus_arn: String,
    /// The source of the entries, up to 256 bytes; `tidegate` when left out.
    #[cfg_attr(feature = "openapi", schema(example = "com.example.orders"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Their detail type, up to 128 bytes; `Event` when left out.
    #[cfg_attr(feature = "openapi", schema(example = "Order Due"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail_type: Option<String>,
}

/// A topic as a target. Each event is a message with the attributes that a message of a queue has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnsTarget {
    /// The topic's ARN. A FIFO topic gets the job's id as group and the event id for deduplication.
    #[cfg_attr(feature = "openapi", schema(example = "arn:aws:sns:eu-west-1:123456789012:orders"))]
    pub topic_arn: String,
}

/// A function as a target. It is invoked with the event, and not waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LambdaTarget {
    /// The function's ARN, with a version or an alias behind it if one is meant.
    #[cfg_attr(feature = "openapi", schema(example = "arn:aws:lambda:eu-west-1:123456789012:function:work"))]
    pub function_arn: String,
}

/// A state machine as a target. Each delivery starts an execution, whose input is the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepFunctionsTarget {
    /// The state machine's ARN, with a version or an alias behind it if one is meant.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "arn:aws:states:eu-west-1:123456789012:stateMachine:import")
    )]
    pub state_machine_arn: String,
}

/// Who ends the lease of a throttled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReleaseRule {
    /// An answer that means that the endpoint took the event: the work was done in the call. Other answers mean what they mean
    /// without it: 408, 425, 429, 5xx and failed connections are tried again, any other answer is final and the event is dead.
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
        let sqs = SqsTarget { queue_url: queue_url.into(), release: None, message_group: None };
        Self { sqs: Some(sqs), ..Self::default() }
    }

    /// An event bus by its ARN, `arn:aws:events:<region>:<account>:event-bus/<name>`.
    pub fn event_bridge(bus_arn: impl Into<String>) -> Self {
        EventBridgeTarget::new(bus_arn).into()
    }

    /// A topic by its ARN, `arn:aws:sns:<region>:<account>:<name>`.
    pub fn sns(topic_arn: impl Into<String>) -> Self {
        Self { sns: Some(SnsTarget { topic_arn: topic_arn.into() }), ..Self::default() }
    }

    /// A function by its ARN, `arn:aws:lambda:<region>:<account>:function:<name>`. It is invoked and not waited for.
    pub fn lambda(function_arn: impl Into<String>) -> Self {
        Self { lambda: Some(LambdaTarget { function_arn: function_arn.into() }), ..Self::default() }
    }

    /// A state machine by its ARN, `arn:aws:states:<region>:<account>:stateMachine:<name>`.
    pub fn step_functions(state_machine_arn: impl Into<String>) -> Self {
        let step_functions = StepFunctionsTarget { state_machine_arn: state_machine_arn.into() };
        Self { step_functions: Some(step_functions), ..Self::default() }
    }

    /// An endpoint by its URL, `http://` or `https://`. A throttled event keeps its token until the consumer releases it.
    pub fn http(url: impl Into<String>) -> Self {
        HttpTarget::new(url).into()
    }

    /// An endpoint by its URL, whose 2xx answer releases the token.
    pub fn http_released_on_response(url: impl Into<String>) -> Self {
        HttpTarget::new(url).released_on_response().into()
    }
}

impl From<SqsTarget> for Target {
    fn from(sqs: SqsTarget) -> Self {
        Self { sqs: Some(sqs), ..Self::default() }
    }
}

impl From<HttpTarget> for Target {
    fn from(http: HttpTarget) -> Self {
        Self { http: Some(http), ..Self::default() }
    }
}

impl From<EventBridgeTarget> for Target {
    fn from(event_bridge: EventBridgeTarget) -> Self {
        Self { event_bridge: Some(event_bridge), ..Self::default() }
    }
}

impl EventBridgeTarget {
    /// An event bus by its ARN.
    pub fn new(bus_arn: impl Into<String>) -> Self {
        Self { bus_arn: bus_arn.into(), source: None, detail_type: None }
    }

    /// With events of this source.
    #[must_use]
    pub fn source(self, source: impl Into<String>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// With events of this detail type.
    #[must_use]
    pub fn detail_type(self, detail_type: impl Into<String>) -> Self {
        Self { detail_type: Some(detail_type.into()), ..self }
    }
}

impl HttpTarget {
    /// An endpoint by its URL, `http://` or `https://`.
    ///
    /// ```
    /// use tidegate_protocol::{HttpBody, HttpMethod, HttpTarget, Target};
    ///
    /// let target: Target = HttpTarget::new("https://example.com/pages")
    ///     .method(HttpMethod::Put)
    ///     .header("x-page", "{{index1}}")
    ///     .body(HttpBody::Payload)
    ///     .timeout_seconds(3)
    ///     .expected_statuses(["2xx", "409"])
    ///     .into();
    /// assert!(target.http.is_some());
    /// ```
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            release: None,
            method: None,
            headers: None,
            body: None,
            timeout_seconds: None,
            expected_statuses: None,
            retry_statuses: None,
        }
    }

    /// An answer that means that it took the event releases the token.
    #[must_use]
    pub fn released_on_response(self) -> Self {
        Self { release: Some(ReleaseRule::OnResponse), ..self }
    }

    /// Called with this method.
    #[must_use]
    pub fn method(self, method: HttpMethod) -> Self {
        Self { method: Some(method), ..self }
    }

    /// Called with this header as well. The value may have `{{event_id}}` and the other placeholders of payload templates, and
    /// `{{secret:<secret_id>}}`. It is stored and shown as it is written.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let mut headers = self.headers.unwrap_or_default();
        headers.insert(name.into(), value.into());
        Self { headers: Some(headers), ..self }
    }

    /// Called with this body.
    #[must_use]
    pub fn body(self, body: HttpBody) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Given so many seconds to answer, 1 to 10.
    #[must_use]
    pub fn timeout_seconds(self, seconds: u32) -> Self {
        Self { timeout_seconds: Some(seconds), ..self }
    }

    /// With these answers, such as `2xx` and `404`, it took the event.
    #[must_use]
    pub fn expected_statuses<S: Into<String>>(self, statuses: impl IntoIterator<Item = S>) -> Self {
        Self { expected_statuses: Some(statuses.into_iter().map(Into::into).collect()), ..self }
    }

    /// After these answers the event is sent again.
    #[must_use]
    pub fn retry_statuses<S: Into<String>>(self, statuses: impl IntoIterator<Item = S>) -> Self {
        Self { retry_statuses: Some(statuses.into_iter().map(Into::into).collect()), ..self }
    }
}
