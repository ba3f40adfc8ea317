//! What the model takes from `template.yaml` is what stands there.

use std::time::Duration;

use serde_json::{Value, json};

use super::{properties, template};
use crate::cloud::RECEIVED_AT_MOST;
use crate::lambda::event_source::{BATCH, HIDDEN, SCAN_BATCH, SCAN_HIDDEN};
use crate::lambda::schedule::EVENT_AGE;
use crate::lambda::{AllPollers, Configured, Function, Pollers};
use crate::limits::NEW_ACCOUNT_CONCURRENCY;

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
