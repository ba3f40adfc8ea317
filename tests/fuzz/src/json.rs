//! JSON as a tree that can also hold what no JSON may: numbers beyond every type, a name twice, texts that are none.

use std::fmt;

use serde_json::Value;

/// A JSON text, or nearly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// Written as it stands: numbers, `null`, deep nesting, and what is no JSON at all.
    Raw(String),
    /// A text, escaped when it is written.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in which a name may come twice.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// `null`.
    pub fn null() -> Self {
        Self::Raw("null".to_owned())
    }

    /// A number or a truth value.
    pub fn raw(value: impl ToString) -> Self {
        Self::Raw(value.to_string())
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The paths to all its nodes, its own first. A path counts entries, from the outermost inwards.
    pub fn places(&self) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new()];
        let children: Vec<&Json> = match self {
            Self::Raw(_) | Self::Text(_) => Vec::new(),
            Self::List(items) => items.iter().collect(),
            Self::Object(members) => members.iter().map(|(_, value)| value).collect(),
        };
        for (number, child) in children.into_iter().enumerate() {
            places.extend(child.places().into_iter().map(|mut place| {
                place.insert(0, number);
                place
            }));
        }
        places
    }

    /// The node that a path leads to.
    pub fn at(&self, place: &[usize]) -> Option<&Json> {
        let Some((first, rest)) = place.split_first() else { return Some(self) };
        match self {
            Self::Raw(_) | Self::Text(_) => None,
            Self::List(items) => items.get(*first)?.at(rest),
            Self::Object(members) => members.get(*first)?.1.at(rest),
        }
    }

    /// The same, to be changed.
    pub fn at_mut(&mut self, place: &[usize]) -> Option<&mut Json> {
        let Some((first, rest)) = place.split_first() else { return Some(self) };
        match self {
            Self::Raw(_) | Self::Text(_) => None,
            Self::List(items) => items.get_mut(*first)?.at_mut(rest),
            Self::Object(members) => members.get_mut(*first)?.1.at_mut(rest),
        }
    }

    /// The name of the innermost member that a path goes through; empty when it goes through none.
    pub fn name_at(&self, place: &[usize]) -> &str {
        let Some((first, rest)) = place.split_first() else { return "" };
        match self {
            Self::Raw(_) | Self::Text(_) => "",
            Self::List(items) => items.get(*first).map_or("", |item| item.name_at(rest)),
            Self::Object(members) => members.get(*first).map_or("", |(name, value)| {
                let inner = value.name_at(rest);
                if inner.is_empty() { name } else { inner }
            }),
        }
    }

    /// The member of an object.
    pub fn member_mut(&mut self, name: &str) -> Option<&mut Json> {
        match self {
            Self::Object(members) => members.iter_mut().find(|(n, _)| n == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Calls `change` with every member of every object, the outermost first.
    pub fn each_member(&mut self, change: &mut impl FnMut(&str, &mut Json)) {
        match self {
            Self::Raw(_) | Self::Text(_) => {}
            Self::List(items) => items.iter_mut().for_each(|item| item.each_member(change)),
            Self::Object(members) => {
                for (name, value) in members {
                    change(name, value);
                    value.each_member(change);
                }
            }
        }
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Raw(value.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(text) => f.write_str(text),
            Self::Text(text) => write!(f, "{}", Value::from(text.as_str())),
            Self::List(items) => {
                f.write_str("[")?;
                for (number, item) in items.iter().enumerate() {
                    let comma = if number == 0 { "" } else { "," };
                    write!(f, "{comma}{item}")?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (number, (name, value)) in members.iter().enumerate() {
                    let comma = if number == 0 { "" } else { "," };
                    write!(f, "{comma}{}:{value}", Value::from(name.as_str()))?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Json {
        Json::from(&serde_json::from_str::<Value>(text).unwrap())
    }

    #[test]
    fn a_tree_is_written_as_it_was_read_and_holds_what_no_json_may() {
        let text = r#"{"a":[1,null,"x\"y"],"b":{"c":-2.5}}"#;
        assert_eq!(tree(text).to_string(), text);
        let odd =
            Json::Object(vec![("a".into(), Json::raw("1e999")), ("a".into(), Json::raw(r#""\ud800""#))]);
        assert_eq!(odd.to_string(), r#"{"a":1e999,"a":"\ud800"}"#);
    }

    #[test]
    fn every_node_has_a_path_and_the_name_of_its_member() {
        let tree = tree(r#"{"a":[1,{"b":2}],"c":3}"#);
        let named: Vec<(String, &str)> = tree
            .places()
            .iter()
            .map(|place| (tree.at(place).unwrap().to_string(), tree.name_at(place)))
            .collect();
        let named: Vec<(&str, &str)> = named.iter().map(|(text, name)| (text.as_str(), *name)).collect();
        assert_eq!(
            named,
            [
                (r#"{"a":[1,{"b":2}],"c":3}"#, ""),
                (r#"[1,{"b":2}]"#, "a"),
                ("1", "a"),
                (r#"{"b":2}"#, "a"),
                ("2", "b"),
                ("3", "c"),
            ]
        );
    }
}
