//! Something that is done for each of many items now and then, for many at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Items with the instants of their next turns.
///
/// Items that are more than half-way to their turn go along with one whose turn it is, so that items which began at
/// different instants soon share their calls.
#[derive(Debug)]
pub(crate) struct Periodic<T> {
    turns: Mutex<Turns<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Turns<T> {
    next_id: u64,
    by_id: BTreeMap<u64, Turn<T>>,
}

#[derive(Debug)]
struct Turn<T> {
    item: T,
    since: Instant,
    due_at: Instant,
}

/// An item has turns as long as this is kept.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    periodic: Arc<Periodic<T>>,
    id: u64,
}

impl<T: Clone> Periodic<T> {
    pub(crate) fn new() -> Arc<Self> {
        let turns = Mutex::new(Turns { next_id: 0, by_id: BTreeMap::new() });
        Arc::new(Self { turns, changed: Notify::new() })
    }

    pub(crate) fn add(self: &Arc<Self>, item: T, first_after: Duration) -> Kept<T> {
        let mut turns = self.lock();
        let (id, since) = (turns.next_id, Instant::now());
        turns.next_id += 1;
        turns.by_id.insert(id, Turn { item, since, due_at: since + first_after });
        self.changed.notify_one();
        Kept { periodic: Arc::clone(self), id }
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.lock().by_id.contains_key(&id)
    }

    /// Waits for the next turn. Returns all items that have it, with their ids; each is due until [`Periodic::again`].
    pub(crate) async fn due(&self) -> Vec<(u64, T)> {
        loop {
            let changed = self.changed.notified();
            let Some(first_due_at) = self.lock().by_id.values().map(|turn| turn.due_at).min() else {
                changed.await;
                continue;
            };
            if first_due_at <= Instant::now() {
                return self.more_than_half_way();
            }
            tokio::select! {
                () = sleep_until(first_due_at) => {}
                () = changed => {}
            }
        }
    }

    /// The next turn of an item comes so much later from now.
    pub(crate) fn again(&self, id: u64, after: Duration) {
        if let Some(turn) = self.lock().by_id.get_mut(&id) {
            turn.since = Instant::now();
            turn.due_at = turn.since + after;
        }
    }

    /// The item has no more turns.
    pub(crate) fn discard(&self, id: u64) {
        self.lock().by_id.remove(&id);
    }

    fn more_than_half_way(&self) -> Vec<(u64, T)> {
        let now = Instant::now();
        let is_near = |turn: &Turn<T>| turn.since + (turn.due_at - turn.since) / 2 <= now;
        let turns = self.lock();
        turns
            .by_id
            .iter()
            .filter(|(_, turn)| is_near(turn))
            .map(|(id, turn)| (*id, turn.item.clone()))
            .collect()
    }
}

impl<T> Periodic<T> {
    fn lock(&self) -> MutexGuard<'_, Turns<T>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        self.periodic.lock().by_id.remove(&self.id);
    }
}
