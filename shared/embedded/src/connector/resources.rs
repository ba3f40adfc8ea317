//! Which tables or queue a request names. Only asked when a fault plan is in force: it costs a second parse, of the names
//! alone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::faults::Service;

/// What names a table or a queue, of every request.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Request<'a> {
    #[serde(borrow)]
    table_name: Option<Cow<'a, str>>,
    request_items: BTreeMap<Cow<'a, str>, IgnoredAny>,
    /// Each by its kind: `Put`, `Update` and the like.
    #[serde(borrow)]
    transact_items: Vec<BTreeMap<Cow<'a, str>, Request<'a>>>,
    queue_url: Option<Cow<'a, str>>,
    queue_name: Option<Cow<'a, str>>,
}

/// The tables or the queue that the request names, each once, in the order of the request.
pub(super) fn named_in(service: Service, body: &[u8]) -> Vec<String> {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(body) else { return Vec::new() };
    match service {
        Service::DynamoDb => tables(&request),
        Service::Sqs => {
            let url = request.queue_url.as_deref().and_then(|url| url.rsplit('/').next());
            url.or(request.queue_name.as_deref()).map(str::to_owned).into_iter().collect()
        }
    }
}

fn tables(request: &Request<'_>) -> Vec<String> {
    let actions = request.transact_items.iter().flat_map(BTreeMap::values);
    let named = request
        .table_name
        .iter()
        .chain(request.request_items.keys())
        .chain(actions.filter_map(|action| action.table_name.as_ref()));
    let mut names: Vec<String> = Vec::new();
    for name in named {
        if !names.iter().any(|known| known == name) {
            names.push(name.clone().into_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_in_every_request_form() {
        let named = |body: &str| named_in(Service::DynamoDb, body.as_bytes());
        assert_eq!(named(r#"{"TableName":"a","Item":{}}"#), ["a"]);
        assert_eq!(named(r#"{"RequestItems":{"a":[],"b":[]}}"#), ["a", "b"]);
        assert_eq!(
            named(
                r#"{"TransactItems":[{"Put":{"TableName":"a"}},{"Update":{"TableName":"b"}},{"Put":{"TableName":"a"}}]}"#
            ),
            ["a", "b"]
        );
        assert_eq!(named("not json"), Vec::<String>::new());
    }

    #[test]
    fn the_queue_is_the_last_part_of_the_url() {
        let named = |body: &str| named_in(Service::Sqs, body.as_bytes());
        assert_eq!(named(r#"{"QueueUrl":"http://127.0.0.1:1/000000000000/jobs"}"#), ["jobs"]);
        assert_eq!(named(r#"{"QueueName":"jobs"}"#), ["jobs"]);
        assert_eq!(named("{}"), Vec::<String>::new());
    }
}
