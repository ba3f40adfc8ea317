//! Mutants: requests to DynamoDB that lack one clause of a condition, changed on their way at the HTTP seam.
//!
//! A mutant is a clause of a write, by its shape: `slots free: f# = :v` is one, whatever the slot and its fencing number.
//! `mutants.txt` lists all of them with what notices each: it is the table of this module. [`Census`] finds them, and says
//! in which histories one could make a difference at all.

mod census;
mod condition;
mod sweep;
mod write;

use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpClient};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::{Map, Value};
use tidegate_embedded::around;

pub use census::{Census, Clauses, Seen, counting};
use condition::Condition;
pub use sweep::sweep;

static TABLE: LazyLock<Vec<Mutant>> = LazyLock::new(|| {
    let lines = include_str!("mutants.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Mutant::read).collect()
});

/// A clause that is taken off, and what notices it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The write and the clause.
    pub name: String,
    /// What notices it.
    pub fate: Fate,
}

/// What notices a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The history of this seed fails.
    Seed(u64),
    /// Its case in `tests/refusals` fails.
    Refusal,
    /// Nothing, for this reason.
    Survives(String),
}

impl Mutant {
    /// All of them, in the order of the table.
    pub fn all() -> &'static [Self] {
        &TABLE
    }

    /// The mutant of a name.
    ///
    /// # Errors
    /// When the table has no such row.
    pub fn named(name: &str) -> Result<&'static Self> {
        TABLE
            .iter()
            .find(|mutant| mutant.name == name)
            .with_context(|| format!("no mutant is called {name:?}"))
    }

    /// Reads a row: `<write>: <clause> | <fate>`.
    fn read(line: &str) -> Self {
        let (name, fate) = line.split_once(" | ").unwrap_or((line, ""));
        let (kind, text) = fate.split_once(' ').unwrap_or((fate, ""));
        let fate = match (kind, text.parse()) {
            ("seed", Ok(seed)) => Fate::Seed(seed),
            ("refusal", _) => Fate::Refusal,
            _ => Fate::Survives(text.to_owned()),
        };
        Self { name: name.trim().to_owned(), fate }
    }

    /// An HTTP client that takes the clause off the requests to `inner`.
    pub fn before(&'static self, inner: SharedHttpClient) -> SharedHttpClient {
        around(inner, |inner, mut request| {
            self.change(&mut request);
            inner.call(request)
        })
    }

    fn change(&self, request: &mut HttpRequest) {
        let Some((operation, mut body)) = read(request) else { return };
        let writes = write::conditional(&operation, &mut body);
        let changed = writes.into_iter().filter_map(|write| take_off(&self.name, write)).count();
        if changed > 0 {
            *request.body_mut() = SdkBody::from(body.to_string());
        }
    }
}

/// The operation and the body of a request to DynamoDB.
fn read(request: &HttpRequest) -> Option<(String, Value)> {
    let target = request.headers().get("x-amz-target")?;
    let operation = target.strip_prefix("DynamoDB_20120810.")?;
    let body = serde_json::from_slice(request.body().bytes()?).ok()?;
    Some((operation.to_owned(), body))
}

/// Takes the clause of a mutant off a write; `None`: it has no such clause.
fn take_off(mutant: &str, write: write::Write<'_>) -> Option<()> {
    let clause = mutant.strip_prefix(&write.name)?.strip_prefix(": ")?;
    let body = write.body.as_object_mut()?;
    let condition = Condition::parse(body["ConditionExpression"].as_str()?);
    if !condition.clauses().iter().any(|known| known == clause) {
        return None;
    }
    match condition.without(clause) {
        Some(left) => body.insert("ConditionExpression".to_owned(), left.to_string().into()),
        None => body.remove("ConditionExpression"),
    };
    remove_unused(body);
    Some(())
}

/// Removes names and values that no expression has: DynamoDB refuses them.
fn remove_unused(write: &mut Map<String, Value>) {
    let text = |name: &str| write.get(name).and_then(Value::as_str).unwrap_or_default();
    let expressions = format!("{} {}", text("UpdateExpression"), text("ConditionExpression"));
    let used: Vec<&str> = expressions.split(|c: char| !(c.is_alphanumeric() || "_:#".contains(c))).collect();
    for name in ["ExpressionAttributeValues", "ExpressionAttributeNames"] {
        let Some(known) = write.get_mut(name).and_then(Value::as_object_mut) else { continue };
        known.retain(|name, _| used.contains(&&**name));
        if known.is_empty() {
            write.remove(name);
        }
    }
}
