//! The writes of a DynamoDB request, and their names: by the kind of row, and by what is done to it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::condition::shape;

/// What updates are called, by the kind of row and the attributes that they write. What has no name here is called by
/// its attributes.
const UPDATES: [(&str, &str, &str); 89] = [
    ("active", "retained_at", "note retained"),
    ("epoch", "epoch_ms", "begin"),
    ("index", "#shards", "raise shards"),
    ("index", "#zone", "add or remove zone"),
    ("line", "a# b# cur g#", "take range"),
    ("line", "cur", "exhaust singles"),
    ("line", "cur ov", "exhaust"),
    ("line", "ov", "decide overlap"),
    ("pace", "arrival_us", "take rate"),
    ("pack", "#to", "queue"),
    ("pack", "expires_at", "retain"),
    ("pace", "wake_at", "claim wake"),
    ("part", "expires_at", "retain"),
    ("part", "dead expired expires_at failed q# succeeded", "count"),
    ("policy", "plan_number shares", "replace plan"),
    ("run", "announced", "announce"),
    ("run", "dead delivered expired failed left_out succeeded", "set tally"),
    ("run", "dead delivered expired failed left_out q# succeeded", "set tally"),
    ("run", "expires_at", "retain"),
    ("run", "announce_failure announced", "announce failure"),
    ("run", "dead expired failed last_at q# succeeded", "add outcomes"),
    ("run", "left_out", "add left out"),
    ("run", "last_at t#", "tell part"),
    ("run", "redriven_dead", "count redriven"),
    ("run", "redriven_expired", "count redriven"),
    ("run", "redriven_failed", "count redriven"),
    ("run", "skipped skipped_to", "grow skipped"),
    ("run", "started", "start"),
    ("run", "stopped", "stop"),
    ("scan", "#cursor fence lease_end told_at", "begin anew"),
    ("scan", "#cursor lease_end told_at", "move"),
    ("scan", "fence lease_end told_at", "begin anew"),
    ("scan", "fence lease_end", "take"),
    ("slots", "cap lm ng pr rt", "set share"),
    ("slots", "d#", "note sent"),
    ("slots", "dl lf nx rc rn want x#", "commit refill"),
    ("slots", "e#", "extend"),
    ("slots", "e# f# fc gs held i# p# r# t# w# x#", "admit"),
    ("slots", "e# f# fc held i# lf nx p# r# t# w#", "grant"),
    ("slots", "e# f# fc i# lf nx oc p# r# t# w#", "hand off"),
    ("slots", "e# f# fc p# rx t#", "renew"),
    ("slots", "d# e# f# held i# oc p# r# rx t# w#", "expire"),
    ("slots", "d# e# f# held i# oc p# r# t# w#", "free"),
    ("slots", "fs oc pk_oc", "begin compaction"),
    ("slots", "gs", "bar admission"),
    ("slots", "gs want", "begin refill"),
    ("slots", "lf", "drop range"),
    ("slots", "pk_oc", "end compaction"),
    ("slots", "d# e# f# held i# p# r# t# w#", "requeue"),
    ("slots", "want", "end refill"),
    ("slots", "x#", "recheck"),
    ("client", "former_secrets webhook_secret", "replace secrets"),
    ("client", "webhook_secret", "replace secrets"),
    ("client", "live_keys", "count keys"),
    ("client", "alerts allowed_targets defaults quotas revision", "replace"),
    ("overdue", "told_at", "tell"),
    ("client", "revision suspended", "suspend"),
    ("client", "deleting revision", "begin deletion"),
    ("client", "deleting", "move deletion"),
    ("dirty", "dirty_until", "mark"),
    ("dirty", "sidelined", "sideline"),
    ("watermark", "fence lease_end missed past_# planned_to", "take over again"),
    (
        "watermark",
        "fence lease_end missed past_# planned_to scanned_to taken_over_missed taken_over_to",
        "advance",
    ),
    (
        "watermark",
        "fence lease_end planned_to scanned_to taken_over_missed taken_over_to woken_to",
        "set back",
    ),
    ("watermark", "lease_end", "break lease"),
    ("watermark", "scanned_to", "finish scan"),
    ("watermark", "woken_to", "keep woken to"),
    ("scan", "lease_end told_at", "break lease"),
    ("secret-count", "secrets", "count"),
    ("paced", "end_us", "give"),
    ("creates", "creates", "take"),
    ("creates", "jobs jobs_now jobs_since", "take"),
    ("creates", "#back# waiting", "take"),
    ("creates", "#zone#", "take"),
    ("creates", "#zone# zones", "take"),
    ("creates", "creates in_minute", "begin minute"),
    ("creates", "creates in_minute jobs_before jobs_now", "begin minute"),
    ("creates", "#passed# creates in_minute waiting", "begin minute"),
    ("creates", "jobs_next jobs_since", "claim count"),
    ("creates", "jobs jobs_before jobs_next jobs_now jobs_since", "claim count"),
    ("creates", "creates in_minute jobs jobs_before jobs_next jobs_now jobs_since", "claim count"),
    ("creates", "zones zones_next", "claim count"),
    ("creates", "zones_next", "claim count"),
    ("creates", "jobs jobs_before jobs_counted jobs_next jobs_now jobs_since", "finish count"),
    (
        "creates",
        "creates in_minute jobs jobs_before jobs_counted jobs_next jobs_now jobs_since",
        "finish count",
    ),
    ("creates", "creates in_minute zones zones_counted zones_next", "finish count"),
    ("creates", "jobs jobs_counted jobs_next", "finish count"),
    ("creates", "zones zones_counted zones_next", "finish count"),
    ("creates", "#zone# zones zones_counted zones_next", "finish count"),
];

/// A conditional write of a request.
pub(crate) struct Write<'r> {
    /// What it does, and to which kind of row.
    pub(crate) name: String,
    pub(crate) body: &'r mut Value,
}

/// The writes of a request that have a condition.
pub(crate) fn conditional<'r>(operation: &str, body: &'r mut Value) -> Vec<Write<'r>> {
    let writes: Vec<(String, &mut Value)> = match operation {
        "TransactWriteItems" => {
            let members = body["TransactItems"].as_array_mut().into_iter().flatten();
            let members = members.filter_map(Value::as_object_mut).flatten();
            members.map(|(kind, write)| (format!("transact {}", kind.to_lowercase()), write)).collect()
        }
        "PutItem" | "UpdateItem" | "DeleteItem" => {
            vec![(operation.trim_end_matches("Item").to_lowercase(), body)]
        }
        _ => Vec::new(),
    };
    let conditional = writes.into_iter().filter(|(_, write)| write["ConditionExpression"].is_string());
    conditional.map(|(verb, body)| Write { name: name(&verb, body), body }).collect()
}

fn name(verb: &str, write: &Value) -> String {
    let key = if write["Key"].is_object() { &write["Key"] } else { &write["Item"] };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (table, pk, sk) = (text(&write["TableName"]), text(&key["pk"]["S"]), text(&key["sk"]["S"]));
    let row = row(table.rsplit('-').next().unwrap_or_default(), &pk, &sk);
    let written = written(write["UpdateExpression"].as_str().unwrap_or_default());
    let is_called = |(of, attributes, _): &&(&str, &str, &str)| *of == row && *attributes == written;
    match UPDATES.iter().find(is_called) {
        _ if written.is_empty() => format!("{row} {verb}"),
        // Whatever attributes it has.
        _ if ["#s#", "#r# #s#"].contains(&&*written) => {
            format!("{row} {}", verb.replace("update", "rewrite"))
        }
        Some((_, _, name)) => format!("{row} {}", verb.replace("update", name)),
        None => format!("{row} {verb} {written}"),
    }
}

/// The kind of a row, by its table and key. See ARCHITECTURE.md, tables.
fn row(table: &str, pk: &str, sk: &str) -> String {
    let kind = match table {
        "launch" => pk
            .split('|')
            .next()
            .filter(|class| ["AT", "OUTBOX", "TRIGGERED", "WATCH", "ZONE"].contains(class))
            .unwrap_or("child"),
        "runs" if pk.contains("|~") => "pack",
        "runs" if pk.ends_with("|parts") => "part",
        "runs" => "run",
        "events" if pk.starts_with("mark|") => "mark",
        "events" if pk.ends_with("|targets") => "target",
        "events" if pk.contains("|dead|") => "letter",
        "events" if pk.ends_with("|overdue") => "overdue",
        "events" if pk.ends_with("|made") => "made",
        "events" if pk.contains("|sidelined") => "sidelined",
        "events" => match sk.chars().next() {
            Some('t') => "said",
            _ => "event",
        },
        "policies" if sk == "slots" => "slots",
        "policies" if pk.starts_with("active|") => "active",
        "policies" if pk.starts_with("epoch|") => "epoch",
        "policies" if sk.starts_with("policy|") => "policy",
        "policies" => pk.rsplit('|').next().unwrap_or_default(),
        "clients" | "ticker" => pk.split('|').next().unwrap_or_default(),
        table => table,
    };
    kind.to_lowercase()
}

/// The attributes that an update writes, without numbers of slots.
fn written(update: &str) -> String {
    let (mut names, mut depth, mut expects) = (BTreeSet::new(), 0, false);
    for word in update.split_inclusive([' ', ',', '(', ')']) {
        let name = word.trim_end_matches([' ', ',', '(', ')']);
        match name {
            "SET" | "REMOVE" | "ADD" | "DELETE" => expects = true,
            "" => {}
            name if expects && depth == 0 => {
                names.insert(shape(name));
                expects = false;
            }
            _ => {}
        }
        depth += i32::from(word.ends_with('(')) - i32::from(word.ends_with(')'));
        expects |= depth == 0 && word.ends_with(',');
    }
    names.into_iter().collect::<Vec<_>>().join(" ")
}
