//! The tables of `template.yaml` are those that the store defines: a table, key or time to live of only one fails here.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what these helpers cannot read is a failed test")]

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, Yaml};
use tidegate_store::tables::{EXPIRES_AT, PARTITION_KEY, SORT_KEY, Table};

/// What a table must have in the template.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    keys: Vec<(String, String)>,
    types: Vec<(String, String)>,
    expires_by: Option<String>,
    billing: String,
    recovers: bool,
}

fn text(yaml: &Yaml<'_>) -> String {
    match yaml {
        Yaml::Tagged(_, inner) => text(inner),
        Yaml::Value(saphyr::Scalar::Boolean(value)) => value.to_string(),
        other => other.as_str().unwrap_or_else(|| panic!("no text: {other:?}")).to_owned(),
    }
}

fn pairs(list: &Yaml<'_>, second: &str) -> Vec<(String, String)> {
    let list = list.as_sequence().unwrap();
    list.iter().map(|entry| (text(&entry["AttributeName"]), text(&entry[second]))).collect()
}

fn shapes(template: &str) -> BTreeMap<String, Shape> {
    let documents = Yaml::load_from_str(template).unwrap();
    let resources = documents[0]["Resources"].as_mapping().unwrap();
    let tables = resources.values().filter(|r| text(&r["Type"]) == "AWS::DynamoDB::Table");
    tables
        .map(|table| {
            let properties = &table["Properties"];
            let expiry = properties.as_mapping_get("TimeToLiveSpecification");
            let shape = Shape {
                keys: pairs(&properties["KeySchema"], "KeyType"),
                types: pairs(&properties["AttributeDefinitions"], "AttributeType"),
                expires_by: expiry
                    .filter(|e| text(&e["Enabled"]) == "true")
                    .map(|e| text(&e["AttributeName"])),
                billing: text(&properties["BillingMode"]),
                recovers: text(&properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"])
                    == "true",
            };
            (name(&properties["TableName"]), shape)
        })
        .collect()
}

fn defined() -> BTreeMap<String, Shape> {
    let both = |a: &str, b: &str| {
        vec![(PARTITION_KEY.to_owned(), a.to_owned()), (SORT_KEY.to_owned(), b.to_owned())]
    };
    let shape = |table: Table| Shape {
        keys: both("HASH", "RANGE"),
        types: both("S", "S"),
        expires_by: table.expires().then(|| EXPIRES_AT.to_owned()),
        billing: "PAY_PER_REQUEST".to_owned(),
        recovers: true,
    };
    Table::ALL.map(|table| (table.name().to_owned(), shape(table))).into()
}

/// A table's name after the prefix of the deployment: the last part of a `!Join` by dashes.
fn name(yaml: &Yaml<'_>) -> String {
    let Yaml::Tagged(_, join) = yaml else { panic!("no !Join: {yaml:?}") };
    let parts = join.as_sequence().unwrap();
    assert_eq!(text(&parts[0]), "-");
    text(parts[1].as_sequence().unwrap().last().unwrap())
}

/// The template of the checkout that the tests run in: asked for at run time, since a target folder may serve several.
fn template() -> String {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    std::fs::read_to_string(std::path::Path::new(&manifest).join("../../template.yaml")).unwrap()
}

#[test]
fn the_template_has_exactly_the_tables_of_the_store() {
    let template = template();
    assert_eq!(shapes(&template), defined());
}

#[test]
fn a_template_with_another_key_is_told_apart() {
    let template = template();
    for (from, to) in [
        ("AttributeName: sk, KeyType", "AttributeName: other, KeyType"),
        ("expires_at", "ttl"),
        (", runs]", ", run]"),
    ] {
        assert_ne!(shapes(&template.replacen(from, to, 1)), defined(), "{from} -> {to}");
    }
}
