//! What the roles deny, and under which conditions they allow: `roles` evaluates the rest.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{list, of_type, properties, template, texts};

/// The functions that send to the queues of clients.
const SENDERS: [&str; 2] = ["Master", "Handler"];

/// The statements of a role, those beneath a condition of the template among them.
fn statements<'t>(template: &'t Value, function: &str) -> Vec<&'t Value> {
    let policies = list(&properties(template, &format!("{function}Role"))["Policies"]);
    let statements = policies.into_iter().flat_map(|policy| list(&policy["PolicyDocument"]["Statement"]));
    statements
        .map(|statement| if statement["If"].is_null() { statement } else { &statement["If"][1] })
        .collect()
}

fn statement<'t>(template: &'t Value, function: &str, sid: &str) -> &'t Value {
    let found = statements(template, function).into_iter().find(|statement| statement["Sid"] == sid);
    found.unwrap_or_else(|| panic!("the {function} has no statement {sid}"))
}

/// The queues of the stack that a statement names.
fn queues(statement: &Value) -> BTreeSet<&str> {
    let arns = list(&statement["Resource"]).into_iter().filter_map(|of| of["GetAtt"].as_str());
    arns.filter_map(|arn| arn.strip_suffix(".Arn")).filter(|name| name.ends_with("Queue")).collect()
}

#[test]
fn own_queues_to_which_a_function_has_nothing_to_send_are_denied_to_it() {
    let template = template();
    let own: BTreeSet<&str> = of_type(&template, "AWS::SQS::Queue").into_keys().collect();
    assert_eq!(own.len(), 5);
    for function in SENDERS {
        let sends =
            |of: &&Value| of["Effect"] == "Allow" && texts(&of["Action"]).contains(&"sqs:SendMessage");
        let used: BTreeSet<&str> =
            statements(&template, function).into_iter().filter(sends).flat_map(queues).collect();
        let never = statement(&template, function, "NeverOwnQueues");
        assert_eq!(never["Effect"], "Deny", "{function}");
        assert_eq!(never["Condition"], Value::Null, "{function}");
        assert_eq!(texts(&never["Action"]), ["sqs:SendMessage"], "{function}");
        assert_eq!(queues(never), &own - &used, "{function}");
    }
}

/// Who may not look at a queue is told so when a job names it; who may look and not send would lose every event.
#[test]
fn queues_of_other_stacks_are_out_of_reach_by_their_tag() {
    let template = template();
    for (function, actions) in
        [("Master", vec!["sqs:SendMessage", "sqs:GetQueueAttributes"]), ("Handler", vec!["sqs:SendMessage"])]
    {
        let never = statement(&template, function, "NeverQueuesOfOtherStacks");
        let targets = statement(&template, function, "TargetQueues");
        assert_eq!(texts(&never["Action"]), actions, "{function}");
        assert_eq!(texts(&targets["Action"]), actions, "{function}: all that is allowed is denied");
        let (effect, resource, condition) = (&never["Effect"], &never["Resource"], &never["Condition"]);
        assert_eq!((effect, resource), (&json!("Deny"), &json!("*")), "{function}");
        let of_another = json!({
            "Null": {"aws:ResourceTag/tidegate:stack": "false"},
            "StringNotEquals": {"aws:ResourceTag/tidegate:stack": {"Ref": "AWS::StackName"}},
        });
        assert_eq!(condition, &of_another, "{function}");
    }
    let tags = json!([{"Key": "tidegate:stack", "Value": {"Ref": "AWS::StackName"}}]);
    for (name, queue) in of_type(&template, "AWS::SQS::Queue") {
        assert_eq!(queue["Properties"]["Tags"], tags, "{name}");
    }
}

/// Whoever faces the internet sends nothing there, and nobody invokes the functions of the stack in the name of a client.
#[test]
fn other_services_are_for_the_handler_alone_and_only_what_a_parameter_names() {
    let template = template();
    let services = ["events:", "sns:", "lambda:", "states:"];
    for function in ["Master", "Emitter", "Handler"] {
        let calls = |of: &&Value| {
            texts(&of["Action"])
                .iter()
                .any(|action| services.iter().any(|service| action.starts_with(service)))
        };
        let called: Vec<&Value> = statements(&template, function).into_iter().filter(calls).collect();
        assert_eq!(called.is_empty(), function != "Handler", "{function}");
    }
    let targets = statement(&template, "Handler", "TargetsOfServices");
    assert_eq!((&targets["Effect"], &targets["Condition"]), (&json!("Allow"), &Value::Null));
    assert_eq!(targets["Resource"], json!({"Split": [",", {"Ref": "TargetArns"}]}));
    let actions = ["events:PutEvents", "sns:Publish", "lambda:InvokeFunction", "states:StartExecution"];
    assert_eq!(texts(&targets["Action"]), actions);
    let never = statement(&template, "Handler", "NeverOwnFunctions");
    assert_eq!((&never["Effect"], texts(&never["Action"])), (&json!("Deny"), vec!["lambda:InvokeFunction"]));
    let denied: Vec<&str> =
        list(&never["Resource"]).into_iter().filter_map(|of| of["Sub"].as_str()).collect();
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let suffix = function["Properties"]["FunctionName"]["Sub"].as_str().unwrap_or_default();
        for end in ["", ":*"] {
            let arn = format!("function:{suffix}{end}");
            assert!(denied.iter().any(|denied| denied.ends_with(&arn)), "{name}: {arn}");
        }
    }
}

/// The bus is the operator's, and each function publishes to it.
#[test]
fn the_queue_of_the_bus_is_sent_to_by_all_functions_where_there_is_one() {
    let template = template();
    for function in ["Master", "Emitter", "Handler"] {
        let bus = statement(&template, function, "Bus");
        assert_eq!((&bus["Effect"], texts(&bus["Action"])), (&json!("Allow"), vec!["sqs:SendMessage"]));
        assert_eq!(bus["Resource"], json!({"Ref": "BusQueueArn"}), "{function}");
    }
    let when = json!({"Not": [{"Equals": [{"Ref": "BusQueueArn"}, ""]}]});
    assert_eq!(template["Conditions"]["PublishToQueue"], when);
}

/// A key opens what is stored and sent with it, and nothing else that is encrypted under it.
#[test]
fn keys_are_used_by_way_of_the_services_that_store_with_them() {
    let template = template();
    let own = json!({"StringEquals": {"kms:ViaService": [
        {"Sub": "dynamodb.${AWS::Region}.${AWS::URLSuffix}"},
        {"Sub": "sqs.${AWS::Region}.${AWS::URLSuffix}"},
    ]}});
    // Queues may be in any region.
    let of_targets = json!({"StringLike": {"kms:ViaService": "sqs.*"}});
    for function in ["Master", "Emitter", "Handler"] {
        for statement in statements(&template, function) {
            if !texts(&statement["Action"]).iter().any(|action| action.starts_with("kms:")) {
                continue;
            }
            let condition = match statement["Sid"].as_str() {
                Some("OwnKey") => &own,
                Some("TargetKeys") => &of_targets,
                sid => panic!("{function} {sid:?}"),
            };
            assert_eq!(&statement["Condition"], condition, "{function}");
            assert_eq!(statement["Effect"], "Allow", "{function}");
        }
        let key = statement(&template, function, "OwnKey");
        assert_eq!(key["Resource"], json!({"Ref": "KmsKeyArn"}), "{function}");
    }
    for function in SENDERS {
        let keys = statement(&template, function, "TargetKeys");
        assert_eq!(keys["Resource"], json!({"Split": [",", {"Ref": "TargetKeyArns"}]}), "{function}");
    }
}
