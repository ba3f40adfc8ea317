//! Targets in other services of AWS: what they are sent, and what becomes of events that they do not take.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tidegate_engine::Services;
use tokio::net::TcpListener;

use crate::world::{World, at_job};

const BUS: &str = "arn:aws:events:eu-west-1:123456789012:event-bus/orders";
const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:orders";
const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:work:live";
const MACHINE: &str = "arn:aws:states:eu-west-1:123456789012:stateMachine:import";

#[derive(Clone)]
struct Call {
    path: String,
    headers: HeaderMap,
    body: String,
}

impl Call {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The fields of a form.
    fn form(&self) -> BTreeMap<String, String> {
        let decoded = |text: &str| {
            let mut bytes = Vec::new();
            let mut parts = text.split('%');
            bytes.extend(parts.next().unwrap().bytes());
            for part in parts {
                bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
                bytes.extend(part[2..].bytes());
            }
            String::from_utf8(bytes).unwrap()
        };
        let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), decoded(value)));
        self.body.split('&').map(|field| pair(field).unwrap()).collect()
    }

    /// That it is signed for a service in Ireland, at noon.
    fn is_signed_for(&self, service: &str) {
        let authorization = self.header("authorization");
        let scope = format!("AWS4-HMAC-SHA256 Credential=KEY/20261121/eu-west-1/{service}/aws4_request, ");
        assert!(authorization.starts_with(&scope), "{authorization}");
        assert!(authorization.contains("SignedHeaders=content-type;host;x-amz-date"), "{authorization}");
        assert_eq!(self.header("x-amz-date"), "20261121T120000Z");
        let signature = authorization.rsplit_once("Signature=").unwrap().1;
        assert_eq!(signature, self.signature(service), "{authorization}");
    }

    /// What the signature has to be, by the description of Signature Version 4.
    fn signature(&self, service: &str) -> String {
        let signed = self.header("authorization").split_once("SignedHeaders=").unwrap().1;
        let signed = signed.split_once(", ").unwrap().0;
        let headers: String =
            signed.split(';').map(|name| format!("{name}:{}\n", self.header(name))).collect();
        // The path is encoded once more than it is sent.
        let path = self.path.replace('%', "%25");
        let request = format!("POST\n{path}\n\n{headers}\n{signed}\n{}", hex(&Sha256::digest(&self.body)));
        let scope = format!("20261121/eu-west-1/{service}/aws4_request");
        let hash = hex(&Sha256::digest(request));
        let text = format!("AWS4-HMAC-SHA256\n20261121T120000Z\n{scope}\n{hash}");
        let parts = ["20261121", "eu-west-1", service, "aws4_request", &text];
        hex(&parts.iter().fold(b"AWS4SECRET".to_vec(), |key, part| hmac(&key, part)))
    }
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

type Answer = (u16, &'static str);

/// What stands in for the services: it answers as it is told, in turn, then well.
#[derive(Clone)]
struct StandIn {
    url: String,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl StandIn {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stand_in = Self { url, answers: Arc::default(), calls: Arc::default() };
        let routes = Router::new().fallback(called).with_state(stand_in.clone());
        tokio::spawn(axum::serve(listener, routes).into_future());
        stand_in
    }

    fn answer(&self, answers: &[Answer]) {
        self.answers.lock().unwrap().extend(answers);
    }

    fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

async fn called(
    State(stand_in): State<StandIn>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let call = Call { path: uri.path().to_owned(), headers, body: String::from_utf8(body.to_vec()).unwrap() };
    let answer = stand_in.answers.lock().unwrap().pop_front();
    let (status, text) = answer.map_or_else(|| well(&call), |(status, text)| (status, text.to_owned()));
    stand_in.calls.lock().unwrap().push(call);
    (StatusCode::from_u16(status).unwrap(), text)
}

/// What a service answers that took all of a call.
fn well(call: &Call) -> (u16, String) {
    match call.header("x-amz-target") {
        "AWSEvents.PutEvents" => {
            let entries = call.json()["Entries"].as_array().unwrap().len();
            let put: Vec<Value> = (0..entries).map(|n| json!({"EventId": n.to_string()})).collect();
            (200, json!({"FailedEntryCount": 0, "Entries": put}).to_string())
        }
        "AWSStepFunctions.StartExecution" => (200, json!({"executionArn": "x", "startDate": 1}).to_string()),
        _ if call.path.starts_with("/2015-03-31/functions/") => (202, String::new()),
        _ => {
            let form = call.form();
            let ids = form
                .iter()
                .filter(|(name, _)| name.ends_with(".Id"))
                .map(|(_, id)| format!("<member><Id>{id}</Id><MessageId>m</MessageId></member>"));
            let (start, end) = (
                "<PublishBatchResponse xmlns=\"x\"><PublishBatchResult><Failed/><Successful>",
                "</Successful></PublishBatchResult></PublishBatchResponse>",
            );
            (200, format!("{start}{}{end}", ids.collect::<String>()))
        }
    }
}

struct Stage {
    world: World,
    services: StandIn,
    key: String,
}

impl Stage {
    async fn new() -> Self {
        let services = StandIn::new().await;
        let url = services.url.clone();
        let reached = Services::on_one_machine(|name| match name {
            "AWS_ENDPOINT_URL" => Some(url.clone()),
            "AWS_ACCESS_KEY_ID" => Some("KEY".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("SECRET".to_owned()),
            _ => None,
        });
        let world = World::reaching(reached).await;
        let key = world.register("acme").await;
        let policy = json!({"max_in_flight": 20, "lease_seconds": 60});
        assert_eq!(world.put("/v1/policies/small", &key, &policy).await.status, StatusCode::CREATED);
        Self { world, services, key }
    }

    /// Puts a job for noon with so many events and delivers them; what the services were sent.
    async fn deliver(&self, name: &str, target: &Value, count: u32) -> Vec<Call> {
        self.put(name, &job(target, count)).await
    }

    async fn put(&self, name: &str, job: &Value) -> Vec<Call> {
        let made = self.world.put(&format!("/v1/jobs/{name}"), &self.key, job).await;
        assert_eq!(
            (made.status, &made.json["target"]),
            (StatusCode::CREATED, &job["target"]),
            "{}",
            made.text
        );
        self.world.dispatch().await;
        self.services.take()
    }

    /// The statuses and reasons of the events of a job of several.
    async fn events(&self, name: &str) -> Vec<(String, String)> {
        let runs = self.world.get(&format!("/v1/jobs/{name}/runs"), &self.key).await;
        let run = runs.json["runs"][0]["run_id"].as_str().unwrap().to_owned();
        let listed = self.world.get(&format!("/v1/jobs/{name}/runs/{run}/events"), &self.key).await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = listed.json["events"].as_array().unwrap().iter();
        events.map(|event| (text(&event["status"]), text(&event["reason"]))).collect()
    }
}

fn job(target: &Value, count: u32) -> Value {
    let mut job = at_job("2026-11-21T12:00:00Z");
    job["target"] = target.clone();
    job["count"] = json!(count);
    job["payload"] = json!({"report": "daily"});
    job["retry"] = json!({"backoff": "fixed", "wait_seconds": 60});
    job
}

#[tokio::test]
async fn a_bus_gets_entries_ten_to_a_call_and_each_is_taken_or_not_by_itself() {
    let stage = Stage::new().await;
    let target = json!({"event_bridge": {"bus_arn": BUS, "source": "com.acme", "detail_type": "Due"}});
    let calls = stage.deliver("many", &target, 12).await;
    let mut sizes = Vec::new();
    for call in &calls {
        call.is_signed_for("events");
        assert_eq!((&*call.path, call.header("content-type")), ("/", "application/x-amz-json-1.1"));
        let entries = call.json()["Entries"].as_array().unwrap().clone();
        sizes.push(entries.len());
        for entry in entries {
            assert_eq!((&entry["EventBusName"], &entry["Source"]), (&json!(BUS), &json!("com.acme")));
            assert_eq!(entry["DetailType"], "Due");
            let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
            assert_eq!((&detail["job_id"], &detail["payload"]["report"]), (&json!("many"), &json!("daily")));
        }
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 10]);

    let some = r#"{"FailedEntryCount":2,"Entries":[{"EventId":"a"},{"ErrorCode":"ThrottlingException","ErrorMessage":"slow"},{"ErrorCode":"MalformedDetail","ErrorMessage":"no"}]}"#;
    stage.services.answer(&[(200, some)]);
    let plain = json!({"event_bridge": {"bus_arn": BUS}});
    let calls = stage.deliver("some", &plain, 3).await;
    let entries = &calls[0].json()["Entries"];
    assert_eq!((&entries[0]["Source"], &entries[0]["DetailType"]), (&json!("tidegate"), &json!("Event")));
    stage.world.clock.advance_ms(61_000);
    stage.world.dispatch().await;
    let again = stage.services.take();
    let detail: Value =
        serde_json::from_str(again[0].json()["Entries"][0]["Detail"].as_str().unwrap()).unwrap();
    assert_eq!((again.len(), &detail["index"], &detail["attempt"]), (1, &json!(1), &json!(2)));
    let events = stage.events("some").await;
    assert_eq!(events[2], ("dead".to_owned(), "MalformedDetail: no".to_owned()), "{events:?}");
    assert!(events[..2].iter().all(|(status, _)| status == "delivered"), "{events:?}");
}

#[tokio::test]
async fn a_topic_gets_messages_with_attributes_and_a_fifo_topic_ids() {
    let stage = Stage::new().await;
    let calls = stage.deliver("told", &json!({"sns": {"topic_arn": TOPIC}}), 2).await;
    let [call] = calls.as_slice() else { panic!("{} calls", calls.len()) };
    call.is_signed_for("sns");
    let form = call.form();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!((field("Action"), field("Version"), field("TopicArn")), ("PublishBatch", "2010-03-31", TOPIC));
    let entry = "PublishBatchRequestEntries.member.2";
    let event: Value = serde_json::from_str(field(&format!("{entry}.Message"))).unwrap();
    let attributes: BTreeMap<&str, (&str, &str)> = (1..=8)
        .map(|n| {
            let of = |part: &str| field(&format!("{entry}.MessageAttributes.entry.{n}.{part}"));
            (of("Name"), (of("Value.DataType"), of("Value.StringValue")))
        })
        .collect();
    assert_eq!(attributes["event_id"], ("String", event["event_id"].as_str().unwrap()));
    assert_eq!((attributes["index"], attributes["count"]), (("Number", "1"), ("Number", "2")));
    assert!(attributes.contains_key("traceparent") && !form.contains_key(&format!("{entry}.MessageGroupId")));

    let fifo = json!({"sns": {"topic_arn": format!("{TOPIC}.fifo")}});
    let form = stage.deliver("in-order", &fifo, 2).await[0].form();
    assert_eq!(form[&format!("{entry}.MessageGroupId")], "acme:in-order");
    let id = &form[&format!("{entry}.MessageDeduplicationId")];
    assert!(id.starts_with("acme:in-order.") && id.ends_with(".1"), "{id}");
}

#[tokio::test]
async fn of_a_topic_only_what_it_lists_as_published_is_delivered() {
    let stage = Stage::new().await;
    let some = "<PublishBatchResponse><PublishBatchResult>\
        <Failed><member><Id>1</Id><Code>InvalidParameter</Code><Message>a &lt; b</Message><SenderFault>true</SenderFault></member></Failed>\
        <Successful><member><Id>0</Id></member></Successful></PublishBatchResult></PublishBatchResponse>";
    stage.services.answer(&[(200, some)]);
    let target = json!({"sns": {"topic_arn": TOPIC}});
    assert_eq!(stage.deliver("some", &target, 3).await.len(), 1);
    // Of the third nothing was said.
    stage.world.clock.advance_ms(61_000);
    stage.world.dispatch().await;
    let again = stage.services.take();
    assert_eq!(again.len(), 1);
    let message = &again[0].form()["PublishBatchRequestEntries.member.1.Message"];
    assert_eq!(serde_json::from_str::<Value>(message).unwrap()["index"], 2);
    let events = stage.events("some").await;
    assert_eq!(events[1], ("dead".to_owned(), "InvalidParameter: a < b".to_owned()), "{events:?}");
}

#[tokio::test]
async fn a_function_is_invoked_and_not_waited_for() {
    let stage = Stage::new().await;
    let target = json!({"lambda": {"function_arn": FUNCTION}});
    stage.services.answer(&[(202, ""), (202, "")]);
    let calls = stage.deliver("work", &target, 2).await;
    assert_eq!(calls.len(), 2);
    for call in &calls {
        call.is_signed_for("lambda");
        let path = format!("/2015-03-31/functions/{}/invocations", FUNCTION.replace(':', "%3A"));
        assert_eq!((&*call.path, call.header("x-amz-invocation-type")), (&*path, "Event"));
        assert_eq!(call.json()["job_id"], "work");
    }
}

#[tokio::test]
async fn what_may_be_mended_is_sent_again_and_what_may_not_is_dead() {
    let stage = Stage::new().await;
    let target = json!({"lambda": {"function_arn": FUNCTION}});
    for (name, answer, is_sent_again) in [
        ("busy", (429, r#"{"Type":"User","__type":"TooManyRequestsException","message":"slow"}"#), true),
        ("broken", (503, "no JSON"), true),
        ("denied", (403, r#"{"__type":"AccessDeniedException","Message":"not you"}"#), true),
        ("gone", (404, r#"{"__type":"ResourceNotFoundException","Message":"no such function"}"#), true),
        ("large", (413, r#"{"__type":"RequestTooLargeException","Message":"too large"}"#), false),
        ("wrong", (400, r#"{"__type":"InvalidRequestContentException","Message":"no"}"#), false),
    ] {
        let stage = Stage::new().await;
        stage.services.answer(&[answer]);
        assert_eq!(stage.deliver(name, &target, 1).await.len(), 1);
        if !is_sent_again {
            let events = stage.events(name).await;
            assert_eq!(events[0].0, "dead", "{events:?}");
            assert!(events[0].1.contains("Exception: "), "{events:?}");
        }
        stage.world.clock.advance_ms(61_000);
        stage.world.dispatch().await;
        assert_eq!(stage.services.take().len(), usize::from(is_sent_again), "{name}");
    }
    // Nobody is there.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let reached = Services::on_one_machine(|name| {
        (name == "AWS_ENDPOINT_URL_LAMBDA").then(|| format!("http://{nobody}"))
    });
    let stage = Stage { world: World::reaching(reached).await, ..stage };
    let stage = Stage { key: stage.world.register("acme").await, ..stage };
    let mut job = job(&target, 1);
    job["retry"] = json!({"backoff": "none"});
    stage.put("nobody", &job).await;
    assert_eq!(stage.events("nobody").await[0].1, "connection refused: nothing listens at the address");
}

#[tokio::test]
async fn a_state_machine_starts_one_execution_for_each_delivery() {
    let stage = Stage::new().await;
    let target = json!({"step_functions": {"state_machine_arn": MACHINE}});
    let exists =
        r#"{"__type":"com.amazonaws.states#ExecutionAlreadyExists","message":"Execution Already Exists"}"#;
    let does_not = r#"{"__type":"com.amazonaws.states#StateMachineDoesNotExist","message":"none"}"#;
    stage.services.answer(&[(400, does_not), (400, exists)]);
    let job_id = format!("{}:é@/", "long".repeat(45)).replace('é', "e");
    let calls = stage.put(&job_id.replace('/', "%2F"), &job(&target, 1)).await;
    stage.world.clock.advance_ms(61_000);
    stage.world.dispatch().await;
    let again = stage.services.take();
    assert_eq!((calls.len(), again.len()), (1, 1));
    calls[0].is_signed_for("states");
    assert_eq!(calls[0].header("x-amz-target"), "AWSStepFunctions.StartExecution");
    let name = |call: &Call| {
        let start = call.json();
        assert_eq!(start["stateMachineArn"], MACHINE);
        let input: Value = serde_json::from_str(start["input"].as_str().unwrap()).unwrap();
        assert_eq!((&input["job_id"], &input["payload"]["report"]), (&json!(job_id), &json!("daily")));
        start["name"].as_str().unwrap().to_owned()
    };
    let (first, second) = (name(&calls[0]), name(&again[0]));
    assert_ne!(first, second, "another attempt is another execution");
    for name in [first, second] {
        let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        assert!(is_plain && name.len() <= 80, "{name}");
    }
    // It was started before: nothing is sent again, and nothing is dead.
    stage.world.clock.advance_ms(61_000);
    stage.world.dispatch().await;
    assert!(stage.services.take().is_empty());
    let listed = stage.world.get("/v1/dead-letters", &stage.key).await;
    assert_eq!(listed.json["dead_letters"], json!([]));
}

/// The name follows from the delivery alone: a message that comes again starts nothing twice.
#[tokio::test]
async fn a_delivery_that_is_repeated_has_the_same_execution_and_two_clients_have_two() {
    let target = json!({"step_functions": {"state_machine_arn": MACHINE}});
    let mut names = Vec::new();
    for client in ["acme", "acme", "beta"] {
        let stage = Stage::new().await;
        let key = if client == "acme" { stage.key.clone() } else { stage.world.register(client).await };
        let stage = Stage { key, ..stage };
        let calls = stage.deliver("import", &target, 1).await;
        names.push(calls[0].json()["name"].clone());
    }
    assert_eq!(names[0], names[1]);
    assert_ne!(names[0], names[2]);
    assert!(names[0].as_str().unwrap().starts_with("import_1_1795262400_0-"), "{names:?}");
}

#[tokio::test]
async fn throttled_events_reach_every_service_through_the_dispatch_queue_and_keep_their_tokens() {
    let stage = Stage::new().await;
    for (name, target) in [
        ("bus", json!({"event_bridge": {"bus_arn": BUS}})),
        ("topic", json!({"sns": {"topic_arn": TOPIC}})),
        ("function", json!({"lambda": {"function_arn": FUNCTION}})),
        ("machine", json!({"step_functions": {"state_machine_arn": MACHINE}})),
    ] {
        let mut job = job(&target, 2);
        job["policy_id"] = json!("small");
        let made = stage.world.put(&format!("/v1/jobs/{name}"), &stage.key, &job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        assert!(stage.services.take().is_empty(), "{name}: the function that faces the internet sends none");
        stage.world.dispatch().await;
        assert!(!stage.services.take().is_empty(), "{name}");
    }
    let holders = stage.world.get("/v1/policies/small/holders", &stage.key).await;
    assert_eq!(holders.json["holders"].as_array().map(Vec::len), Some(8), "{}", holders.text);
}

#[tokio::test]
async fn what_nothing_can_be_sent_to_is_refused_with_its_field() {
    let stage = Stage::new().await;
    for (target, field, says) in [
        (
            json!({"sns": {"topic_arn": "orders"}}),
            "sns.topic_arn",
            "topic_arn 'orders' is no ARN; it must be arn:aws:sns:",
        ),
        (json!({"sns": {"topic_arn": FUNCTION}}), "sns.topic_arn", "is of another service"),
        (
            json!({"lambda": {"function_arn": "arn:aws:lambda:eu-west-1:1:function:x"}}),
            "lambda.function_arn",
            "names no account",
        ),
        (
            json!({"event_bridge": {"bus_arn": BUS, "source": "aws.ec2"}}),
            "event_bridge.source",
            "a source must not begin with 'aws.'",
        ),
        (
            json!({"event_bridge": {"bus_arn": BUS, "detail_type": ""}}),
            "event_bridge.detail_type",
            "must have 1 to 128 bytes",
        ),
        (json!({"step_functions": {"arn": MACHINE}}), "step_functions.arn", "write 'state_machine_arn'"),
    ] {
        let refused = stage.world.put("/v1/jobs/bad", &stage.key, &job(&target, 1)).await;
        let error = &refused.json["errors"][0];
        assert_eq!(error["field"], format!("target.{field}"), "{}", refused.text);
        assert!(error["message"].as_str().unwrap().contains(says), "{}", refused.text);
    }
    let both = json!({"sns": {"topic_arn": TOPIC}, "lambda": {"function_arn": FUNCTION}});
    let refused = stage.world.put("/v1/jobs/bad", &stage.key, &job(&both, 1)).await;
    assert_eq!(
        refused.json["errors"][0]["message"],
        "target has both 'sns' and 'lambda'; give one, or make two jobs"
    );
    let mut told = job(&json!({"sns": {"topic_arn": TOPIC}}), 1);
    told["policy_id"] = json!("small");
    told["on_completion"] = json!({"lambda": {"function_arn": FUNCTION}});
    let refused = stage.world.put("/v1/jobs/bad", &stage.key, &told).await;
    let error = &refused.json["errors"][0];
    assert_eq!(error["field"], "on_completion.lambda");
    assert_eq!(
        error["message"],
        "on_completion.lambda takes events only; a completion goes to 'sqs' or 'http'"
    );
}

#[tokio::test]
async fn an_allow_list_covers_arns() {
    let stage = Stage::new().await;
    let allowed = json!({"client_id": "beta", "allowed_targets": ["arn:aws:sns:*:123456789012:orders"]});
    let made = stage.world.post("/v1/clients", &stage.world.admin_key, &allowed).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let stage = Stage { key: made.json["api_key"].as_str().unwrap().to_owned(), ..stage };
    assert_eq!(stage.deliver("fine", &json!({"sns": {"topic_arn": TOPIC}}), 1).await.len(), 1);
    let other = json!({"lambda": {"function_arn": FUNCTION}});
    let refused = stage.world.put("/v1/jobs/bad", &stage.key, &job(&other, 1)).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert_eq!(refused.json["errors"][0]["field"], "target.lambda.function_arn");
}

#[tokio::test]
async fn where_nothing_stands_in_for_a_service_a_job_for_it_is_refused() {
    let stage = Stage::new().await;
    let nothing = World::new().await;
    let stage = Stage { key: nothing.register("acme").await, world: nothing, ..stage };
    for (target, field, variable) in [
        (json!({"event_bridge": {"bus_arn": BUS}}), "event_bridge.bus_arn", "AWS_ENDPOINT_URL_EVENTBRIDGE"),
        (json!({"sns": {"topic_arn": TOPIC}}), "sns.topic_arn", "AWS_ENDPOINT_URL_SNS"),
        (json!({"lambda": {"function_arn": FUNCTION}}), "lambda.function_arn", "AWS_ENDPOINT_URL_LAMBDA"),
        (
            json!({"step_functions": {"state_machine_arn": MACHINE}}),
            "step_functions.state_machine_arn",
            "AWS_ENDPOINT_URL_SFN",
        ),
    ] {
        let refused = stage.world.put("/v1/jobs/bad", &stage.key, &job(&target, 1)).await;
        let error = &refused.json["errors"][0];
        assert_eq!(error["field"], format!("target.{field}"), "{}", refused.text);
        let says = format!("set {variable} or AWS_ENDPOINT_URL to what stands in for it and start it again");
        assert!(error["message"].as_str().unwrap().contains(&says), "{}", refused.text);
    }
}
