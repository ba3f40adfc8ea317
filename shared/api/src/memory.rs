//! Answers of the store and of SQS that are believed for a little while, so that not every call asks again.
//!
//! What was not there is asked for each time, so that it is seen once it is; keys are the exception.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use tidegate_domain::time::seconds;

use chrono::{DateTime, TimeDelta, Utc};
use lru::LruCache;

/// How many answers of one kind are remembered: the latest used.
const ANSWERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_095);

/// Answers of one kind.
pub(crate) struct Memory<K: Eq + Hash, V> {
    believed: TimeDelta,
    answers: Mutex<LruCache<K, (DateTime<Utc>, V)>>,
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// Nothing yet. What will be kept is believed for so many seconds.
    pub(crate) fn for_seconds(believed: i64) -> Self {
        Self { believed: seconds(believed), answers: Mutex::new(LruCache::new(ANSWERS)) }
    }

    /// What is believed at `now`, if anything.
    pub(crate) fn find(&self, key: &K, now: DateTime<Utc>) -> Option<V> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked_at, answer) = answers.get(key)?;
        ((now - *asked_at).abs() < self.believed).then(|| answer.clone())
    }

    /// Believes nothing of a key any more.
    pub(crate) fn forget(&self, key: &K) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop(key);
    }

    /// Keeps what was answered at `now`.
    pub(crate) fn keep(&self, key: K, now: DateTime<Utc>, answer: V) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).put(key, (now, answer));
    }
}
