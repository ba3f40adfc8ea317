//! Inputs that failed once. Each is sent to a world of its own in every run, whatever the seeds; a new one is added with its
//! mend.

use serde_json::{Value, json};

use crate::input::Input;
use crate::json::Json;
use crate::known::Known;
use crate::schema::{Key, Request, Spoil};
use crate::step::Step;
use crate::targets::{Answer, Ending};

/// What failed, by name. Minutes follow.
pub fn all(known: &Known) -> Vec<(&'static str, Vec<Input>)> {
    let (acme, queue) = (known.queue_url.as_str(), |url: &str| json!({"sqs": {"queue_url": url}}));
    let preview = |body: Value| request("POST", "/v1/schedules/preview", body);
    let at = |seconds: &str| json!({"at": format!("2026-11-21T12:09:{seconds}Z")});
    let quotes = |count: u32| json!({"trigger": at("00"), "target": queue(acme), "count": count, "payload": "\"".repeat(32_767)});
    let many = |payload: String| {
        let job = json!({"trigger": at("30"), "target": queue(acme), "payload": payload});
        request("POST", "/v1/jobs/bulk", json!({"jobs": vec![job; 16]}))
    };
    let jittery = |seconds: u32| {
        let body = json!({"trigger": {"rate": "1 day"}, "target": queue(acme), "jitter_seconds": seconds});
        request("PUT", "/v1/jobs/jittery", body)
    };
    let chunk = |from: u32, to: u32, launch_s: i64| {
        let item =
            json!({"j": "jittery", "r": 1, "a": from, "b": to, "d": {"n": 3, "q": acme, "b": "{}", "m": 5}});
        let chunk = json!({"c": "acme", "l": launch_s, "o": 1_795_262_550_000_i64, "t": 1, "i": [item]});
        message(json!({"v": 1, "chunk": chunk}))
    };
    vec![
        (
            "a Retry-After beyond all time",
            vec![retry_after("9223372036854775807"), retry_after("9223372036854776")],
        ),
        (
            "a start in the first instant of the calendar",
            vec![preview(json!({"expression": "* * * * *", "start_at": "-262143-01-01T00:00:00Z"}))],
        ),
        (
            "a local time in the last second of the calendar",
            vec![preview(json!({"trigger": {"at": "+262142-12-31T23:59:59", "zone": "Asia/Tokyo"}}))],
        ),
        (
            "what is to come of a job that starts in the first instant of the calendar",
            vec![
                request(
                    "PUT",
                    "/v1/jobs/a",
                    json!({"trigger": at("00"), "target": queue(acme), "start_at": "-262143-01-01T00:00:00Z"}),
                ),
                bare("GET", "/v1/jobs/a/upcoming"),
            ],
        ),
        ("a thousand events of quotes that double", vec![request("POST", "/v1/jobs", quotes(1_000))]),
        ("sixteen jobs of quotes that double", vec![many("\"".repeat(32_767))]),
        ("sixteen jobs of backslashes that double", vec![many("\\".repeat(32_767))]),
        ("a path that is no UTF-8", vec![bare("GET", "/v1/jobs/%ff"), bare("PUT", "/v1/policies/%c3%28")]),
        ("a field without a name", vec![request("POST", "/v1/policies", json!({"max_in_flight": 1, "": 0}))]),
        ("a chunk whose item ends before it begins", vec![chunk(2, 1, 1_795_262_430)]),
        ("a chunk of more events than there is memory for", vec![chunk(0, u32::MAX, 1_795_262_430)]),
        (
            "a chunk of the first instant of the calendar",
            vec![jittery(3_600), jittery(3_500), chunk(0, 1, -8_334_601_228_800)],
        ),
        (
            "a callback that failed too often to count",
            vec![message(json!({"v": 1, "callback": {
            "client": "acme", "run": "hook.1.1795262460", "failures": 255}}))],
        ),
    ]
}

/// The steps of an entry: its inputs, with minutes before for jobs to have run, and behind for what is to come of them.
pub fn steps(inputs: Vec<Input>) -> Vec<Step> {
    let minutes = |count| std::iter::repeat_n(Step::Minute, count);
    minutes(2).chain(inputs.into_iter().map(Step::Input)).chain(minutes(8)).collect()
}

fn retry_after(text: &str) -> Input {
    let headers =
        vec![("Retry-After".to_owned(), text.to_owned()), ("Content-Length".to_owned(), "0".to_owned())];
    let status = "HTTP/1.1 503 Service Unavailable".to_owned();
    Input::Answer(Answer { status, headers, body: Vec::new(), ending: Ending::Open })
}

fn message(body: Value) -> Input {
    Input::Message(Json::from(&body), 1)
}

fn bare(method: &str, target: &str) -> Input {
    let (method, target) = (method.to_owned(), target.to_owned());
    let request =
        Request { method, target, key: Key::Client, headers: Vec::new(), body: None, spoil: Spoil::None };
    Input::Request(request)
}

fn request(method: &str, target: &str, body: Value) -> Input {
    let (method, target) = (method.to_owned(), target.to_owned());
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let body = Some(Json::from(&body));
    Input::Request(Request { method, target, key: Key::Client, headers, body, spoil: Spoil::None })
}
