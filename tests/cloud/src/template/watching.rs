//! Alarms and the dashboard.

use std::collections::BTreeSet;

use serde_json::json;

use super::template;

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
