//! Which tables or queue a request names. Only asked when a fault plan is in force: it costs a second parse.

use serde_json::Value;

use crate::faults::Service;

/// The tables or the queue that the request names, each once, in the order of the request.
pub(super) fn named_in(service: Service, body: &[u8]) -> Vec<String> {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let mut names = Vec::new();
    match service {
        Service::DynamoDb => tables(&request, &mut names),
        Service::Sqs => {
            let url = request["QueueUrl"].as_str().and_then(|url| url.rsplit('/').next());
            names.extend(url.or(request["QueueName"].as_str()).map(str::to_owned));
        }
    }
    names
}

fn tables(request: &Value, names: &mut Vec<String>) {
    let mut add = |name: &str| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    if let Some(name) = request["TableName"].as_str() {
        add(name);
    }
    for name in request["RequestItems"].as_object().into_iter().flat_map(|items| items.keys()) {
        add(name);
    }
    for action in request["TransactItems"].as_array().into_iter().flatten() {
        let bodies = action.as_object().into_iter().flat_map(|action| action.values());
        bodies.filter_map(|body| body["TableName"].as_str()).for_each(&mut add);
    }
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
