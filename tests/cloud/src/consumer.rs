//! Consumers: workers that take events from a queue, work on them for a while, and release their tokens over the API.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use aws_sdk_sqs::types::Message;
use http::StatusCode;
use serde_json::{Value, json};
use tidegate_protocol::Event;
use tidegate_testkit::queue;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cloud::{Caller, Cloud};

/// How long a consumer waits before it repeats a release that got no answer.
const AGAIN: Duration = Duration::from_millis(500);

/// What a consumer does with an event.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// How long it works on it.
    pub takes: Duration,
    /// How many tokens it releases in one call, at the most: those of one receive.
    pub releases_together: usize,
    /// What it says with each release.
    pub result: Option<&'static str>,
}

/// A consumer of one queue, with some workers. Ends when it is dropped.
pub struct Consumer {
    shared: Arc<Shared>,
    _workers: JoinSet<()>,
}

/// What its workers have in hand.
#[derive(Default)]
struct Hands {
    busy: usize,
    most: usize,
    /// The tokens of all events that it ever worked on: an event that comes twice under one token is worked on once.
    known: HashSet<String>,
}

struct Shared {
    sqs: aws_sdk_sqs::Client,
    caller: Caller,
    queue_url: String,
    key: String,
    work: Work,
    hands: Mutex<Hands>,
    /// What became of tokens, by the word of the API.
    answers: Mutex<std::collections::BTreeMap<String, u64>>,
}

impl Consumer {
    /// Starts so many workers on a queue, who call with this key.
    ///
    /// # Errors
    /// When the client of the queues has no HTTP client.
    pub fn start(cloud: &Cloud, queue_url: &str, key: &str, (workers, work): (usize, Work)) -> Result<Self> {
        let shared = Arc::new(Shared {
            sqs: cloud.queues()?,
            caller: cloud.caller(),
            queue_url: queue_url.to_owned(),
            key: key.to_owned(),
            work,
            hands: Mutex::default(),
            answers: Mutex::default(),
        });
        let mut running = JoinSet::new();
        for _ in 0..workers {
            running.spawn(Arc::clone(&shared).run());
        }
        Ok(Self { shared, _workers: running })
    }

    /// The most events that it had at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.hands.lock().unwrap_or_else(PoisonError::into_inner).most
    }

    /// What became of the tokens that it released, by the word of the API.
    pub fn answers(&self) -> std::collections::BTreeMap<String, u64> {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    async fn run(self: Arc<Self>) {
        loop {
            let messages = match self.receive().await {
                Ok(messages) => messages,
                Err(_) => {
                    sleep(AGAIN).await;
                    continue;
                }
            };
            for some in messages.chunks(self.work.releases_together.max(1)) {
                self.work_on(some).await;
            }
        }
    }

    async fn receive(&self) -> Result<Vec<Message>> {
        let receive = self.sqs.receive_message().queue_url(&self.queue_url).max_number_of_messages(10);
        Ok(receive.wait_time_seconds(20).send().await?.messages.unwrap_or_default())
    }

    /// Works on events side by side, then releases their tokens and deletes them.
    async fn work_on(&self, messages: &[Message]) {
        let events = messages.iter().filter_map(|message| message.body()?.parse::<Event>().ok());
        let tokens = self.take_in_hand(events.filter_map(|event| event.token));
        if !tokens.is_empty() {
            sleep(self.work.takes).await;
            self.hands.lock().unwrap_or_else(PoisonError::into_inner).busy -= tokens.len();
            let release = |token: String| match self.work.result {
                Some(result) => json!({"token": token, "result": result}),
                None => Value::String(token),
            };
            let tokens: Vec<Value> = tokens.into_iter().map(release).collect();
            self.release(json!({"tokens": tokens})).await;
        }
        drop(queue::delete(&self.sqs, &self.queue_url, messages).await);
    }

    /// Those of the tokens whose events it has not worked on yet.
    fn take_in_hand(&self, tokens: impl Iterator<Item = String>) -> Vec<String> {
        let mut hands = self.hands.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens: Vec<String> = tokens.filter(|token| hands.known.insert(token.clone())).collect();
        hands.busy += tokens.len();
        hands.most = hands.most.max(hands.busy);
        tokens
    }

    /// Releases tokens, again and again until it is answered.
    async fn release(&self, body: Value) {
        loop {
            match self.caller.call("POST", "/v1/tokens/release", &self.key, &body).await {
                Ok((StatusCode::OK, answer)) => {
                    let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                    for of in answer["results"].as_array().into_iter().flatten() {
                        *answers.entry(of["status"].as_str().unwrap_or("?").to_owned()).or_default() += 1;
                    }
                    return;
                }
                Ok((status, _)) if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                    return;
                }
                _ => sleep(AGAIN).await,
            }
        }
    }
}
