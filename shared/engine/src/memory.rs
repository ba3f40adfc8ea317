//! What a process remembers between calls: terms of runs and packs, which never change; leases of policies and the shape of the
//! index, for half a minute.
//!
//! Invariant: nothing that a limit depends on is remembered. Shares, holders and cursors live in the slot groups alone.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use lru::LruCache;
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{Singles, SinglesId, SinglesKind};
use tidegate_store::index::IndexShape;

use crate::deliver::Terms;
use crate::throttle::shares::PolicySnapshot;
use crate::token_key::TokenKey;

/// Runs that are remembered.
const RUNS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Packs of single events that are remembered: a megabyte or a few.
const PACKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);
/// Kinds of packs of which is remembered what is in them: a few megabytes.
const PACK_LOGS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);
/// Occurrences in packs of a kind that are remembered.
const PACKED: usize = 10_000;
/// Policies that are remembered.
const POLICIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
/// How long what is read of a policy is believed, in seconds.
const BELIEF_SECONDS: i64 = 30;
/// How long the index is believed to have a zone that was added to it, in seconds. Shorter than zones are kept.
pub(crate) const ZONE_BELIEF_SECONDS: i64 = 300;

type Runs = LruCache<(ClientId, RunId), Arc<Terms>>;
type Packs = LruCache<(ClientId, PolicyId, SinglesId), Arc<Singles>>;
type PackLogs = LruCache<(ClientId, PolicyId, SinglesKind), PackLog>;
type Wakes = LruCache<(ClientId, PolicyId), DateTime<Utc>>;
type Policies = LruCache<(ClientId, PolicyId), (DateTime<Utc>, PolicySnapshot)>;

/// The packs of a kind, all from the first on, without what their occurrences deliver.
#[derive(Debug, Default)]
struct PackLog {
    /// The number of the next.
    next: u32,
    runs: HashSet<RunId>,
    /// Those of packs that go straight to a slot group, and may not be there yet.
    halfway: HashSet<RunId>,
}

/// What a process remembers.
pub(crate) struct Memory {
    runs: Mutex<Runs>,
    packs: Mutex<Packs>,
    pack_logs: Mutex<PackLogs>,
    policies: Mutex<Policies>,
    wakes: Mutex<Wakes>,
    zones: Mutex<HashMap<Tz, DateTime<Utc>>>,
    shape: Mutex<Option<(DateTime<Utc>, Arc<IndexShape>)>>,
    token_key: OnceLock<Arc<TokenKey>>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            runs: Mutex::new(LruCache::new(RUNS)),
            packs: Mutex::new(LruCache::new(PACKS)),
            pack_logs: Mutex::new(LruCache::new(PACK_LOGS)),
            policies: Mutex::new(LruCache::new(POLICIES)),
            wakes: Mutex::new(LruCache::new(POLICIES)),
            zones: Mutex::default(),
            shape: Mutex::default(),
            token_key: OnceLock::new(),
        }
    }

    /// The key that tokens are signed with, once it was read. It never changes.
    pub(crate) fn token_key(&self) -> Option<Arc<TokenKey>> {
        self.token_key.get().cloned()
    }

    pub(crate) fn keep_token_key(&self, key: TokenKey) -> Arc<TokenKey> {
        Arc::clone(self.token_key.get_or_init(|| Arc::new(key)))
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

    pub(crate) fn pack(&self, client: &ClientId, policy: &PolicyId, id: SinglesId) -> Option<Arc<Singles>> {
        locked(&self.packs).get(&(client.clone(), policy.clone(), id)).map(Arc::clone)
    }

    pub(crate) fn keep_pack(&self, client: &ClientId, policy: &PolicyId, pack: &Arc<Singles>) {
        locked(&self.packs).put((client.clone(), policy.clone(), pack.id), Arc::clone(pack));
    }

    /// Takes out occurrences that are in packs of a kind, as far as this process knows, and says which number comes next.
    /// Whatever number others have written, this one included, refuses a second pack.
    pub(crate) fn leave_packed<T>(
        &self,
        (client, policy, kind): (&ClientId, &PolicyId, SinglesKind),
        open: &mut Vec<T>,
        occurrence: impl Fn(&T) -> &Occurrence,
    ) -> u32 {
        let mut logs = locked(&self.pack_logs);
        let Some(log) = logs.get(&(client.clone(), policy.clone(), kind)) else { return 0 };
        open.retain(|one| !log.runs.contains(&occurrence(one).run_id()));
        log.next
    }

    /// Remembers packs of a kind: those that follow on what is known of it, or all of them.
    pub(crate) fn keep_pack_log(&self, client: &ClientId, policy: &PolicyId, packs: &[Singles]) {
        let Some(first) = packs.first() else { return };
        let key = (client.clone(), policy.clone(), first.id.kind);
        let mut logs = locked(&self.pack_logs);
        // Those that follow on what is known, or all.
        let mut log = logs.pop(&key).filter(|log| log.next == first.id.number).unwrap_or_default();
        for pack in packs {
            if pack.id.number != log.next || log.runs.len() > PACKED {
                return;
            }
            log.next = log.next.saturating_add(1);
            log.runs.extend(pack.members.iter().map(Occurrence::run_id));
            if pack.straight.is_some() {
                log.halfway.extend(pack.members.iter().map(Occurrence::run_id));
            }
        }
        logs.put(key, log);
    }

    /// Remembers that the events of a pack which went straight to a slot group are there, or in the line.
    pub(crate) fn keep_placed(&self, client: &ClientId, policy: &PolicyId, pack: &Singles) {
        if let Some(log) = locked(&self.pack_logs).get_mut(&(client.clone(), policy.clone(), pack.id.kind)) {
            for member in &pack.members {
                log.halfway.remove(&member.run_id());
            }
        }
    }

    /// Whether some of these occurrences are in a pack that, as far as this process knows, may not have reached its slot
    /// group.
    pub(crate) fn may_be_halfway(
        &self,
        (client, policy, kind): (&ClientId, &PolicyId, SinglesKind),
        members: &[Occurrence],
    ) -> bool {
        let mut logs = locked(&self.pack_logs);
        let log = logs.get(&(client.clone(), policy.clone(), kind)).filter(|log| !log.halfway.is_empty());
        log.is_some_and(|log| members.iter().any(|member| log.halfway.contains(&member.run_id())))
    }

    pub(crate) fn snapshot(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
    ) -> Option<PolicySnapshot> {
        let (read_at, snapshot) = locked(&self.policies).get(&(client.clone(), policy.clone())).copied()?;
        ((now - read_at).num_seconds().abs() < BELIEF_SECONDS).then_some(snapshot)
    }

    pub(crate) fn keep_snapshot(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        now: DateTime<Utc>,
        snapshot: PolicySnapshot,
    ) {
        locked(&self.policies).put((client.clone(), policy.clone()), (now, snapshot));
    }
}

impl Memory {
    /// By when somebody wakes a policy, as far as this process knows.
    pub(crate) fn woken_by(&self, client: &ClientId, policy: &PolicyId) -> Option<DateTime<Utc>> {
        locked(&self.wakes).get(&(client.clone(), policy.clone())).copied()
    }

    pub(crate) fn keep_wake(&self, client: &ClientId, policy: &PolicyId, by: DateTime<Utc>) {
        locked(&self.wakes).put((client.clone(), policy.clone()), by);
    }

    /// Whether this process added a zone to the index not long ago.
    pub(crate) fn has_zone(&self, zone: Tz, now: DateTime<Utc>) -> bool {
        let added_at = locked(&self.zones).get(&zone).copied();
        added_at.is_some_and(|at| (now - at).num_seconds().abs() < ZONE_BELIEF_SECONDS)
    }

    pub(crate) fn keep_zone(&self, zone: Tz, now: DateTime<Utc>) {
        locked(&self.zones).insert(zone, now);
    }

    /// The shape of the index, if it was read not long ago. One that is out of date has fewer shards: they are all read.
    pub(crate) fn shape(&self, now: DateTime<Utc>) -> Option<Arc<IndexShape>> {
        let (read_at, shape) = locked(&self.shape).clone()?;
        ((now - read_at).num_seconds().abs() < BELIEF_SECONDS).then_some(shape)
    }

    pub(crate) fn keep_shape(&self, now: DateTime<Utc>, shape: &Arc<IndexShape>) {
        *locked(&self.shape) = Some((now, Arc::clone(shape)));
    }
}

/// A cache is as good after a panic as before: each entry is put in whole.
fn locked<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}
