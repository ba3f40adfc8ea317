//! Tables, queues, functions and outputs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{default_of, list, of_type, properties, template};

/// What nobody can do without a table, and what CloudFormation makes at the same time unless it is told to wait.
const MADE_BY_SAM: [&str; 9] = [
    "MasterFunctionUrl",
    "MasterFunctionUrlPublicPermissions",
    "MasterFunctionURLInvokeAllowPublicAccess",
    "EmitterFunctionTick",
    "EmitterFunctionTickPermission",
    "EmitterFunctionEventInvokeConfig",
    "EmitterFunctionScan",
    "HandlerFunctionDispatch",
    "HandlerFunctionRelease",
];
/// Tables that a herd falls upon: all but those of a few rows.
const HOT: [&str; 5] = ["JobsTable", "LaunchTable", "RunsTable", "EventsTable", "PoliciesTable"];
/// What the names of functions, rules and queues may have of characters.
const NAMES: [(&str, &str, usize); 3] = [
    ("AWS::Serverless::Function", "FunctionName", 64),
    ("AWS::SQS::Queue", "QueueName", 80),
    ("AWS::CloudWatch::Dashboard", "DashboardName", 255),
];

fn strings(value: &Value) -> BTreeSet<&str> {
    list(value).into_iter().filter_map(Value::as_str).collect()
}

/// A first deployment that fails leaves no tables behind that the next one would meet; any other keeps them.
#[test]
fn tables_outlive_their_stack_unless_it_never_was() {
    let template = template();
    let tables = of_type(&template, "AWS::DynamoDB::Table");
    assert_eq!(tables.len(), 7);
    for (name, table) in tables {
        let deletion = json!({"If": ["KeepTables", "RetainExceptOnCreate", "Delete"]});
        assert_eq!(table["DeletionPolicy"], deletion, "{name}");
        assert_eq!(table["UpdateReplacePolicy"], json!({"If": ["KeepTables", "Retain", "Delete"]}), "{name}");
        let properties = &table["Properties"];
        assert_eq!(
            properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true,
            "{name}"
        );
        assert_eq!(
            properties["DeletionProtectionEnabled"],
            json!({"If": ["ProtectTables", true, false]}),
            "{name}"
        );
    }
    assert_eq!(default_of(&template, "TableDeletionPolicy"), "Retain");
    assert_eq!(default_of(&template, "TableDeletionProtection"), "true");
    let protect = json!({"Equals": [{"Ref": "TableDeletionProtection"}, "true"]});
    assert_eq!(template["Conditions"]["ProtectTables"], protect);
}

/// Whatever else fails, fails before there is anything to keep: the first table waits for all that CloudFormation would make
/// beside it, and the others wait for the first.
#[test]
fn tables_come_last() {
    let template = template();
    for (name, table) in of_type(&template, "AWS::DynamoDB::Table") {
        match name {
            "JobsTable" => assert_eq!(strings(&table["DependsOn"]), BTreeSet::from(MADE_BY_SAM)),
            _ => assert_eq!(table["DependsOn"], "JobsTable", "{name}"),
        }
    }
    let resources = template["Resources"].as_object().unwrap();
    let conditional = resources.iter().filter_map(|(name, resource)| {
        Some(json!({"If": [resource["Condition"].as_str()?, {"Ref": name}, ""]}).to_string())
    });
    let after = list(&template["Resources"]["JobsTable"]["Metadata"]["After"]);
    let after: BTreeSet<String> = after.into_iter().map(Value::to_string).collect();
    assert_eq!(after, conditional.collect());
    // What is left has no condition and is used by a function: roles, logs, queues.
    let others: BTreeSet<&str> = resources
        .values()
        .filter(|resource| resource["Condition"].is_null())
        .filter_map(|resource| resource["Type"].as_str())
        .collect();
    let known = [
        "AWS::DynamoDB::Table",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::Logs::LogGroup",
        "AWS::SQS::Queue",
        "AWS::Serverless::Function",
    ];
    assert_eq!(others, BTreeSet::from(known));
}

#[test]
fn tables_have_the_prefix_that_functions_are_told() {
    let template = template();
    let prefix = json!({"If": ["TablesAfterStack", {"Ref": "AWS::StackName"}, {"Ref": "TablePrefix"}]});
    for (name, table) in of_type(&template, "AWS::DynamoDB::Table") {
        let join = &table["Properties"]["TableName"]["Join"];
        assert_eq!((&join[0], &join[1][0]), (&json!("-"), &prefix), "{name}");
    }
    let told = &template["Globals"]["Function"]["Environment"]["Variables"]["TIDEGATE_TABLE_PREFIX"];
    assert_eq!(told, &prefix);
    assert_eq!(template["Outputs"]["TablePrefixInUse"]["Value"], prefix);
    let by_stack = json!({"Equals": [{"Ref": "TablePrefix"}, ""]});
    assert_eq!(template["Conditions"]["TablesAfterStack"], by_stack);
}

#[test]
fn tables_that_a_herd_falls_upon_can_be_warmed() {
    let template = template();
    let warm = json!({"If": [
        "WarmTables",
        {"ReadUnitsPerSecond": {"Ref": "WarmReadUnits"}, "WriteUnitsPerSecond": {"Ref": "WarmWriteUnits"}},
        {"Ref": "AWS::NoValue"},
    ]});
    let tables = of_type(&template, "AWS::DynamoDB::Table").into_iter();
    let warmed = tables.filter(|(_, table)| table["Properties"]["WarmThroughput"] == warm);
    assert_eq!(warmed.map(|(name, _)| name).collect::<BTreeSet<_>>(), BTreeSet::from(HOT));
}

#[test]
fn a_customer_s_key_is_for_all_that_is_stored() {
    let template = template();
    let (key, none) = (json!({"Ref": "KmsKeyArn"}), json!({"Ref": "AWS::NoValue"}));
    let when = |then: &Value, otherwise: &Value| json!({"If": ["CustomerKey", then, otherwise]});
    let of_table = json!({"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": key});
    for (name, table) in of_type(&template, "AWS::DynamoDB::Table") {
        assert_eq!(table["Properties"]["SSESpecification"], when(&of_table, &none), "{name}");
    }
    for (name, queue) in of_type(&template, "AWS::SQS::Queue") {
        assert_eq!(queue["Properties"]["KmsMasterKeyId"], when(&key, &none), "{name}");
        assert_eq!(queue["Properties"]["SqsManagedSseEnabled"], when(&none, &json!(true)), "{name}");
    }
    for (name, logs) in of_type(&template, "AWS::Logs::LogGroup") {
        assert_eq!(logs["Properties"]["KmsKeyId"], when(&key, &none), "{name}");
    }
}

#[test]
fn every_queue_refuses_calls_without_tls_unless_told_otherwise() {
    let template = template();
    let policy = properties(&template, "QueuesPolicy");
    let covered = list(&policy["Queues"]).into_iter().filter_map(|queue| queue["Ref"].as_str());
    let queues: BTreeSet<&str> = of_type(&template, "AWS::SQS::Queue").into_keys().collect();
    assert_eq!(covered.collect::<BTreeSet<_>>(), queues);
    let refused = json!([{
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": "*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }]);
    assert_eq!(policy["PolicyDocument"]["Statement"], refused);
    assert_eq!(template["Resources"]["QueuesPolicy"]["Condition"], "TlsOnly");
    assert_eq!(default_of(&template, "DemandTls"), "true");
}

/// As Lambda asks for: room for its retries of a batch that it was throttled with.
#[test]
fn queues_hide_messages_for_six_times_as_long_as_their_function_runs() {
    let template = template();
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let timeout = function["Properties"]["Timeout"].as_u64().unwrap();
        let events = function["Properties"]["Events"].as_object().into_iter().flat_map(|all| all.values());
        for queue in events.filter_map(|event| event["Properties"]["Queue"]["GetAtt"].as_str()) {
            let queue = queue.trim_end_matches(".Arn");
            let hidden = properties(&template, queue)["VisibilityTimeout"].as_u64().unwrap();
            assert!(hidden >= 6 * timeout, "{queue} hides for {hidden} s, the {name} runs for {timeout} s");
        }
    }
}

/// Lambda takes 2 to 1,000 calls at once of an event source, and 2 to 200 pollers that are kept.
#[test]
fn parameters_of_event_sources_have_lambda_s_bounds() {
    let template = template();
    let parameter = |name: &str| &template["Parameters"][name];
    for name in ["DispatchMaximumConcurrency", "ReleaseMaximumConcurrency", "ScanMaximumConcurrency"] {
        let bounds = (&parameter(name)["MinValue"], &parameter(name)["MaxValue"]);
        assert_eq!(bounds, (&json!(2), &json!(1000)), "{name}");
    }
    let most = parameter("HandlerMaximumPollers");
    assert_eq!((&most["MinValue"], &most["MaxValue"]), (&json!(2), &json!(2000)));
    assert_eq!(parameter("HandlerMinimumPollers")["AllowedPattern"], "0|[2-9]|[1-9][0-9]|1[0-9][0-9]|200");
    let dispatch = &properties(&template, "HandlerFunction")["Events"]["Dispatch"]["Properties"];
    let (on_demand, provisioned) =
        (&dispatch["ScalingConfig"]["If"], &dispatch["ProvisionedPollerConfig"]["If"]);
    assert_eq!((&on_demand[0], &on_demand[1]), (&json!("ProvisionPollers"), &json!({"Ref": "AWS::NoValue"})));
    assert_eq!((&provisioned[0], &provisioned[2]), (&on_demand[0], &on_demand[1]), "one or the other");
}

/// A list that is split by commas would take blanks along, and a queue's URL in the place of its ARN would allow nothing.
#[test]
fn parameters_that_are_arns_are_checked() {
    let template = template();
    for (name, service) in [
        ("TargetQueueArns", "sqs"),
        ("TargetKeyArns", "kms"),
        ("TargetArns", "events|sns|lambda|states"),
        ("KmsKeyArn", "kms"),
        ("AlarmTopicArn", "sns"),
        ("BusQueueArn", "sqs"),
    ] {
        let pattern = template["Parameters"][name]["AllowedPattern"].as_str().unwrap_or_default();
        assert!(
            pattern.starts_with("(arn:") && pattern.contains(service) && pattern.ends_with(")?"),
            "{name}"
        );
        assert_eq!(default_of(&template, name), "", "{name}");
    }
}

#[test]
fn logs_are_json_and_end() {
    let template = template();
    let logging = &template["Globals"]["Function"]["LoggingConfig"];
    assert_eq!((&logging["LogFormat"], &logging["ApplicationLogLevel"]), (&json!("JSON"), &json!("TRACE")));
    for (name, function) in of_type(&template, "AWS::Serverless::Function") {
        let group = function["Properties"]["LoggingConfig"]["LogGroup"]["Ref"].as_str().unwrap();
        let logs = properties(&template, group);
        assert_eq!(logs["RetentionInDays"], json!({"Ref": "LogRetentionDays"}), "{name}");
    }
    assert_eq!(of_type(&template, "AWS::Logs::LogGroup").len(), 3);
}

/// Queues of other accounts name the roles in their policies.
#[test]
fn roles_and_the_release_queue_are_outputs() {
    let template = template();
    for (output, of) in [
        ("MasterRoleArn", "MasterRole.Arn"),
        ("EmitterRoleArn", "EmitterRole.Arn"),
        ("HandlerRoleArn", "HandlerRole.Arn"),
        ("ReleaseQueueArn", "ReleaseQueue.Arn"),
        ("ApiUrl", "MasterFunctionUrl.FunctionUrl"),
    ] {
        assert_eq!(template["Outputs"][output]["Value"], json!({"GetAtt": of}), "{output}");
    }
}

/// The longest name decides, and it is that of a function, which is refused before there is a table.
#[test]
fn a_stack_s_name_may_be_as_long_as_the_documents_say() {
    let template = template();
    let mut room = Vec::new();
    for (kind, property, most) in NAMES {
        for (name, resource) in of_type(&template, kind) {
            let pattern = &resource["Properties"][property];
            let end = pattern["Sub"].as_str().map(|text| text.strip_prefix("${AWS::StackName}").unwrap());
            assert!(end.is_some() || pattern["Ref"] == "AWS::StackName", "{name}: {pattern}");
            room.push((most - end.unwrap_or_default().len(), name));
        }
    }
    let tick = &properties(&template, "EmitterFunction")["Events"]["Tick"]["Properties"]["Name"];
    let tick = tick["Sub"].as_str().unwrap().strip_prefix("${AWS::StackName}").unwrap();
    room.push((64 - tick.len(), "the rule"));
    let (least, of) = room.into_iter().min().unwrap();
    assert!(of.ends_with("Function"), "{of}");
    for path in ["template.yaml", "docs/operations.md"] {
        let text = super::document(path).replace("\n# ", " ");
        assert!(text.contains(&format!("may have up to {least} characters")), "{path}: {least}");
    }
}
