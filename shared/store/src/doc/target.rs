//! An address in a stored document: the URL of a queue, or that of an endpoint. How an endpoint is called is beside it, and
//! ARNs are: completions have none.

use tidegate_domain::target::Target;

/// An address as the URL of a queue or that of an endpoint; an ARN is neither.
pub(super) fn split(target: &Target) -> (Option<String>, Option<String>) {
    match target {
        Target::Sqs { queue_url, .. } => (Some(queue_url.clone()), None),
        Target::Http { url, .. } => (None, Some(url.clone())),
        _ => (None, None),
    }
}

/// The address that [`split`] came from; `None` when there is neither URL.
pub(super) fn joined(queue_url: Option<&str>, url: Option<&str>) -> Result<Option<Target>, String> {
    match (queue_url, url) {
        (Some(queue_url), None) => Target::sqs(queue_url).map(Some).map_err(|e| e.to_string()),
        (None, Some(url)) => Target::http(url).map(Some).map_err(|e| e.to_string()),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err("the URLs of a queue and of an endpoint stand for one address".to_owned()),
    }
}
