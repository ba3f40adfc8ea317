//! What every kind of trigger has in common: the instants at which it launches, and the children that cover them.

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::closed_days::{IsOpen, OnClosedDay};
use super::cron::CompiledCron;
use super::decompose::{self, decompose};
use super::firing::Firing;
use super::instants::Instants;
use super::launch::ChildKey;
use super::local::LocalWindow;
use super::rate::Rate;
use super::span::seconds;
use super::window::Window;

/// The first span that is searched backward for the latest launches; each further one is longer.
const BACKWARD: TimeDelta = seconds(3_600);

/// When something launches, compiled. By it, rows of the index are found and launches are computed, without a parser.
///
/// ```
/// use tidegate_domain::job::Trigger;
/// use tidegate_domain::time::Window;
///
/// let at: chrono::DateTime<chrono::Utc> = "2026-11-23T12:00:00Z".parse()?;
/// let cadence = Trigger::at(at).cadence();
/// let firings = cadence.firings(Window::new(at, at + chrono::TimeDelta::hours(1))?);
/// assert_eq!((firings.len(), firings[0].launch_at), (1, at));
/// assert!(cadence.upcoming(at, 10).is_empty(), "after it, no more come");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cadence {
    /// By the wall clock of a zone.
    Cron {
        /// The expression, compiled.
        cron: CompiledCron,
        /// The zone whose wall clock counts.
        zone: Tz,
    },
    /// In a steady beat from an anchor.
    Rate(Rate),
    /// At single instants.
    At(Instants),
}

impl Cadence {
    /// The zone whose scan finds its children, UTC for rates; `None` for instants, which have rows of their own.
    pub fn index_zone(&self) -> Option<Tz> {
        match self {
            Self::Cron { zone, .. } => Some(*zone),
            Self::Rate(_) => Some(Tz::UTC),
            Self::At(_) => None,
        }
    }

    /// What launches at all instants at which a job with this rule may, whatever its calendars say: itself, or, where launches are
    /// moved, its times of every day. These are indexed and looked at, and [`Self::settled`] says what becomes of each.
    pub fn candidates(&self, rule: OnClosedDay) -> Cow<'_, Self> {
        match self {
            Self::Cron { cron, zone } if rule.moves() => {
                Cow::Owned(Self::Cron { cron: cron.on_every_day(), zone: *zone })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// What becomes of a launch of the [`Self::candidates`]: it is one of the trigger itself, whether it is open then or not, or
    /// one that is moved there; `None`: it is none.
    pub fn settled(&self, rule: OnClosedDay, candidate: Firing, is_open: IsOpen<'_>) -> Option<Firing> {
        match self {
            Self::Cron { cron, zone } if rule.moves() => cron.settled(*zone, rule, candidate, is_open),
            _ => Some(candidate),
        }
    }

    /// Where a launch of the trigger is moved to that is not made for its closed day, if it is moved.
    pub fn destination(
        &self,
        rule: OnClosedDay,
        launch: &Firing,
        is_open: IsOpen<'_>,
    ) -> Option<DateTime<Utc>> {
        match self {
            Self::Cron { cron, zone } => cron.destination(*zone, rule, launch, is_open),
            _ => None,
        }
    }

    /// Its children, at most [`MAX_CHILDREN`](crate::limits::MAX_CHILDREN); none for instants.
    pub fn children(&self) -> Vec<ChildKey> {
        match self {
            Self::Cron { cron, .. } => decompose(cron),
            Self::Rate(rate) => rate.children(),
            Self::At(_) => Vec::new(),
        }
    }

    /// How many rows of the index are read per launch, by scans of a minute each: above 1 is over-selection. A cron
    /// expression counts as if it launched in every year, and instants, which have rows of their own, as 1.
    pub fn reads_per_launch(&self) -> f64 {
        match self {
            Self::Cron { cron, .. } => decompose::reads_per_launch(cron),
            Self::Rate(rate) => rate.reads_per_launch(),
            Self::At(_) => 1.0,
        }
    }

    /// Every launch in a window, in order of time. Cutting a window anywhere changes nothing.
    pub fn firings(&self, window: Window) -> Vec<Firing> {
        match self {
            Self::Cron { cron, zone } => cron.firings(*zone, window),
            Self::Rate(rate) => rate.firings(window).collect(),
            Self::At(instants) => instants.firings(window).collect(),
        }
    }

    /// The launches in a window that belong to one of its children, appended to `out` in order of time. `local` shows the
    /// window in [`Self::index_zone`]. Over all children they are [`Self::firings`], none twice.
    pub fn owned_firings_in(&self, child: &ChildKey, local: &LocalWindow, out: &mut Vec<Firing>) {
        match self {
            Self::Cron { cron, .. } => cron.owned_firings_in(child, local, out),
            Self::Rate(rate) => {
                let owned = |firing: &Firing| {
                    let minute_of_day = firing.launch_at.timestamp().div_euclid(60).rem_euclid(1_440);
                    child.hour_mask() >> (minute_of_day / 60) & 1 == 1
                        && child.minute_mask() >> (minute_of_day % 60) & 1 == 1
                };
                out.extend(rate.firings(local.window()).filter(owned));
            }
            Self::At(instants) => out.extend(instants.firings(local.window())),
        }
    }

    /// The next launches after an instant (not at it), at most `count`; fewer when no more come.
    pub fn upcoming(&self, after: DateTime<Utc>, count: usize) -> Vec<Firing> {
        match self {
            Self::Cron { cron, zone } => cron.upcoming(*zone, after, count),
            Self::Rate(rate) => rate.upcoming(after, count),
            Self::At(instants) => {
                let later = |firing: &Firing| firing.launch_at > after;
                instants.iter().map(Firing::plain).filter(later).take(count).collect()
            }
        }
    }

    /// The last `count` launches in a window, in order of time: what a misfire rule keeps. Looks at no more of the window
    /// than it has to.
    pub fn latest(&self, window: Window, count: usize) -> Vec<Firing> {
        latest_of(window, count, |piece| self.firings(piece))
    }
}

/// The last `count` launches in a window, of what launches in each piece of it.
pub(crate) fn latest_of(
    window: Window,
    count: usize,
    firings: impl Fn(Window) -> Vec<Firing>,
) -> Vec<Firing> {
    let mut found: Vec<Firing> = Vec::new();
    let (mut to, mut span) = (window.to(), BACKWARD);
    while found.len() < count && to > window.from() {
        let from = to.checked_sub_signed(span).unwrap_or(window.from()).max(window.from());
        let Ok(piece) = Window::new(from, to) else { break };
        let mut earlier = firings(piece);
        earlier.append(&mut found);
        found = earlier;
        (to, span) = (from, span.checked_mul(4).unwrap_or(span));
    }
    found.split_off(found.len().saturating_sub(count))
}
