//! What a process remembers of lines and policies between calls: which events are in packs, what was read of a policy, and
//! who wakes it when. For half a minute, or as long as there is room.
//!
//! Invariant: nothing that a limit depends on is remembered. Shares, holders and cursors live in the slot groups alone.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::Mutex;

use chrono::{DateTime, Duration, Utc};
use lru::LruCache;
use tidegate_domain::backpressure::Sign;
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::{Singles, SinglesKind};
use tidegate_domain::policy::PolicyRef;

use super::shares::PolicySnapshot;
use crate::contain::locked;

/// Kinds of packs of which is remembered what is in them.
const PACK_LOGS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);
/// Occurrences in packs that are remembered, of all kinds: some ten megabytes. Of a kind with more nothing is, and whoever
/// appends to it reads all of it.
const PACKED: usize = 250_000;
/// Policies that are remembered.
const POLICIES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
/// How long what is read of a policy is believed, in seconds.
const BELIEF_SECONDS: i64 = 30;
/// For how long a sign that a consumer cannot keep up stands for others like it, in milliseconds.
const SIGNS_MS: i64 = 1_000;

type PackLogs = LruCache<(ClientId, PolicyId, SinglesKind), PackLog>;
type Wakes = LruCache<(ClientId, PolicyId), DateTime<Utc>>;
type Signs = LruCache<PolicyRef, (DateTime<Utc>, Option<Duration>)>;
type Policies = LruCache<(ClientId, PolicyId), (DateTime<Utc>, PolicySnapshot)>;

/// The packs of a kind, all from the first on, without what their occurrences deliver.
#[derive(Debug, Default)]
struct PackLog {
    /// The number of the next.
    next: u32,
    runs: HashSet<Digest>,
    /// Those of packs that go straight to a slot group, and may not be there yet.
    halfway: HashSet<RunId>,
}

/// Stands for a run: two runs have the same by chance alone, once in 2^128.
type Digest = [u64; 2];

/// What a process remembers of lines and policies.
pub(crate) struct Memory {
    digests: [RandomState; 2],
    pack_logs: Mutex<PackLogs>,
    policies: Mutex<Policies>,
    wakes: Mutex<Wakes>,
    signs: Mutex<Signs>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            digests: [RandomState::new(), RandomState::new()],
            pack_logs: Mutex::new(LruCache::new(PACK_LOGS)),
            policies: Mutex::new(LruCache::new(POLICIES)),
            wakes: Mutex::new(LruCache::new(POLICIES)),
            signs: Mutex::new(LruCache::new(POLICIES)),
        }
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
        open.retain(|one| !log.runs.contains(&self.digest(occurrence(one))));
        log.next
    }

    /// Remembers packs of a kind that follow on one another, as far as they follow on what is known of it.
    pub(crate) fn keep_pack_log(&self, client: &ClientId, policy: &PolicyId, packs: &[Singles]) {
        let Some(first) = packs.first() else { return };
        let key = (client.clone(), policy.clone(), first.id.kind);
        let mut logs = locked(&self.pack_logs);
        let mut log = logs.pop(&key).unwrap_or_default();
        let known = log.next;
        for pack in packs.iter().skip_while(|pack| pack.id.number < known) {
            if pack.id.number != log.next {
                break;
            }
            log.next = log.next.saturating_add(1);
            log.runs.extend(pack.members.iter().map(|member| self.digest(member)));
            if pack.straight.is_some() {
                log.halfway.extend(pack.members.iter().map(Occurrence::run_id));
            }
        }
        logs.put(key, log);
        while logs.iter().map(|(_, log)| log.runs.len()).sum::<usize>() > PACKED {
            logs.pop_lru();
        }
    }

    fn digest(&self, occurrence: &Occurrence) -> Digest {
        let run = (&occurrence.job, occurrence.revision, occurrence.launch_at);
        self.digests.each_ref().map(|hasher| hasher.hash_one(run))
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

    /// Whether this process saw a sign within the last second that asked for no less, so that another one says nothing new: many
    /// events fail together. It is remembered.
    pub(crate) fn is_sign_known(&self, policy: &PolicyRef, sign: &Sign, now: DateTime<Utc>) -> bool {
        let mut signs = locked(&self.signs);
        let known = signs.get(policy).is_some_and(|(seen_at, asked)| {
            (now - *seen_at).num_milliseconds().abs() < SIGNS_MS && *asked >= sign.asks_for
        });
        if !known {
            signs.put(policy.clone(), (now, sign.asks_for));
        }
        known
    }

    /// By when somebody wakes a policy, as far as this process knows.
    pub(crate) fn woken_by(&self, client: &ClientId, policy: &PolicyId) -> Option<DateTime<Utc>> {
        locked(&self.wakes).get(&(client.clone(), policy.clone())).copied()
    }

    pub(crate) fn keep_wake(&self, client: &ClientId, policy: &PolicyId, by: DateTime<Utc>) {
        locked(&self.wakes).put((client.clone(), policy.clone()), by);
    }
}
