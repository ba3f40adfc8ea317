//! What the documents say of the template.

use std::collections::{BTreeMap, BTreeSet};

use crate::dynamodb::TableOptions;
use crate::lambda::{AllPollers, Function, Pollers};

use super::{default_of, document, of_type, quoted, rows, template};

fn operations() -> String {
    document("docs/operations.md")
}

fn number(cell: &str) -> u64 {
    cell.replace(',', "").trim().parse().unwrap_or_else(|_| panic!("no number: {cell}"))
}

/// The set of parameters for an account of 1,000, by the table of the document: the default and the large value of each.
fn sets(document: &str) -> BTreeMap<String, (u64, u64)> {
    let mut sets = BTreeMap::new();
    for row in rows(document, "parameter").iter().filter(|row| row.len() == 4) {
        let (names, defaults, large) = (quoted(&row[0]), split(&row[1]), split(&row[2]));
        assert_eq!((names.len(), names.len()), (defaults.len(), large.len()), "{row:?}");
        for (index, name) in names.into_iter().enumerate() {
            sets.insert(name.to_owned(), (number(defaults[index]), number(large[index])));
        }
    }
    sets
}

/// Numbers with `, ` between.
fn split(cell: &str) -> Vec<&str> {
    cell.split(", ").collect()
}

#[test]
fn the_set_for_a_large_account_has_the_template_s_defaults_beside_it() {
    let template = template();
    for (name, (default, _)) in sets(&operations()) {
        let of_template = default_of(&template, &name);
        let of_template = of_template.as_u64().unwrap_or_else(|| number(of_template.as_str().unwrap()));
        assert_eq!(default, of_template, "{name}");
    }
}

/// Of an account's 1,000, AWS keeps 100 for functions without a reservation.
#[test]
fn the_set_for_a_large_account_does_not_contradict_itself() {
    let sets = sets(&operations());
    let large = |name: &str| sets[name].1;
    let (handler, release) = (large("HandlerConcurrency"), large("ReleaseMaximumConcurrency"));
    assert!(large("EmitterConcurrency") > large("ScanMaximumConcurrency"), "the tick finds none");
    assert!(handler >= large("DispatchMaximumConcurrency") + release, "{handler}");
    // Each poller calls up to ten handlers at once.
    assert!(handler >= 10 * large("HandlerMaximumPollers") + release, "{handler}");
    assert!(large("HandlerMinimumPollers") <= large("HandlerMaximumPollers"));
    let together = handler + large("EmitterConcurrency") + large("MasterConcurrency");
    assert!(together <= 900, "{together}");
}

#[test]
fn the_set_for_a_large_account_is_what_is_played() {
    let sets = sets(&operations());
    let large = |name: &str| sets[name].1;
    let reserved = |function: Function| function.in_large_account().reserved.unwrap() as u64;
    assert_eq!(reserved(Function::Master), large("MasterConcurrency"));
    assert_eq!(reserved(Function::Emitter), large("EmitterConcurrency"));
    assert_eq!(reserved(Function::Handler), large("HandlerConcurrency"));
    let AllPollers { dispatch, release, scan } = AllPollers::in_large_account();
    let Pollers::Provisioned { minimum, maximum } = dispatch else { panic!("{dispatch:?}") };
    assert_eq!(minimum as u64, large("HandlerMinimumPollers"));
    assert_eq!(maximum as u64, large("HandlerMaximumPollers"));
    for (pollers, name) in [(release, "ReleaseMaximumConcurrency"), (scan, "ScanMaximumConcurrency")] {
        let Pollers::OnDemand { maximum: Some(maximum) } = pollers else { panic!("{name}: {pollers:?}") };
        assert_eq!(maximum as u64, large(name), "{name}");
    }
    let (writes, reads) = TableOptions::WARM_IN_LARGE_ACCOUNT;
    assert_eq!((writes as u64, reads as u64), (large("WarmWriteUnits"), large("WarmReadUnits")));
}

#[test]
fn every_alarm_is_explained() {
    let (template, document) = (template(), operations());
    let explained: Vec<_> = rows(&document, "alarm").into_iter().map(|row| row[0].clone()).collect();
    let explained: Vec<&str> = explained.iter().flat_map(|cell| quoted(cell)).collect();
    let alarms: BTreeSet<&str> = of_type(&template, "AWS::CloudWatch::Alarm").into_keys().collect();
    assert_eq!(explained.len(), alarms.len(), "each once");
    assert_eq!(explained.into_iter().collect::<BTreeSet<_>>(), alarms);
}

/// Ten alarms of an account cost nothing, each other 0.10 a month; each metric 0.30.
#[test]
fn alarms_and_metrics_are_counted_and_priced() {
    let (template, document) = (template(), operations());
    let alarms = of_type(&template, "AWS::CloudWatch::Alarm").len();
    for said in [
        format!("the stack has {alarms} alarms"),
        format!("the stack has {alarms} |"),
        format!("| {alarms} alarms | with `AlarmTopicArn` | {:.2},", 0.1 * alarms as f64),
    ] {
        assert!(document.contains(&said), "not said: {said}");
    }
    let metrics = tidegate_aws::metrics().count();
    let said = format!(
        "metrics: `WatermarkLag` and `Lateness`, 0.30 each; the other {} in the hours in which they have something to tell | always | 0.60, up to {:.2} |",
        metrics - 2,
        0.3 * metrics as f64
    );
    assert!(document.contains(&said), "not said: {said}");
}

#[test]
fn every_parameter_is_in_one_group_and_explained() {
    let template = template();
    let parameters: BTreeSet<&str> =
        template["Parameters"].as_object().unwrap().keys().map(String::as_str).collect();
    let groups =
        template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"].as_array().unwrap();
    let grouped: Vec<&str> = groups.iter().flat_map(|group| super::texts(&group["Parameters"])).collect();
    assert_eq!(grouped.len(), parameters.len(), "each once: {grouped:?}");
    assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), parameters);
    let documents = ["docs/operations.md", "docs/quick-start.md", "README.md"].map(document).concat();
    let unexplained: Vec<_> = parameters.into_iter().filter(|name| !documents.contains(name)).collect();
    assert_eq!(unexplained, Vec::<&str>::new());
}
