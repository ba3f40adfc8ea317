//! What a process remembers between calls: terms of runs, which never change, and leases of policies, for half a minute.
//!
//! Invariant: nothing that a limit depends on is remembered. Shares, holders and cursors live in the slot groups alone.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Duration, Utc};
use lru::LruCache;
use tidegate_domain::ids::{ClientId, PolicyId, RunId};

use crate::deliver::Terms;

/// Runs that are remembered.
const RUNS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Policies that are remembered.
const POLICIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
/// How long a policy's lease is believed, in seconds.
const BELIEF_SECONDS: i64 = 30;

type Runs = LruCache<(ClientId, RunId), Arc<Terms>>;
type Leases = LruCache<(ClientId, PolicyId), Lease>;

/// A policy's lease, as read at an instant.
#[derive(Debug, Clone, Copy)]
struct Lease {
    read_at: DateTime<Utc>,
    lasts: Duration,
}

/// What a process remembers.
pub(crate) struct Memory {
    runs: Mutex<Runs>,
    leases: Mutex<Leases>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { runs: Mutex::new(LruCache::new(RUNS)), leases: Mutex::new(LruCache::new(POLICIES)) }
    }

    pub(crate) fn run(&self, client: &ClientId, run: &RunId) -> Option<Arc<Terms>> {
        locked(&self.runs).get(&(client.clone(), run.clone())).map(Arc::clone)
    }

    pub(crate) fn keep_run(&self, client: &ClientId, run: &RunId, terms: &Arc<Terms>) {
        locked(&self.runs).put((client.clone(), run.clone()), Arc::clone(terms));
    }

    pub(crate) fn forget_run(&self, client: &ClientId, run: &RunId) {
        locked(&self.runs).pop(&(client.clone(), run.clone()));
    }

    pub(crate) fn lease(&self, client: &ClientId, policy: &PolicyId, now: DateTime<Utc>) -> Option<Duration> {
        let known = locked(&self.leases).get(&(client.clone(), policy.clone())).copied()?;
        ((now - known.read_at).num_seconds().abs() < BELIEF_SECONDS).then_some(known.lasts)
    }

    pub(crate) fn keep_lease(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
        lasts: Duration,
    ) {
        locked(&self.leases).put((client.clone(), policy.clone()), Lease { read_at: now, lasts });
    }
}

/// A cache is as good after a panic as before: each entry is put in whole.
fn locked<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}
