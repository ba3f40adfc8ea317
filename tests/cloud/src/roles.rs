//! What each function may do, by its role in `template.yaml`. Whatever else it asks for is refused, as IAM refuses it, and
//! noted: nothing that holds on the model needs more than the template gives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, Result};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use serde_json::Value;
use tidegate_embedded::Service;
use tidegate_testkit::{DEAD_LETTERS, DEAD_RELEASES, DISPATCH, RELEASES, SCAN};

use crate::function::Function;
use crate::reply::{Answer, dynamodb_error, sqs_error};

/// What statements about the queues of clients are about, which parameters name.
const TARGETS: &str = "queues of clients";

/// An action of IAM, and a resource by its name in the template.
type Named = (String, String);

/// What statements say of a function.
#[derive(Debug, Default)]
struct Role {
    allowed: BTreeSet<Named>,
    denied: BTreeSet<Named>,
}

impl Role {
    fn of(template: &Value, name: &str) -> Self {
        let mut role = Self::default();
        let inline = template["Resources"][format!("{name}Role")]["Properties"]["Policies"].as_array();
        let inline = inline.into_iter().flatten();
        let tables = &template["Resources"][format!("{name}Tables")]["Properties"];
        for policy in inline.chain([tables]) {
            let statements = policy["PolicyDocument"]["Statement"].as_array();
            statements.into_iter().flatten().for_each(|statement| role.add(statement));
        }
        role
    }

    /// Skips what denies by a condition, which is about tags that nothing has here, and what a condition of the template adds, which is about
    /// keys: `template/permissions` holds both to their words, and the end-to-end run meets a queue with another stack's tag.
    fn add(&mut self, statement: &Value) {
        let named = match statement["Effect"].as_str() {
            Some("Allow") => &mut self.allowed,
            Some("Deny") if statement["Condition"].is_null() => &mut self.denied,
            _ => return,
        };
        for action in texts(&statement["Action"]) {
            named.extend(resources(&statement["Resource"]).into_iter().map(|of| (action.clone(), of)));
        }
    }

    fn allows(&self, named: &Named) -> bool {
        self.allowed.contains(named) && !self.denied.contains(named)
    }
}

/// The roles of the template, and the tables that it names.
#[derive(Debug)]
struct Template {
    roles: BTreeMap<Function, Role>,
    /// Tables by the end of their names.
    tables: BTreeMap<String, String>,
}

impl Template {
    fn of(template: &Value) -> Result<Self> {
        let named =
            [(Function::Master, "Master"), (Function::Emitter, "Emitter"), (Function::Handler, "Handler")];
        let roles = named.map(|(function, name)| (function, Role::of(template, name)));
        let resources = template["Resources"].as_object().context("a template without resources")?;
        let tables = resources.iter().filter_map(|(name, table)| {
            let parts = table["Properties"]["TableName"]["Join"][1].as_array()?;
            Some((parts.last()?.as_str()?.to_owned(), name.clone()))
        });
        Ok(Self { roles: roles.into(), tables: tables.collect() })
    }

    /// What a table or queue of a deployment of tests is in the template.
    fn resource(&self, service: Service, name: &str) -> String {
        let queue = match name {
            DISPATCH => "DispatchQueue",
            SCAN => "ScanQueue",
            RELEASES => "ReleaseQueue",
            DEAD_LETTERS => "DispatchDeadLetterQueue",
            DEAD_RELEASES => "ReleaseDeadLetterQueue",
            _ => TARGETS,
        };
        let table = name.rsplit('-').next().and_then(|end| self.tables.get(end));
        match service {
            Service::DynamoDb => table.cloned().unwrap_or_else(|| name.to_owned()),
            Service::Sqs => queue.to_owned(),
        }
    }
}

/// The roles of a region's functions.
#[derive(Debug)]
pub(crate) struct Roles {
    template: &'static Template,
    refused: Mutex<BTreeSet<String>>,
}

impl Roles {
    /// Those of the template.
    pub(crate) fn of_template() -> Result<Self> {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        let template = match TEMPLATE.get() {
            Some(template) => template,
            None => {
                let read = Template::of(&tidegate_testkit::template()?)?;
                TEMPLATE.get_or_init(|| read)
            }
        };
        Ok(Self { template, refused: Mutex::default() })
    }

    /// What a function is answered that asks for what its role does not allow.
    pub(crate) fn refusal(
        &self,
        function: Function,
        service: Service,
        request: &HttpRequest,
    ) -> Option<Answer> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body = request.body().bytes().unwrap_or_default();
        let name = if service == Service::DynamoDb { "DynamoDB" } else { "SQS" };
        let role = self.template.roles.get(&function)?;
        for (action, resource) in tidegate_aws::permissions(name, operation, body) {
            let named = (action, self.template.resource(service, &resource));
            if !role.allows(&named) {
                let (action, resource) = named;
                self.locked().insert(format!("{action} on {resource} by the {function:?}"));
                let why = "User is not authorized to perform this operation on this resource.";
                return Some(match service {
                    Service::DynamoDb => dynamodb_error(400, "AccessDeniedException", why),
                    Service::Sqs => sqs_error(403, "AccessDenied", why),
                });
            }
        }
        None
    }

    /// What was refused so far.
    pub(crate) fn refused(&self) -> BTreeSet<String> {
        self.locked().clone()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn texts(of: &Value) -> Vec<String> {
    let all = of.as_array().map_or(std::slice::from_ref(of), Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a statement is about, by the names in the template.
fn resources(of: &Value) -> Vec<String> {
    let one = |of: &Value| match of["GetAtt"].as_str() {
        Some(attribute) => attribute.trim_end_matches(".Arn").to_owned(),
        None => TARGETS.to_owned(),
    };
    of.as_array().map_or_else(|| vec![one(of)], |all| all.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, body: &str) -> HttpRequest {
        let mut request = HttpRequest::new(body.into());
        request.headers_mut().insert("x-amz-target", target.to_owned());
        request
    }

    #[test]
    fn a_function_is_refused_what_its_role_does_not_allow() {
        let roles = Roles::of_template().unwrap();
        let (dynamodb, sqs) = (Service::DynamoDb, Service::Sqs);
        let of_table = |name: &str| format!(r#"{{"TableName":"test-{name}"}}"#);
        let to_queue = |name: &str| format!(r#"{{"QueueUrl":"http://localhost/0/{name}"}}"#);
        for (function, service, target, body, is_allowed) in [
            (Function::Emitter, dynamodb, "DynamoDB_20120810.Query", of_table("runs"), true),
            (Function::Emitter, dynamodb, "DynamoDB_20120810.PutItem", of_table("jobs"), false),
            (Function::Master, dynamodb, "DynamoDB_20120810.PutItem", of_table("jobs"), true),
            (Function::Master, dynamodb, "DynamoDB_20120810.PutItem", of_table("nobody-knows"), false),
            (Function::Master, sqs, "AmazonSQS.SendMessageBatch", to_queue(DISPATCH), true),
            (Function::Master, sqs, "AmazonSQS.SendMessage", to_queue(SCAN), false),
            (Function::Handler, sqs, "AmazonSQS.SendMessage", to_queue("target-inbox"), true),
            (Function::Handler, sqs, "AmazonSQS.SendMessage", to_queue(RELEASES), false),
            (Function::Emitter, sqs, "AmazonSQS.SendMessage", to_queue("target-inbox"), false),
        ] {
            let refusal = roles.refusal(function, service, &request(target, &body));
            assert_eq!(refusal.is_none(), is_allowed, "{target} {body} by the {function:?}");
        }
        assert!(
            roles.refused().contains("dynamodb:PutItem on JobsTable by the Emitter"),
            "{:?}",
            roles.refused()
        );
        assert_eq!(roles.refused().len(), 5);
    }
}
