//! Reading and writing attributes: the only place that knows how a value looks in DynamoDB.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use tidegate_domain::time::clamped;

use crate::tables::{EXPIRES_AT, PARTITION_KEY, SORT_KEY, Table};
use crate::{FORMAT, Result, StoreError};

/// The attribute that says which format a row is in; absent: 1.
const VERSION: &str = "v";

pub(crate) type Attributes = HashMap<String, AttributeValue>;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

/// A row's key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }

    pub(crate) fn attributes(&self) -> Attributes {
        HashMap::from([(PARTITION_KEY.to_owned(), text(&*self.pk)), (SORT_KEY.to_owned(), text(&*self.sk))])
    }
}

/// A row to be written.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    attributes: Attributes,
    /// Attributes that this version knows and the row has not.
    absent: Vec<String>,
}

impl Row {
    pub(crate) fn new(key: &Key) -> Self {
        Self { attributes: key.attributes(), absent: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: AttributeValue) -> Self {
        self.attributes.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn with_some(mut self, name: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => {
                self.absent.push(name.to_owned());
                self
            }
        }
    }

    pub(crate) fn expiring(self, at: DateTime<Utc>) -> Self {
        self.with(EXPIRES_AT, number(at.timestamp()))
    }

    pub(crate) fn into_attributes(self) -> Attributes {
        self.attributes
    }

    /// Its key, what it says in the order of the names, and what it says is not there.
    pub(crate) fn into_changes(self) -> (Key, BTreeMap<String, AttributeValue>, Vec<String>) {
        let mut says: BTreeMap<_, _> = self.attributes.into_iter().collect();
        let mut part = |name| match says.remove(name) {
            Some(AttributeValue::S(part)) => part,
            _ => String::new(),
        };
        let key = Key::new(part(PARTITION_KEY), part(SORT_KEY));
        (key, says, self.absent)
    }
}

/// A row that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    table: Table,
    attributes: &'a Attributes,
}

impl<'a> Item<'a> {
    /// A row that this version may act on: see [`FORMAT`].
    pub(crate) fn read(table: Table, attributes: &'a Attributes) -> Result<Self> {
        let item = Self::new(table, attributes);
        match item.number_or(VERSION, 1)? {
            version if version <= FORMAT => Ok(item),
            newer => Err(item.corrupt(format!("written by a newer version: format {newer}, not {FORMAT}"))),
        }
    }

    /// A row of which only the key, or a reason, is looked at.
    pub(crate) fn new(table: Table, attributes: &'a Attributes) -> Self {
        Self { table, attributes }
    }

    pub(crate) fn corrupt(&self, reason: impl Into<String>) -> StoreError {
        let part = |name| self.find_text(name).unwrap_or("?");
        let key = format!("{} / {}", part(PARTITION_KEY), part(SORT_KEY));
        StoreError::Corrupt { table: self.table, key, reason: reason.into() }
    }

    /// Where it lies.
    pub(crate) fn key(&self) -> Result<Key> {
        Ok(Key::new(self.text(PARTITION_KEY)?, self.text(SORT_KEY)?))
    }

    pub(crate) fn find_text(&self, name: &str) -> Option<&'a str> {
        self.attributes.get(name)?.as_s().ok().map(String::as_str)
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str> {
        self.find_text(name).ok_or_else(|| self.corrupt(format!("'{name}' is missing or no text")))
    }

    /// Whether a flag is set; one that is absent is not.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.attributes.get(name).and_then(|value| value.as_bool().ok()).copied().unwrap_or(false)
    }

    pub(crate) fn find_number<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(value) = self.attributes.get(name) else { return Ok(None) };
        let number = value.as_n().ok().and_then(|n| n.parse().ok());
        number.map(Some).ok_or_else(|| self.corrupt(format!("'{name}' is no number of its range")))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<T> {
        self.find_number(name)?.ok_or_else(|| self.corrupt(format!("'{name}' is missing")))
    }

    pub(crate) fn number_or<T: FromStr>(&self, name: &str, otherwise: T) -> Result<T> {
        Ok(self.find_number(name)?.unwrap_or(otherwise))
    }

    /// An instant that is stored as milliseconds since the epoch.
    pub(crate) fn instant_ms(&self, name: &str) -> Result<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.number(name)?)
            .ok_or_else(|| self.corrupt(format!("'{name}' is no instant")))
    }

    /// The same, where it may be absent.
    pub(crate) fn find_instant_ms(&self, name: &str) -> Result<Option<DateTime<Utc>>> {
        self.attributes.contains_key(name).then(|| self.instant_ms(name)).transpose()
    }

    /// A list or a set of numbers; empty when it is absent.
    pub(crate) fn numbers<T: FromStr>(&self, name: &str) -> Vec<T> {
        match self.attributes.get(name) {
            Some(AttributeValue::L(list)) => {
                list.iter().filter_map(|value| value.as_n().ok()?.parse().ok()).collect()
            }
            Some(AttributeValue::Ns(set)) => set.iter().filter_map(|value| value.parse().ok()).collect(),
            _ => Vec::new(),
        }
    }

    /// An instant that is stored as seconds since the epoch.
    pub(crate) fn instant_s(&self, name: &str) -> Result<DateTime<Utc>> {
        DateTime::from_timestamp(self.number(name)?, 0)
            .map(clamped)
            .ok_or_else(|| self.corrupt(format!("'{name}' is no instant")))
    }

    /// One instant, or a list of them, stored as seconds since the epoch.
    pub(crate) fn instants_s(&self, name: &str) -> Result<Vec<DateTime<Utc>>> {
        let Some(AttributeValue::L(list)) = self.attributes.get(name) else {
            return Ok(vec![self.instant_s(name)?]);
        };
        let read = |value: &AttributeValue| {
            DateTime::from_timestamp(value.as_n().ok()?.parse().ok()?, 0).map(clamped)
        };
        let instants = list.iter().map(read).collect::<Option<_>>();
        instants.ok_or_else(|| self.corrupt(format!("'{name}' is no list of instants")))
    }

    pub(crate) fn id<T: FromStr>(&self, name: &str) -> Result<T>
    where
        T::Err: std::fmt::Display,
    {
        self.parsed(name, self.text(name)?)
    }

    pub(crate) fn parsed<T: FromStr>(&self, name: &str, text: &str) -> Result<T>
    where
        T::Err: std::fmt::Display,
    {
        text.parse().map_err(|e| self.corrupt(format!("'{name}': {e}")))
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<&'a str> {
        match self.attributes.get(name) {
            Some(AttributeValue::L(list)) => {
                list.iter().filter_map(|v| v.as_s().ok()).map(String::as_str).collect()
            }
            Some(AttributeValue::Ss(set)) => set.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.attributes.keys().map(String::as_str)
    }
}
