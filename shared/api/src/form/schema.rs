//! The schemas of the OpenAPI document, read for what they say about the form of a body.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::openapi::openapi_json;

/// What a text that is an instant looks like.
const INSTANT: &str = "2026-11-21T12:00:00Z";

/// What a value is, as JSON sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Null,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Kinds {
    One(Kind),
    Several(Vec<Kind>),
}

impl Default for Kinds {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Kinds {
    fn as_slice(&self) -> &[Kind] {
        match self {
            Self::One(kind) => std::slice::from_ref(kind),
            Self::Several(kinds) => kinds,
        }
    }
}

/// What a value may be.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Schema {
    /// Its name in the document; empty when it has none.
    #[serde(skip)]
    pub(super) name: String,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "oneOf")]
    one_of: Vec<Self>,
    #[serde(rename = "type")]
    kinds: Kinds,
    /// The only texts that it may be; any text when empty.
    #[serde(rename = "enum")]
    pub(super) words: Vec<String>,
    pub(super) properties: BTreeMap<String, Self>,
    pub(super) required: Vec<String>,
    pub(super) items: Option<Box<Self>>,
    /// What members may be that have no name of their own here.
    #[serde(rename = "additionalProperties")]
    others: Option<Others>,
    format: String,
    /// Only answers say it: a body may repeat it, and nobody is told to write it.
    #[serde(rename = "readOnly")]
    pub(super) read_only: bool,
    minimum: Option<Value>,
    example: Option<Value>,
}

/// Members of an object that its schema does not name.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Others {
    /// Whether there may be any, of any kind.
    Any(#[expect(dead_code, reason = "it only has to be read as one")] bool),
    /// Any name, with such a value.
    Such(Box<Schema>),
}

#[derive(Default, Deserialize)]
struct Document {
    components: Components,
}

#[derive(Default, Deserialize)]
struct Components {
    schemas: BTreeMap<String, Schema>,
}

static SCHEMAS: LazyLock<BTreeMap<String, Schema>> = LazyLock::new(|| {
    // The document is this crate's own: a test reads every schema of a body in it.
    let document: Document = serde_json::from_str(openapi_json()).unwrap_or_default();
    let mut schemas = document.components.schemas;
    for (name, schema) in &mut schemas {
        schema.name.clone_from(name);
    }
    schemas
});

impl Schema {
    /// The schema of a name; `None` when the document has none.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        SCHEMAS.get(name)
    }

    fn target(&self) -> Option<&'static Self> {
        Self::named(self.reference.as_deref()?.strip_prefix("#/components/schemas/")?)
    }

    /// The alternatives that it has, each without further ones.
    pub(super) fn alternatives(&'static self) -> Vec<&'static Self> {
        match (self.target(), self.one_of.as_slice()) {
            (Some(target), _) => target.alternatives(),
            (None, []) => vec![self],
            (None, several) => several.iter().flat_map(Self::alternatives).collect(),
        }
    }

    /// The alternative that takes values of a kind.
    pub(super) fn taking(&'static self, kind: Kind) -> Option<&'static Self> {
        match (self.target(), self.one_of.as_slice()) {
            (Some(target), _) => target.taking(kind),
            (None, []) => self.kinds.as_slice().contains(&kind).then_some(self),
            (None, several) => several.iter().find_map(|one| one.taking(kind)),
        }
    }

    /// What a member may be that has no name here; `None` when there is no such member.
    pub(super) fn other_members(&self) -> Option<&Self> {
        match &self.others {
            Some(Others::Such(schema)) => Some(schema),
            Some(Others::Any(_)) | None => None,
        }
    }

    /// Whether any JSON will do.
    pub(super) fn takes_anything(&self) -> bool {
        self.reference.is_none() && self.one_of.is_empty() && self.kinds.as_slice().is_empty()
    }

    /// Whether the object has to have a member of this name.
    pub(super) fn requires(&self, member: &str) -> bool {
        self.required.iter().any(|required| required == member)
    }

    /// What it takes, in words.
    pub(super) fn in_words(&'static self) -> String {
        let words: Vec<String> = self
            .alternatives()
            .into_iter()
            .flat_map(|one| one.kinds.as_slice().iter().map(|k| one.word(*k)))
            .flatten()
            .collect();
        words.join(", or ")
    }

    fn word(&'static self, kind: Kind) -> Option<String> {
        let word = match kind {
            Kind::Null => return None,
            Kind::String if !self.words.is_empty() => {
                let words: Vec<String> = self.words.iter().map(|word| format!("\"{word}\"")).collect();
                let (last, others) = words.split_last()?;
                let others = others.join(", ");
                return Some(if others.is_empty() { last.clone() } else { format!("{others} or {last}") });
            }
            Kind::String => "a string",
            Kind::Integer => "a whole number",
            Kind::Number => "a number",
            Kind::Boolean => "true or false",
            Kind::Array => "an array",
            Kind::Object => "a JSON object",
        };
        Some(match self.example_of(kind) {
            Some(example) => format!("{word} such as {}", spaced(&example)),
            None => word.to_owned(),
        })
    }

    fn example_of(&'static self, kind: Kind) -> Option<Value> {
        match (kind, &self.example) {
            (_, Some(example)) => Some(example.clone()),
            (Kind::String, None) if self.format == "date-time" => Some(Value::from(INSTANT)),
            (Kind::Object, None) if !self.required.is_empty() => Some(Value::Object(self.filled())),
            _ => None,
        }
    }

    /// The members that an object has to have, each with something that fits.
    fn filled(&'static self) -> Map<String, Value> {
        let members = self.required.iter().filter_map(|name| self.properties.get_key_value(name));
        members.map(|(name, schema)| (name.clone(), schema.sample())).collect()
    }

    fn sample(&'static self) -> Value {
        let alternatives = self.alternatives();
        let example = alternatives.iter().find_map(|one| one.example.clone());
        let is_text = |value: &Value| value.as_str() == Some("");
        example
            .or_else(|| Some(self.stand_in()).filter(|value| !is_text(value)))
            .unwrap_or_else(|| "...".into())
    }

    /// The least value of its form.
    pub(super) fn stand_in(&'static self) -> Value {
        for one in self.alternatives() {
            for kind in one.kinds.as_slice() {
                return match kind {
                    Kind::Null => continue,
                    Kind::String => {
                        one.words.first().map_or_else(|| Value::from(""), |word| Value::from(&**word))
                    }
                    Kind::Integer | Kind::Number => one.minimum.clone().unwrap_or_else(|| Value::from(0)),
                    Kind::Boolean => Value::from(false),
                    // An empty list may be a fault of its own, of the body as a whole.
                    Kind::Array => one
                        .items
                        .iter()
                        .filter(|items| !items.takes_anything())
                        .map(|items| items.stand_in())
                        .collect(),
                    Kind::Object => {
                        let members =
                            one.required.iter().filter_map(|name| one.properties.get_key_value(name));
                        members.map(|(name, schema)| (name.clone(), schema.stand_in())).collect()
                    }
                };
            }
        }
        Value::Null
    }
}

/// JSON on one line, with blanks as people write them.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(&**name), spaced(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
