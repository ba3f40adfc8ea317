//! The launches of one piece of the window, made and skipped, eight bytes each.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::JobId;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::time::{Dst, Window, ceil_second};
use tidegate_engine::{Decision, Observer};
use tidegate_store::launch::{Child, Shard};

use super::occupied::Occupied;
use super::roster::Roster;

/// Most jobs of a dry run: what a rank has room for.
pub(crate) const JOBS: usize = 1 << RANK_BITS;

const KIND_BITS: u32 = 6;
const RANK_BITS: u32 = 26;
/// What a piece may hold. One with more is begun again, shorter, unless it is a single second.
pub(crate) const MOST_LAUNCHES: usize = 4_000_000;

const LABELS: [Dst; 3] = [Dst::Plain, Dst::Gap, Dst::Overlap];

/// The place of a label in [`LABELS`].
fn label_place(label: Dst) -> u64 {
    match label {
        Dst::Plain => 0,
        Dst::Gap => 1,
        Dst::Overlap => 2,
    }
}

/// The place of a reason in [`SkipReason::ALL`], counted from 1.
fn reason_place(reason: SkipReason) -> u64 {
    reason as u64 + 1
}

/// A launch, made or skipped, in one number, which sorts by instant, job and kind: seconds since the window began, the job's
/// rank, then reason and label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(u64);

impl Due {
    fn new(second: u32, rank: u32, label: Dst, reason: Option<SkipReason>) -> Self {
        let kind = reason.map_or(0, reason_place) << 2 | label_place(label);
        Self(u64::from(second) << (RANK_BITS + KIND_BITS) | u64::from(rank) << KIND_BITS | kind)
    }

    /// Seconds since the window began.
    pub(crate) fn second(self) -> u32 {
        (self.0 >> (RANK_BITS + KIND_BITS)) as u32
    }

    /// Its job.
    pub(crate) fn rank(self) -> u32 {
        (self.0 >> KIND_BITS) as u32 & ((1 << RANK_BITS) - 1)
    }

    /// What a change of the clocks has to do with it.
    pub(crate) fn label(self) -> Dst {
        LABELS.get((self.0 & 3) as usize).copied().unwrap_or(Dst::Plain)
    }

    /// Why it is not launched; `None`: it is.
    pub(crate) fn reason(self) -> Option<SkipReason> {
        let place = (self.0 >> 2 & 15) as usize;
        SkipReason::ALL.get(place.checked_sub(1)?).copied()
    }
}

/// Collects what the engine decides, as far as it lies in the window of the run.
pub(crate) struct Piece<'a> {
    roster: &'a Roster,
    occupied: &'a Occupied,
    window: Window,
    due: Vec<Due>,
    /// The job that was met last, and its rank: a row's launches come together.
    last: Option<(JobId, u32)>,
    /// How many are left of pieces before.
    carried: usize,
    limit: usize,
    overflowed: bool,
    strays: u64,
}

impl<'a> Piece<'a> {
    /// An empty one.
    pub(crate) fn new(roster: &'a Roster, occupied: &'a Occupied, window: Window) -> Self {
        Self {
            roster,
            occupied,
            window,
            due: Vec::new(),
            last: None,
            carried: 0,
            limit: MOST_LAUNCHES,
            overflowed: false,
            strays: 0,
        }
    }

    /// Begins a piece. The shortest possible one takes whatever is due.
    pub(crate) fn begin(&mut self, is_shortest: bool) {
        self.carried = self.due.len();
        self.limit = if is_shortest { usize::MAX } else { self.carried + MOST_LAUNCHES };
        self.overflowed = false;
    }

    /// How many launches the piece has, skipped ones among them, or `None` when there were too many: they are forgotten.
    pub(crate) fn found(&mut self) -> Option<usize> {
        if self.overflowed {
            self.due.truncate(self.carried);
            return None;
        }
        Some(self.due.len() - self.carried)
    }

    /// Takes out what is due before `until`, in order.
    ///
    /// # Errors
    /// When the engine launched what is not in the file.
    pub(crate) fn take_before(&mut self, until: DateTime<Utc>) -> anyhow::Result<std::vec::Drain<'_, Due>> {
        anyhow::ensure!(self.strays == 0, "{} launches are of no job of the file", self.strays);
        self.due.sort_unstable();
        let until_s = ceil_second(until);
        let from_s = self.window.from().timestamp();
        let end = self.due.partition_point(|due| from_s + i64::from(due.second()) < until_s);
        Ok(self.due.drain(..end))
    }

    fn add(&mut self, job: &JobId, launch: &Decision) {
        if !self.window.contains(launch.launch_at) {
            return;
        }
        let Some(rank) = self.rank(job) else {
            self.strays += 1;
            return;
        };
        // The longest window has far fewer seconds than fit.
        let second = (launch.launch_at.timestamp() - self.window.from().timestamp()) as u32;
        if self.due.len() >= self.limit {
            self.overflowed = true;
            return;
        }
        self.due.push(Due::new(second, rank, launch.firing.label, launch.skip_reason));
    }

    fn rank(&mut self, job: &JobId) -> Option<u32> {
        if let Some((last, rank)) = &self.last
            && last == job
        {
            return Some(*rank);
        }
        let rank = self.roster.rank(job)?;
        self.last = Some((job.clone(), rank));
        Some(rank)
    }
}

impl Observer for Piece<'_> {
    fn reads(&self, shard: &Shard) -> bool {
        self.occupied.holds(shard)
    }

    fn decided(&mut self, row: &Child, launch: &Decision) {
        self.add(&row.job, launch);
    }
}

#[cfg(test)]
mod tests {
    use super::super::roster::Enrolment;
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn a_number_holds_what_it_was_made_of_and_sorts_by_instant_and_job() {
        let last = (u32::MAX, JOBS as u32 - 1, Dst::Overlap, Some(SkipReason::NotEmittable));
        for (second, rank, label, reason) in [(0, 0, Dst::Plain, None), last] {
            let due = Due::new(second, rank, label, reason);
            assert_eq!((due.second(), due.rank(), due.label(), due.reason()), (second, rank, label, reason));
        }
        for reason in SkipReason::ALL {
            assert_eq!(Due::new(1, 2, Dst::Gap, Some(reason)).reason(), Some(reason));
        }
        let due = |second, rank, reason| Due::new(second, rank, Dst::Plain, reason);
        let mut all =
            [due(2, 0, None), due(1, 1, Some(SkipReason::Paused)), due(1, 2, None), due(1, 1, None)];
        all.sort_unstable();
        assert_eq!(all.map(|due| (due.second(), due.rank())), [(1, 1), (1, 1), (1, 2), (2, 0)]);
    }

    #[test]
    fn a_piece_that_holds_too_much_is_forgotten_but_not_what_was_left_before() {
        let roster = Enrolment::default().finish();
        let occupied = Occupied::default();
        let mut piece = Piece::new(&roster, &occupied, Window::new(at(0), at(600)).unwrap());
        let due = |second| Due::new(second, 0, Dst::Plain, None);
        piece.due = vec![due(1), due(9)];
        assert_eq!(piece.take_before(at(5)).unwrap().count(), 1);
        piece.begin(false);
        piece.due.push(due(7));
        assert_eq!(piece.found(), Some(1));
        piece.begin(false);
        piece.due.push(due(8));
        piece.overflowed = true;
        assert_eq!(piece.found(), None);
        let left: Vec<u32> = piece.take_before(at(600)).unwrap().map(Due::second).collect();
        assert_eq!(left, [7, 9]);
    }
}
