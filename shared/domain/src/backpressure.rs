//! Backpressure: what is done about a consumer that says, or shows, that it cannot keep up.
//!
//! Each sign of it halves the limit; where one event at a time is already too much, nothing is sent for a while that doubles.
//! Without another sign it recovers by the same steps. What the consumer asks for in `Retry-After` is kept to the second.
//!
//! Pure: the state is a function of what was seen and of the time, so nobody needs to be at hand when a step is due.

use chrono::{DateTime, Duration, Utc};

use crate::limits::{
    BACKPRESSURE_RECOVERY_SECONDS, BACKPRESSURE_STEP_SECONDS, BACKPRESSURE_WAITS, CLOSED_BECAUSE_BYTES,
};
use crate::time::{seconds, shifted, whole_second};

/// What is done about a consumer at present.
///
/// ```
/// use chrono::{DateTime, Duration};
/// use tidegate_domain::backpressure::{Backpressure, Sign};
///
/// let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
/// let busy = Sign { asks_for: None, because: "the endpoint answered 503".to_owned() };
/// let slowed = Backpressure::after(None, 8, &busy, now).unwrap();
/// assert_eq!((slowed.limit(8), slowed.closed()), (4, None));
/// assert_eq!(slowed.at(now + Duration::seconds(60)), None, "it recovered");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backpressure {
    /// How often the limit was halved; beyond what leaves one, how often nothing was sent for a while.
    steps: u8,
    /// When the last step was taken, up or down, or the last closure ended.
    stepped_at: DateTime<Utc>,
    closed: Option<Closure>,
    because: String,
}

/// Nothing is sent until an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closure {
    /// From when on something is sent again, in whole seconds.
    pub until: DateTime<Utc>,
    /// Who wants it so.
    pub by: ClosedBy,
}

/// Who closed a policy or a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedBy {
    /// Its client, by a call.
    Client,
    /// What its consumer answered, or that it did not.
    Consumer,
}

/// A sign that a consumer cannot keep up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// For how long it asks to be left alone, if it does.
    pub asks_for: Option<Duration>,
    /// What was seen, in words.
    pub because: String,
}

impl Backpressure {
    /// A policy that its client closes until an instant.
    pub fn closed_by_client(until: DateTime<Utc>, because: &str) -> Self {
        let until = whole_second(until);
        let closed = Some(Closure { until, by: ClosedBy::Client });
        Self { steps: 0, stepped_at: until, closed, because: cut(because) }
    }

    /// What was stored.
    pub fn stored(steps: u8, stepped_at: DateTime<Utc>, closed: Option<Closure>, because: String) -> Self {
        Self { steps: steps.min(most_steps(u32::MAX)), stepped_at, closed, because }
    }

    /// What follows from a sign, where `limit` is the limit without any backpressure; `None`: what is done already is enough.
    ///
    /// Invariant: a closure is never made shorter, and what its client closed stays so for as long as it said.
    pub fn after(seen: Option<&Self>, limit: u32, sign: &Sign, now: DateTime<Utc>) -> Option<Self> {
        let present = seen.and_then(|seen| seen.at(now));
        let (steps, stepped_at, closed) = present
            .as_ref()
            .map_or((0, None, None), |present| (present.steps, Some(present.stepped_at), present.closed));
        let asked = sign.asks_for.filter(|asked| *asked > Duration::zero());
        let asked_until = asked.map(|asked| whole_second(shifted(now, asked)));
        let is_step_due = closed.is_none()
            && (steps >= halvings(limit)
                || stepped_at.is_none_or(|at| shifted(at, seconds(BACKPRESSURE_STEP_SECONDS.into())) <= now));
        let next_steps = if is_step_due { steps.saturating_add(1).min(most_steps(limit)) } else { steps };
        let waits = next_steps.saturating_sub(halvings(limit));
        let rest = (is_step_due && waits > 0).then(|| whole_second(shifted(now, seconds(1 << waits))));
        let until = asked_until.max(rest);
        let longer = until.filter(|until| closed.is_none_or(|closed| closed.until < *until));
        if !is_step_due && longer.is_none() {
            return None;
        }
        Some(Self {
            steps: next_steps,
            stepped_at: stepped_at.filter(|_| !is_step_due).unwrap_or(now),
            closed: longer.map(|until| Closure { until, by: ClosedBy::Consumer }).or(closed),
            because: cut(&sign.because),
        })
    }

    /// What is left of it at an instant; `None`: nothing.
    #[must_use]
    pub fn at(&self, now: DateTime<Utc>) -> Option<Self> {
        if self.closed.is_some_and(|closed| closed.until > now) {
            return Some(self.clone());
        }
        let since = self.closed.map_or(self.stepped_at, |closed| closed.until.max(self.stepped_at));
        let quiet_s = now.signed_duration_since(since).num_seconds().max(0);
        let recovered = quiet_s.checked_div(BACKPRESSURE_RECOVERY_SECONDS.into()).unwrap_or_default();
        let steps =
            self.steps.checked_sub(u8::try_from(recovered).unwrap_or(u8::MAX)).filter(|left| *left > 0)?;
        let stepped_at =
            shifted(since, seconds(recovered.saturating_mul(BACKPRESSURE_RECOVERY_SECONDS.into())));
        Some(Self { steps, stepped_at, closed: None, because: self.because.clone() })
    }

    /// When it becomes less by itself.
    pub fn eases_at(&self) -> DateTime<Utc> {
        match self.closed {
            Some(closed) => closed.until,
            None => shifted(self.stepped_at, seconds(BACKPRESSURE_RECOVERY_SECONDS.into())),
        }
    }

    /// How much of a limit it leaves: none while it is closed, else at least one.
    pub fn limit(&self, limit: u32) -> u32 {
        if self.closed.is_some() { 0 } else { self.open_limit(limit) }
    }

    /// The same as if it were not closed.
    pub fn open_limit(&self, limit: u32) -> u32 {
        limit.checked_shr(self.steps.into()).unwrap_or(0).max(1)
    }

    /// Until when nothing is sent, and who wants it so; `None`: something is.
    pub fn closed(&self) -> Option<Closure> {
        self.closed
    }

    /// How many steps it has to recover.
    pub fn steps(&self) -> u8 {
        self.steps
    }

    /// When the last step was taken.
    pub fn stepped_at(&self) -> DateTime<Utc> {
        self.stepped_at
    }

    /// What was seen last, in words: at most [`CLOSED_BECAUSE_BYTES`].
    pub fn because(&self) -> &str {
        &self.because
    }
}

/// How many halvings of a limit leave one.
fn halvings(limit: u32) -> u8 {
    u8::try_from(limit.max(1).ilog2()).unwrap_or(u8::MAX)
}

fn most_steps(limit: u32) -> u8 {
    halvings(limit).saturating_add(BACKPRESSURE_WAITS)
}

fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(CLOSED_BECAUSE_BYTES)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn sign(asks_s: Option<i64>) -> Sign {
        Sign { asks_for: asks_s.map(Duration::seconds), because: "503".to_owned() }
    }

    fn after(seen: Option<&Backpressure>, limit: u32, asks_s: Option<i64>, second: i64) -> Backpressure {
        Backpressure::after(seen, limit, &sign(asks_s), at(second)).unwrap()
    }

    fn until(state: &Backpressure) -> Option<i64> {
        state.closed().map(|closed| (closed.until - at(0)).num_seconds())
    }

    #[test]
    fn signs_halve_the_limit_and_then_wait_for_longer_and_longer() {
        let mut state = after(None, 10, None, 0);
        assert_eq!((state.limit(10), until(&state)), (5, None));
        assert_eq!(
            Backpressure::after(Some(&state), 10, &sign(None), at(9)),
            None,
            "one step in ten seconds"
        );
        state = after(Some(&state), 10, None, 10);
        state = after(Some(&state), 10, None, 20);
        assert_eq!((state.limit(10), until(&state)), (1, None));
        let mut now = 21;
        for waits in [2, 4, 8, 16, 32, 64, 64, 64] {
            state = after(Some(&state), 10, None, now);
            assert_eq!((state.limit(10), until(&state)), (0, Some(now + waits)));
            assert_eq!(Backpressure::after(Some(&state), 10, &sign(None), at(now + 1)), None, "it is closed");
            now += waits;
            assert_eq!(state.at(at(now)).unwrap().limit(10), 1);
        }
    }

    #[test]
    fn a_limit_of_one_cannot_be_halved() {
        let state = after(None, 1, None, 0);
        assert_eq!((state.limit(1), until(&state), state.open_limit(1)), (0, Some(2), 1));
    }

    #[test]
    fn it_recovers_by_the_same_steps_and_ends() {
        let mut state = after(None, 100, None, 0);
        for second in [10, 20, 30] {
            state = after(Some(&state), 100, None, second);
        }
        let limits = |second| state.at(at(second)).map(|state| state.limit(100));
        let seen = [31, 59, 60, 90, 120, 149, 150].map(limits);
        assert_eq!(seen, [Some(6), Some(6), Some(12), Some(25), Some(50), Some(50), None]);
        assert_eq!(state.at(at(75)).unwrap().eases_at(), at(90), "looking at it does not put recovery off");
        assert_eq!(state.at(at(75)).unwrap().at(at(150)), None);
        assert_eq!(
            Backpressure::after(Some(&state), 100, &sign(None), at(95)),
            None,
            "five after it recovered by one"
        );
        let again = after(Some(&state), 100, None, 100);
        assert_eq!(again.limit(100), 12, "a sign takes a step back, ten seconds after the last");
    }

    #[test]
    fn what_a_consumer_asks_for_closes_until_then_and_never_for_less() {
        let state = after(None, 8, Some(120), 0);
        assert_eq!((until(&state), state.limit(8)), (Some(120), 0));
        assert_eq!(Backpressure::after(Some(&state), 8, &sign(Some(60)), at(1)), None);
        let longer = after(Some(&state), 8, Some(200), 1);
        assert_eq!((until(&longer), longer.steps()), (Some(201), 1));
        assert_eq!(longer.at(at(201)).unwrap().limit(8), 4, "it opens at half");
        assert_eq!(longer.at(at(231)), None);
        let odd = Sign { asks_for: Some(Duration::milliseconds(1_200)), because: String::new() };
        assert_eq!(until(&Backpressure::after(None, 8, &odd, at(0)).unwrap()), Some(2), "never early");
    }

    #[test]
    fn what_a_client_closed_stays_closed_whatever_its_consumer_says() {
        let closed = Backpressure::closed_by_client(at(600), "maintenance");
        assert_eq!(Backpressure::after(Some(&closed), 8, &sign(None), at(1)), None);
        assert_eq!(Backpressure::after(Some(&closed), 8, &sign(Some(5)), at(1)), None);
        let longer = after(Some(&closed), 8, Some(900), 1);
        assert_eq!((until(&longer), longer.closed().unwrap().by), (Some(901), ClosedBy::Consumer));
        assert_eq!(closed.at(at(599)).unwrap().because(), "maintenance");
        assert_eq!(closed.at(at(600)), None);
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let long = Backpressure::closed_by_client(at(1), &"ü".repeat(CLOSED_BECAUSE_BYTES));
        assert!(long.because().len() <= CLOSED_BECAUSE_BYTES && long.because().chars().all(|c| c == 'ü'));
    }
}
