//! What a consumer saw: when each event came, how late it was, and how many were in hand at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::figures::now;

/// As much as an event may come early: the player in Node has a clock that allows it this too.
const EARLY_BEYOND_MS: f64 = 2.0;

/// The book of one work. All loops of a consumer write into it.
pub struct Book {
    seen: Mutex<Seen>,
    all: Notify,
}

/// What was seen.
pub struct Seen {
    /// When each event is due, where that is known.
    due: Vec<Option<f64>>,
    came: Vec<bool>,
    /// How late each came, in the order in which they came, in milliseconds.
    pub late: Vec<f64>,
    repeated: u64,
    early: u64,
    in_hand: u64,
    most: u64,
    /// When the first and the last came, and the last was worked on.
    pub first: f64,
    pub last: f64,
    pub ended: f64,
}

impl Book {
    /// Of `count` events, all of which are due at `due`, if that is known.
    pub fn new(count: usize, due: Option<f64>) -> Self {
        let (due, came) = (vec![due; count], vec![false; count]);
        let late = Vec::with_capacity(count);
        let seen = Seen {
            due,
            came,
            late,
            repeated: 0,
            early: 0,
            in_hand: 0,
            most: 0,
            first: 0.0,
            last: 0.0,
            ended: 0.0,
        };
        Self { seen: Mutex::new(seen), all: Notify::new() }
    }

    /// Events `from` and the `count` after it are due at `due`.
    pub fn note_due(&self, from: usize, count: usize, due: f64) {
        self.seen().due.iter_mut().skip(from).take(count).for_each(|each| *each = Some(due));
    }

    /// Event `n` is in the consumer's hands.
    ///
    /// # Errors
    /// When no such event was created.
    pub fn begin(&self, n: usize) -> Result<()> {
        let mut seen = self.seen();
        let at = now();
        seen.in_hand += 1;
        seen.most = seen.most.max(seen.in_hand);
        let came = seen.came.get_mut(n).with_context(|| format!("event {n} was never created"))?;
        if std::mem::replace(came, true) {
            seen.repeated += 1;
            return Ok(());
        }
        if seen.late.is_empty() {
            seen.first = at;
        }
        seen.last = at;
        let late = seen.due[n].map_or(0.0, |due| at - due);
        if late < -EARLY_BEYOND_MS {
            seen.early += 1;
        }
        seen.late.push(late);
        if seen.late.len() == seen.came.len() {
            self.all.notify_one();
        }
        Ok(())
    }

    /// The work of `count` events has ended; their tokens are about to be given back.
    pub fn end(&self, count: usize) {
        let mut seen = self.seen();
        seen.in_hand -= count as u64;
        seen.ended = now();
    }

    /// Waits until each event was seen, or until `until`.
    pub async fn wait(&self, until: f64) {
        let left = Duration::from_secs_f64((until - now()).max(0.0) / 1e3);
        // What did not come is counted by `check`.
        timeout(left, self.all.notified()).await.ok();
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// What must hold whatever the speed.
    pub fn check(&self) -> Value {
        json!({
            "wanted": self.came.len(), "arrived": self.late.len(), "repeated": self.repeated, "early": self.early,
            "most_in_hand": self.most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_or_early_is_counted() {
        let book = Book::new(3, Some(now() + 60_000.0));
        book.note_due(2, 1, now());
        for n in [0, 0, 2] {
            book.begin(n).unwrap();
        }
        book.end(2);
        book.begin(0).unwrap();
        let wanted = json!({"wanted": 3, "arrived": 2, "repeated": 2, "early": 1, "most_in_hand": 3});
        assert_eq!(book.seen().check(), wanted);
        assert!(book.begin(3).is_err());
    }
}
