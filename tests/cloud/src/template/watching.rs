//! Alarms and the dashboard.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{of_type, properties, template};

fn alarms(template: &Value) -> impl Iterator<Item = (&str, &Value)> {
    of_type(template, "AWS::CloudWatch::Alarm").into_iter().map(|(name, alarm)| (name, &alarm["Properties"]))
}

/// A metric, by its namespace and name.
type Metric = (String, String);

fn metric(namespace: &Value, name: &Value) -> Metric {
    (namespace.as_str().unwrap().to_owned(), name.as_str().unwrap().to_owned())
}

fn alarmed(template: &Value) -> BTreeSet<Metric> {
    alarms(template).map(|(_, alarm)| metric(&alarm["Namespace"], &alarm["MetricName"])).collect()
}

fn dashboard(template: &Value) -> Value {
    let body = &properties(template, "TidegateDashboard")["DashboardBody"]["Sub"];
    serde_json::from_str(body.as_str().unwrap()).expect("the dashboard's body is JSON")
}

fn shown(template: &Value) -> BTreeSet<Metric> {
    let body = dashboard(template);
    let widgets = body["widgets"].as_array().unwrap().iter();
    let metrics = widgets.flat_map(|widget| widget["properties"]["metrics"].as_array().unwrap());
    metrics.map(|of| metric(&of[0], &of[1])).collect()
}

fn of_ours(metrics: BTreeSet<Metric>) -> BTreeSet<String> {
    metrics.into_iter().filter(|(space, _)| space == "Tidegate").map(|(_, name)| name).collect()
}

#[test]
fn every_metric_of_ours_is_on_the_dashboard_and_all_but_three_have_an_alarm() {
    let template = template();
    let mut written: BTreeSet<String> = tidegate_aws::metrics().map(str::to_owned).collect();
    assert_eq!(of_ours(shown(&template)), written);
    // A conflict is repeated, and says nothing of a deployment's health.
    assert!(written.remove("Conflicts"));
    // The client whose launch it is is told of each.
    assert!(written.remove("Overdue"));
    // Reports lack something; nothing else does.
    assert!(written.remove("BusDropped"));
    assert_eq!(of_ours(alarmed(&template)), written);
    let stack = json!([{"Name": "Stack", "Value": {"Ref": "AWS::StackName"}}]);
    for (name, alarm) in alarms(&template).filter(|(_, alarm)| alarm["Namespace"] == "Tidegate") {
        assert_eq!(alarm["Dimensions"], stack, "{name}");
    }
}

#[test]
fn the_dashboard_shows_what_alarms_watch() {
    let template = template();
    let unseen: Vec<_> = alarmed(&template).difference(&shown(&template)).cloned().collect();
    assert_eq!(unseen, []);
}

#[test]
fn alarms_are_raised_and_ended_where_there_is_a_topic() {
    let template = template();
    let topic = json!([{"Ref": "AlarmTopicArn"}]);
    for (name, alarm) in alarms(&template) {
        assert_eq!(template["Resources"][name]["Condition"], "RaiseAlarms", "{name}");
        assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&topic, &topic), "{name}");
    }
    let when = json!({"Not": [{"Equals": [{"Ref": "AlarmTopicArn"}, ""]}]});
    assert_eq!(template["Conditions"]["RaiseAlarms"], when);
}

#[test]
fn every_function_is_watched_for_errors_throttles_and_its_time() {
    let template = template();
    for (function, resource) in of_type(&template, "AWS::Serverless::Function") {
        let name = function.strip_suffix("Function").unwrap();
        let of_function = json!([{"Name": "FunctionName", "Value": {"Ref": function}}]);
        for metric in ["Errors", "Throttles", "Duration"] {
            let alarm = properties(&template, &format!("{name}{metric}Alarm"));
            assert_eq!(
                (&alarm["MetricName"], &alarm["Dimensions"]),
                (&json!(metric), &of_function),
                "{name}"
            );
        }
        let timeout_s = resource["Properties"]["Timeout"].as_u64().unwrap();
        let alarm = properties(&template, &format!("{name}DurationAlarm"));
        let threshold_ms = alarm["Threshold"].as_u64().unwrap();
        assert!(threshold_ms < timeout_s * 1_000, "{name}: {threshold_ms} ms of {timeout_s} s");
        let told = alarm["AlarmDescription"].as_str().unwrap();
        assert!(told.contains(&format!("{timeout_s} seconds")), "{told}");
    }
}
