//! Releases of calls that a client makes side by side: while the writes of some are under way, others wait for them to end, and
//! share their writes next. A slot group is written once for all of its tokens, and no two calls get in each other's way.
//!
//! Only leases are ended together. What was granted is sent while the next calls end theirs.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lru::LruCache;
use tidegate_domain::ids::ClientId;
use tidegate_domain::token::Token;

use crate::contain::locked;
use crate::effect::Release;
use crate::gather::Gathered;
use crate::throttle::release::{Answers, Released};

/// Clients whose calls are made together. Those of others, who come back later, are made alone once.
const CLIENTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);

/// The calls of each client.
pub(crate) struct Together(Mutex<LruCache<ClientId, Arc<Calls>>>);

/// What calls of one client bring, and what came of all of them.
pub(super) type Calls = Gathered<Vec<Release>, Told>;

/// What came of tokens. Each answer is given once: of two calls with one token the second finds it released.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<BTreeMap<Token, Released>>>);

impl Default for Together {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CLIENTS)))
    }
}

impl Together {
    /// The calls of a client.
    pub(super) fn calls_of(&self, client: &ClientId) -> Arc<Calls> {
        Arc::clone(locked(&self.0).get_or_insert_ref(client, Arc::default))
    }
}

impl Told {
    pub(super) fn new(answers: impl Iterator<Item = (Token, Released)>) -> Self {
        Self(Arc::new(Mutex::new(answers.collect())))
    }

    /// Takes the answers for some releases; returns those that have none beside them.
    pub(super) fn take(&self, releases: &[Release]) -> (Answers, Vec<Release>) {
        let mut told = locked(&self.0);
        let (mut answers, mut open) = (Vec::with_capacity(releases.len()), Vec::new());
        for release in releases {
            match told.remove(&release.token) {
                Some(answer) => answers.push((release.token.clone(), answer)),
                None => open.push(release.clone()),
            }
        }
        (answers, open)
    }
}
