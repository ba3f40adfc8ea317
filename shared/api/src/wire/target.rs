//! Addresses as they travel: where events go, and who is told when a run has come to its end.

use tidegate_domain::target::Target;
use tidegate_protocol::{self as protocol, HttpTarget, ReleaseRule, SqsTarget};

use crate::problem::FieldErrors;

/// An address that was checked by its form.
#[derive(Debug, Clone)]
pub(crate) struct CheckedTarget {
    pub(crate) target: Target,
    /// A 2xx answer releases the token.
    pub(crate) release_on_response: bool,
}

/// Checks the address that stands in the field `name`.
pub(crate) fn check(given: &protocol::Target, name: &str, errors: &mut FieldErrors) -> Option<CheckedTarget> {
    match (&given.sqs, &given.http) {
        (Some(SqsTarget { queue_url, release }), None) => {
            if releases_on_response(*release)? {
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
        (None, Some(HttpTarget { url, release })) => {
            let target = errors.keep(&format!("{name}.http.url"), &**url, Target::http(url))?;
            Some(CheckedTarget { target, release_on_response: releases_on_response(*release)? })
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
pub(crate) fn check_untokened(
    given: &protocol::Target,
    name: &str,
    errors: &mut FieldErrors,
) -> Option<Target> {
    let checked = check(given, name, errors)?;
    if checked.release_on_response {
        let message = format!(
            "{name}.http.release says when a token is released, and nothing holds one here; leave it out"
        );
        errors.add(format!("{name}.http.release"), "on_response", message);
        return None;
    }
    Some(checked.target)
}

fn releases_on_response(word: Option<ReleaseRule>) -> Option<bool> {
    match word {
        Some(ReleaseRule::OnResponse) => Some(true),
        Some(ReleaseRule::ByConsumer) | None => Some(false),
        Some(ReleaseRule::Other) => None,
    }
}

/// An address as it is answered.
pub(crate) fn view(target: &Target, release_on_response: bool) -> protocol::Target {
    match target {
        Target::Sqs { queue_url } => protocol::Target::sqs(queue_url),
        Target::Http { url } if release_on_response => protocol::Target::http_released_on_response(url),
        Target::Http { url } => protocol::Target::http(url),
    }
}

/// The field that carries the URL of an address that stands in the field `name`.
pub(crate) fn url_field_of(name: &str, target: &Target) -> String {
    let transport = target.transport();
    format!("{name}.{}.{}", transport.name, transport.url_field)
}
