//! Which items a DynamoDB request names.

use serde_json::Value;

/// An item, or where a request names none, a partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    /// The name of its table.
    pub table: String,
    /// Its partition key.
    pub partition: String,
    /// Its sort key; empty where a range of a partition is read.
    pub sort: String,
}

/// The items that the body of a request names, each as often as it names it, in its order.
pub fn items_in(body: &Value) -> Vec<ItemKey> {
    let actions = body["TransactItems"].as_array().into_iter().flatten();
    let actions = actions.filter_map(|action| action.as_object()?.values().next());
    let named = actions.chain([body]).filter_map(|request| {
        let (partition, sort) = item_of(request)?;
        Some(ItemKey { table: request["TableName"].as_str()?.to_owned(), partition, sort })
    });
    let tables = body["RequestItems"].as_object().into_iter().flatten();
    let batched = tables.flat_map(|(table, requests)| {
        let writes = requests.as_array().into_iter().flatten();
        let writes = writes.filter_map(|request| item_of(request.as_object()?.values().next()?));
        let reads = requests["Keys"].as_array().into_iter().flatten().filter_map(attributes);
        let item = |(partition, sort)| ItemKey { table: table.clone(), partition, sort };
        writes.chain(reads).map(item).collect::<Vec<_>>()
    });
    named.chain(batched).collect()
}

/// Partition and sort key of a request for one item, or for a range of one partition.
fn item_of(request: &Value) -> Option<(String, String)> {
    let queried = || Some((text(&request["ExpressionAttributeValues"][":pk"])?, String::new()));
    attributes(&request["Item"]).or_else(|| attributes(&request["Key"])).or_else(queried)
}

fn attributes(key: &Value) -> Option<(String, String)> {
    Some((text(&key["pk"])?, text(&key["sk"]).unwrap_or_default()))
}

fn text(value: &Value) -> Option<String> {
    value["S"].as_str().map(str::to_owned)
}
