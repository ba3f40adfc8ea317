//! How late the rows of a minute are emitted: a queue that empties as fast as the tick and its workers come to them.
//!
//! A tick plans a minute before it begins, in order of the instants. What it has not come to is emitted with the rows of the
//! next minutes, and those wait behind it.

use crate::minute::{SECONDS, Seconds};
use crate::quotas::LEAD_SECONDS;

#[derive(Debug, Clone)]
pub(crate) struct Emission {
    /// Rows that are emitted in a second.
    a_second: f64,
    minute: i64,
    /// Rows that are left of the minutes before.
    left: f64,
}

impl Emission {
    pub(crate) fn new(a_second: f64) -> Self {
        Self { a_second, minute: i64::MIN, left: 0.0 }
    }

    /// Rows of a minute, which is later than any before: how late the first and the last of each second are emitted, in
    /// milliseconds after their instant.
    pub(crate) fn minute(&mut self, minute: i64, rows: &Seconds) -> [(f64, f64); SECONDS] {
        let passed = minute.saturating_sub(self.minute.saturating_add(1)).max(0) as f64;
        self.left = (self.left - passed * 60.0 * self.a_second).max(0.0);
        self.minute = minute;
        let mut before = self.left;
        let mut late = [(0.0, 0.0); SECONDS];
        for (second, (rows, late)) in rows.iter().zip(&mut late).enumerate() {
            let after_ms = |rows: f64| ((rows / self.a_second - LEAD_SECONDS - second as f64) * 1e3).max(0.0);
            *late = (after_ms(before), after_ms(before + rows));
            before += rows;
        }
        self.left = (before - 60.0 * self.a_second).max(0.0);
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_minute_leaves_is_emitted_after_it_and_holds_up_the_next() {
        let mut emission = Emission::new(10.0);
        let mut rows = [0.0; SECONDS];
        rows[0] = 900.0;
        // 90 seconds of rows, which begin a minute ahead: the last are half a minute late.
        assert_eq!(emission.minute(5, &rows)[0], (0.0, 30_000.0));
        assert_eq!(emission.left, 300.0);
        assert_eq!(emission.minute(6, &rows)[0], (0.0, 60_000.0));
        // 600 are left, which a minute takes.
        assert_eq!(emission.minute(8, &rows)[0], (0.0, 30_000.0));
        assert_eq!(emission.minute(100, &[1.0; SECONDS])[59], (0.0, 0.0));
    }
}
