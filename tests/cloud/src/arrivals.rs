//! What arrived at the queues of consumers: which events, how often, and how late.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;
use tidegate_protocol::Event;

/// One event.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The client whose it is.
    pub client: String,
    /// Its job.
    pub job: String,
    /// When it was due.
    pub due_at: DateTime<Utc>,
    /// When it came for the first time.
    pub first_at: DateTime<Utc>,
    /// How often it came.
    pub times: u32,
}

impl Arrival {
    /// How long after its launch it came, in milliseconds.
    pub fn late_ms(&self) -> i64 {
        (self.first_at - self.due_at).num_milliseconds()
    }
}

/// The events that arrived.
#[derive(Debug, Default)]
struct Events {
    /// By client and id: those of different clients may have the same id.
    by_id: HashMap<(String, String), Arrival>,
    /// How many different ones, by client.
    counts: HashMap<String, usize>,
}

/// All arrivals of a region, by the event's id.
#[derive(Debug, Default)]
pub struct Arrivals {
    events: Mutex<Events>,
}

impl Arrivals {
    /// Notes the messages of a call that was taken. What goes to queues of ours is no event, and is passed over.
    pub(crate) fn note(&self, sent: &Value, now: DateTime<Utc>) {
        let single = sent["MessageBody"].as_str();
        let entries = sent["Entries"].as_array().into_iter().flatten();
        let bodies = entries.filter_map(|entry| entry["MessageBody"].as_str()).chain(single);
        let is_of_consumer =
            |url: &str| url.rsplit('/').next().is_some_and(|name| name.starts_with("target-"));
        if !sent["QueueUrl"].as_str().is_some_and(is_of_consumer) {
            return;
        }
        for body in bodies {
            if let Ok(event) = serde_json::from_str(body) {
                self.note_event(event, now);
            }
        }
    }

    fn note_event(&self, event: Event, now: DateTime<Utc>) {
        let due_at = event.launch_at.parse().unwrap_or_default();
        let (client, job) = (event.client_id, event.job_id);
        let mut events = self.locked();
        let id = (client.clone(), event.event_id);
        match events.by_id.get_mut(&id) {
            Some(arrival) => arrival.times += 1,
            None => {
                *events.counts.entry(client.clone()).or_default() += 1;
                let arrival = Arrival { client, job, due_at, first_at: now, times: 1 };
                events.by_id.insert(id, arrival);
            }
        }
    }

    /// How many different events of one client arrived.
    pub fn count_of(&self, client: &str) -> usize {
        self.locked().counts.get(client).copied().unwrap_or_default()
    }

    /// Those of one client.
    pub fn of(&self, client: &str) -> Vec<Arrival> {
        self.locked().by_id.values().filter(|arrival| arrival.client == client).cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How late events came, and how many came more than once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Events that came.
    pub events: usize,
    /// Deliveries beyond the first of each.
    pub repeated: u32,
    /// What half of them stayed under, in milliseconds.
    pub median_ms: i64,
    /// What 99 of 100 stayed under, in milliseconds.
    pub p99_ms: i64,
    /// The latest, in milliseconds.
    pub most_ms: i64,
    /// The earliest, in milliseconds: negative when it came before its time.
    pub least_ms: i64,
}

impl Lateness {
    /// The lateness of these events.
    pub fn of(arrivals: &[Arrival]) -> Self {
        let mut late: Vec<i64> = arrivals.iter().map(Arrival::late_ms).collect();
        late.sort_unstable();
        let at = |of_a_hundred: usize| {
            let place = late.len().saturating_sub(1) * of_a_hundred / 100;
            late.get(place).copied().unwrap_or_default()
        };
        Self {
            events: late.len(),
            repeated: arrivals.iter().map(|arrival| arrival.times.saturating_sub(1)).sum(),
            median_ms: at(50),
            p99_ms: at(99),
            most_ms: at(100),
            least_ms: at(0),
        }
    }
}
