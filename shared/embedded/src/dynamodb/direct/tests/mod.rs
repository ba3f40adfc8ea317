//! The same requests to the library alone and to tables in a file, and to such tables as calls that are handed over: all answer and
//! count alike.

mod handed_over;

use std::sync::Arc;

use chrono::Utc;
use dynoxide::actions::update_item;
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
struct Database {
    tables: DynamoDb,
    meter: Meter,
}

impl Database {
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

    /// The same for a call that is handed over, and made as a request where it is not taken.
    fn hand_over(&self, operation: &str, request: &Value) -> (u16, Value) {
        match handed_over::take(&self.tables, operation, request, &self.meter) {
            Some(answer) => (200, answer),
            None => self.call(operation, request),
        }
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
        json!({"N": "123456789012345678901"}),
        json!({"N": "-40"}),
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
        json!({"L": [{"S": "a"}, {"N": "12"}, {"N": "-3"}]}),
        json!({"L": [{"N": "1e3"}]}),
        json!({"L": []}),
        json!({"S": "s", "N": "1"}),
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

/// Names of attributes in expressions: reserved words are among them, and names of keys.
fn name_in_expression() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        30 => select(vec!["n", "m", "l", "s", "f", "#n", "gone"]),
        2 => select(vec!["a", "b"]),
        1 => select(vec!["name", "status", "pk", "#unknown", "n.m", "l[0]", "_n", "é"]),
    ]
}

/// A name, or the placeholder of a value.
fn operand() -> impl Strategy<Value = &'static str> {
    prop_oneof![2 => name_in_expression(), 3 => select(vec![":one", ":two", ":text", ":list", ":flag", ":drawn"])]
}

fn condition() -> impl Strategy<Value = String> {
    let sound = select(vec![
        "n <= m",
        "n >= m",
        "m < n",
        "n = :one",
        "n <> :one",
        "n > :one",
        ":two >= m",
        "n <= :five",
        "n < :five",
        "n >= :five",
        "s = :text",
        "s <> :text",
        "s < :text",
        "f = :flag",
        "f <> :flag",
        "gone = :one",
        "gone <> :one",
        "gone < :two",
        "n <> :text",
        "n = :drawn",
        "m < :drawn",
        "attribute_exists(n)",
        "attribute_not_exists(gone)",
        "attribute_not_exists(n)",
        "attribute_exists(pk)",
        "attribute_exists(#n)",
    ]);
    let sign = prop_oneof![9 => select(vec!["=", "<>", "<", "<=", ">", ">="]), 1 => Just("<<")];
    let comparison = (operand(), sign, operand()).prop_map(|(a, sign, b)| format!("{a} {sign} {b}"));
    let odd = select(vec![
        "attribute_exist(n)",
        "size(s) > :one",
        "NOT attribute_exists(gone)",
        "n BETWEEN :one AND :two",
        "attribute_exists(:one)",
        "n = n",
        ":one < :two",
        "((n = :one))",
    ]);
    let one =
        prop_oneof![60 => sound.prop_map(str::to_owned), 4 => comparison, 4 => odd.prop_map(str::to_owned)];
    one.prop_recursive(2, 8, 3, |part| {
        prop_oneof![
            8 => vec(part.clone(), 2..4).prop_map(|parts| parts.join(" AND ")),
            8 => vec(part.clone(), 2..3).prop_map(|parts| format!("({})", parts.join(" OR "))),
            4 => vec(part.clone(), 2..3).prop_map(|parts| parts.join(" or ")),
            1 => part.prop_map(|part| format!("({part})")),
        ]
    })
}

fn changes() -> impl Strategy<Value = String> {
    let sound = select(vec![
        "n = n + :one",
        "n = :two",
        "m = n - :one",
        "n = m + n",
        "l = list_append(l, :list)",
        "l = list_append(:list, l)",
        "s = :text",
        "gone = if_not_exists(gone, :two)",
        "n = if_not_exists(n, :two)",
        "f = :flag",
        "n = :drawn",
        "gone = n",
        "#n = :one",
        "more = :drawn",
        "pk = :text",
        "m = m - :drawn",
        "l = :list",
    ]);
    let source = prop_oneof![
        6 => operand().prop_map(str::to_owned),
        4 => (operand(), select(vec!["+", "-"]), operand()).prop_map(|(a, sign, b)| format!("{a} {sign} {b}")),
        1 => (operand(), operand()).prop_map(|(a, b)| format!("if_not_exists({a}, {b})")),
        1 => (operand(), operand()).prop_map(|(a, b)| format!("list_append({a}, {b})")),
        1 => Just("(n - :one) + :two".to_owned()),
    ];
    let drawn = (name_in_expression(), source).prop_map(|(name, source)| format!("{name} = {source}"));
    let set = prop_oneof![20 => sound.prop_map(str::to_owned), 1 => drawn];
    let addition = select(vec!["gone :one", "n :two", "m :drawn", "more :two", "s :one", "n m"]);
    let clause = prop_oneof![
        24 => vec(set, 1..3).prop_map(|sets| format!("SET {}", sets.join(", "))),
        6 => vec(name_in_expression(), 1..3).prop_map(|names| format!("REMOVE {}", names.join(","))),
        6 => addition.prop_map(|addition| format!("ADD {addition}")),
        1 => select(vec!["DELETE s :text", "SET", "set n = :one", "SET n = :one,", "", "SET sk = :text", "REMOVE pk"]).prop_map(str::to_owned),
    ];
    vec(clause, 1..3).prop_map(|clauses| clauses.join(" "))
}

/// A value that some updates give: numbers as they are stored, and others.
fn value_of_update() -> impl Strategy<Value = Value> {
    let numbers = [
        "-3",
        "0",
        "999999999999999999",
        "9223372036854775807",
        "12300000000000000000",
        "-0",
        "01",
        "1e3",
        "1.0",
    ];
    prop_oneof![
        4 => select(numbers.map(|number| json!({"N": number})).to_vec()),
        1 => Just(json!({"L": [{"S": "c"}, {"N": "4"}, {"BOOL": true}]})),
        1 => Just(json!({"L": [{"N": "1.0"}]})),
        1 => Just(json!({"S": "z".repeat(1200)})),
        1 => attribute(),
    ]
}

/// A key at which a row lies that is updated.
fn key_to_update() -> impl Strategy<Value = Value> {
    let pk = select(vec!["a", "b"]).prop_map(|pk| json!({"pk": {"S": pk}, "sk": {"S": "a"}}));
    prop_oneof![20 => pk, 1 => key()]
}

fn update() -> impl Strategy<Value = Value> {
    let more = select(vec![
        json!({"ReturnValues": "ALL_NEW"}),
        json!({"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
        json!({"ReturnValues": "ALL_NEW", "ReturnItemCollectionMetrics": "NONE"}),
        json!({}),
        json!({"ReturnValues": "NONE"}),
        json!({"ReturnValues": "UPDATED_NEW"}),
        json!({"ReturnValues": "ALL_OLD"}),
        json!({"ReturnValues": "ALL_NEW", "ReturnConsumedCapacity": "TOTAL"}),
    ]);
    let expressions = (changes(), proptest::option::of(condition()), value_of_update());
    let placeholders = prop_oneof![20 => Just(true), 1 => Just(false)];
    let table = prop_oneof![20 => Just("plain"), 1 => table()];
    let update = (table, key_to_update(), expressions, placeholders).prop_map(
        |(name, key, (changes, condition, drawn), are_used)| {
            let text = format!("{changes} {}", condition.as_deref().unwrap_or_default());
            let mut request = json!({"TableName": name, "Key": key, "UpdateExpression": changes});
            if let Some(condition) = condition {
                request["ConditionExpression"] = json!(condition);
            }
            let values = [
                (":one", json!({"N": "1"})),
                (":two", json!({"N": "2"})),
                (":five", json!({"N": "5"})),
                (":text", json!({"S": "text"})),
                (":list", json!({"L": [{"S": "x"}]})),
                (":flag", json!({"BOOL": true})),
                (":drawn", drawn),
            ];
            for (placeholder, value) in values {
                if !are_used || text.contains(placeholder) {
                    request["ExpressionAttributeValues"][placeholder] = value;
                }
            }
            if !are_used || text.contains("#n") {
                request["ExpressionAttributeNames"]["#n"] = json!("n");
            }
            request
        },
    );
    merged(update, more)
}

/// Puts a row with the attributes that updates are about.
fn put_to_update() -> impl Strategy<Value = Value> {
    let row = json!({
        "n": {"N": "5"}, "m": {"N": "7"}, "s": {"S": "text"}, "l": {"L": [{"S": "first"}]}, "f": {"BOOL": false},
    });
    let gone = proptest::option::of(select(vec!["n", "m", "s", "l", "f"]));
    (key_to_update(), gone).prop_map(move |(key, gone)| {
        let mut row = row.clone();
        if let Some(gone) = gone {
            row.as_object_mut().unwrap().remove(gone);
        }
        row.as_object_mut().unwrap().extend(key.as_object().unwrap().clone());
        json!({"RequestItems": {"plain": [{"PutRequest": {"Item": row}}]}})
    })
}

/// Updates, and rows for them.
fn request_about_updates() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        1 => put_to_update().prop_map(|request| ("BatchWriteItem", request)),
        6 => update().prop_map(|request| ("UpdateItem", request)),
    ]
}

fn request() -> impl Strategy<Value = (&'static str, Value)> {
    let get =
        with_less(with_more((table(), key()).prop_map(|(name, key)| json!({"TableName": name, "Key": key}))));
    let gets = parts(with_less(vec(key(), 0..5).prop_map(|keys| json!({ "Keys": keys }))));
    let put = item().prop_map(|item| json!({"PutRequest": {"Item": item}}));
    let delete = key().prop_map(|key| json!({"DeleteRequest": {"Key": key}}));
    let both = (item(), key())
        .prop_map(|(item, key)| json!({"PutRequest": {"Item": item}, "DeleteRequest": {"Key": key}}));
    let condition = proptest::option::of(select(vec![
        "attribute_not_exists(pk)",
        "attribute_not_exists(pk)",
        "attribute_not_exists(sk)",
        "attribute_exists(pk)",
        "attribute_not_exists( pk )",
        "attribute_not_exists(pk",
    ]));
    let puts = (table(), item(), condition).prop_map(|(name, item, condition)| {
        let mut request = json!({"TableName": name, "Item": item});
        if let Some(condition) = condition {
            request["ConditionExpression"] = json!(condition);
        }
        request
    });
    let row = prop_oneof![30 => put, 15 => delete, 1 => both, 1 => Just(json!({}))];
    let writes = parts(vec(row, 0..4).prop_map(Value::Array));
    prop_oneof![
        2 => get.prop_map(|request| ("GetItem", request)),
        2 => with_more(gets).prop_map(|request| ("BatchGetItem", request)),
        3 => with_more(writes).prop_map(|request| ("BatchWriteItem", request)),
        3 => with_more(puts).prop_map(|request| ("PutItem", request)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_file_answers_and_counts_as_the_library_does(requests in vec(request(), 1..40)) {
        play(requests)?;
    }

    #[test]
    fn a_file_updates_as_the_library_does(requests in vec(request_about_updates(), 1..80)) {
        play(requests)?;
    }
}

/// The same requests to the library alone, to a file, and to one as calls that are handed over.
fn play(requests: Vec<(&str, Value)>) -> Result<(), TestCaseError> {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (library, [file, handed]) = (Database::in_memory(), folders.each_ref().map(Database::in_a_file));
    for (operation, request) in requests {
        let expected = library.call(operation, &request);
        prop_assert_eq!(file.call(operation, &request), expected.clone(), "{} {}", operation, request);
        prop_assert_eq!(handed.hand_over(operation, &request), expected, "{} {}", operation, request);
        for one in [&file, &handed] {
            prop_assert_eq!(one.usage(), library.usage(), "{} {}", operation, request);
        }
    }
    for table in ["plain", "single", "numbered", "indexed"] {
        let scan = json!({ "TableName": table });
        let expected = library.call("Scan", &scan);
        prop_assert_eq!(file.call("Scan", &scan), expected.clone());
        prop_assert_eq!(handed.call("Scan", &scan), expected);
    }
    for (json, size) in folders.iter().flat_map(sized_rows) {
        let row: Item = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(types::item_size(&row), size, "{}", json);
    }
    Ok(())
}

/// The rows of the plain tables of a file, and the sizes that are stored with them.
fn sized_rows(folder: &tempfile::TempDir) -> Vec<(String, usize)> {
    let storage = Storage::new(&folder::address(&folder.path().join("tables.db"))).unwrap();
    let of_table = |table: &str| {
        let sql = format!("SELECT item_json, item_size FROM {table}");
        let mut statement = storage.conn().prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).unwrap();
        rows.map(|row| row.map(|(json, size)| (json, size as usize)).unwrap()).collect::<Vec<_>>()
    };
    [of_table("plain"), of_table("single")].concat()
}

/// A file with the tables of the test, and connections to it.
struct Connections {
    _folder: tempfile::TempDir,
    writer: Storage,
    reader: Reader,
}

impl Connections {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let _tables = Database::in_a_file(&folder);
        let address = folder::address(&folder.path().join("tables.db"));
        let (writer, reader) = (Storage::new(&address).unwrap(), Reader::open(&address).unwrap());
        Self { _folder: folder, writer, reader }
    }

    /// Makes a request that writes rows; says whether it was answered without the library.
    fn writes(&self, request: &str) -> bool {
        let read = if request.contains("RequestItems") { RowWrites::of_batch } else { RowWrites::of_put };
        let Some(writes) = read(&self.reader, request.as_bytes()) else { return false };
        writes.make(&self.writer).unwrap().is_some()
    }

    fn put(&self, item: &Value) -> bool {
        self.writes(&json!({"RequestItems": {"plain": [{"PutRequest": {"Item": item}}]}}).to_string())
    }
}

#[test]
fn what_is_plain_does_not_reach_the_library() {
    let at = Connections::new();
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "b"}});
    assert!(at.put(&key));
    let get = json!({"TableName": "plain", "Key": key});
    let read = at.reader.get_item(&serde_json::from_value(get).unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&read.answer).unwrap()["Item"], key);
    let gets = json!({"RequestItems": {"plain": {"Keys": [key]}}});
    assert!(at.reader.batch_get_item(&serde_json::from_value(gets).unwrap()).is_some());
    let new = json!({"TableName": "plain", "Item": key, "ConditionExpression": "attribute_not_exists(pk)"});
    assert!(!at.writes(&new.to_string()), "there is one, which the library tells of");
    let delete = json!({"RequestItems": {"plain": [{"DeleteRequest": {"Key": key}}]}});
    assert!(at.writes(&delete.to_string()));
    assert!(at.writes(&new.to_string()));
}

#[test]
fn a_call_is_taken_where_its_request_would_not_reach_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let at = Database::in_a_file(&folder);
    let takes =
        |operation: &str, request: &Value| handed_over::take(&at.tables, operation, request, &at.meter);
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "b"}});
    let put = json!({"TableName": "plain", "Item": key, "ConditionExpression": "attribute_not_exists(pk)"});
    assert_eq!(takes("PutItem", &put), Some(json!({})));
    assert_eq!(takes("PutItem", &put), None, "there is one, which a request tells of");
    let mut gets = json!({"RequestItems": {"plain": {"Keys": [key], "ConsistentRead": true}}});
    let row = json!({"Responses": {"plain": [key]}, "UnprocessedKeys": {}});
    let before = at.usage();
    assert_eq!(takes("BatchGetItem", &gets), Some(row));
    assert_eq!(at.usage().since(&before).read_units(), 1.0);
    gets["RequestItems"]["plain"]["ProjectionExpression"] = json!("pk");
    assert_eq!(takes("BatchGetItem", &gets), None);
    let batch = json!({"RequestItems": {"plain": [{"DeleteRequest": {"Key": key}}]}});
    assert_eq!(takes("BatchWriteItem", &batch), Some(json!({"UnprocessedItems": {}})));
    assert_eq!(takes("PutItem", &put), Some(json!({})));
    let mut update = json!({
        "TableName": "plain", "Key": key, "UpdateExpression": "SET held = :value",
        "ExpressionAttributeValues": {":value": {"N": "5"}}, "ReturnValues": "ALL_NEW",
    });
    assert_eq!(takes("UpdateItem", &update), None, "nobody knows the name");
    assert_eq!(at.call("UpdateItem", &update).0, 200);
    let row = json!({"Attributes": {"pk": {"S": "a"}, "sk": {"S": "b"}, "held": {"N": "5"}}});
    assert_eq!(takes("UpdateItem", &update), Some(row));
    update["ReturnConsumedCapacity"] = json!("TOTAL");
    assert_eq!(takes("UpdateItem", &update), None);
    assert_eq!(takes("PutItem", &json!({"TableName": "numbered", "Item": {"pk": {"N": "1"}}})), None);
    assert_eq!(takes("PutItem", &json!({"TableName": "plain", "Item": {"pk": {"S": "a"}}})), None);
}

#[test]
fn a_row_that_is_stored_otherwise_than_it_is_sent_is_left_to_the_library() {
    let at = Connections::new();
    let keys = r#""pk": {"S": "a"}, "sk": {"S": "b"}"#;
    let put = |attributes: &str| {
        at.writes(&format!(r#"{{"TableName": "plain", "Item": {{ {keys}{attributes} }} }}"#))
    };
    for sound in
        ["", r#", "n": {"N": "-12"}"#, r#", "l": {"L": [{"S": "\u00e9"}, {"N": "0"}]}, "f": {"BOOL": false}"#]
    {
        assert!(put(sound), "{sound}");
    }
    for other in [
        r#", "n": {"N": "1.0"}"#,
        r#", "n": {"N": "-0"}"#,
        r#", "n": {"N": "007"}"#,
        r#", "l": {"L": [{"L": []}]}"#,
        r#", "s": {"SS": ["b", "a"]}"#,
        r#", "n": {"N": "1", "S": "1"}"#,
        r#", "n": {"N": "1"}, "n": {"N": "2"}"#,
        r#", "": {"S": "unnamed"}"#,
    ] {
        assert!(!put(other), "{other}");
    }
    let delete = |more: &str| {
        at.writes(&format!(
            r#"{{"RequestItems": {{"plain": [{{"DeleteRequest": {{"Key": {{ {keys}{more} }} }} }}]}} }}"#
        ))
    };
    assert!(!delete(r#", "more": {"S": "no key"}"#));
    assert!(delete(""));
}

/// Makes an update of a row that is there; says whether the library made it.
fn updated(at: &Connections, request: Value) -> bool {
    let direct = Update::of(&at.reader, request.to_string().as_bytes());
    match direct.map(|update| update.make(&at.writer, |_| Some(())).unwrap()) {
        Some(Ok(_)) => false,
        Some(Err(names)) => {
            let library = update_item::execute(&at.writer, serde_json::from_value(request).unwrap());
            library.now_or_never().unwrap().unwrap();
            at.reader.learn_names(names);
            true
        }
        None => true,
    }
}

#[test]
fn an_update_reaches_the_library_until_its_names_are_known() {
    let at = Connections::new();
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "b"}});
    assert!(at.put(&key));
    let update = |changes: &str, condition: &str, value: Value| {
        json!({
            "TableName": "plain", "Key": key, "UpdateExpression": changes, "ConditionExpression": condition,
            "ExpressionAttributeValues": {":value": value},
        })
    };
    let first = update("SET held = :value", "attribute_exists(pk)", json!({"N": "5"}));
    assert!(updated(&at, first.clone()));
    assert!(!updated(&at, first));
    // A name that nobody has used.
    assert!(updated(&at, update("SET cap = :value", "attribute_exists(pk)", json!({"N": "5"}))));
    let compared = "held <= cap AND (attribute_not_exists(pk) OR held = :value)";
    assert!(!updated(&at, update("SET held = held + :value REMOVE cap", compared, json!({"N": "5"}))));
    // A number that would be stored in other words.
    assert!(updated(&at, update("SET held = :value", "attribute_exists(pk)", json!({"N": "1.0"}))));
}

#[test]
fn a_batch_read_of_more_than_an_answer_holds_is_left_to_the_library() {
    let at = Connections::new();
    let key = |n: usize| json!({"pk": {"S": "a"}, "sk": {"S": n.to_string()}});
    for n in 0..42 {
        let mut row = key(n);
        row["text"] = json!({"S": "x".repeat(400_000)});
        assert!(at.put(&row));
    }
    let is_read = |rows: usize| {
        let keys: Vec<Value> = (0..rows).map(key).collect();
        let gets = json!({"RequestItems": {"plain": {"Keys": keys}}});
        at.reader.batch_get_item(&serde_json::from_value(gets).unwrap()).is_some()
    };
    assert_eq!([41, 42].map(is_read), [true, false]);
}

#[test]
fn a_table_that_is_not_plain_is_left_to_the_library() {
    let storage = Connections::new().writer;
    for (table, is_plain) in [("plain", true), ("single", true), ("numbered", false), ("indexed", false)] {
        assert_eq!(Plain::of(&storage, table).is_some(), is_plain, "{table}");
    }
    assert!(Plain::of(&storage, "absent").is_none());
}
