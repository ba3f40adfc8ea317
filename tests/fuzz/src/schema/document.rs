//! The OpenAPI document, as far as requests follow from it.

use anyhow::{Context, Result};
use serde_json::Value;
use tidegate_simulation::sim::Dice;

use super::sound;
use crate::extremes;
use crate::json::Json;
use crate::known::Known;

/// Fields that may be left out are sent this often, in thousandths.
const OPTIONAL: u64 = 250;
/// A value that may be null is null this often, in thousandths.
const NULL: u64 = 30;
/// How many items a list gets at the most, whatever its bound.
const ITEMS: u64 = 5;
/// How far a number lies from its lower bound at the most.
const SPAN: u64 = 50;

/// The routes and the schemas of their bodies.
pub struct Document {
    operations: Vec<Operation>,
    schemas: Value,
}

/// A method of a route.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `GET` and so on.
    pub method: String,
    /// The path with its parameters in braces.
    pub path: String,
    /// Whether it takes the admin key.
    pub admin: bool,
    /// The names of what it takes in its query.
    pub query: Vec<String>,
    /// The names of the headers that it reads.
    pub headers: Vec<String>,
    /// The schema of its body.
    pub body: Option<Value>,
    /// How many fields there are to get wrong.
    pub fields: u64,
}

impl Document {
    /// The document of the routes that are built in.
    ///
    /// # Errors
    /// When it is not what an OpenAPI document looks like.
    pub fn read() -> Result<Self> {
        let document: Value = serde_json::from_str(tidegate_api::openapi_json())?;
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().context("the document has no paths")? {
            for (method, operation) in methods.as_object().context("a path has no methods")? {
                if operation["responses"].is_object() {
                    operations.push(Operation::read(path, method, operation));
                }
            }
        }
        let schemas = document["components"]["schemas"].clone();
        for operation in &mut operations {
            operation.fields = 2 + operation.body.iter().map(|body| fields_of(body, &schemas)).sum::<u64>();
        }
        Ok(Self { operations, schemas })
    }

    /// Every method of every route.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// One of them, the more often the more fields its body has.
    pub fn any_operation(&self, dice: &Dice) -> Option<&Operation> {
        let weights: Vec<_> = self.operations.iter().map(|operation| (operation, operation.fields)).collect();
        weighted(dice, &weights).copied()
    }

    /// A value that a schema takes. `name` is that of the field it is for.
    pub fn value(&self, dice: &Dice, schema: &Value, name: &str, known: &Known) -> Json {
        if let Some(reference) = schema["$ref"].as_str() {
            let of = reference.rsplit('/').next().unwrap_or_default();
            let value = self.value(dice, &self.schemas[of], name, known);
            return sound::settled(dice, of, value);
        }
        if let Some(kinds) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            let is_null = |kind: &&Value| kind["type"] == "null";
            let real: Vec<&Value> = kinds.iter().filter(|kind| !is_null(kind)).collect();
            if real.len() < kinds.len() && dice.chance(NULL) {
                return Json::null();
            }
            return dice.pick(&real).map_or_else(Json::null, |kind| self.value(dice, kind, name, known));
        }
        if let Some(words) = schema["enum"].as_array() {
            return dice.pick(words).map_or_else(Json::null, Json::from);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) if kinds.iter().any(|kind| kind == "null") && dice.chance(NULL) => "null",
            Value::Array(kinds) => {
                kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
            }
            kind => kind.as_str().unwrap_or("any"),
        };
        match kind {
            "object" => self.object(dice, schema, known),
            "array" => self.list(dice, schema, name, known),
            "integer" | "number" => number(dice, schema, name),
            "boolean" => Json::raw(dice.chance(500)),
            "string" => sound::text(dice, name, known),
            "null" => Json::null(),
            _ => sound::payload(dice),
        }
    }

    fn object(&self, dice: &Dice, schema: &Value, known: &Known) -> Json {
        let fields = schema["properties"].as_object().into_iter().flatten();
        let sent = fields.filter(|(name, _)| is_required(schema, name) || dice.chance(OPTIONAL));
        let value = |(name, field): (&String, &Value)| (name.clone(), self.value(dice, field, name, known));
        Json::Object(sent.map(value).collect())
    }

    /// A value that a schema takes, but for one field in it: that one is extreme, and there is little beside it.
    pub fn focused(&self, dice: &Dice, schema: &Value, name: &str, known: &Known) -> Json {
        let (of, schema) = match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            Some(of) => (of, &self.schemas[of]),
            None => ("", schema),
        };
        let kinds = schema["oneOf"].as_array().or(schema["anyOf"].as_array()).into_iter().flatten();
        let real: Vec<&Value> = kinds.filter(|kind| kind["type"] != "null").collect();
        if let Some(kind) = dice.pick(&real) {
            return self.focused(dice, kind, name, known);
        }
        if schema["items"].is_object() && dice.chance(900) {
            let copies = if dice.chance(900) { 1 } else { dice.within(2..=16) };
            return Json::List(vec![self.focused(dice, &schema["items"], name, known); copies as usize]);
        }
        let Some(fields) = schema["properties"].as_object().filter(|_| dice.chance(950)) else {
            let of_its_kind = dice.chance(800);
            return if of_its_kind {
                extremes::for_field(dice, name, known)
            } else {
                extremes::anything(dice, known)
            };
        };
        let weights: Vec<(&String, u64)> =
            fields.iter().map(|(name, field)| (name, 1 + fields_of(field, &self.schemas))).collect();
        let Some(focus) = weighted(dice, &weights).map(|focus| focus.as_str()) else { return Json::null() };
        let beside = sound::beside(dice, of, focus);
        let is_sent = |name: &str| name == focus || beside.contains(&name) || is_required(schema, name);
        let value = |(name, field): (&String, &Value)| match name == focus {
            true => (name.clone(), self.focused(dice, field, name, known)),
            false => (name.clone(), self.value(dice, field, name, known)),
        };
        Json::Object(fields.iter().filter(|(name, _)| is_sent(name)).map(value).collect())
    }

    fn list(&self, dice: &Dice, schema: &Value, name: &str, known: &Known) -> Json {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(ITEMS).min(least + ITEMS);
        let items = dice.within(least..=most.max(least));
        Json::List((0..items).map(|_| self.value(dice, &schema["items"], name, known)).collect())
    }
}

/// A number within its bounds, near the lower one: large numbers of events or tokens cost time and show nothing new.
fn number(dice: &Dice, schema: &Value, name: &str) -> Json {
    let least = schema["minimum"].as_i64().unwrap_or(0);
    let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
    let least = sound::least(name).unwrap_or(least);
    let span = most.saturating_sub(least).unsigned_abs().min(SPAN);
    Json::raw(least.saturating_add_unsigned(dice.below(span.saturating_add(1))))
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

/// One of these, as often as its weight says.
fn weighted<'w, T>(dice: &Dice, weights: &'w [(T, u64)]) -> Option<&'w T> {
    let mut place = dice.below(weights.iter().map(|(_, weight)| weight).sum());
    weights.iter().find_map(|(one, weight)| match place.checked_sub(*weight) {
        Some(rest) => {
            place = rest;
            None
        }
        None => Some(one),
    })
}

/// How many fields a schema has, those of the schemas that it names among them.
fn fields_of(schema: &Value, schemas: &Value) -> u64 {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match (name.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    fields_of(&schemas[reference.rsplit('/').next().unwrap_or_default()], schemas)
                }
                ("properties", Value::Object(fields)) => fields.len() as u64 + fields_of(value, schemas),
                _ => fields_of(value, schemas),
            })
            .sum(),
        Value::Array(items) => items.iter().map(|item| fields_of(item, schemas)).sum(),
        _ => 0,
    }
}

impl Operation {
    fn read(path: &str, method: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let (mut query, mut headers) = (Vec::new(), Vec::new());
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            match parameter["in"].as_str() {
                Some("query") => query.push(name),
                Some("header") => headers.push(name),
                _ => {}
            }
        }
        let contents = operation["requestBody"]["content"].as_object();
        Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            admin: operation["security"].to_string().contains("admin_key"),
            query,
            headers,
            body: contents.and_then(|kinds| kinds.values().next()).map(|kind| kind["schema"].clone()),
            fields: 0,
        }
    }
}
