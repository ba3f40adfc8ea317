//! `template.yaml`, held against the model, the code and the documents that say the same.

mod documents;
mod model;
mod permissions;
mod resources;
mod watching;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

fn template() -> Value {
    tidegate_testkit::template().unwrap()
}

fn properties<'t>(template: &'t Value, resource: &str) -> &'t Value {
    &template["Resources"][resource]["Properties"]
}

/// The resources of a type, by their names.
fn of_type<'t>(template: &'t Value, kind: &str) -> BTreeMap<&'t str, &'t Value> {
    let resources = template["Resources"].as_object().unwrap();
    let of = resources.iter().filter(|(_, resource)| resource["Type"] == kind);
    of.map(|(name, resource)| (name.as_str(), resource)).collect()
}

fn default_of<'t>(template: &'t Value, parameter: &str) -> &'t Value {
    &template["Parameters"][parameter]["Default"]
}

/// A value that may be a list, as a list.
fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |all| all.iter().collect())
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).into_iter().filter_map(Value::as_str).collect()
}

/// A document of the checkout that the tests run in.
fn document(path: &str) -> String {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    fs::read_to_string(Path::new(&package).join("../..").join(path)).unwrap()
}

/// The rows of the tables of a document whose first column is called so, without their heads.
fn rows(document: &str, first_column: &str) -> Vec<Vec<String>> {
    let head = format!("| {first_column} |");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let mut rows = Vec::new();
    let mut lines = document.lines();
    while lines.any(|line| line.starts_with(&head)) {
        // Beneath the head is a line of dashes.
        let table = lines.by_ref().skip(1).take_while(|line| line.starts_with('|'));
        rows.extend(table.map(cells));
    }
    assert!(!rows.is_empty(), "no table begins with {first_column}");
    rows
}

/// What stands between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
