//! `AT` rows: single instants, keyed by their minute in UTC.

use std::fmt;

use chrono::{DateTime, Utc};

use super::window::Window;

/// A minute of UTC: the key of the `AT` rows whose instants lie in it. Its text is `2026-11-21T11:25`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AtMinute {
    starts_at: DateTime<Utc>,
}

impl AtMinute {
    /// The minute that an instant lies in.
    pub fn of(instant: DateTime<Utc>) -> Self {
        let starts_s = instant.timestamp().div_euclid(60) * 60;
        Self { starts_at: DateTime::from_timestamp(starts_s, 0).unwrap_or(instant) }
    }

    /// Its first instant.
    pub fn starts_at(&self) -> DateTime<Utc> {
        self.starts_at
    }
}

impl fmt::Display for AtMinute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.starts_at.format("%Y-%m-%dT%H:%M"))
    }
}

/// The key text of the minute that an instant lies in, such as `2026-11-21T11:25`.
pub fn at_key(instant: DateTime<Utc>) -> String {
    AtMinute::of(instant).to_string()
}

impl Window {
    /// The minutes that hold some instant of the window, in order; none of an empty one. The first and the last may
    /// reach beyond it: whoever reads them keeps what [`Window::contains`].
    pub fn at_minutes(&self) -> impl Iterator<Item = AtMinute> + use<> {
        let first = AtMinute::of(self.from()).starts_at.timestamp();
        let (_, to_s) = self.seconds();
        let end = if self.from() < self.to() { to_s } else { first };
        std::iter::successors(Some(first), |second| second.checked_add(60))
            .take_while(move |second| *second < end)
            .filter_map(|second| DateTime::from_timestamp(second, 0).map(|starts_at| AtMinute { starts_at }))
    }
}
