//! Which items a DynamoDB request names, and whether it reads or writes them.

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::{Map, Value};
use tidegate_testkit::{ItemKey, items_in};

/// What a request does to the items that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Transaction,
    /// About tables, not items.
    Other,
}

/// A request, as far as the model needs to know it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) operation: String,
    pub(crate) kind: Kind,
    /// In the order in which the request names them.
    pub(crate) keys: Vec<ItemKey>,
    body: Value,
}

impl Wanted {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let kind = match &*operation {
            "GetItem" | "Query" | "Scan" | "BatchGetItem" => Kind::Read,
            "PutItem" | "UpdateItem" | "DeleteItem" | "BatchWriteItem" => Kind::Write,
            "TransactWriteItems" | "TransactGetItems" => Kind::Transaction,
            _ => Kind::Other,
        };
        let body = request.body().bytes().unwrap_or_default();
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        let keys = items_in(&body);
        Self { operation, kind, keys, body }
    }

    /// Whether it reads what was written last.
    pub(crate) fn is_consistent(&self) -> bool {
        let tables = self.body["RequestItems"].as_object().into_iter().flatten().map(|(_, table)| table);
        [&self.body].into_iter().chain(tables).any(|of| of["ConsistentRead"] == true)
    }

    /// Whether it may leave out some of its items, which it then names in its answer.
    pub(crate) fn may_leave_out(&self) -> bool {
        matches!(&*self.operation, "BatchGetItem" | "BatchWriteItem")
    }

    /// Cuts the items out of a batch that `is_left` names, by their places; the answer's member that names them.
    pub(crate) fn leave_out(&mut self, is_left: impl Fn(usize) -> bool) -> (&'static str, Value) {
        let mut place = 0;
        let mut left_out = Map::new();
        let tables = self.body["RequestItems"].as_object_mut().into_iter().flatten();
        for (table, requests) in tables {
            let whole = requests.clone();
            let Some(items) = items_of(requests) else { continue };
            let (mut kept, mut out) = (Vec::new(), Vec::new());
            for item in items.drain(..) {
                if is_left(place) {
                    out.push(item)
                } else {
                    kept.push(item)
                }
                place += 1;
            }
            *items = kept;
            if !out.is_empty() {
                let mut left = whole;
                if let Some(items) = items_of(&mut left) {
                    *items = out;
                }
                left_out.insert(table.clone(), left);
            }
        }
        if let Some(tables) = self.body["RequestItems"].as_object_mut() {
            tables.retain(|_, requests| items_of(requests).is_none_or(|items| !items.is_empty()));
        }
        self.keys = items_in(&self.body);
        let member = if self.operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
        (member, Value::Object(left_out))
    }

    /// The request with its body as it is now.
    pub(crate) fn rewritten(&self, mut request: HttpRequest) -> HttpRequest {
        *request.body_mut() = SdkBody::from(self.body.to_string());
        request
    }
}

/// The items that a batch has of one table: the writes, or the keys to be read.
fn items_of(requests: &mut Value) -> Option<&mut Vec<Value>> {
    match requests {
        Value::Array(writes) => Some(writes),
        reads => reads.get_mut("Keys")?.as_array_mut(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(operation: &str, body: &str) -> Wanted {
        let mut request = HttpRequest::new(body.into());
        request.headers_mut().insert("x-amz-target", format!("DynamoDB_20120810.{operation}"));
        Wanted::of(&request)
    }

    fn named(wanted: &Wanted) -> Vec<String> {
        wanted.keys.iter().map(|key| format!("{}/{}/{}", key.table, key.partition, key.sort)).collect()
    }

    const ITEM: &str = r#"{"pk":{"S":"a"},"sk":{"S":"b"}}"#;
    const OTHER: &str = r#"{"pk":{"S":"c"},"sk":{"S":"d"}}"#;

    #[test]
    fn every_kind_of_request_names_its_items() {
        for (operation, body, kind, items) in [
            ("GetItem", format!(r#"{{"TableName":"t","Key":{ITEM}}}"#), Kind::Read, &["t/a/b"][..]),
            ("PutItem", format!(r#"{{"TableName":"t","Item":{ITEM}}}"#), Kind::Write, &["t/a/b"]),
            (
                "Query",
                r#"{"TableName":"t","ExpressionAttributeValues":{":pk":{"S":"a"}}}"#.to_owned(),
                Kind::Read,
                &["t/a/"],
            ),
            (
                "TransactWriteItems",
                format!(
                    r#"{{"TransactItems":[{{"Put":{{"TableName":"t","Item":{ITEM}}}}},{{"Delete":{{"TableName":"u","Key":{OTHER}}}}}]}}"#
                ),
                Kind::Transaction,
                &["t/a/b", "u/c/d"],
            ),
            ("CreateTable", r#"{"TableName":"t"}"#.to_owned(), Kind::Other, &[]),
        ] {
            let wanted = wanted(operation, &body);
            assert_eq!(
                (named(&wanted), wanted.kind),
                (items.iter().map(|s| (*s).to_owned()).collect(), kind)
            );
        }
    }

    #[test]
    fn what_a_batch_leaves_out_is_not_in_it_and_is_named() {
        let put = |item: &str| format!(r#"{{"PutRequest":{{"Item":{item}}}}}"#);
        let writes = format!(r#"{{"RequestItems":{{"t":[{},{}]}}}}"#, put(ITEM), put(OTHER));
        let reads =
            format!(r#"{{"RequestItems":{{"t":{{"Keys":[{ITEM},{OTHER}],"ConsistentRead":true}}}}}}"#);
        for (operation, body, member) in
            [("BatchWriteItem", writes, "UnprocessedItems"), ("BatchGetItem", reads, "UnprocessedKeys")]
        {
            let mut batch = wanted(operation, &body);
            assert_eq!(named(&batch), ["t/a/b", "t/c/d"]);
            let (named_in, left) = batch.leave_out(|place| place == 1);
            assert_eq!((named_in, named(&batch)), (member, vec!["t/a/b".to_owned()]));
            let left = wanted(operation, &serde_json::json!({"RequestItems": left}).to_string());
            assert_eq!(named(&left), ["t/c/d"]);
        }
    }
}
