//! A scan window: a half-open stretch of real time.

use chrono::{DateTime, Utc};
use thiserror::Error;

use super::ceil_second;

/// A stretch of time, from its first instant up to but not including its last.
///
/// Invariant: `from <= to`. An empty window is allowed and holds nothing.
///
/// ```
/// use tidegate_domain::time::Window;
///
/// let noon: chrono::DateTime<chrono::Utc> = "2026-11-23T12:00:00Z".parse()?;
/// let hour = Window::new(noon, noon + chrono::TimeDelta::hours(1))?;
/// assert!(hour.contains(hour.from()) && !hour.contains(hour.to()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
}

/// Why two instants are not a window.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowError {
    /// It ends before it begins.
    #[error("window ends at {to}, before it begins at {from}")]
    Backward {
        /// The given beginning.
        from: DateTime<Utc>,
        /// The given end.
        to: DateTime<Utc>,
    },
}

impl Window {
    /// The window `[from, to)`.
    ///
    /// # Errors
    /// [`WindowError::Backward`] when `to` lies before `from`.
    pub fn new(from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Self, WindowError> {
        if to < from { Err(WindowError::Backward { from, to }) } else { Ok(Self { from, to }) }
    }

    /// The empty window at an instant.
    pub fn of_none(at: DateTime<Utc>) -> Self {
        Self { from: at, to: at }
    }

    /// Its first instant.
    pub fn from(&self) -> DateTime<Utc> {
        self.from
    }

    /// The first instant after it.
    pub fn to(&self) -> DateTime<Utc> {
        self.to
    }

    /// Whether an instant lies in it.
    pub fn contains(&self, instant: DateTime<Utc>) -> bool {
        self.from <= instant && instant < self.to
    }

    /// The whole seconds in it, as Unix seconds `[from, to)`.
    pub(super) fn seconds(&self) -> (i64, i64) {
        (ceil_second(self.from), ceil_second(self.to))
    }
}
