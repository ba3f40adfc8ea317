//! Until when a call may begin something long: a function is stopped wherever it is when its time is over.
//!
//! What a call does is found again after every crash, so being stopped loses nothing. But it wastes what was done, and
//! whoever would be next waits until messages are seen again. So each loop that can grow asks here before it goes on, and
//! leaves the rest to others.

use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock;

use crate::EngineError;

tokio::task_local! {
    static UNTIL: DateTime<Utc>;
}

/// Does some work that begins nothing long at `until` or later. Without this, work has all the time that it wants.
///
/// ```
/// use tidegate_engine::{Engine, Handled, within};
///
/// /// Handles a message of the dispatch queue, for some 20 seconds at the most.
/// async fn handle(engine: &Engine, body: &str) -> Handled {
///     let until = engine.clock().now() + chrono::TimeDelta::seconds(20);
///     within(until, engine.handle(body, 1)).await
/// }
/// ```
pub async fn within<F: Future>(until: DateTime<Utc>, work: F) -> F::Output {
    UNTIL.scope(until, work).await
}

/// Until when the call that asks may begin something long; `None`: it has all the time that it wants.
pub fn until() -> Option<DateTime<Utc>> {
    UNTIL.try_with(|until| *until).ok()
}

/// Whether the time of the call that asks is over at an instant.
pub(crate) fn is_over_at(instant: DateTime<Utc>) -> bool {
    until().is_some_and(|until| instant >= until)
}

/// Whether the time of the call that asks is over.
pub(crate) fn is_over(clock: &dyn Clock) -> bool {
    is_over_at(clock.now())
}

/// Fails when the time of the call that asks is over.
pub(crate) fn check(clock: &dyn Clock) -> Result<(), EngineError> {
    if is_over(clock) { Err(EngineError::OutOfTime) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::clock::ManualClock;
    use tidegate_domain::time::seconds;

    use super::*;

    #[tokio::test]
    async fn time_is_over_for_the_call_that_it_was_given_to_and_for_no_other() {
        let clock = ManualClock::new(DateTime::UNIX_EPOCH);
        let until = clock.now() + seconds(1);
        let work = async {
            let before = is_over(&clock);
            clock.advance_ms(1_000);
            (before, is_over(&clock), check(&clock).is_err())
        };
        assert_eq!(within(until, work).await, (false, true, true));
        assert!(!is_over(&clock) && check(&clock).is_ok());
    }
}
