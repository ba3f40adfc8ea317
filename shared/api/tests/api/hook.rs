//! An HTTP endpoint that answers what a test says, and keeps what it was sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::at_job;

/// A status, and for how many seconds it asks to be left alone.
type Reply = (u16, Option<u32>);

/// An endpoint on loopback, for as long as the test lasts.
#[derive(Clone)]
pub struct Hook {
    pub url: String,
    answers: Arc<Mutex<VecDeque<Reply>>>,
    calls: Arc<Mutex<Vec<Value>>>,
    signed: Arc<Mutex<Vec<(HeaderMap, String)>>>,
}

impl Hook {
    /// Answers with these statuses in turn, then with 200.
    pub async fn answering(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hook = Self {
            url: format!("http://{}/hook?key=hidden", listener.local_addr().unwrap()),
            answers: Arc::new(Mutex::new(statuses.iter().map(|status| (*status, None)).collect())),
            calls: Arc::default(),
            signed: Arc::default(),
        };
        let routes = Router::new().route("/hook", post(called)).with_state(hook.clone());
        tokio::spawn(axum::serve(listener, routes).into_future());
        hook
    }

    /// Then it answers once with a status, and asks to be left alone for so many seconds.
    pub fn then_ask(&self, status: u16, seconds: u32) {
        self.answers.lock().unwrap().push_back((status, Some(seconds)));
    }

    /// From now on it answers with 200.
    pub fn answer_well(&self) {
        self.answers.lock().unwrap().clear();
    }

    /// The bodies of the calls so far, in their order.
    pub fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }

    /// The headers and the text of the last call.
    pub fn last_signed(&self) -> (HeaderMap, String) {
        self.signed.lock().unwrap().last().cloned().unwrap()
    }

    /// The `attempt` of each call so far.
    pub fn attempts(&self) -> Vec<Value> {
        self.calls().iter().map(|call| call["attempt"].clone()).collect()
    }

    /// A job for noon that calls it, with `count` events.
    pub fn job(&self, count: u32) -> Value {
        let mut job = at_job("2026-11-21T12:00:00Z");
        job["count"] = json!(count);
        job["target"] = json!({"http": {"url": self.url}});
        job
    }

    /// The same under the policy `small`, where a 2xx answer releases the token.
    pub fn throttled_job(&self, count: u32) -> Value {
        let mut job = self.job(count);
        job["target"]["http"]["release"] = json!("on_response");
        job["policy_id"] = json!("small");
        job
    }
}

async fn called(State(hook): State<Hook>, head: HeaderMap, body: Bytes) -> (StatusCode, HeaderMap) {
    let text = String::from_utf8(body.to_vec()).unwrap();
    hook.signed.lock().unwrap().push((head, text));
    hook.calls.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    let answer = hook.answers.lock().unwrap().pop_front();
    let (status, asks) = answer.unwrap_or((200, None));
    let headers = asks.map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds)));
    (StatusCode::from_u16(status).unwrap(), headers.into_iter().collect())
}
