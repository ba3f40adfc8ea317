//! Targets in other services of AWS: a bus, a topic, a function and a state machine, each of which passes on what it got.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tidegate_e2e::api::Api;
use tidegate_e2e::consumers::Consumers;
use tidegate_e2e::deployed::Deployed;
use tidegate_e2e::queue::Queue;
use tokio::time::{sleep, timeout};

const WITHIN: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(500);
const COUNT: u64 = 2;
const KINDS: [&str; 4] = ["event_bridge", "lambda", "sns", "step_functions"];

fn soon() -> Value {
    json!({"at": (Utc::now() + TimeDelta::seconds(3)).to_rfc3339_opts(SecondsFormat::Secs, true)})
}

/// The kind of target that passed a message on, and the event as it got it there.
fn passed_on(message: &str) -> Result<(&'static str, Value)> {
    let mut message: Value = serde_json::from_str(message)?;
    if message["detail-type"] == "Arrival" && message["source"] == "tidegate.e2e" {
        return Ok(("event_bridge", message["detail"].take()));
    }
    if message["Type"] == "Notification" {
        let event: Value = serde_json::from_str(message["Message"].as_str().context("no text")?)?;
        let attribute = &message["MessageAttributes"]["event_id"]["Value"];
        ensure!(*attribute == event["event_id"], "the attributes are of another event: {message}");
        return Ok(("sns", event));
    }
    if message["execution"].is_string() {
        return Ok(("step_functions", message["input"].take()));
    }
    ensure!(message["invoked_with"].is_object(), "nobody passes this on: {message}");
    Ok(("lambda", message["invoked_with"].take()))
}

async fn until_succeeded(api: &Api, job_id: &str) -> Result<()> {
    let path = format!("/v1/jobs/{job_id}/runs");
    let finished = async {
        while api.get(&path).await?.expect(200)?["runs"][0]["succeeded"] != COUNT {
            sleep(POLL_EVERY).await;
        }
        Ok::<(), anyhow::Error>(())
    };
    timeout(WITHIN, finished).await.with_context(|| format!("the events of {job_id} did not all succeed"))?
}

#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn a_bus_a_topic_a_function_and_a_state_machine_get_events_under_a_policy() -> Result<()> {
    let (deployed, consumers) = (Deployed::from_environment()?, Consumers::from_environment()?);
    let api = Api::register(&deployed, "services-user").await?.api;
    let arrivals = Queue::at(consumers.output("ArrivalsUrl")?).await;
    let bus =
        json!({"bus_arn": consumers.output("BusArn")?, "source": "tidegate.e2e", "detail_type": "Arrival"});
    let targets = [
        json!({"event_bridge": bus}),
        json!({"lambda": {"function_arn": consumers.output("FunctionArn")?}}),
        json!({"sns": {"topic_arn": consumers.output("TopicArn")?}}),
        json!({"step_functions": {"state_machine_arn": consumers.output("StateMachineArn")?}}),
    ];
    for (kind, target) in KINDS.into_iter().zip(targets) {
        let policy = json!({"policy_id": kind, "max_in_flight": 1});
        api.post("/v1/policies", policy).await?.expect(201)?;
        let job = json!({"trigger": soon(), "policy_id": kind, "count": COUNT, "target": target,
            "payload": {"to": kind, "text": "\"Grüße\" & <more>"}});
        api.put(&format!("/v1/jobs/{kind}"), job).await?.expect(201)?;
    }

    let mut arrived = BTreeMap::new();
    while arrived.len() < KINDS.len() * 2 {
        let message = arrivals.next_message(WITHIN).await.with_context(|| format!("after {arrived:?}"))?;
        let (kind, event) = passed_on(&message)?;
        let payload = json!({"to": kind, "text": "\"Grüße\" & <more>"});
        ensure!(event["job_id"] == kind && event["payload"] == payload, "{kind} passed on {event}");
        ensure!(event["count"] == COUNT && event["attempt"] == 1, "{kind} passed on {event}");
        let event_id = format!("{}.{}", event["run_id"].as_str().context("no run")?, event["index"]);
        ensure!(event["event_id"] == event_id, "{kind} passed on {event}");
        // The other event of its policy comes only now.
        api.release(event["token"].as_str().context("no token")?).await?;
        ensure!(arrived.insert(event_id, kind).is_none(), "{kind} passed on {event} twice");
    }
    for kind in KINDS {
        until_succeeded(&api, kind).await?;
    }
    Ok(())
}

/// `TargetArns` of the deployment names other buses only, so its role may not put events here. That is a failure like others: the
/// permission may come.
#[tokio::test]
#[ignore = "needs a deployed stack: cargo xtask e2e"]
async fn what_the_deployment_does_not_name_is_not_allowed_and_its_events_say_so() -> Result<()> {
    let (deployed, consumers) = (Deployed::from_environment()?, Consumers::from_environment()?);
    let api = Api::register(&deployed, "services-stranger").await?.api;
    let (place, _) = consumers.output("BusArn")?.rsplit_once('/').context("an ARN without a name")?;
    let job = json!({"trigger": soon(), "retry": {"backoff": "none"}, "history": "all",
        "target": {"event_bridge": {"bus_arn": format!("{place}/default")}}});
    api.put("/v1/jobs/elsewhere", job).await?.expect(201)?;
    let dead = async {
        loop {
            let listed = api.get("/v1/dead-letters?job_id=elsewhere").await?.expect(200)?;
            if let Some(letter) = listed["dead_letters"].get(0) {
                return Ok::<Value, anyhow::Error>(letter.clone());
            }
            sleep(POLL_EVERY).await;
        }
    };
    let letter = timeout(WITHIN, dead).await.context("no dead letter")??;
    ensure!(letter["reason"].as_str().is_some_and(|reason| reason.contains("AccessDenied")), "{letter}");
    Ok(())
}
