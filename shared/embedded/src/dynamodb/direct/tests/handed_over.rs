//! Requests as the calls of the SDK that they are, for tables that take these.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemInputBuilder;
use aws_sdk_dynamodb::operation::batch_write_item::builders::BatchWriteItemInputBuilder;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemInputBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemInputBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, KeysAndAttributes, PutRequest, WriteRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use serde_json::{Map, Value, json};

use crate::dynamodb::DynamoDb;
use crate::dynamodb::direct::Attributes;
use crate::meter::Meter;

/// What a call is answered with as JSON, where it is taken.
pub(super) fn take(tables: &DynamoDb, operation: &str, request: &Value, meter: &Meter) -> Option<Value> {
    match operation {
        "BatchGetItem" => {
            let read = tables.batch_get_item(&batch_read(request)?, meter)?;
            assert_eq!(read.unprocessed_keys().map(HashMap::len), Some(0));
            let rows_of = |(table, rows): (&String, &Vec<Attributes>)| {
                (table.clone(), rows.iter().map(json_of_all).collect::<Value>())
            };
            let responses: Map<_, _> = read.responses().unwrap().iter().map(rows_of).collect();
            Some(json!({"Responses": responses, "UnprocessedKeys": {}}))
        }
        "PutItem" => {
            let put = tables.put_item(&put(request)?, meter).now_or_never().unwrap()?;
            assert_eq!(put.attributes(), None);
            Some(json!({}))
        }
        "BatchWriteItem" => {
            let written = tables.batch_write_item(&batch(request)?, meter).now_or_never().unwrap()?;
            assert_eq!(written.unprocessed_items(), None);
            Some(json!({"UnprocessedItems": {}}))
        }
        "UpdateItem" => {
            let updated = tables.update_item(&update(request)?, meter).now_or_never().unwrap()?;
            let row = updated.attributes.as_ref().map(|row| json!({"Attributes": json_of_all(row)}));
            Some(row.unwrap_or_else(|| json!({})))
        }
        _ => None,
    }
}

/// The members of a request, if it has no others.
fn members<'r>(request: &'r Value, known: &[&str]) -> Option<&'r Map<String, Value>> {
    request.as_object().filter(|members| members.keys().all(|name| known.contains(&name.as_str())))
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn put(request: &Value) -> Option<PutItemInputBuilder> {
    let known =
        ["TableName", "Item", "ConditionExpression", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"];
    let put = members(request, &known)?;
    let call = PutItemInputBuilder::default()
        .set_table_name(text(put.get("TableName")))
        .set_item(Some(attributes(&put["Item"])?))
        .set_condition_expression(text(put.get("ConditionExpression")))
        .set_return_consumed_capacity(text(put.get("ReturnConsumedCapacity")).map(|c| c.as_str().into()));
    let metrics = text(put.get("ReturnItemCollectionMetrics")).map(|metrics| metrics.as_str().into());
    Some(call.set_return_item_collection_metrics(metrics))
}

fn batch_read(request: &Value) -> Option<BatchGetItemInputBuilder> {
    let batch = members(request, &["RequestItems", "ReturnConsumedCapacity"])?;
    let mut call = BatchGetItemInputBuilder::default()
        .set_return_consumed_capacity(text(batch.get("ReturnConsumedCapacity")).map(|c| c.as_str().into()));
    for (table, asked) in batch["RequestItems"].as_object()? {
        let asked = members(asked, &["Keys", "ConsistentRead", "ProjectionExpression"])?;
        let keys = asked["Keys"].as_array()?.iter().map(attributes).collect::<Option<_>>()?;
        let keys = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .set_consistent_read(asked.get("ConsistentRead").and_then(Value::as_bool))
            .set_projection_expression(text(asked.get("ProjectionExpression")));
        call = call.request_items(table, keys.build().ok()?);
    }
    Some(call)
}

fn batch(request: &Value) -> Option<BatchWriteItemInputBuilder> {
    let known = ["RequestItems", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"];
    let batch = members(request, &known)?;
    let mut call = BatchWriteItemInputBuilder::default()
        .set_return_consumed_capacity(text(batch.get("ReturnConsumedCapacity")).map(|c| c.as_str().into()))
        .set_return_item_collection_metrics(
            text(batch.get("ReturnItemCollectionMetrics")).map(|metrics| metrics.as_str().into()),
        );
    for (table, writes) in batch["RequestItems"].as_object()? {
        let writes = writes.as_array()?.iter().map(write).collect::<Option<Vec<_>>>()?;
        call = call.request_items(table, writes);
    }
    Some(call)
}

fn write(write: &Value) -> Option<WriteRequest> {
    let mut both = WriteRequest::builder();
    if let Some(put) = write.get("PutRequest") {
        let put = PutRequest::builder().set_item(Some(attributes(&put["Item"])?));
        both = both.put_request(put.build().ok()?);
    }
    if let Some(delete) = write.get("DeleteRequest") {
        let delete = DeleteRequest::builder().set_key(Some(attributes(&delete["Key"])?));
        both = both.delete_request(delete.build().ok()?);
    }
    Some(both.build())
}

fn update(request: &Value) -> Option<UpdateItemInputBuilder> {
    let known = [
        "TableName",
        "Key",
        "UpdateExpression",
        "ConditionExpression",
        "ExpressionAttributeValues",
        "ExpressionAttributeNames",
        "ReturnValues",
        "ReturnValuesOnConditionCheckFailure",
        "ReturnConsumedCapacity",
        "ReturnItemCollectionMetrics",
    ];
    let update = members(request, &known)?;
    let named = |name: &str| text(update.get(name));
    let names = update.get("ExpressionAttributeNames").and_then(Value::as_object);
    let names = names.map(|names| {
        let name = |(placeholder, name): (&String, &Value)| Some((placeholder.clone(), text(Some(name))?));
        names.iter().map(name).collect::<Option<HashMap<_, _>>>()
    });
    let values = update.get("ExpressionAttributeValues").map(attributes);
    let call = UpdateItemInputBuilder::default()
        .set_table_name(named("TableName"))
        .set_key(Some(attributes(&update["Key"])?))
        .set_update_expression(named("UpdateExpression"))
        .set_condition_expression(named("ConditionExpression"))
        .set_expression_attribute_values(values.map_or(Some(None), |values| values.map(Some))?)
        .set_expression_attribute_names(names.map_or(Some(None), |names| names.map(Some))?)
        .set_return_values(named("ReturnValues").map(|values| values.as_str().into()))
        .set_return_consumed_capacity(named("ReturnConsumedCapacity").map(|c| c.as_str().into()));
    let on_failure = named("ReturnValuesOnConditionCheckFailure").map(|values| values.as_str().into());
    let metrics = named("ReturnItemCollectionMetrics").map(|metrics| metrics.as_str().into());
    let call = call.set_return_values_on_condition_check_failure(on_failure);
    Some(call.set_return_item_collection_metrics(metrics))
}

fn attributes(json: &Value) -> Option<Attributes> {
    let attribute = |(name, value): (&String, &Value)| Some((name.clone(), attribute(value)?));
    json.as_object()?.iter().map(attribute).collect()
}

/// Nothing where the SDK has no such value.
fn attribute(json: &Value) -> Option<AttributeValue> {
    let kinds = json.as_object().filter(|kinds| kinds.len() == 1)?;
    let (kind, value) = kinds.iter().next()?;
    let texts = || {
        let texts = value.as_array()?.iter().map(|one| text(Some(one)));
        texts.collect::<Option<Vec<_>>>()
    };
    Some(match kind.as_str() {
        "S" => AttributeValue::S(text(Some(value))?),
        "N" => AttributeValue::N(text(Some(value))?),
        "BOOL" => AttributeValue::Bool(value.as_bool()?),
        "NULL" => AttributeValue::Null(value.as_bool()?),
        "B" => AttributeValue::B(Blob::new(STANDARD.decode(value.as_str()?).ok()?)),
        "SS" => AttributeValue::Ss(texts()?),
        "NS" => AttributeValue::Ns(texts()?),
        "L" => AttributeValue::L(value.as_array()?.iter().map(attribute).collect::<Option<_>>()?),
        "M" => AttributeValue::M(attributes(value)?),
        _ => return None,
    })
}

fn json_of_all(row: &Attributes) -> Value {
    row.iter().map(|(name, value)| (name.clone(), json_of(value))).collect::<Map<_, _>>().into()
}

/// As much as rows have that are told of without a request.
fn json_of(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        AttributeValue::L(values) => json!({"L": values.iter().map(json_of).collect::<Vec<_>>()}),
        other => panic!("{other:?}"),
    }
}
