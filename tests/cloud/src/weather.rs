//! What the services suffer: slow, throttled or gone, from one instant to another, alone or together.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tidegate_embedded::Service;

/// What a service suffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Every call takes so much longer.
    Slow(Duration),
    /// It answers every call with its throttling error.
    Throttled,
    /// Of two calls one is answered with an internal error, and one is not answered.
    Gone,
}

/// A trouble, and when it holds.
#[derive(Debug, Clone, Copy)]
struct Spell {
    service: Service,
    trouble: Trouble,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
}

/// All troubles of a region, past and to come.
#[derive(Debug, Default)]
pub struct Weather(Mutex<Vec<Spell>>);

impl Weather {
    /// A service suffers from one instant up to another, which is no longer part of it.
    pub fn trouble(&self, service: Service, trouble: Trouble, from: DateTime<Utc>, to: DateTime<Utc>) {
        self.spells().push(Spell { service, trouble, from, to });
    }

    /// What a service suffers now, the first that was named.
    pub(crate) fn of(&self, service: Service, now: DateTime<Utc>) -> Option<Trouble> {
        let spells = self.spells();
        let now = spells.iter().find(|spell| spell.service == service && spell.from <= now && now < spell.to);
        now.map(|spell| spell.trouble)
    }

    fn spells(&self) -> std::sync::MutexGuard<'_, Vec<Spell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
