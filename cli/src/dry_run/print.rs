//! Launches, made and skipped, as JSON lines, and what their number peaks at.

use std::collections::BTreeMap;
use std::io::{self, Write};

use chrono::{DateTime, Utc};
use tidegate_domain::occurrence::SkipReason;

use super::piece::Due;
use super::roster::{Listed, Roster};
use super::text::{LocalText, UtcText};

/// Writes lines in the order in which they come, and counts them.
pub(super) struct Printer<'a> {
    roster: &'a Roster,
    from_s: i64,
    utc: UtcText,
    locals: Vec<LocalText>,
    line: Vec<u8>,
    tally: Tally,
}

/// What was printed.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) firings: u64,
    pub(super) events: u64,
    pub(super) skipped: BTreeMap<SkipReason, u64>,
    pub(super) minutes: Busiest,
    pub(super) seconds: Busiest,
}

/// The stretch of time with the most launches, the first of equals, when they come in order of time.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    at_s: i64,
    firings: u64,
    peak: Option<(i64, u64)>,
}

impl Busiest {
    fn add(&mut self, at_s: i64) {
        if at_s != self.at_s {
            (self.at_s, self.firings) = (at_s, 0);
        }
        self.firings += 1;
        if self.peak.is_none_or(|(_, most)| self.firings > most) {
            self.peak = Some((at_s, self.firings));
        }
    }

    /// When it began, in Unix seconds, and its launches; `None` when there were none at all.
    pub(super) fn peak(&self) -> Option<(i64, u64)> {
        self.peak
    }
}

impl<'a> Printer<'a> {
    /// A printer for a window that begins at `from`.
    pub(super) fn new(roster: &'a Roster, from: DateTime<Utc>) -> Self {
        Self {
            roster,
            from_s: from.timestamp(),
            utc: UtcText::new(),
            locals: roster.zones().iter().map(|zone| LocalText::new(*zone)).collect(),
            line: Vec::with_capacity(256),
            tally: Tally::default(),
        }
    }

    /// Writes a line for each.
    pub(super) fn print(
        &mut self,
        due: impl IntoIterator<Item = Due>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for due in due {
            let Some(job) = self.roster.job(due.rank()) else { continue };
            self.count(due, job);
            self.compose(due, job);
            out.write_all(&self.line)?;
        }
        Ok(())
    }

    fn count(&mut self, due: Due, job: &Listed) {
        if let Some(reason) = due.reason() {
            *self.tally.skipped.entry(reason).or_default() += 1;
            return;
        }
        let second = self.from_s + i64::from(due.second());
        self.tally.firings += 1;
        self.tally.events += u64::from(job.events);
        self.tally.seconds.add(second);
        self.tally.minutes.add(second - second.rem_euclid(60));
    }

    /// Ids are letters, digits, '-' and '_': nothing needs to be escaped.
    fn compose(&mut self, due: Due, job: &Listed) {
        let second = self.from_s + i64::from(due.second());
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"id\":\"");
        line.extend_from_slice(job.id.as_str().as_bytes());
        match due.reason() {
            None => line.extend_from_slice(b"\",\"launch_at\":\""),
            Some(reason) => {
                line.extend_from_slice(b"\",\"reason\":\"");
                line.extend_from_slice(reason.as_str().as_bytes());
                line.extend_from_slice(b"\",\"would_launch_at\":\"");
            }
        }
        line.extend_from_slice(self.utc.of(second));
        line.extend_from_slice(b"\",\"local\":\"");
        if let Some(local) = self.locals.get_mut(usize::from(job.zone)) {
            line.extend_from_slice(local.of(second));
        }
        line.extend_from_slice(b"\",\"dst\":\"");
        line.extend_from_slice(due.label().as_str().as_bytes());
        line.extend_from_slice(b"\"}\n");
    }

    /// What was printed.
    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_peaks_counts() {
        let mut busiest = Busiest::default();
        assert_eq!(busiest.peak(), None);
        for at_s in [0, 60, 60, 120, 180, 180] {
            busiest.add(at_s);
        }
        assert_eq!(busiest.peak(), Some((60, 2)));
    }
}
