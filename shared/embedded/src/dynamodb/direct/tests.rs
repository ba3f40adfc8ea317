//! The same requests to the library alone and to tables in a file: both answer and count alike.

use std::sync::Arc;

use chrono::Utc;
use futures::FutureExt as _;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use tidegate_domain::clock::ManualClock;

use super::super::DynamoDb;
use super::*;
use crate::folder::{self, Durability};
use crate::meter::{Meter, Usage};

/// Tables with a clock of their own and a meter.
struct Served {
    tables: DynamoDb,
    meter: Meter,
}

impl Served {
    fn of(tables: DynamoDb) -> Self {
        let served = Self { tables, meter: Meter::default() };
        for table in tables_of_the_test() {
            let (status, answer) = served.call("CreateTable", &table);
            assert_eq!(status, 200, "{answer}");
        }
        served
    }

    fn in_memory() -> Self {
        Self::of(DynamoDb::in_memory(Arc::new(ManualClock::new(Utc::now()))).unwrap())
    }

    fn in_a_file(folder: &tempfile::TempDir) -> Self {
        Self::of(DynamoDb::open(&folder.path().join("tables.db"), Durability::Process).unwrap())
    }

    /// The status and the body of an answer, lists of capacity in the order of their tables.
    fn call(&self, operation: &str, request: &Value) -> (u16, Value) {
        let body = request.to_string();
        let call = self.tables.call(operation, body.as_bytes(), None, &self.meter);
        let reply = call.now_or_never().unwrap();
        let mut answer: Value = serde_json::from_slice(&reply.body).unwrap();
        if let Some(Value::Array(tables)) = answer.get_mut("ConsumedCapacity") {
            tables.sort_by_key(|table| table["TableName"].to_string());
        }
        // Of two tables that are wrong, either is told of.
        let parts = request["RequestItems"].as_object().map_or(1, Map::len);
        if reply.status != 200 && parts > 1 {
            answer = Value::Null;
        }
        (reply.status, answer)
    }

    fn usage(&self) -> Usage {
        self.meter.snapshot()
    }
}

fn tables_of_the_test() -> Vec<Value> {
    let table = |name: &str, kind: &str, sort: bool| {
        let mut table = json!({
            "TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": kind}],
        });
        if sort {
            let attributes =
                [("KeySchema", "KeyType", "RANGE"), ("AttributeDefinitions", "AttributeType", "S")];
            for (list, what, value) in attributes {
                table[list].as_array_mut().unwrap().push(json!({"AttributeName": "sk", what: value}));
            }
        }
        table
    };
    let mut indexed = table("indexed", "S", true);
    indexed["GlobalSecondaryIndexes"] = json!([{
        "IndexName": "back", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
    }]);
    vec![table("plain", "S", true), table("single", "S", false), table("numbered", "N", false), indexed]
}

fn attribute() -> impl Strategy<Value = Value> {
    let plain = select(vec![
        json!({"S": "text"}),
        json!({"S": ""}),
        json!({"S": "é\"\\\n"}),
        json!({"N": "1.50"}),
        json!({"N": "-0"}),
        json!({"N": "12345678901234567890"}),
        json!({"N": "no number"}),
        json!({"N": 7}),
        json!({"BOOL": true}),
        json!({"NULL": true}),
        json!({"B": "AAEC"}),
        json!({"SS": ["b", "a"]}),
        json!({"SS": []}),
        json!({"NS": ["10", "9", "1.0"]}),
        json!({"S": "x".repeat(1500)}),
        json!({"X": "y"}),
        json!({}),
        json!({"L": [{"S": "a"}, {"M": {"": {"S": "unnamed"}}}]}),
        json!({"M": {"n": {"N": "007"}}}),
    ]);
    prop_oneof![9 => plain, 1 => Just(json!({"S": "y".repeat(410_000)}))]
}

fn key() -> impl Strategy<Value = Value> {
    // Mostly the few keys at which rows lie.
    let text = prop_oneof![
        20 => select(vec!["a", "b", "c"]).prop_map(|text| json!({"S": text})),
        1 => select(vec![json!({"S": ""}), json!({"N": "1"}), json!({"S": "k".repeat(1025)}), json!({"S": "k".repeat(2049)})]),
    ];
    (text.clone(), text, 0..30_u8).prop_map(|(pk, sk, odd)| match odd {
        0 => json!({"pk": pk}),
        1 => json!({"pk": pk, "sk": sk, "more": {"S": "m"}}),
        2 => json!({"sk": sk}),
        _ => json!({"pk": pk, "sk": sk}),
    })
}

fn item() -> impl Strategy<Value = Value> {
    let name = prop_oneof![20 => select(vec!["a", "b", "é"]), 1 => Just("")];
    (key(), btree_map(name, attribute(), 0..3)).prop_map(|(mut item, attributes)| {
        for (name, value) in attributes {
            item[name] = value;
        }
        item
    })
}

fn table() -> impl Strategy<Value = &'static str> {
    prop_oneof![20 => Just("plain"), 2 => Just("single"), 1 => select(vec!["numbered", "indexed", "absent", "a"])]
}

/// A request with the members of another.
fn merged(
    request: impl Strategy<Value = Value>,
    others: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Value> {
    (request, others).prop_map(|(mut request, others)| {
        request.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        request
    })
}

/// With one of the ways in which a request asks for more.
fn with_more(request: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let more = select(vec![
        json!({}),
        json!({"ReturnConsumedCapacity": "NONE"}),
        json!({"ReturnConsumedCapacity": "TOTAL"}),
        json!({"ReturnConsumedCapacity": "INDEXES"}),
        json!({"ReturnConsumedCapacity": "SOME"}),
        json!({"ReturnItemCollectionMetrics": "NONE"}),
        json!({"ReturnItemCollectionMetrics": "SIZE"}),
    ]);
    merged(request, more)
}

/// With one of the ways in which a read asks for less.
fn with_less(request: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let less = prop_oneof![
        10 => Just(json!({})),
        5 => any::<bool>().prop_map(|consistent| json!({"ConsistentRead": consistent})),
        1 => select(vec![
            json!({"ProjectionExpression": "pk, a"}), json!({"AttributesToGet": ["a"]}),
            json!({"ProjectionExpression": "#a", "ExpressionAttributeNames": {"#a": "a"}}),
        ]),
    ];
    merged(request, less)
}

/// One part for each of up to two tables.
fn parts(part: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    btree_map(table(), part, 0..3).prop_map(|parts| json!({ "RequestItems": parts }))
}

fn request() -> impl Strategy<Value = (&'static str, Value)> {
    let get =
        with_less(with_more((table(), key()).prop_map(|(name, key)| json!({"TableName": name, "Key": key}))));
    let gets = parts(with_less(vec(key(), 0..5).prop_map(|keys| json!({ "Keys": keys }))));
    let put = item().prop_map(|item| json!({"PutRequest": {"Item": item}}));
    let delete = key().prop_map(|key| json!({"DeleteRequest": {"Key": key}}));
    let both = (item(), key())
        .prop_map(|(item, key)| json!({"PutRequest": {"Item": item}, "DeleteRequest": {"Key": key}}));
    let row = prop_oneof![30 => put, 15 => delete, 1 => both, 1 => Just(json!({}))];
    let writes = parts(vec(row, 0..4).prop_map(Value::Array));
    prop_oneof![
        2 => get.prop_map(|request| ("GetItem", request)),
        2 => with_more(gets).prop_map(|request| ("BatchGetItem", request)),
        3 => with_more(writes).prop_map(|request| ("BatchWriteItem", request)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_file_answers_and_counts_as_the_library_does(requests in vec(request(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let (library, file) = (Served::in_memory(), Served::in_a_file(&folder));
        for (operation, request) in requests {
            let (expected, answered) = (library.call(operation, &request), file.call(operation, &request));
            prop_assert_eq!(answered, expected, "{} {}", operation, request);
            prop_assert_eq!(file.usage(), library.usage(), "{} {}", operation, request);
        }
        for table in ["plain", "single", "numbered", "indexed"] {
            let scan = json!({ "TableName": table });
            prop_assert_eq!(file.call("Scan", &scan), library.call("Scan", &scan));
        }
    }
}

/// A file with the tables of the test, and a connection that writes to it.
fn writing() -> (tempfile::TempDir, String, Storage) {
    let folder = tempfile::tempdir().unwrap();
    let _tables = Served::in_a_file(&folder);
    let address = folder::address(&folder.path().join("tables.db"));
    let storage = Storage::new(&address).unwrap();
    (folder, address, storage)
}

#[test]
fn what_is_plain_does_not_reach_the_library() {
    let (_folder, address, storage) = writing();
    let put =
        json!({"RequestItems": {"plain": [{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}]}});
    assert!(batch_write_item(&storage, serde_json::from_value(put).unwrap()).is_ok());
    let reader = Reader::open(&address).unwrap();
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "b"}});
    let get = json!({"TableName": "plain", "Key": key});
    let read = reader.get_item(&serde_json::from_value(get).unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&read.body).unwrap()["Item"], key);
    let gets = json!({"RequestItems": {"plain": {"Keys": [key]}}});
    assert!(reader.batch_get_item(&serde_json::from_value(gets).unwrap()).is_some());
}

#[test]
fn a_table_that_is_not_plain_is_left_to_the_library() {
    let (_folder, _, storage) = writing();
    for (table, is_plain) in [("plain", true), ("single", true), ("numbered", false), ("indexed", false)] {
        assert_eq!(Plain::of(&storage, table).is_some(), is_plain, "{table}");
    }
    assert!(Plain::of(&storage, "absent").is_none());
}
