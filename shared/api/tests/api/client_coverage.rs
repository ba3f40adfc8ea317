//! The client library beside the OpenAPI document: each operation has a function that calls it, what the functions send is known to
//! the document, and what the document says of an answer is read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use tidegate_api::openapi_json;
use tidegate_client::{
    AheadQuery, ApiKey, Backfill, Calendar, ChangesWanted, Client, ClientChange, DeadLetterFilter, Error,
    EventsWanted, Job, Outcome, Policy, PreviewQuery, Release, RunsWanted, Selection, Target, Trigger,
};
use tokio::net::TcpListener;

use crate::world::QUEUE;

/// Operations that no function calls, and why.
const NOT_CALLED: [(&str, &str); 2] = [
    ("GET /v1/docs", "a page for people"),
    ("GET /v1/openapi.json", "the document itself, for tools that make clients"),
];
/// An instant, and a later one.
const SINCE: &str = "2026-11-21T12:00:00Z";
const UNTIL: &str = "2026-11-22T12:00:00Z";

/// The document, which `docs/openapi.json` is held to.
struct Document(Value);

/// An operation of the document, and what it is called.
struct Operation<'d> {
    name: String,
    about: &'d Value,
}

impl Document {
    fn read() -> Self {
        Self(serde_json::from_str(openapi_json()).unwrap())
    }

    fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.0["paths"].as_object().unwrap();
        let mut all = Vec::new();
        for (path, methods) in paths {
            for method in ["get", "put", "post", "patch", "delete"] {
                if let Some(about) = methods.get(method) {
                    all.push(Operation { name: format!("{} {path}", method.to_uppercase()), about });
                }
            }
        }
        all
    }

    /// The operation that a request is for: a path without names comes before one with them.
    fn operation(&self, method: &str, path: &str) -> Option<Operation<'_>> {
        let fits = |operation: &Operation<'_>| {
            let (known, template) = operation.name.split_once(' ').unwrap();
            let (parts, asked): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            known == method
                && parts.len() == asked.len()
                && parts.iter().zip(asked).all(|(part, asked)| part.starts_with('{') || *part == asked)
        };
        let names = |operation: &Operation<'_>| operation.name.matches('{').count();
        self.operations().into_iter().filter(fits).min_by_key(names)
    }

    fn resolved<'d>(&'d self, mut schema: &'d Value) -> &'d Value {
        while let Some(reference) = schema["$ref"].as_str() {
            schema = self.0.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        }
        schema
    }

    /// A value as a schema says, with all that may be there; `null` where it may be, when `has_nulls`.
    fn sample(&self, schema: &Value, has_nulls: bool) -> Value {
        let schema = self.resolved(schema);
        if let Some(parts) = schema["allOf"].as_array() {
            let parts = parts.iter().filter_map(|part| match self.sample(part, has_nulls) {
                Value::Object(members) => Some(members),
                _ => None,
            });
            return Value::Object(parts.flatten().collect::<Map<_, _>>());
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            several => several.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
        };
        if let Some(ways) = schema["oneOf"].as_array() {
            let may_be_null = ways.iter().any(|way| way["type"] == "null");
            return if may_be_null && has_nulls { Value::Null } else { self.sample(&ways[0], has_nulls) };
        }
        if has_nulls && types.contains(&"null") {
            return Value::Null;
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[0].clone();
        }
        match types.first().copied() {
            Some("object") => {
                let members = schema["properties"].as_object().into_iter().flatten();
                members.map(|(name, schema)| (name.clone(), self.sample(schema, has_nulls))).collect()
            }
            Some("array") => json!([self.sample(&schema["items"], has_nulls)]),
            Some("string") if schema["format"] == "date-time" => json!(SINCE),
            Some("string") => json!("some"),
            Some("integer") => json!(schema["minimum"].as_i64().unwrap_or(0).max(1)),
            Some("number") => json!(1.5),
            Some("boolean") => json!(true),
            _ => Value::Null,
        }
    }

    /// Members of a value that its schema does not name.
    fn unknown(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let schema = self.resolved(schema);
        let ways = ["oneOf", "allOf"].iter().filter_map(|kind| schema[kind].as_array());
        let ways: Vec<&Value> = ways.flatten().filter(|way| way["type"] != "null").collect();
        if !ways.is_empty() {
            let of_each = ways.iter().map(|way| {
                let mut of_this = Vec::new();
                self.unknown(way, value, at, &mut of_this);
                of_this
            });
            found.extend(of_each.min_by_key(Vec::len).unwrap_or_default());
            return;
        }
        match value {
            Value::Object(members) if schema["properties"].is_object() => {
                for (name, value) in members {
                    let at = format!("{at}.{name}");
                    match schema["properties"].get(name) {
                        Some(schema) => self.unknown(schema, value, &at, found),
                        None => found.push(at),
                    }
                }
            }
            Value::Array(items) if schema["items"].is_object() => {
                items.iter().for_each(|item| self.unknown(&schema["items"], item, at, found));
            }
            _ => {}
        }
    }
}

/// What was asked of the server, and what of it the document does not know.
#[derive(Default)]
struct Asked {
    operations: BTreeSet<String>,
    faults: Vec<String>,
}

/// Answers each request as the document says, and keeps what was asked.
async fn answer(
    document: Arc<Document>,
    asked: Arc<Mutex<Asked>>,
    has_nulls: bool,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    let Some(operation) = document.operation(method, path) else {
        asked.lock().unwrap().faults.push(format!("{method} {path} is no operation"));
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut faults = Vec::new();
    let parameters = || operation.about["parameters"].as_array().into_iter().flatten();
    for pair in parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap();
        if !parameters().any(|known| known["in"] == "query" && known["name"] == name) {
            faults.push(format!("the parameter {name}"));
        }
    }
    if let Ok(sent) = serde_json::from_slice::<Value>(&body) {
        let content = &operation.about["requestBody"]["content"];
        let media = content.as_object().and_then(|content| content.values().next());
        match media {
            Some(media) => document.unknown(&media["schema"], &sent, "body", &mut faults),
            None => faults.push("a body".to_owned()),
        }
    }
    let responses = operation.about["responses"].as_object().unwrap();
    let (status, response) = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
    let schema = &response["content"]["application/json"]["schema"];
    let shown = document.sample(schema, has_nulls);
    let mut asked = asked.lock().unwrap();
    asked.faults.extend(faults.into_iter().map(|fault| format!("{}: {fault}", operation.name)));
    asked.operations.insert(operation.name);
    let status = StatusCode::from_bytes(status.as_bytes()).unwrap();
    (status, [(CONTENT_TYPE, "application/json")], Body::from(shown.to_string())).into_response()
}

type Called<'c> = BoxFuture<'c, Result<(), Error>>;

/// A function of the library, by its name, and a call of it.
macro_rules! calls {
    ($client:ident: $($name:ident($($argument:expr),*);)*) => {
        vec![$((
            stringify!($name),
            Box::pin(async move { $client.$name($($argument),*).await.map(drop) }) as Called<'_>,
        )),*]
    };
}

fn job() -> Job {
    Job::new(Trigger::cron("0 9 * * *", "Europe/Berlin"), Target::sqs(QUEUE)).count(2).policy("small")
}

/// Each function, called once with as much as it takes.
fn calls_of(c: &Client) -> Vec<(&'static str, Called<'_>)> {
    let selection = || Selection {
        policy_id: Some("small".to_owned()),
        paused: Some(false),
        target: Some("*".to_owned()),
        tag: Some("night".to_owned()),
        next_before: Some(UNTIL.to_owned()),
        ..Selection::of_prefix("n")
    };
    let runs = || RunsWanted {
        policy_id: Some("small".to_owned()),
        target: Some("*".to_owned()),
        tag: Some("night".to_owned()),
        paused: Some(false),
        states: vec!["running".to_owned()],
        prefix: "n".to_owned(),
        ..RunsWanted::between(SINCE, UNTIL)
    };
    let ahead = || AheadQuery {
        since: Some(SINCE.to_owned()),
        until: Some(UNTIL.to_owned()),
        step_seconds: Some(60),
        held_ms: Some(20),
        policy_id: Some("small".to_owned()),
        target: Some("*".to_owned()),
        tag: Some("night".to_owned()),
        paused: Some(false),
        ..AheadQuery::default()
    };
    let letters = || DeadLetterFilter {
        job_id: Some("nightly".to_owned()),
        policy_id: Some("small".to_owned()),
        status: Some("dead".to_owned()),
        reason: Some("404".to_owned()),
        since: Some(SINCE.to_owned()),
        until: Some(UNTIL.to_owned()),
    };
    let changes = || ChangesWanted {
        since: Some(SINCE.to_owned()),
        until: Some(UNTIL.to_owned()),
        ..ChangesWanted::of("job", "nightly")
    };
    let events = || EventsWanted {
        since: Some(SINCE.to_owned()),
        until: Some(UNTIL.to_owned()),
        ..EventsWanted::under("small", "waiting")
    };
    let trigger = || Trigger::at_each([SINCE, UNTIL]);
    let retargeted =
        || ClientChange { allowed_targets: Some(vec!["*".to_owned()]), ..ClientChange::default() };
    let run = "nightly.1.1795262640";
    let event = "nightly.1.1795262640.0";
    calls! { c:
        health();
        register_client("acme", &["*"]);
        register_client_once("once", "acme", &["*"]);
        clients(Some("c"));
        registered_client("acme");
        own_client();
        own_usage();
        usage_of("acme");
        own_lateness(SINCE, UNTIL);
        lateness_of("acme", SINCE, UNTIL);
        change_client("acme", &retargeted(), Some(1));
        suspend_client("acme", "repairs");
        resume_client("acme", 9);
        delete_client("acme");
        create_key(&ApiKey { note: Some("n".to_owned()), expires_at: Some(UNTIL.to_owned()), ..ApiKey::default() });
        create_key_once("once", &ApiKey::default());
        keys();
        revoke_key("3f9a0c17be52");
        create_key_for("acme", &ApiKey::default(), "once");
        keys_of("acme");
        revoke_key_of("acme", "3f9a0c17be52");
        rotate_webhook_secret(Some(60));
        rotate_webhook_secret_once("once", None);
        create_policy("small", &Policy::new(2));
        put_policy("small", &Policy::new(2), Some(1));
        patch_policy("small", &json!({"max_in_flight": 3}), None);
        policy("small");
        policy_samples("small", SINCE, UNTIL);
        policies(None);
        pause_policy("small", None);
        resume_policy("small", None);
        close_policy("small", UNTIL, Some("repairs"), None);
        open_policy("small", None);
        delete_policy("small", None);
        strained_targets(None);
        holders("small");
        sidelines();
        sideline(Some("repairs"));
        drain(9);
        sideline_job("nightly", None);
        drain_job("nightly", 9);
        sidelines_of("acme");
        sideline_client("acme", Some("repairs"));
        drain_client("acme", 9);
        put_calendar("holidays", &Calendar::of_dates(["2026-12-24"]), None);
        import_calendar("holidays", "BEGIN:VCALENDAR", Some("Europe/Berlin"), None);
        calendar("holidays");
        calendars(None);
        preview_calendar("holidays", &Calendar::of_dates(["2026-12-24"]), Some("c"));
        delete_calendar("holidays", None);
        put_secret("token", "v", None);
        secrets(None);
        delete_secret("token", None);
        create_job(Some("nightly"), &job());
        create_job_once("once", &job());
        put_job("nightly", &job().payloads(vec![json!(1), json!(2)]), None);
        patch_job("nightly", &json!({"count": 3}), None);
        job("nightly");
        jobs(None);
        selected_jobs(&selection());
        one_time_jobs(SINCE, UNTIL, Some("c"));
        delete_job("nightly", None);
        create_jobs(&[(None, job()), (Some("nightly"), job())]);
        create_jobs_once("once", &[(None, job())]);
        pause_jobs(&Selection { because: Some("repairs".to_owned()), ..selection() });
        resume_jobs(&selection());
        delete_jobs(&selection());
        pause_job("nightly", None);
        pause_job_because("nightly", "repairs", None);
        resume_job("nightly", None);
        trigger_job("nightly", Some("once"));
        reschedule_job("nightly", &trigger(), None);
        delay_job("nightly", 60, None);
        skip_launch("nightly", Some(SINCE), None);
        backfill_job("nightly", &Backfill::missed(SINCE, UNTIL), None);
        backfill_job_once("once", "nightly", &Backfill::all(SINCE, UNTIL));
        changes(&changes(), Some("c"));
        versions("nightly", None);
        version("nightly", 3);
        roll_back_job("nightly", 3, None);
        upcoming("nightly", Some(5));
        ahead(&ahead());
        preview(&PreviewQuery { count: Some(5), after: Some(SINCE.to_owned()), ..PreviewQuery::of(trigger()) });
        runs_across(&runs());
        count_runs(&runs());
        cancel_runs(&runs());
        overdue(SINCE, UNTIL, None);
        runs("nightly", None);
        run("nightly", run);
        cancel_run("nightly", run);
        events("nightly", run, None);
        events_that_are("nightly", run, &["failed"], None);
        events_across(&events(), Some("c"));
        explain(event);
        failed_deliveries(event);
        dead_letters(&letters(), None);
        count_dead_letters(&letters());
        dead_letter(event);
        redrive(&[event]);
        discard(&[event]);
        release(&["tok"]);
        release_with_outcome(&[("tok", Outcome::Failed)]);
        release_each(&[Release::succeeded("tok")]);
        extend(&["tok"], Some(60));
        free(&["tok"], true);
        index();
        raise_shards("Europe/Berlin", "H:03", 8);
    }
}

/// What goes on until the list ends: it does where `next_cursor` is null.
fn calls_to_the_end_of(c: &Client) -> Vec<(&'static str, Called<'_>)> {
    calls! { c:
        redrive_where(&DeadLetterFilter::default(), Some(9));
        discard_where(&DeadLetterFilter::default());
    }
}

#[tokio::test]
async fn the_client_library_calls_each_operation_and_reads_what_the_document_says() {
    let document = Arc::new(Document::read());
    let (mut called, mut faults) = (BTreeSet::new(), Vec::new());
    for has_nulls in [true, false] {
        let asked = Arc::new(Mutex::new(Asked::default()));
        let (told, of) = (asked.clone(), document.clone());
        let router = Router::new().fallback(move |request: Request| answer(of, told, has_nulls, request));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(axum::serve(listener, router).into_future());
        let client = Client::new(format!("http://{address}"), "tg_acme_key").unwrap().with_pages_of(9);
        let mut calls = calls_of(&client);
        if has_nulls {
            calls.extend(calls_to_the_end_of(&client));
        }
        for (name, call) in calls {
            if let Err(error) = call.await {
                faults.push(format!("{name} (nulls: {has_nulls}): {error}"));
            }
        }
        server.abort();
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        called.extend(asked.operations);
        faults.extend(asked.faults);
    }
    assert!(
        faults.is_empty(),
        "what the document does not know, or the library does not read:\n{}",
        faults.join("\n")
    );
    let mut known: BTreeSet<String> = document.operations().into_iter().map(|known| known.name).collect();
    for (operation, because) in NOT_CALLED {
        assert!(known.remove(operation), "{operation} ({because}) is no operation any more");
    }
    let missing: Vec<_> = known.difference(&called).collect();
    assert!(missing.is_empty(), "no function of the client library calls {missing:?}");
}
