//! The launches of a job by its trigger and its calendars as they are now: what its trigger says, and what is moved off closed
//! days.
//!
//! A launch that the calendars leave out is among them, moved or not, at the instant that the trigger says:
//! [`OpenDays::refuses`] tells why it is not made. One that is moved there says from where.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use crate::calendar::OpenDays;
use crate::time::{Cadence, Firing, Window, days, latest_of, seconds, shifted};

/// The first piece that is looked at for launches to come, in seconds; each further one is longer.
const PIECE_SECONDS: i64 = 3_600;
/// How far it is looked at the least, in days, before the trigger is asked for its next launch again.
const STRETCH_DAYS: i64 = 31;

impl OpenDays {
    /// What becomes of launches of the [candidates](Cadence::candidates) of a cadence, in order of time: those that are none are
    /// dropped, and those that are moved say from where.
    pub fn settle(&self, cadence: &Cadence, candidates: &mut Vec<Firing>) {
        if !self.on_closed_day.moves() {
            return;
        }
        let zone = zone_of(cadence);
        let is_open = |at: DateTime<Utc>| !self.excludes(at, zone);
        let settled = |candidate| cadence.settled(self.on_closed_day, candidate, &is_open);
        *candidates = std::mem::take(candidates).into_iter().filter_map(settled).collect();
    }

    /// Every launch of a cadence in a window, in order of time. Cutting a window anywhere changes nothing.
    pub fn firings(&self, cadence: &Cadence, window: Window) -> Vec<Firing> {
        let (earlier, later) = self.on_closed_day.reach();
        // Where no launch of the trigger is near, none is moved to.
        let is_near = |next: &Firing| shifted(next.launch_at, -earlier) < window.to();
        let since = shifted(shifted(window.from(), -later), seconds(-1));
        if self.on_closed_day.moves() && !cadence.upcoming(since, 1).first().is_some_and(is_near) {
            return Vec::new();
        }
        let mut found = cadence.candidates(self.on_closed_day).firings(window);
        self.settle(cadence, &mut found);
        found
    }

    /// The last `count` launches of a cadence in a window, in order of time.
    pub fn latest(&self, cadence: &Cadence, window: Window, count: usize) -> Vec<Firing> {
        match self.on_closed_day.moves() {
            true => latest_of(window, count, |piece| self.firings(cadence, piece)),
            false => cadence.latest(window, count),
        }
    }

    /// The next launches of a cadence after an instant (not at it) and before another, at most `count`; fewer when no more
    /// come.
    pub fn upcoming(
        &self,
        cadence: &Cadence,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        count: usize,
    ) -> Vec<Firing> {
        if !self.on_closed_day.moves() {
            let mut found = cadence.upcoming(after, count);
            found.retain(|firing| firing.launch_at < until);
            return found;
        }
        let (earlier, later) = self.on_closed_day.reach();
        let mut from = DateTime::from_timestamp(after.timestamp(), 0).unwrap_or(after);
        from = shifted(from, seconds(1));
        let mut found = Vec::new();
        while found.len() < count && from < until {
            // Days that are farther from any launch of the trigger than one is moved need no look.
            let since = shifted(shifted(from, -later), seconds(-1));
            let Some(next) = cadence.upcoming(since, 1).first().copied() else { break };
            from = from.max(shifted(next.launch_at, -earlier));
            let end = shifted(next.launch_at, later).max(shifted(from, days(STRETCH_DAYS))).min(until);
            if end <= from {
                break;
            }
            let mut piece_s = PIECE_SECONDS;
            while found.len() < count && from < end {
                let to = end.min(shifted(from, seconds(piece_s)));
                let Ok(piece) = Window::new(from, to) else { break };
                found.append(&mut self.firings(cadence, piece));
                (from, piece_s) = (to, piece_s.saturating_mul(4));
            }
        }
        found.truncate(count);
        found
    }

    /// Where a launch of a cadence is moved to that its calendars leave out; `None`: nowhere.
    pub fn moved_to(&self, cadence: &Cadence, launch: &Firing) -> Option<DateTime<Utc>> {
        let zone = zone_of(cadence);
        let is_open = |at: DateTime<Utc>| !self.excludes(at, zone);
        let is_left_out = launch.moved_from.is_none() && !is_open(launch.launch_at);
        is_left_out.then(|| cadence.destination(self.on_closed_day, launch, &is_open)).flatten()
    }
}

/// The zone whose days a job goes by.
fn zone_of(cadence: &Cadence) -> Tz {
    cadence.index_zone().unwrap_or(Tz::UTC)
}
