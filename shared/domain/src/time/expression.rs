//! What people write for a schedule, of whatever kind: a cron expression in any dialect, or an interval.

use super::cron::{CronError, CronSpec, split_zone_prefix};
use super::interval::{is_interval, parse_interval};

/// A schedule as it was written, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// Calendar times, by a cron expression.
    Cron(CronSpec),
    /// In a steady beat.
    Rate {
        /// Its interval, in seconds, within the bounds of a [`Rate`](super::Rate).
        every_seconds: u64,
    },
}

impl Expression {
    /// Reads five, six (second first) or seven fields (and a year last), nicknames such as `@daily`, AWS's `cron(...)`
    /// and `rate(...)`, and `@every 1h`, each also behind `CRON_TZ=Zone` or `TZ=Zone`. The zone of such a prefix is
    /// handed back unchecked; `None` when there is none.
    ///
    /// ```
    /// use tidegate_domain::time::Expression;
    ///
    /// let (zone, expression) = Expression::parse("CRON_TZ=Europe/Berlin cron(0 9 ? * 2#1 *)")?;
    /// assert_eq!(zone, Some("Europe/Berlin"));
    /// let Expression::Cron(spec) = expression else { panic!("{expression:?}") };
    /// assert_eq!(spec.canonical(), "0 9 * * MON#1");
    /// let (_, rate) = Expression::parse("rate(5 minutes)")?;
    /// assert_eq!(rate, Expression::Rate { every_seconds: 300 });
    /// # Ok::<(), tidegate_domain::time::CronError>(())
    /// ```
    ///
    /// # Errors
    /// A [`CronError`] when the text is none of these, or never fires; it says where and what would do.
    /// [`CronError::Interval`] for an interval that does not read as one or is out of bounds.
    pub fn parse(text: &str) -> Result<(Option<&str>, Self), CronError> {
        let (zone, rest) = split_zone_prefix(text);
        let expression = if is_interval(rest) {
            Self::Rate { every_seconds: parse_interval(rest)? }
        } else {
            Self::Cron(CronSpec::parse(rest)?)
        };
        Ok((zone, expression))
    }
}
