//! `template.yaml`, held against the model, the code and the documents that say the same.

mod model;
mod permissions;
mod resources;
mod watching;

use std::collections::BTreeMap;

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

/// A value that may be a list, as a list.
fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |all| all.iter().collect())
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).into_iter().filter_map(Value::as_str).collect()
}
