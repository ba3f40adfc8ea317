//! The file of policies: rows as `PUT /v1/policies/{policy_id}` takes them, with the name, and with what a policy does not
//! say: how long consumers work, and how many tokens they release in one call.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};
use tidegate_api::documents;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::limits::TOKENS_PER_CALL;
use tidegate_domain::policy::PolicyTerms;

use crate::args::ForecastArgs;
use crate::dry_run::source::Source;

/// The longest that an event is worked on, in seconds: a week.
const WORK_SECONDS: f64 = 604_800.0;

/// A policy, and those who work under it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PolicyRow {
    pub(super) id: PolicyId,
    pub(super) terms: PolicyTerms,
    pub(super) work_seconds: f64,
    pub(super) released_together: u32,
}

/// Reads all rows. What is wrong in one ends it: jobs depend on them.
pub(super) fn read(path: &Path, args: &ForecastArgs) -> anyhow::Result<Vec<PolicyRow>> {
    let mut source = Source::open(path)?;
    let name = source.name().to_owned();
    let mut policies: Vec<PolicyRow> = Vec::new();
    let mut lines: HashMap<PolicyId, u64> = HashMap::new();
    while let Some((line, text)) = source.next()? {
        let row = row(text, line, args).with_context(|| format!("failed to read {name}: line {line}"))?;
        if let Some(before) = lines.insert(row.id.clone(), line) {
            bail!("failed to read {name}: line {line}: policy_id '{}' is on line {before} already", row.id);
        }
        policies.push(row);
    }
    Ok(policies)
}

fn row(text: &[u8], line: u64, args: &ForecastArgs) -> anyhow::Result<PolicyRow> {
    let Value::Object(mut row) = serde_json::from_slice(text).map_err(|error| placed(&error, line))? else {
        bail!(
            "it is no JSON object: give {{\"policy_id\": \"mail\", \"max_in_flight\": 10, \"work_seconds\": 2}}"
        );
    };
    let work_seconds = number(&mut row, "work_seconds", 0.0, WORK_SECONDS)?;
    let together = number(&mut row, "released_together", 1.0, TOKENS_PER_CALL as f64)?;
    if let Some(together) = together.filter(|together| together.fract() > 0.0) {
        bail!("released_together is {together}; it must be a whole number from 1 to {TOKENS_PER_CALL}");
    }
    let read = documents::read_policy(Value::Object(row));
    let (id, terms) = read.map_err(|reasons| anyhow::anyhow!(reasons.join("; ")))?;
    Ok(PolicyRow {
        id,
        terms,
        work_seconds: work_seconds.unwrap_or(args.work.as_secs_f64()),
        released_together: together.map_or(args.released_together, |number| number as u32),
    })
}

/// What is wrong in the JSON of a row, whose lines a parser counts from 1: that is the line of the file.
fn placed(error: &serde_json::Error, line: u64) -> anyhow::Error {
    let says = error.to_string();
    let reason = says.split(" at line ").next().unwrap_or_default();
    anyhow::anyhow!("{reason} at line {line} column {}", error.column())
}

/// Takes a number out of a row.
fn number(row: &mut Map<String, Value>, field: &str, least: f64, most: f64) -> anyhow::Result<Option<f64>> {
    let Some(value) = row.remove(field).filter(|value| !value.is_null()) else { return Ok(None) };
    match value.as_f64() {
        Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => bail!("{field} is {value}; it must be a number from {least} to {most}"),
    }
}
