//! An API and a queue that answer by Tokio's clock, which tests pause: nothing here waits for real.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tidegate_protocol::{Event, Extended, Release, Released};
use tokio::time::{Instant, sleep};

use super::calls::{Boxed, Calls, TokenApi};
use crate::client::Attempt;
use crate::error::Error;

pub(crate) const LAUNCH: &str = "2026-11-22T00:00:00Z";

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn launch() -> DateTime<Utc> {
    LAUNCH.parse().unwrap()
}

/// The instant so long after the launch, as an event has it.
pub(crate) fn at(after_s: i64) -> String {
    let at = launch().timestamp() + after_s;
    DateTime::from_timestamp(at, 0).unwrap().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The body of an event of a job with a policy, whose lease ends a minute after the launch.
pub(crate) fn body(index: u32) -> Value {
    json!({
        "event_id": format!("nightly.1.1795305600.{index}"), "job_id": "nightly", "client_id": "acme",
        "run_id": "nightly.1.1795305600", "index": index, "count": 5, "launch_at": LAUNCH, "attempt": 1,
        "token": format!("tok.{index}"), "lease_expires_at": at(60), "payload": {"report": "daily"},
    })
}

/// The same with some fields changed.
pub(crate) fn body_with(index: u32, changes: Value) -> Value {
    let mut body = body(index);
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub(crate) fn without_token(index: u32) -> Value {
    body_with(index, json!({"token": null, "lease_expires_at": null}))
}

pub(crate) fn event(body: &Value) -> Event {
    body.to_string().parse().unwrap()
}

/// What is answered to a call instead of what it asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scripted {
    Refused(u16),
    RefusedFor(u16, Duration),
    Silence,
    TooFewResults,
}

/// Tidegate's API. Releases and extends whatever it is told, unless a test says otherwise.
#[derive(Debug)]
pub(crate) struct FakeApi {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Scripted>,
    statuses: BTreeMap<String, &'static str>,
    takes: Duration,
    released: Vec<(Duration, Vec<Release>)>,
    extended: Vec<(Duration, Vec<String>, Option<u32>)>,
    lease: Option<Duration>,
}

impl FakeApi {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), state: Mutex::default() })
    }

    /// Calls on this API, by a consumer whose clock is right.
    pub(crate) fn calls(self: &Arc<Self>) -> Arc<Calls> {
        self.calls_by_a_clock_ahead_by(0)
    }

    pub(crate) fn calls_by_a_clock_ahead_by(self: &Arc<Self>, ahead_s: i64) -> Arc<Calls> {
        let api = Arc::clone(self);
        let clock =
            move || DateTime::from_timestamp_millis(api.now().timestamp_millis() + ahead_s * 1_000).unwrap();
        Calls::with(Arc::clone(self) as Arc<dyn TokenApi>, Arc::new(clock), || 0.0)
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        launch() + self.started.elapsed()
    }

    /// What the next calls are answered, whichever they are, one after another.
    pub(crate) fn script(&self, answers: impl IntoIterator<Item = Scripted>) {
        self.state.lock().unwrap().script.extend(answers);
    }

    /// What is answered of a token.
    pub(crate) fn status(&self, token: &str, status: &'static str) {
        self.state.lock().unwrap().statuses.insert(token.to_owned(), status);
    }

    /// How long each call takes.
    pub(crate) fn takes(&self, time: Duration) {
        self.state.lock().unwrap().takes = time;
    }

    /// How long an extended lease lasts; a minute unless a test says otherwise.
    pub(crate) fn lease(&self, lease: Duration) {
        self.state.lock().unwrap().lease = Some(lease);
    }

    /// Every entry of every release, in JSON.
    pub(crate) fn released(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        state
            .released
            .iter()
            .flat_map(|(_, entries)| entries)
            .map(|e| serde_json::to_value(e).unwrap())
            .collect()
    }

    /// How many tokens each release had, and when it came.
    pub(crate) fn releases(&self) -> Vec<(Duration, usize)> {
        self.state.lock().unwrap().released.iter().map(|(at, entries)| (*at, entries.len())).collect()
    }

    /// The tokens of each extension, and when it came.
    pub(crate) fn extended(&self) -> Vec<(Duration, Vec<String>)> {
        self.state.lock().unwrap().extended.iter().map(|(at, tokens, _)| (*at, tokens.clone())).collect()
    }

    pub(crate) fn lease_seconds(&self) -> Vec<Option<u32>> {
        self.state.lock().unwrap().extended.iter().map(|(.., lease_seconds)| *lease_seconds).collect()
    }

    async fn answer<T>(&self, result: impl Fn(&State, &str) -> T, tokens: Vec<&str>) -> Attempt<Vec<T>> {
        let (scripted, takes) = {
            let mut state = self.state.lock().unwrap();
            (state.script.pop_front(), state.takes)
        };
        if !takes.is_zero() {
            sleep(takes).await;
        }
        let mut results: Vec<T> = {
            let state = self.state.lock().unwrap();
            tokens.into_iter().map(|token| result(&state, token)).collect()
        };
        let (outcome, retry_after) = match scripted {
            None => (Ok(results), None),
            Some(Scripted::TooFewResults) => (Ok(results.drain(1..).collect()), None),
            Some(Scripted::Refused(status)) => (Err(refused(status)), None),
            Some(Scripted::RefusedFor(status, wait)) => (Err(refused(status)), Some(wait)),
            Some(Scripted::Silence) => std::future::pending().await,
        };
        Attempt { outcome, retry_after, server_time: Some(self.now()) }
    }
}

pub(crate) fn refused(status: u16) -> Error {
    Error::Refused(Box::new(serde_json::from_value(json!({"status": status})).unwrap()))
}

impl TokenApi for FakeApi {
    fn release<'a>(&'a self, entries: &'a [Release]) -> Boxed<'a, Attempt<Vec<Released>>> {
        self.state.lock().unwrap().released.push((self.started.elapsed(), entries.to_vec()));
        let result = |state: &State, token: &str| {
            let status = state.statuses.get(token).copied().unwrap_or("released");
            serde_json::from_value(json!({"token": token, "status": status})).unwrap()
        };
        Box::pin(self.answer(result, entries.iter().map(|entry| &*entry.token).collect()))
    }

    fn extend<'a>(
        &'a self,
        tokens: &'a [&'a str],
        lease_seconds: Option<u32>,
    ) -> Boxed<'a, Attempt<Vec<Extended>>> {
        let owned = tokens.iter().map(|&token| token.to_owned()).collect();
        self.state.lock().unwrap().extended.push((self.started.elapsed(), owned, lease_seconds));
        let result = |state: &State, token: &str| {
            let status = state.statuses.get(token).copied().unwrap_or("extended");
            let lease = state.lease.unwrap_or(seconds(60));
            let ends_at = (status == "extended").then(|| (self.now() + lease).to_rfc3339());
            let answer = json!({"token": token, "status": status, "lease_expires_at": ends_at});
            serde_json::from_value(answer).unwrap()
        };
        Box::pin(self.answer(result, tokens.to_vec()))
    }
}
