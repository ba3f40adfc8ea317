//! The schedules and the reference firings.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat, Utc};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A schedule as it stands in its repository.
pub struct Schedule {
    pub id: String,
    pub expression: String,
    pub zone: String,
}

/// The reference firings of a schedule in a window; `firings` may be cut, `count` and the hash are of all.
pub struct Row {
    pub id: String,
    count: usize,
    firings: Vec<(String, String)>,
    sha256_all: Option<String>,
}

fn open(name: &str) -> File {
    let path = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../data").join(name);
    File::open(&path).unwrap_or_else(|error| panic!("{} should open: {error}", path.display()))
}

fn json_lines(source: impl Read) -> impl Iterator<Item = Value> {
    BufReader::new(source).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_else(|| panic!("{key} should be text in {row}")).to_owned()
}

pub fn schedules(name: &str) -> Vec<Schedule> {
    let schedule = |row: Value| Schedule {
        id: text(&row, "id"),
        expression: text(&row, "expression"),
        zone: text(&row, "zone"),
    };
    json_lines(open(&format!("schedules_{name}.jsonl"))).map(schedule).collect()
}

/// The schedules that are refused, by id, each with a part of its reason.
pub fn refused() -> BTreeMap<String, String> {
    json_lines(open("refused_public.jsonl")).map(|row| (text(&row, "id"), text(&row, "says"))).collect()
}

/// The rows of one window.
pub fn rows(name: &str, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Row> {
    let day = |at: DateTime<Utc>| Value::from(at.date_naive().to_string());
    let wanted = Value::from(vec![day(from), day(to)]);
    let all = json_lines(GzDecoder::new(open(&format!("firings_{name}.jsonl.gz"))));
    all.filter(|row| row["window"] == wanted).map(|row| read(&row)).collect()
}

fn read(row: &Value) -> Row {
    let pair = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned());
    Row {
        id: text(row, "id"),
        count: row["count"].as_u64().unwrap() as usize,
        firings: row["firings"].as_array().unwrap().iter().map(pair).collect(),
        sha256_all: row.get("sha256_all").and_then(Value::as_str).map(str::to_owned),
    }
}

impl Row {
    /// What the launches, in order, have that the row does not; `None` when they are equal.
    pub fn difference(&self, launches: &[DateTime<Utc>]) -> Option<String> {
        let found: Vec<String> =
            launches.iter().map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).collect();
        let pairs = self.firings.iter().zip(&found);
        if let Some(((want, label), have)) = pairs.into_iter().find(|((want, _), have)| want != *have) {
            return Some(format!("{}: want {want} {label}, have {have}", self.id));
        }
        if found.len() != self.count {
            return Some(format!("{}: want {} launches, have {}", self.id, self.count, found.len()));
        }
        let sha256 = Sha256::digest(found.join("\n").as_bytes());
        let sha256: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        let want = self.sha256_all.as_ref().filter(|want| **want != sha256)?;
        Some(format!("{}: the hash of all instants is {sha256}, not {want}", self.id))
    }
}
