//! What the operator of a history has done with dead letters, as far as it knows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_domain::ids::{ClientId, EventId};
use tidegate_engine::{EngineError, Redriven};

use super::dice::Dice;

pub(crate) type Events = BTreeSet<(ClientId, EventId)>;

/// What came of each of some letters.
pub(crate) type Answers = Vec<(EventId, Result<Redriven, EngineError>)>;

/// The operator of a history.
#[derive(Debug)]
pub(crate) struct Operator {
    pub(crate) dice: Dice,
    /// Events that are on their way again, as far as it was told, and those that cannot be.
    pub(crate) redriven: Events,
    pub(crate) refused: Events,
    /// Events whose letters it asked to discard, whether or not it was answered.
    pub(crate) discarded: Arc<Mutex<Events>>,
}

impl Operator {
    pub(crate) fn new(dice: Dice) -> Self {
        Self { dice, redriven: Events::new(), refused: Events::new(), discarded: Arc::default() }
    }

    /// Whether it asked to discard the letter of an event.
    pub(crate) fn has_discarded(&self, client: &ClientId, event: &EventId) -> bool {
        locked(&self.discarded).contains(&(client.clone(), event.clone()))
    }
}

pub(crate) fn locked(events: &Mutex<Events>) -> MutexGuard<'_, Events> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}
