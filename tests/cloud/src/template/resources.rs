//! Tables, queues, functions and parameters.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::template;

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
