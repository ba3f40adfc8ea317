//! What a client had done in a day: counted, and what that costs by list prices.
//!
//! Pure. What is counted is told to the tables now and then: a process that dies before loses it, so that it is an estimate.

/// Dollars that a million events cost that nothing throttles, each a launch of its own with its record. These and those below are
/// the dearest of their kind in the table "A million events" of `docs/scale.md`.
pub const MILLION_SINGLES: f64 = 0.72;
/// The same of events of launches with several.
pub const MILLION_BATCHED: f64 = 0.05;
/// The same of events under a policy, released one by one.
pub const MILLION_THROTTLED: f64 = 1.68;

/// What was emitted for a client.
///
/// ```
/// use tidegate_domain::usage::Tally;
///
/// let mut day = Tally::of_launch(1, false);
/// day.include(Tally::of_launch(250, true));
/// assert_eq!((day.launches, day.events(), day.throttled), (2, 251, 250));
/// assert!(day.dollars() < 0.000_5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Launches that were made.
    pub launches: u64,
    /// Launches that were not, each for a reason that is recorded.
    pub skipped: u64,
    /// Events that nothing throttles, of launches with one.
    pub singles: u64,
    /// The same of launches with several.
    pub batched: u64,
    /// Events under a policy.
    pub throttled: u64,
}

impl Tally {
    /// What a launch of so many events counts as.
    pub fn of_launch(events: u32, is_throttled: bool) -> Self {
        let events = u64::from(events);
        let launched = Self { launches: 1, ..Self::default() };
        match (is_throttled, events) {
            (true, _) => Self { throttled: events, ..launched },
            (false, 1) => Self { singles: events, ..launched },
            (false, _) => Self { batched: events, ..launched },
        }
    }

    /// Counts another as well.
    pub fn include(&mut self, other: Self) {
        self.launches = self.launches.saturating_add(other.launches);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.singles = self.singles.saturating_add(other.singles);
        self.batched = self.batched.saturating_add(other.batched);
        self.throttled = self.throttled.saturating_add(other.throttled);
    }

    /// All events.
    pub fn events(self) -> u64 {
        self.singles.saturating_add(self.batched).saturating_add(self.throttled)
    }

    /// What its events cost at the most, in dollars, by list prices: without what the deployment costs when nothing is due, without
    /// retries, and without the calls that created jobs.
    pub fn dollars(self) -> f64 {
        let cost = |events: u64, million: f64| events as f64 * million / 1_000_000.0;
        cost(self.singles, MILLION_SINGLES)
            + cost(self.batched, MILLION_BATCHED)
            + cost(self.throttled, MILLION_THROTTLED)
    }
}
