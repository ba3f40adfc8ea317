//! Calls to services of AWS that no SDK is here for: signed, sent, and what their answers mean.
//!
//! An SDK for each of the four would add minutes to every build and megabytes to the handler. What is needed of them is one
//! request each. Deliberately absent: retries. An event that is not taken waits as its job says.

use std::collections::BTreeMap;
use std::iter;
use std::sync::OnceLock;
use std::time::{Duration as StdDuration, SystemTime};

use aws_sdk_sqs::config::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use chrono::{DateTime, Duration, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect;
use tidegate_domain::arn::Arn;
use tidegate_domain::limits::{AWS_BATCH_BYTES, AWS_CALL_SECONDS};
use tracing::debug;

use super::http::{asked_wait, body_upto, unanswered};
use super::{EventToSend, Sent, is_throttling};
use crate::outgoing::client_builder;
use crate::queues::batch::Batch;
use crate::services::Services;

/// Calls under way at once.
const CALLS_AT_ONCE: usize = 20;
/// How long one may take.
const TIMEOUT: StdDuration = StdDuration::from_secs(AWS_CALL_SECONDS as u64);
/// The most that is read of an answer, in bytes: those of batches are the longest.
const ANSWER_BYTES: usize = 64 * 1024;
/// Why an event counts as not sent of which an answer says nothing.
pub(super) const UNSAID: &str = "the answer does not say what became of the event";
/// Codes that say that the service will never take what it was sent.
const FINAL: [&str; 15] = [
    "ValidationException",
    "ValidationError",
    "InvalidParameter",
    "InvalidParameterValue",
    "InvalidParameterValueException",
    "ParameterValueInvalid",
    "InvalidRequestContentException",
    "RequestTooLargeException",
    "UnsupportedMediaTypeException",
    "InvalidExecutionInput",
    "InvalidName",
    "InvalidArn",
    "InvalidArgument",
    "MalformedDetail",
    "BatchRequestTooLong",
];

/// A call to the service of an ARN.
pub(super) struct AwsCall<'a> {
    pub(super) to: &'a Arn,
    /// The permission that it needs, as IAM writes it.
    pub(super) action: &'static str,
    /// From its slash on, percent-encoded.
    pub(super) path: String,
    pub(super) content_type: &'static str,
    /// Headers beside that.
    pub(super) headers: &'a [(&'static str, &'static str)],
    pub(super) body: String,
}

/// An answer that took nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What the service calls it; empty when no answer came.
    pub(super) code: String,
    /// What becomes of each event of the call.
    pub(super) sent: Sent,
}

/// The way to the services.
pub(crate) struct AwsCaller {
    /// Made when the first call needs it, as that of endpoints.
    client: OnceLock<Result<reqwest::Client, String>>,
    services: Services,
}

/// What becomes of an event of which a service says this.
pub(super) fn not_taken(code: &str, message: &str, retry_after: Option<Duration>) -> Sent {
    let reason = match message {
        "" => format!("the answer is {code}"),
        message => format!("{code}: {message}"),
    };
    match FINAL.contains(&code) {
        true => Sent::Refused { reason },
        false => Sent::Failed { reason, retry_after, overloaded: is_throttling(code) },
    }
}

impl AwsCaller {
    pub(crate) fn new(services: Services) -> Self {
        Self { client: OnceLock::new(), services }
    }

    /// Makes a call at `now`. Answers with the text of an answer that took it, or part of it.
    pub(super) async fn call(&self, call: AwsCall<'_>, now: DateTime<Utc>) -> Result<String, Refusal> {
        let fail = |reason: String| Refusal { code: String::new(), sent: Sent::failed(reason) };
        let client = self.client.get_or_init(build).as_ref().map_err(|e| fail(e.clone()))?;
        // The log of the functions says which permissions they need: `tidegate_aws` does it for the calls of the SDK.
        let resource = call.to.as_str().rsplit([':', '/']).next().unwrap_or_default();
        debug!(target: "tidegate_aws::calls", action = call.action, resource, "call");
        let request = self.signed(call, now).await.map_err(fail)?;
        let request = reqwest::Request::try_from(request).map_err(|e| fail(e.to_string()))?;
        let answered = client.execute(request).await;
        let answer = answered.map_err(|e| Refusal { code: String::new(), sent: unanswered(&e, TIMEOUT) })?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let (body, ended) = body_upto(answer, ANSWER_BYTES).await;
        ended.map_err(|e| fail(format!("no answer that can be read: {e}")))?;
        if status.is_success() {
            return Ok(body);
        }
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (code, message) = error(header("x-amzn-errortype"), &body);
        let code = if code.is_empty() { status.to_string() } else { code };
        let retry_after = header(RETRY_AFTER.as_str()).and_then(|text| asked_wait(text, now.timestamp()));
        let sent = match status.as_u16() {
            // Too large, which no wait changes.
            413 => Sent::Refused { reason: format!("{code}: {message}") },
            _ => not_taken(&code, &message, retry_after),
        };
        Err(Refusal { code, sent })
    }

    async fn signed(&self, call: AwsCall<'_>, now: DateTime<Utc>) -> Result<http::Request<String>, String> {
        let endpoint = self.services.endpoint(call.to);
        let endpoint = endpoint.ok_or_else(|| self.services.why_out_of_reach(call.to).unwrap_or_default())?;
        let provider = self.services.credentials().ok_or("there are no credentials to sign with")?;
        let credentials = provider.provide_credentials().await;
        let identity = credentials.map_err(|e| format!("no credentials to sign with: {e}"))?.into();
        let uri = format!("{endpoint}{}", call.path);
        let headers =
            iter::once((CONTENT_TYPE.as_str(), call.content_type)).chain(call.headers.iter().copied());
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(call.to.region())
            .name(call.to.service().signed_for())
            .time(SystemTime::from(now))
            .settings(SigningSettings::default())
            .build();
        let params = params.map_err(|e| e.to_string())?.into();
        let body = SignableBody::Bytes(call.body.as_bytes());
        let signable = SignableRequest::new("POST", uri.as_str(), headers.clone(), body);
        let (signature, _) =
            sign(signable.map_err(|e| e.to_string())?, &params).map_err(|e| e.to_string())?.into_parts();
        let request =
            headers.fold(http::Request::post(&uri), |request, (name, value)| request.header(name, value));
        let mut request = request.body(call.body).map_err(|e| e.to_string())?;
        signature.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}

/// A client that goes to addresses of AWS, or to those that whoever runs the deployment names: they may be private, as those of
/// VPC endpoints are.
fn build() -> Result<reqwest::Client, String> {
    let client = client_builder().redirect(redirect::Policy::none()).timeout(TIMEOUT).build();
    client.map_err(|e| e.to_string())
}

/// The code and the message of an error, as the three protocols write them: in a header, in JSON, in XML.
fn error(header: Option<&str>, body: &str) -> (String, String) {
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let field = |names: &[&str]| names.iter().find_map(|name| json.get(name)?.as_str()).map(str::to_owned);
    let code = header.map(str::to_owned).or_else(|| field(&["__type", "code", "Code"]));
    let code = code.or_else(|| element(body, "Code")).unwrap_or_default();
    // `com.amazonaws.states#InvalidName` and `InvalidName:http://internal.amazon.com/` are the same.
    let code = code.split(':').next().unwrap_or_default();
    let code = code.rsplit('#').next().unwrap_or_default().to_owned();
    let message = field(&["message", "Message"]).or_else(|| element(body, "Message"));
    (code, message.unwrap_or_default())
}

/// The inside of the first element of a name that has no attributes, as text. Enough for the answers of SNS, whose elements have
/// none but the outermost.
pub(super) fn element(xml: &str, name: &str) -> Option<String> {
    inside(xml, name).map(|text| {
        let text =
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
        text.replace("&amp;", "&")
    })
}

/// The same, as XML.
pub(super) fn inside<'x>(xml: &'x str, name: &str) -> Option<&'x str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
}

/// Text as URLs and forms have it.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Calls, each made when it is asked for, and what becomes of their events.
pub(super) type Calls<'a> = Box<dyn Iterator<Item = BoxFuture<'a, Vec<(usize, Sent)>>> + Send + 'a>;

/// The chosen events by what they go to.
pub(super) fn by_arn<'e>(
    deliveries: &'e [EventToSend],
    chosen: &[usize],
) -> BTreeMap<&'e Arn, Vec<(usize, &'e EventToSend)>> {
    let mut by_arn = BTreeMap::<&Arn, Vec<_>>::new();
    for (index, delivery) in chosen.iter().filter_map(|index| Some((*index, deliveries.get(*index)?))) {
        if let Some(arn) = delivery.terms.terms.target.arn() {
            by_arn.entry(arn).or_default().push((index, delivery));
        }
    }
    by_arn
}

/// Events by the calls that they go with, as many as may go together. `entry` makes what is sent of one, with its size in bytes.
pub(super) fn cut<'e, E: 'e>(
    events: Vec<(usize, &'e EventToSend)>,
    entry: impl Fn(&EventToSend) -> (E, usize) + 'e,
) -> impl Iterator<Item = Vec<(usize, E)>> + 'e {
    let mut events = events.into_iter();
    let mut open = Some(Batch::of_at_most(AWS_BATCH_BYTES));
    iter::from_fn(move || {
        for (index, delivery) in events.by_ref() {
            let (entry, bytes) = entry(delivery);
            if let Some(full) = open.as_mut().and_then(|batch| batch.add((index, entry), bytes)) {
                return Some(full);
            }
        }
        open.take().and_then(Batch::rest)
    })
}

/// Makes calls, so many at once, and gathers what becomes of their events.
pub(super) async fn all(calls: Calls<'_>) -> Vec<(usize, Sent)> {
    let answers: Vec<Vec<_>> = stream::iter(calls).buffer_unordered(CALLS_AT_ONCE).collect().await;
    answers.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_in_all_three_forms() {
        let pair = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        for (header, body, code, message) in [
            (None, r#"{"__type":"com.amazonaws.states#InvalidName","message":"x"}"#, "InvalidName", "x"),
            (
                Some("ResourceNotFoundException:http://x/"),
                r#"{"Message":"gone"}"#,
                "ResourceNotFoundException",
                "gone",
            ),
            (
                None,
                "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>NotFound</Code><Message>a &lt;b&gt; &amp;lt; c</Message></Error></ErrorResponse>",
                "NotFound",
                "a <b> &lt; c",
            ),
            (None, "<html>", "", ""),
            (None, "", "", ""),
        ] {
            assert_eq!(error(header, body), pair(code, message), "{body}");
        }
    }

    #[test]
    fn what_may_be_mended_is_tried_again_and_what_may_not_is_refused() {
        let is_final = |code: &str| matches!(not_taken(code, "x", None), Sent::Refused { .. });
        for code in ["ValidationException", "InvalidName", "RequestTooLargeException", "MalformedDetail"] {
            assert!(is_final(code), "{code}");
        }
        for code in [
            "ThrottlingException",
            "TooManyRequestsException",
            "AccessDeniedException",
            "AuthorizationError",
            "NotFound",
            "ResourceNotFoundException",
            "StateMachineDoesNotExist",
            "InternalFailure",
            "503 Service Unavailable",
            "ExpiredTokenException",
        ] {
            assert!(!is_final(code), "{code}");
        }
        assert_eq!(
            not_taken("AccessDeniedException", "no", None),
            Sent::failed("AccessDeniedException: no".to_owned())
        );
        let is_sign = |code: &str| not_taken(code, "x", None).sign().is_some();
        assert!(
            is_sign("ThrottlingException") && is_sign("TooManyRequestsException") && !is_sign("NotFound")
        );
    }

    #[test]
    fn text_is_encoded_for_urls_and_forms() {
        assert_eq!(encoded("a-B_9.~ :/é\n"), "a-B_9.~%20%3A%2F%C3%A9%0A");
    }
}
