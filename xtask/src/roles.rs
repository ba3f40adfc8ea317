//! Each role against the calls that its function made in the end-to-end run: a call that the role does not allow is a fault. A
//! permission that no call needed is told, unless it is listed here with its reason: calls of Lambda's, and calls that are made
//! only when something fails, is large or changes, which a run may or may not see.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::capture;
use crate::deployment::{STACK, aim};
use crate::venv::Venv;
use crate::workspace::Workspace;

/// A permission that no call of the run needs: of which functions, the action, what the resource ends in, and why it is there.
struct Unused {
    functions: &'static [&'static str],
    actions: &'static [&'static str],
    resource: &'static str,
    reason: &'static str,
}

impl Unused {
    fn covers(&self, function: &str, (action, resource): &Named) -> bool {
        self.functions.contains(&function)
            && self.actions.contains(&action.as_str())
            && resource.ends_with(self.resource)
    }
}

const fn rare(
    functions: &'static [&'static str],
    actions: &'static [&'static str],
    resource: &'static str,
    reason: &'static str,
) -> Unused {
    Unused { functions, actions, resource, reason }
}

/// What a function calls now and then.
const RARE: &[Unused] = &[
    rare(&["handler"], &["dynamodb:BatchWriteItem", "dynamodb:Query"], "-jobs", "a client that is deleted"),
    rare(&["handler"], &["dynamodb:BatchWriteItem", "dynamodb:Scan"], "-launch", "a client that is deleted"),
    rare(
        &["handler"],
        &["dynamodb:BatchWriteItem", "dynamodb:Scan"],
        "-policies",
        "a client that is deleted",
    ),
    rare(&["handler"], &["dynamodb:Scan"], "-runs", "a client that is deleted"),
    rare(&["handler"], &["dynamodb:Scan"], "-events", "a client that is deleted"),
    rare(&["handler"], &["dynamodb:BatchGetItem"], "-events", "why targets did not take events of a policy"),
    rare(
        &["handler"],
        &["dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem", "dynamodb:Query"],
        "-clients",
        "a client that is deleted",
    ),
    rare(&["emitter"], &["dynamodb:DeleteItem"], "-launch", "what a master that died left in the outbox"),
    rare(&["emitter"], &["dynamodb:PutItem", "dynamodb:DeleteItem"], "-ticker", "parts of large emissions"),
    rare(&["emitter"], &["sqs:SendMessage"], "-scan", "parts of large emissions"),
    rare(
        &["emitter"],
        &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
        "-policies",
        "throttled launches that join their lines",
    ),
    rare(
        &["emitter"],
        &["dynamodb:PutItem", "dynamodb:UpdateItem"],
        "-runs",
        "runs, and launches that are skipped",
    ),
    rare(&["emitter"], &["dynamodb:Query"], "-runs", "packs of an emission that is repeated"),
    rare(
        &["emitter"],
        &["dynamodb:GetItem"],
        "-clients",
        "launches of a client whose jobs have just changed",
    ),
    rare(&["handler"], &["dynamodb:BatchGetItem"], "-launch", "one-time jobs that arrive together"),
    rare(&["handler"], &["dynamodb:DeleteItem"], "-launch", "watches of launches that should be over"),
    rare(
        &["handler"],
        &["dynamodb:GetItem", "dynamodb:PutItem"],
        "-launch",
        "one-time jobs that have just changed",
    ),
    rare(
        &["handler"],
        &["dynamodb:PutItem"],
        "-policies",
        "single events that arrive, and what is set aside",
    ),
    rare(
        &["handler"],
        &["dynamodb:GetItem"],
        "-events",
        "chunks whose message comes again, or that went ahead of their jobs",
    ),
    rare(&["handler"], &["dynamodb:UpdateItem"], "-events", "targets without a policy that cannot keep up"),
    rare(&["master"], &["dynamodb:GetItem"], "-events", "dead letters that are redriven or discarded"),
    rare(&["handler"], &["dynamodb:Query"], "-runs", "packs, and runs that must not overlap"),
    rare(&["handler"], &["dynamodb:PutItem"], "-clients", "the secret that tokens are signed with, once"),
    rare(&["emitter", "handler"], &["sqs:SendMessage"], "-dead-letters", "messages that nobody can handle"),
    rare(
        &["handler"],
        &["sqs:ChangeMessageVisibility"],
        "-release",
        "releases that failed and are to come again later",
    ),
    rare(
        &["handler"],
        &["sqs:ChangeMessageVisibility"],
        "-dispatch",
        "messages that failed and are to come again later",
    ),
    rare(
        &["master"],
        &["dynamodb:BatchWriteItem"],
        "-events",
        "jobs that are stored after their events, and why what a release granted cannot be sent",
    ),
    rare(&["master"], &["dynamodb:BatchGetItem"], "-jobs", "bulk calls of a client whose jobs are counted"),
    rare(&["master"], &["dynamodb:BatchGetItem"], "-events", "what is said of events that lie apart"),
    rare(
        &["master"],
        &["dynamodb:PutItem", "dynamodb:DeleteItem"],
        "-ticker",
        "parts that a call leaves, and those that are done",
    ),
    rare(&["master"], &["dynamodb:Query"], "-launch", "triggered launches in the list of a job's runs"),
    rare(&["master"], &["dynamodb:Query"], "-clients", "lists of clients, calendars and secrets"),
];

const ALL: &[&str] = &["master", "emitter", "handler"];

const UNUSED: &[Unused] = &[
    Unused {
        functions: ALL,
        actions: &["logs:CreateLogStream", "logs:PutLogEvents"],
        resource: "",
        reason: "Lambda writes the logs, with the function's role",
    },
    Unused {
        functions: &["emitter"],
        actions: &[
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ChangeMessageVisibility",
        ],
        resource: "-scan",
        reason: "Lambda polls the event source, with the function's role",
    },
    Unused {
        functions: &["handler"],
        actions: &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
        resource: "-dispatch",
        reason: "Lambda polls the event source, with the function's role",
    },
    Unused {
        functions: &["handler"],
        actions: &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
        resource: "-release",
        reason: "Lambda polls the event source, with the function's role",
    },
];

/// Calls that the tests have a function make to see them refused: of which function, the action, and the resource.
const REFUSED: &[(&str, &str, &str)] = &[("handler", "events:PutEvents", "default")];

/// A call, or a permission: an action, and a table or queue by its name. A permission's may have wildcards.
type Named = (String, String);

/// Compares the roles of the deployed stack with the calls in the logs of its functions.
///
/// # Errors
/// When they cannot be read, or a role allows less than its function did.
pub fn check(workspace: &Workspace, endpoint: &str) -> Result<()> {
    // The SAM CLI brings boto3 along.
    let mut python = Venv::sam(workspace)?.program("python");
    python.arg(workspace.root().join("infra/roles.py")).arg(STACK);
    aim(&mut python, endpoint);
    let functions: Value = serde_json::from_str(&capture(&mut python)?)?;
    let mut faults = Vec::new();
    for (function, told) in functions.as_object().context("no functions")? {
        let calls = calls(told)?;
        ensure!(!calls.is_empty(), "the log of the {function} names no calls");
        let allowed = allowed(told)?;
        eprintln!("{function}: {} kinds of calls, {} permissions", calls.len(), allowed.len());
        faults.extend(faults_of(function, &allowed, &calls));
        faults.extend(listed_without_a_permission(function, &allowed));
        for told in unused_of(function, &allowed, &calls) {
            eprintln!("  {told}");
        }
    }
    ensure!(faults.is_empty(), "roles and calls differ:\n  {}", faults.join("\n  "));
    Ok(())
}

fn calls(told: &Value) -> Result<BTreeSet<Named>> {
    let calls = told["calls"].as_array().context("no calls")?;
    calls.iter().map(|call| Ok((text(&call[0])?, text(&call[1])?))).collect()
}

/// What the statements that allow something allow. Those that deny are the template's business.
fn allowed(told: &Value) -> Result<BTreeSet<Named>> {
    let mut allowed = BTreeSet::new();
    for statement in told["statements"].as_array().context("no statements")? {
        if statement["Effect"] != "Allow" {
            continue;
        }
        for action in texts(&statement["Action"])? {
            for arn in texts(&statement["Resource"])? {
                let name = arn.rsplit(['/', ':']).next().unwrap_or_default();
                allowed.insert((action.clone(), name.to_owned()));
            }
        }
    }
    Ok(allowed)
}

fn covers((action, pattern): &Named, (made, resource): &Named) -> bool {
    action == made && matches(pattern, resource)
}

/// Calls that the role does not allow, and those of Lambda's that we make ourselves.
fn faults_of(function: &str, allowed: &BTreeSet<Named>, calls: &BTreeSet<Named>) -> Vec<String> {
    let mut faults = Vec::new();
    for call @ (action, resource) in calls {
        let is_allowed = allowed.iter().any(|permission| covers(permission, call));
        match (is_allowed, REFUSED.contains(&(function, action.as_str(), resource.as_str()))) {
            (false, false) => faults
                .push(format!("the {function} calls {action} on {resource}, which its role does not allow")),
            (true, true) => faults.push(format!(
                "the {function} may call {action} on {resource}, which a test expects to be refused"
            )),
            (true, false) | (false, true) => {}
        }
        if let Some(Unused { reason, .. }) = UNUSED.iter().find(|unused| unused.covers(function, call)) {
            faults.push(format!(
                "the {function} calls {action} on {resource}, which is listed as unused ({reason}): take it off the list"
            ));
        }
    }
    faults
}

/// What the lists say of permissions that the role does not have.
fn listed_without_a_permission(function: &str, allowed: &BTreeSet<Named>) -> Vec<String> {
    let listed = UNUSED.iter().chain(RARE).filter(|listed| listed.functions.contains(&function));
    let each = listed.flat_map(|listed| listed.actions.iter().map(move |action| (listed, *action)));
    let has = |(listed, action): &(&Unused, &str)| {
        allowed.iter().any(|permission| permission.0 == *action && listed.covers(function, permission))
    };
    let tell = |(Unused { resource, reason, .. }, action): (&Unused, &str)| {
        format!(
            "the {function} may not call {action} on {resource}, which is listed ({reason}): take it off the list"
        )
    };
    each.filter(|each| !has(each)).map(tell).collect()
}

/// Permissions that no call needed, and that are on no list: told, and no fault, since what a run sees differs a little.
fn unused_of(function: &str, allowed: &BTreeSet<Named>, calls: &BTreeSet<Named>) -> Vec<String> {
    let is_listed =
        |permission: &Named| UNUSED.iter().chain(RARE).any(|listed| listed.covers(function, permission));
    let is_unused =
        |permission: &&Named| !calls.iter().any(|call| covers(permission, call)) && !is_listed(permission);
    let tell =
        |(action, resource): &Named| format!("the {function} may call {action} on {resource}, and never did");
    allowed.iter().filter(is_unused).map(tell).collect()
}

/// Whether a name is covered by a pattern with at most one `*`, at its end.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

fn texts(value: &Value) -> Result<Vec<String>> {
    match value {
        Value::Array(values) => values.iter().map(text).collect(),
        value => Ok(vec![text(value)?]),
    }
}

fn text(value: &Value) -> Result<String> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("no text: {value}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(function: &str, statements: &Value, calls_made: &Value) -> Vec<String> {
        let told = json!({"statements": statements, "calls": calls_made});
        let (allowed, calls) = (allowed(&told).unwrap(), calls(&told).unwrap());
        [faults_of(function, &allowed, &calls), unused_of(function, &allowed, &calls)].concat()
    }

    #[test]
    fn a_role_that_allows_what_is_called_passes() {
        let statements = json!([
            {"Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": "arn:aws:dynamodb:us-east-1:1:table/t-jobs"},
            {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": ["arn:aws:sqs:*:*:*"]},
            {"Effect": "Deny", "Action": "sqs:SendMessage", "Resource": "*"},
            {"Effect": "Allow", "Action": "logs:PutLogEvents", "Resource": "arn:aws:logs:us-east-1:1:log-group:/aws/lambda/t:*"},
        ]);
        let made = json!([["dynamodb:GetItem", "t-jobs"], ["sqs:SendMessage", "t-dispatch"]]);
        assert_eq!(faults("master", &statements, &made), Vec::<String>::new());
    }

    /// The log names them by the end of their ARN, as a statement does.
    #[test]
    fn calls_of_other_services_are_held_against_the_role_too() {
        let statements = json!([
            {"Effect": "Allow", "Action": ["events:PutEvents", "lambda:InvokeFunction"], "Resource": [
                "arn:aws:events:eu-west-1:123456789012:event-bus/orders",
                "arn:aws:lambda:eu-west-1:123456789012:function:work:*",
            ]},
        ]);
        let made = json!([["events:PutEvents", "orders"], ["lambda:InvokeFunction", "live"]]);
        let told = faults("handler", &statements, &made);
        assert!(!told.iter().any(|line| line.contains("does not allow")), "{told:?}");
        let made = json!([["sns:Publish", "orders"]]);
        let told = faults("handler", &statements, &made);
        assert_eq!(told[0], "the handler calls sns:Publish on orders, which its role does not allow");
    }

    #[test]
    fn what_a_test_expects_to_be_refused_must_not_be_allowed() {
        let statement = |bus: &str| json!([{"Effect": "Allow", "Action": "events:PutEvents", "Resource": format!("arn:aws:events:us-east-1:1:event-bus/{bus}")}]);
        let made = json!([["events:PutEvents", "default"], ["events:PutEvents", "t-bus"]]);
        let named = |told: Vec<String>| -> Vec<String> {
            told.into_iter().filter(|line| line.contains("PutEvents")).collect()
        };
        assert_eq!(named(faults("handler", &statement("t-*"), &made)), Vec::<String>::new());
        assert_eq!(
            named(faults("handler", &statement("*"), &made)),
            ["the handler may call events:PutEvents on default, which a test expects to be refused"]
        );
    }

    #[test]
    fn a_call_without_a_permission_and_a_permission_without_a_call_are_named() {
        let statements = json!([
            {"Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:PutItem"], "Resource": "arn:aws:dynamodb:us-east-1:1:table/t-jobs"},
        ]);
        let made = json!([["dynamodb:GetItem", "t-jobs"], ["dynamodb:GetItem", "t-runs"]]);
        assert_eq!(
            faults("master", &statements, &made),
            [
                "the master calls dynamodb:GetItem on t-runs, which its role does not allow",
                "the master may call dynamodb:PutItem on t-jobs, and never did",
            ]
        );
    }

    #[test]
    fn what_is_listed_as_unused_must_be() {
        let statements = json!([{"Effect": "Allow", "Action": "sqs:DeleteMessage", "Resource": "arn:aws:sqs:us-east-1:1:t-scan"}]);
        assert_eq!(faults("emitter", &statements, &json!([])), Vec::<String>::new());
        let made = json!([["sqs:DeleteMessage", "t-scan"]]);
        assert_eq!(faults("emitter", &statements, &made).len(), 1);
        // The lists are of functions too.
        assert_eq!(faults("handler", &statements, &json!([])).len(), 1);
    }

    #[test]
    fn what_is_listed_must_be_allowed() {
        let scan = ("sqs:SendMessage".to_owned(), "t-scan".to_owned());
        let (without, with) = (
            listed_without_a_permission("emitter", &BTreeSet::new()),
            listed_without_a_permission("emitter", &BTreeSet::from([scan])),
        );
        let named = "the emitter may not call sqs:SendMessage on -scan, which is listed (parts of large emissions): take it off the list";
        assert!(without.iter().any(|line| line == named), "{without:?}");
        assert_eq!(with.len(), without.len() - 1);
        assert_eq!(listed_without_a_permission("nobody", &BTreeSet::new()), Vec::<String>::new());
    }
}
