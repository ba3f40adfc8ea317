//! One pass over the text of a body beside its schema: notes each member that is missing, unknown, given twice or of
//! another type, and goes on.
//!
//! Nothing is built, so a large body costs no memory. How deep the pass goes is bounded by the schema: a value that has
//! no place in it is passed over, whatever it holds.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_domain::limits::JSON_DEPTH;
use tidegate_domain::nesting::levels;

use super::names::advice;
use super::schema::{Kind, Schema};
use crate::problem::{FieldErrors, cut};

/// Where a fraction is most likely meant: a rate below one a second.
const RATE_EVENTS: &str = "rate.events";

/// Longest text of a value or name that a sentence repeats, in characters.
const QUOTED_CHARACTERS: usize = 60;

/// What is known of the body as a whole.
pub(super) struct Body {
    /// What it is called in sentences.
    pub(super) called: &'static str,
    pub(super) schema: &'static Schema,
    /// The member of it whose items are read each by itself, later.
    pub(super) parts: Option<&'static str>,
    /// Whether no answer repeats what it holds.
    pub(super) hides_values: bool,
}

/// Where a value stands.
#[derive(Clone, Copy)]
enum Place<'p> {
    Body,
    Member { of: &'p Place<'p>, name: &'p str },
    Item { of: &'p Place<'p>, index: usize },
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => Ok(()),
            Self::Member { of: Self::Body, name } => f.write_str(name),
            Self::Member { of, name } => write!(f, "{of}.{name}"),
            Self::Item { of, index } => write!(f, "{of}[{index}]"),
        }
    }
}

/// A value and what it may be.
struct Walk<'w> {
    body: &'w Body,
    schema: &'static Schema,
    place: Place<'w>,
    /// Whether it could be left out.
    optional: bool,
    errors: &'w mut FieldErrors,
}

/// Notes each fault of form of a body.
///
/// # Errors
/// When the text is not JSON, or has a number or a text in it that cannot be read.
pub(super) fn walk(text: &[u8], body: &Body, errors: &mut FieldErrors) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let walk = Walk { body, schema: body.schema, place: Place::Body, optional: false, errors };
    walk.deserialize(&mut reader)?;
    reader.end()
}

impl Walk<'_> {
    /// What the value is called, in a sentence.
    fn called(&self) -> String {
        match self.place {
            Place::Body => self.body.called.to_owned(),
            place => place.to_string(),
        }
    }

    fn field(&self) -> String {
        match self.place {
            Place::Body => "(body)".to_owned(),
            place => place.to_string(),
        }
    }

    /// Notes that the value is of another type, or none of the words that it may be.
    fn refuse(self, value: Value, given: &str) {
        if self.errors.is_full() {
            return self.errors.count_only();
        }
        let (value, given) = match self.body.hides_values && !value.is_null() {
            true => (Value::Null, "what is given"),
            false => (value, given),
        };
        let hint = match self.place {
            Place::Body if given == "an array" && self.schema.name == "JobBody" => {
                "; many jobs go to POST /v1/jobs/bulk, as {\"jobs\": [...]}"
            }
            _ if given == "null" && self.optional => "; leave it out if nothing is meant",
            _ if value.is_f64() && self.field() == RATE_EVENTS => {
                "; count them over a longer time: 0.5 a second is {\"events\": 30, \"per\": \"minute\"}"
            }
            _ => "",
        };
        let wanted = match self.place {
            // An example of a whole body would hide the rest of the sentence.
            Place::Body if self.schema.alternatives().len() == 1 => "a JSON object".to_owned(),
            _ => self.schema.in_words(),
        };
        let message = format!("{} must be {wanted}, not {given}{hint}", self.called());
        self.errors.add(self.field(), value, message);
    }

    fn check(self, kind: Kind, value: Value) {
        let fits = self.schema.taking(kind).is_some()
            || kind == Kind::Integer && self.schema.taking(Kind::Number).is_some();
        if !fits {
            let given = value.to_string();
            self.refuse(value, &given);
        }
    }

    fn note_missing(&mut self, object: &'static Schema, name: &'static str) {
        if self.errors.is_full() {
            return self.errors.count_only();
        }
        let field = Place::Member { of: &self.place, name }.to_string();
        let wanted = object.properties.get(name).map(Schema::in_words).unwrap_or_default();
        let message = format!("{field} is missing; give {wanted}");
        self.errors.add(field, (), message);
    }

    fn note_unknown(&mut self, object: &'static Schema, name: &str, value: Value) {
        if self.errors.is_full() {
            return self.errors.count_only();
        }
        let value = if self.body.hides_values { Value::Null } else { value };
        let shown = cut(name, QUOTED_CHARACTERS);
        let field = Place::Member { of: &self.place, name: &shown }.to_string();
        let message =
            format!("{} has no field '{shown}': {}", self.called(), advice(self.body.schema, object, name));
        self.errors.add(field, value, message);
    }

    fn note_twice(&mut self, name: &str) {
        if self.errors.is_full() {
            return self.errors.count_only();
        }
        let field = Place::Member { of: &self.place, name }.to_string();
        let message = format!("{field} is given twice; give it once");
        self.errors.add(field, (), message);
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if !self.schema.takes_anything() {
            return reader.deserialize_any(self);
        }
        let json = <&RawValue>::deserialize(reader)?.get();
        let levels = levels(json);
        if levels > JSON_DEPTH {
            let message = format!(
                "{} is {levels} levels deep; {JSON_DEPTH} is the most: make it flatter, or send it as a string",
                self.called()
            );
            self.errors.add(self.field(), (), message);
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.check(Kind::Null, Value::Null);
        Ok(())
    }

    fn visit_bool<E>(self, given: bool) -> Result<(), E> {
        self.check(Kind::Boolean, given.into());
        Ok(())
    }

    fn visit_u64<E>(self, given: u64) -> Result<(), E> {
        self.check(Kind::Integer, given.into());
        Ok(())
    }

    fn visit_i64<E>(self, given: i64) -> Result<(), E> {
        self.check(Kind::Integer, given.into());
        Ok(())
    }

    fn visit_f64<E>(self, given: f64) -> Result<(), E> {
        self.check(Kind::Number, given.into());
        Ok(())
    }

    fn visit_str<E>(self, given: &str) -> Result<(), E> {
        let fits = |one: &Schema| one.words.is_empty() || one.words.iter().any(|word| word == given);
        if !self.schema.taking(Kind::String).is_some_and(fits) {
            let shown = Value::from(cut(given, QUOTED_CHARACTERS)).to_string();
            self.refuse(given.into(), &shown);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some(array) = self.schema.taking(Kind::Array) else {
            self.refuse(Value::Null, "an array");
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let Self { body, place, errors, .. } = self;
        let apart = matches!(place, Place::Member { of: Place::Body, name } if body.parts == Some(name));
        let Some(schema) = array.items.as_deref().filter(|_| !apart) else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut index = 0;
        loop {
            let place = Place::Item { of: &place, index };
            let item = Walk { body, schema, place, optional: false, errors: &mut *errors };
            if list.next_element_seed(item)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let Some(object) = self.schema.taking(Kind::Object) else {
            self.refuse(Value::Null, "an object");
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut seen: Vec<&'static str> = Vec::new();
        let mut others = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let Some((name, schema)) = object.properties.get_key_value(&name) else {
                if let Some(schema) = object.other_members() {
                    let shown = cut(&name, QUOTED_CHARACTERS);
                    let place = Place::Member { of: &self.place, name: &shown };
                    map.next_value_seed(Walk {
                        body: self.body,
                        schema,
                        place,
                        optional: true,
                        errors: &mut *self.errors,
                    })?;
                    if !others.insert(name) {
                        self.note_twice(&shown);
                    }
                    continue;
                }
                let Small(value) = map.next_value()?;
                self.note_unknown(object, &name, value);
                continue;
            };
            if seen.contains(&&**name) {
                self.note_twice(name);
            }
            seen.push(name);
            let optional = !object.requires(name);
            let place = Place::Member { of: &self.place, name };
            map.next_value_seed(Walk {
                body: self.body,
                schema,
                place,
                optional,
                errors: &mut *self.errors,
            })?;
        }
        for name in &object.required {
            if !seen.contains(&&**name) {
                self.note_missing(object, name);
            }
        }
        Ok(())
    }
}

/// A value to be repeated to the caller: null in the place of arrays and objects.
struct Small(Value);

impl<'de> Deserialize<'de> for Small {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(reader)?.get();
        let is_large = json.starts_with(['{', '[']);
        Ok(Self(if is_large { Value::Null } else { serde_json::from_str(json).unwrap_or_default() }))
    }
}
