//! What the model takes from `template.yaml` is what stands there.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud::RECEIVED_AT_MOST;
use crate::lambda::event_source::{BATCH, HIDDEN, SCAN_BATCH, SCAN_HIDDEN};
use crate::lambda::schedule::EVENT_AGE;
use crate::lambda::{AllPollers, Configured, Function, Pollers};
use crate::limits::NEW_ACCOUNT_CONCURRENCY;

fn template() -> Value {
    tidegate_testkit::template().unwrap()
}

fn properties<'t>(template: &'t Value, resource: &str) -> &'t Value {
    &template["Resources"][resource]["Properties"]
}

fn seconds(duration: Duration) -> Value {
    json!(duration.as_secs())
}

#[test]
fn functions_have_the_memory_and_time_of_the_template() {
    let template = template();
    for (function, name) in [
        (Function::Master, "MasterFunction"),
        (Function::Emitter, "EmitterFunction"),
        (Function::Handler, "HandlerFunction"),
    ] {
        let Configured { memory_mb, timeout, reserved } = function.as_deployed();
        let properties = properties(&template, name);
        assert_eq!(properties["MemorySize"], memory_mb, "{name}");
        assert_eq!(properties["Timeout"], seconds(timeout), "{name}");
        // A new account has none to reserve.
        assert_eq!(reserved, None);
        let parameter = name.replace("Function", "Concurrency");
        assert_eq!(template["Parameters"][&parameter]["Default"], 0, "{parameter}");
    }
}

#[test]
fn ticks_wait_for_as_long_as_in_the_template_and_begin_with_the_minute() {
    let template = template();
    let emitter = properties(&template, "EmitterFunction");
    assert_eq!(emitter["EventInvokeConfig"]["MaximumEventAgeInSeconds"], seconds(EVENT_AGE));
    assert_eq!(emitter["EventInvokeConfig"]["MaximumRetryAttempts"], 0);
    assert_eq!(emitter["Events"]["Tick"]["Properties"]["Schedule"], "cron(* * * * ? *)");
}

#[test]
fn queues_hide_and_give_up_as_in_the_template() {
    let template = template();
    for (name, hidden, received) in [
        ("DispatchQueue", HIDDEN, json!(RECEIVED_AT_MOST)),
        ("ReleaseQueue", HIDDEN, json!(RECEIVED_AT_MOST)),
        ("ScanQueue", SCAN_HIDDEN, Value::Null),
    ] {
        let queue = properties(&template, name);
        assert_eq!(queue["VisibilityTimeout"], seconds(hidden), "{name}");
        assert_eq!(queue["RedrivePolicy"]["maxReceiveCount"], received, "{name}");
    }
}

/// The default of the parameter that is an event source's maximum concurrency, and its batch size.
fn source(template: &Value, function: &str, event: &str) -> (u64, i64) {
    let source = &properties(template, function)["Events"][event]["Properties"];
    let scaling = &source["ScalingConfig"];
    let maximum = scaling["If"][2]["MaximumConcurrency"].as_object();
    let maximum = maximum.or_else(|| scaling["MaximumConcurrency"].as_object()).unwrap();
    let parameter = maximum["Ref"].as_str().unwrap();
    let default = template["Parameters"][parameter]["Default"].as_u64().unwrap();
    (default, source["BatchSize"].as_i64().unwrap())
}

#[test]
fn pollers_of_a_new_account_are_those_of_the_template_and_leave_room_for_the_tick() {
    let template = template();
    let AllPollers { dispatch, release, scan } = AllPollers::as_deployed();
    let mut together = 0;
    for (function, event, pollers, batch) in [
        ("HandlerFunction", "Dispatch", dispatch, BATCH),
        ("HandlerFunction", "Release", release, BATCH),
        ("EmitterFunction", "Scan", scan, SCAN_BATCH),
    ] {
        let (maximum, size) = source(&template, function, event);
        assert!(
            matches!(pollers, Pollers::OnDemand { maximum: Some(of_model) } if of_model as u64 == maximum),
            "{event}: {pollers:?}, not {maximum}"
        );
        assert_eq!(size, i64::from(batch), "{event}");
        together += maximum;
    }
    // One for the tick, one for the API.
    assert!(together + 2 <= NEW_ACCOUNT_CONCURRENCY as u64, "{together} of {NEW_ACCOUNT_CONCURRENCY}");
}

/// Every alarm and widget of ours shows a metric that functions write, and every metric is shown somewhere.
#[test]
fn metrics_that_are_watched_are_written_and_those_that_are_written_are_watched() {
    let template = template();
    let written: BTreeSet<&str> = tidegate_aws::metrics().collect();
    let resources = template["Resources"].as_object().unwrap();
    let of_type = |name: &'static str| resources.values().filter(move |resource| resource["Type"] == name);
    let (mut watched, stack) =
        (BTreeSet::new(), json!([{"Name": "Stack", "Value": {"Ref": "AWS::StackName"}}]));
    for alarm in of_type("AWS::CloudWatch::Alarm").map(|alarm| &alarm["Properties"]) {
        if alarm["Namespace"] == "Tidegate" {
            assert_eq!(alarm["Dimensions"], stack, "{alarm}");
            watched.insert(alarm["MetricName"].as_str().unwrap().to_owned());
        }
    }
    assert!(watched.len() >= 8, "{watched:?}");
    for dashboard in of_type("AWS::CloudWatch::Dashboard") {
        let body = dashboard["Properties"]["DashboardBody"].to_string();
        let widgets = body.split(r#"\"Tidegate\", \""#).skip(1);
        watched.extend(widgets.filter_map(|rest| Some(rest.split_once('\\')?.0.to_owned())));
    }
    let watched: BTreeSet<&str> = watched.iter().map(String::as_str).collect();
    assert_eq!(watched, written);
}

/// A first deployment that fails leaves no tables behind that the next one would meet; any other keeps them.
#[test]
fn tables_outlive_their_stack_unless_it_never_was() {
    let template = template();
    let resources = template["Resources"].as_object().unwrap();
    let tables = resources.iter().filter(|(_, resource)| resource["Type"] == "AWS::DynamoDB::Table");
    let mut count = 0;
    for (name, table) in tables {
        assert_eq!(
            table["DeletionPolicy"],
            json!({"If": ["KeepTables", "RetainExceptOnCreate", "Delete"]}),
            "{name}"
        );
        assert_eq!(table["UpdateReplacePolicy"], json!({"If": ["KeepTables", "Retain", "Delete"]}), "{name}");
        // They are made last: whatever else fails, fails before there is anything to keep.
        let after: BTreeSet<&str> =
            table["DependsOn"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(after.len() >= 5 && after.iter().all(|name| name.contains("Function")), "{name}: {after:?}");
        let properties = &table["Properties"];
        assert_eq!(
            properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true,
            "{name}"
        );
        assert!(!properties["DeletionProtectionEnabled"].is_null(), "{name}");
        count += 1;
    }
    assert_eq!(count, 7);
    assert_eq!(template["Parameters"]["TableDeletionPolicy"]["Default"], "Retain");
}
