//! Addresses as they travel: where events go, and who is told when a run has come to its end.

use serde::{Deserialize, Serialize};
use tidegate_domain::target::Target;
use utoipa::ToSchema;

use crate::problem::FieldErrors;

/// Where events go: `sqs` or `http`.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Target, example = json!({"sqs": {"queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"}}))]
pub(crate) struct TargetBody {
    /// A standard or FIFO queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    sqs: Option<SqsBody>,
    /// An HTTP endpoint that takes a POST for each event.
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<HttpBody>,
}

/// A queue as a target.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SqsTarget)]
pub(crate) struct SqsBody {
    /// The queue's URL. The queue must exist.
    #[schema(example = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs")]
    queue_url: String,
    /// Only `by_consumer`, which holds anyway: a queue gives no answer that could end a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<ReleaseWord>,
}

/// An endpoint as a target. An answer of 2xx means that it took the event. After 408, 425, 429 or 5xx, and when the
/// connection fails or no answer comes in time, the event is sent again, up to `max_attempts` times in all, and no earlier
/// than a `Retry-After` of seconds says. Any other answer is final, redirects included: the event is `dead`.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HttpTarget)]
pub(crate) struct HttpBody {
    /// Its URL.
    #[schema(example = "https://example.com/hook")]
    url: String,
    /// Who ends the lease of a throttled event; `by_consumer` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<ReleaseWord>,
}

/// Who ends the lease of a throttled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReleaseRule)]
pub(crate) enum ReleaseWord {
    /// A 2xx answer: the work was done in the call. Other answers mean what they mean without it: 408, 425, 429, 5xx and
    /// failed connections are tried again, any other answer is final and the event is dead.
    OnResponse,
    /// The consumer, by `POST /v1/tokens/release` or by a message to the release queue.
    ByConsumer,
}

/// An address that was checked by its form.
#[derive(Debug, Clone)]
pub(crate) struct CheckedTarget {
    pub(crate) target: Target,
    /// A 2xx answer releases the token.
    pub(crate) release_on_response: bool,
}

impl TargetBody {
    /// Checks the address that stands in the field `name`.
    pub(crate) fn check(&self, name: &str, errors: &mut FieldErrors) -> Option<CheckedTarget> {
        match (&self.sqs, &self.http) {
            (Some(SqsBody { queue_url, release }), None) => {
                if *release == Some(ReleaseWord::OnResponse) {
                    let message = format!(
                        "{name}.sqs.release is 'on_response', but a queue gives no answer that says the work is done; \
                            leave it out and release the token, or use an 'http' target"
                    );
                    errors.add(format!("{name}.sqs.release"), "on_response", message);
                }
                let target =
                    errors.keep(&format!("{name}.sqs.queue_url"), &**queue_url, Target::sqs(queue_url))?;
                Some(CheckedTarget { target, release_on_response: false })
            }
            (None, Some(HttpBody { url, release })) => {
                let target = errors.keep(&format!("{name}.http.url"), &**url, Target::http(url))?;
                Some(CheckedTarget { target, release_on_response: *release == Some(ReleaseWord::OnResponse) })
            }
            (Some(_), Some(_)) => {
                let message = format!("{name} has both 'sqs' and 'http'; give one, or make two jobs");
                errors.add(name, (), message);
                None
            }
            (None, None) => {
                let message = format!(
                    "{name} has neither 'sqs' nor 'http'; give \
                        {{\"sqs\": {{\"queue_url\": \"...\"}}}} or {{\"http\": {{\"url\": \"...\"}}}}"
                );
                errors.add(name, (), message);
                None
            }
        }
    }

    /// The same for an address that no token goes with.
    pub(crate) fn check_untokened(&self, name: &str, errors: &mut FieldErrors) -> Option<Target> {
        let checked = self.check(name, errors)?;
        if checked.release_on_response {
            let message = format!(
                "{name}.http.release says when a token is released, and nothing holds one here; leave it out"
            );
            errors.add(format!("{name}.http.release"), "on_response", message);
            return None;
        }
        Some(checked.target)
    }

    /// An address as it is answered.
    pub(crate) fn of(target: &Target, release_on_response: bool) -> Self {
        match target {
            Target::Sqs { queue_url } => {
                Self { sqs: Some(SqsBody { queue_url: queue_url.clone(), release: None }), http: None }
            }
            Target::Http { url } => {
                let release = release_on_response.then_some(ReleaseWord::OnResponse);
                Self { sqs: None, http: Some(HttpBody { url: url.clone(), release }) }
            }
        }
    }
}

/// The field that carries the URL of an address that stands in the field `name`.
pub(crate) fn url_field_of(name: &str, target: &Target) -> String {
    let transport = target.transport();
    format!("{name}.{}.{}", transport.name, transport.url_field)
}
