//! What reached a consumer, counted at the moment of its arrival.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::mpsc;

/// An event as it was delivered.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its id, which is the consumer's idempotency key.
    pub event_id: String,
    /// Its number within its run.
    pub index: u64,
    /// When it was due.
    pub launch_at: DateTime<Utc>,
    /// When it arrived here.
    pub arrived_at: DateTime<Utc>,
    /// What to release when it is finished; none where nothing throttles it.
    pub token: Option<String>,
    /// The whole message.
    pub message: Value,
}

impl Event {
    /// Reads a delivered message.
    ///
    /// # Errors
    /// When it has not the documented form.
    pub fn read(message: &str) -> Result<Self> {
        let arrived_at = Utc::now();
        let message: Value = serde_json::from_str(message).context("a message is not JSON")?;
        let text = |field: &str| message[field].as_str().with_context(|| format!("no {field} in {message}"));
        Ok(Self {
            event_id: text("event_id")?.to_owned(),
            index: message["index"].as_u64().with_context(|| format!("no index in {message}"))?,
            launch_at: text("launch_at")?.parse().context("launch_at is no instant")?,
            arrived_at,
            token: message["token"].as_str().map(str::to_owned),
            message,
        })
    }
}

/// Where deliveries are counted. Clones share the count.
#[derive(Debug, Clone)]
pub struct Inbox {
    count: Arc<Mutex<Count>>,
    arrivals: mpsc::UnboundedSender<Result<Event>>,
}

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Count {
    /// Events that arrived and are not finished.
    pub held: BTreeSet<String>,
    /// The most that were ever held at once.
    pub most_held: usize,
    /// How often each event arrived.
    pub deliveries: BTreeMap<String, u32>,
}

impl Inbox {
    /// An empty inbox, and where its events come out.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Result<Event>>) {
        let (arrivals, events) = mpsc::unbounded_channel();
        (Self { count: Arc::default(), arrivals }, events)
    }

    /// Takes a delivery, or a reason why what arrived is none.
    pub fn deliver(&self, arrival: Result<Event>) {
        if let Ok(event) = &arrival {
            let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
            *count.deliveries.entry(event.event_id.clone()).or_default() += 1;
            count.held.insert(event.event_id.clone());
            count.most_held = count.most_held.max(count.held.len());
        }
        // A test that has ended takes nothing more.
        let _ = self.arrivals.send(arrival);
    }

    /// Counts an event as finished. To be said before its release is sent, for the next one may arrive before the
    /// release is answered.
    pub fn finish(&self, event_id: &str) {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).held.remove(event_id);
    }

    /// What was counted up to now.
    pub fn count(&self) -> Count {
        self.count.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
