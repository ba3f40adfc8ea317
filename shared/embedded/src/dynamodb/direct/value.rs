//! Values that are stored as they are sent: texts, whole numbers, flags, and lists of texts and numbers.

use std::borrow::{Borrow, Cow};
use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use dynoxide::types;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How many digits a whole number may have: what a word holds.
const DIGITS: usize = 20;

/// A value that is stored as it is sent, if its numbers are whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Value<'a> {
    S(#[serde(borrow)] Cow<'a, str>),
    N(#[serde(borrow)] Cow<'a, str>),
    #[serde(rename = "BOOL")]
    Bool(bool),
    L(#[serde(borrow)] Vec<Flat<'a>>),
}

/// What stands in a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Flat<'a> {
    S(#[serde(borrow)] Cow<'a, str>),
    N(#[serde(borrow)] Cow<'a, str>),
}

/// A row as callers of the SDK have it.
pub(in crate::dynamodb) type Attributes = HashMap<String, AttributeValue>;

/// A name, as it lies in its request or row where it can.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Values by their names.
pub(super) type Values<'a> = BTreeMap<Name<'a>, Value<'a>>;

/// A row as it is stored, each attribute as it stands there.
#[derive(Deserialize)]
pub(super) struct Stored<'r>(#[serde(borrow)] BTreeMap<Name<'r>, &'r RawValue>);

impl Borrow<str> for Name<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'a> Name<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl<'a> Value<'a> {
    /// One that is handed over.
    pub(super) fn of(value: &'a AttributeValue) -> Option<Self> {
        Some(match value {
            AttributeValue::S(text) => Self::S(Cow::Borrowed(text)),
            AttributeValue::N(number) => Self::N(Cow::Borrowed(number)),
            AttributeValue::Bool(flag) => Self::Bool(*flag),
            AttributeValue::L(values) => Self::L(values.iter().map(Flat::of).collect::<Option<_>>()?),
            _ => return None,
        })
    }

    /// Those that are handed over by their names.
    pub(super) fn all(values: &'a Attributes) -> Option<Values<'a>> {
        values.iter().map(|(name, value)| Some((Name::of(name), Self::of(value)?))).collect()
    }

    /// What it counts for; nothing when it is stored otherwise than it is sent.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::S(text) => Some(text.len()),
            Self::N(number) => size_of_number(number),
            Self::Bool(flag) => Some(size_of_val(flag)),
            Self::L(values) => values.iter().try_fold(3_usize, |size, value| {
                let value = match value {
                    Flat::S(text) => text.len(),
                    Flat::N(number) => size_of_number(number)?,
                };
                size.checked_add(value)?.checked_add(1)
            }),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::S(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is written as it is stored.
    pub(super) fn digits(&self) -> Option<&str> {
        match self {
            Self::N(number) => Some(&**number).filter(|number| is_whole(number)),
            _ => None,
        }
    }

    /// One that is counted with here.
    pub(super) fn number(&self) -> Option<i64> {
        self.digits()?.parse().ok()
    }

    pub(super) fn whole(number: i64) -> Self {
        Self::N(Cow::Owned(number.to_string()))
    }

    /// The same with its text where it is.
    pub(super) fn lent(&self) -> Value<'_> {
        match self {
            Self::S(text) => Value::S(Cow::Borrowed(text)),
            Self::N(number) => Value::N(Cow::Borrowed(number)),
            Self::Bool(flag) => Value::Bool(*flag),
            Self::L(values) => Value::L(values.iter().map(Flat::lent).collect()),
        }
    }

    /// The same with text of its own.
    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Self::S(text) => Value::S(owned(text)),
            Self::N(number) => Value::N(owned(number)),
            Self::Bool(flag) => Value::Bool(flag),
            Self::L(values) => Value::L(values.into_iter().map(Flat::into_owned).collect()),
        }
    }
}

impl<'a> Flat<'a> {
    fn of(value: &'a AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::S(text) => Some(Self::S(Cow::Borrowed(text))),
            AttributeValue::N(number) => Some(Self::N(Cow::Borrowed(number))),
            _ => None,
        }
    }

    fn lent(&self) -> Flat<'_> {
        match self {
            Self::S(text) => Flat::S(Cow::Borrowed(text)),
            Self::N(number) => Flat::N(Cow::Borrowed(number)),
        }
    }

    fn into_owned(self) -> Flat<'static> {
        match self {
            Self::S(text) => Flat::S(owned(text)),
            Self::N(number) => Flat::N(owned(number)),
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

impl From<Value<'_>> for AttributeValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::S(text) => Self::S(text.into_owned()),
            Value::N(number) => Self::N(number.into_owned()),
            Value::Bool(flag) => Self::Bool(flag),
            Value::L(values) => Self::L(values.into_iter().map(Self::from).collect()),
        }
    }
}

impl From<Flat<'_>> for AttributeValue {
    fn from(value: Flat<'_>) -> Self {
        match value {
            Flat::S(text) => Self::S(text.into_owned()),
            Flat::N(number) => Self::N(number.into_owned()),
        }
    }
}

/// The text of an attribute that is handed over.
pub(super) fn text<'r>(row: &'r Attributes, name: &str) -> Option<&'r str> {
    Some(row.get(name)?.as_s().ok()?.as_str())
}

/// A row as its caller reads it; nothing when it has other values.
pub(in crate::dynamodb) fn attributes(json: &str) -> Option<Attributes> {
    let row: Values<'_> = serde_json::from_str(json).ok()?;
    Some(row.into_iter().map(|(Name(name), value)| (name.into_owned(), value.into())).collect())
}

impl<'r> Stored<'r> {
    pub(super) fn read(json: &'r str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// An attribute; nothing at all when it is none of these values.
    pub(super) fn value(&self, name: &str) -> Option<Option<Value<'r>>> {
        match self.0.get(name) {
            Some(json) => serde_json::from_str(json.get()).ok().map(Some),
            None => Some(None),
        }
    }

    pub(super) fn into_attributes(self) -> impl Iterator<Item = (Name<'r>, &'r RawValue)> {
        self.0.into_iter()
    }
}

fn size_of_number(number: &str) -> Option<usize> {
    is_whole(number).then(|| types::number_size(number))
}

/// Whether a number is whole, of few digits, and written as it is stored.
fn is_whole(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && (!digits.starts_with('0') || number == "0")
}
