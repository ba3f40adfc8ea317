//! What a process remembers of what events deliver, which never changes.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lru::LruCache;
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::pack::{Singles, SinglesId};

use super::Terms;
use crate::contain::locked;

/// Runs that are remembered.
const RUNS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Packs of single events that are remembered: a megabyte or a few.
const PACKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);

type Runs = LruCache<(ClientId, RunId), Arc<Terms>>;
type Packs = LruCache<(ClientId, PolicyId, SinglesId), Arc<Singles>>;

/// What a process remembers of runs and packs.
pub(super) struct Memory {
    runs: Mutex<Runs>,
    packs: Mutex<Packs>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { runs: Mutex::new(LruCache::new(RUNS)), packs: Mutex::new(LruCache::new(PACKS)) }
    }

    pub(super) fn run(&self, client: &ClientId, run: &RunId) -> Option<Arc<Terms>> {
        locked(&self.runs).get(&(client.clone(), run.clone())).map(Arc::clone)
    }

    pub(super) fn keep_run(&self, client: &ClientId, run: &RunId, terms: &Arc<Terms>) {
        locked(&self.runs).put((client.clone(), run.clone()), Arc::clone(terms));
    }

    pub(super) fn forget_run(&self, client: &ClientId, run: &RunId) {
        locked(&self.runs).pop(&(client.clone(), run.clone()));
    }

    pub(super) fn pack(&self, client: &ClientId, policy: &PolicyId, id: SinglesId) -> Option<Arc<Singles>> {
        locked(&self.packs).get(&(client.clone(), policy.clone(), id)).map(Arc::clone)
    }

    pub(super) fn keep_pack(&self, client: &ClientId, policy: &PolicyId, pack: &Arc<Singles>) {
        locked(&self.packs).put((client.clone(), policy.clone(), pack.id), Arc::clone(pack));
    }
}
