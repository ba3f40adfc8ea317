//! Where one-time jobs under ids that we make are put: in which shard of the time index each lies.
//!
//! A client's lie in few shards of ten minutes, so that a list of them reads few: a process keeps to one for some jobs, and marks it
//! before it puts the first one there. A client with many soon has them all, as it must, since a shard takes so many writes a second.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use lru::LruCache;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, OneTimeShard};
use tidegate_domain::time::seconds;
use tidegate_store::Store;
use tidegate_store::one_times::TenMinutes;

use crate::EngineError;
use crate::contain::locked;
use crate::random::Random;

/// Ten minutes of clients that a process remembers.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
/// For how long it does: less than it takes to delete a client, whose name somebody else may have then.
const REMEMBERED_FOR: TimeDelta = seconds(900);
/// Jobs that a process puts into a shard before it takes another: about what half a read unit shows, which a shard costs that is empty.
const JOBS_OF_A_SHARD: u32 = 16;
/// Marks that are written at once.
const MARKS_AT_ONCE: usize = 16;

/// What a process knows of where one-time jobs lie.
pub(crate) struct Places {
    known: Mutex<LruCache<(ClientId, TenMinutes), Known>>,
}

impl Default for Places {
    fn default() -> Self {
        Self { known: Mutex::new(LruCache::new(REMEMBERED)) }
    }
}

/// What it knows of ten minutes of a client.
struct Known {
    /// When it was read.
    at: DateTime<Utc>,
    marked: BTreeSet<u32>,
    shard: u32,
    /// How far from it the next one lies: processes that begin at one go different ways.
    stride: u32,
    /// Jobs that are put into this shard before another is taken.
    left: u32,
}

impl Known {
    /// Of what is marked: jobs are put where some lie already, if there are.
    fn new(at: DateTime<Utc>, marked: BTreeSet<u32>, at_shards: u32, random: &dyn Random) -> Self {
        let among: Vec<u32> = marked.iter().copied().filter(|shard| *shard < at_shards).collect();
        let nth = any(u32::try_from(among.len()).unwrap_or_default(), random);
        let shard = among.get(nth as usize).copied().unwrap_or_else(|| any(at_shards, random));
        // An odd one comes to each of 64 shards.
        let stride = any(at_shards, random) | 1;
        Self { at, marked, shard, stride, left: JOBS_OF_A_SHARD }
    }

    fn next(&mut self, at_shards: u32) -> u32 {
        if self.left == 0 {
            self.shard = self.shard.saturating_add(self.stride).checked_rem(at_shards).unwrap_or_default();
            self.left = JOBS_OF_A_SHARD;
        }
        self.left = self.left.saturating_sub(1);
        self.shard
    }
}

/// Any of so many, from 0.
fn any(number: u32, random: &dyn Random) -> u32 {
    let number = random.next_u64().checked_rem(number.into()).unwrap_or_default();
    u32::try_from(number).unwrap_or_default()
}

impl Places {
    /// Where a client's next one-time jobs lie that are due at some instants, in their order; each place is marked. It costs nothing
    /// where that is known, half a read unit for ten minutes of which nothing is, and a write unit for those that get a shard more.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn take(
        &self,
        (store, clock, random): (&Store, &dyn Clock, &dyn Random),
        client: &ClientId,
        instants: &[DateTime<Utc>],
    ) -> Result<Vec<OneTimeShard>, EngineError> {
        let now = clock.now();
        let mut wanted: BTreeMap<TenMinutes, usize> = BTreeMap::new();
        for at in instants {
            let number = wanted.entry(TenMinutes::of(*at)).or_default();
            *number = number.saturating_add(1);
        }
        let at_shards = store.spread().at_shards;
        let unknown = self.unknown(client, &wanted, now);
        if !unknown.is_empty() {
            let mut marks = store.one_time_marks(client, &unknown).await?;
            let mut known = locked(&self.known);
            for of in unknown {
                let marked = marks.remove(&of).unwrap_or_default();
                known.put((client.clone(), of), Known::new(now, marked, at_shards, random));
            }
        }
        let (mut taken, mut unmarked) = (BTreeMap::new(), Vec::new());
        {
            let mut known = locked(&self.known);
            for (of, number) in wanted {
                // Those that were forgotten meanwhile begin anew.
                let new = || Known::new(now, BTreeSet::new(), at_shards, random);
                let known = known.get_or_insert_mut((client.clone(), of), new);
                let shards: VecDeque<u32> = (0..number).map(|_| known.next(at_shards)).collect();
                let more: BTreeSet<u32> =
                    shards.iter().copied().filter(|shard| !known.marked.contains(shard)).collect();
                if !more.is_empty() {
                    unmarked.push((of, more));
                }
                taken.insert(of, shards);
            }
        }
        let marks = unmarked.into_iter().map(async |(of, shards): (TenMinutes, BTreeSet<u32>)| {
            store.mark_one_times(client, of, &shards, now).await?;
            if let Some(known) = locked(&self.known).get_mut(&(client.clone(), of)) {
                known.marked.extend(shards);
            }
            Ok::<(), EngineError>(())
        });
        let marks: Vec<_> = marks.collect();
        stream::iter(marks).buffer_unordered(MARKS_AT_ONCE).try_collect::<()>().await?;
        let mut place = |at: &DateTime<Utc>| {
            let shard = taken.get_mut(&TenMinutes::of(*at)).and_then(VecDeque::pop_front).unwrap_or_default();
            OneTimeShard { minute: at.timestamp().div_euclid(60), shard }
        };
        Ok(instants.iter().map(&mut place).collect())
    }

    /// Those of which nothing is known.
    fn unknown(
        &self,
        client: &ClientId,
        wanted: &BTreeMap<TenMinutes, usize>,
        now: DateTime<Utc>,
    ) -> Vec<TenMinutes> {
        let mut known = locked(&self.known);
        let mut is_known = |of: TenMinutes| {
            let found = known.get(&(client.clone(), of));
            found.is_some_and(|known| now.signed_duration_since(known.at) < REMEMBERED_FOR)
        };
        wanted.keys().copied().filter(|of| !is_known(*of)).collect()
    }
}
