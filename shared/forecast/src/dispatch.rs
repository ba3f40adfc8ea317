//! The event source of the dispatch queue: how late messages are handled that are due at once.
//!
//! A queue that is emptied in batches of ten, by as many invocations as the event source has under way: a few at first, more
//! with each second in which messages are left.

use crate::account::Pollers;

/// How long the handler takes for a batch of ten messages, in seconds. Measured on the model of AWS.
pub const BATCH_SECONDS: f64 = 0.16;
/// Messages of a batch.
const BATCH: f64 = 10.0;
/// From the instant that a message is due to its event in a queue, when nobody waits: half of them, in milliseconds.
/// Measured on the model of AWS.
pub const SOON_MS: f64 = 140.0;
/// The same, for 99 of 100.
pub const LATE_MS: f64 = 350.0;

/// The queue, from second to second.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    pollers: Pollers,
    batch_seconds: f64,
    second: i64,
    under_way: f64,
    left: f64,
    /// Batches under way at the most, and when.
    pub(crate) most: (f64, i64),
}

impl Dispatch {
    pub(crate) fn new(pollers: Pollers, batch_seconds: f64) -> Self {
        let most = (0.0, 0);
        Self { pollers, batch_seconds, second: i64::MIN, under_way: pollers.at_first, left: 0.0, most }
    }

    /// So many messages are due in a second, which is later than any before: between how many milliseconds after it they are
    /// handled.
    pub(crate) fn due(&mut self, second: i64, messages: f64) -> (f64, f64) {
        self.pass_until(second);
        let before = self.left;
        self.left += messages;
        (self.handled_after(before) * 1e3, self.handled_after(self.left) * 1e3)
    }

    /// Handles what can be handled up to a second.
    fn pass_until(&mut self, second: i64) {
        while self.second < second && self.left > 0.0 {
            let handled = (self.under_way * BATCH / self.batch_seconds).min(self.left);
            let busy = (handled * self.batch_seconds / BATCH).ceil().min(self.under_way);
            if busy > self.most.0 {
                self.most = (busy, self.second);
            }
            self.left -= handled;
            if self.left > 0.0 {
                self.under_way = (self.under_way + self.pollers.a_second).min(self.pollers.most);
            }
            self.second += 1;
        }
        let idle = second.saturating_sub(self.second) as f64;
        self.under_way = (self.under_way - idle).max(self.pollers.at_first);
        self.second = second;
    }

    /// In how many seconds so many messages are handled.
    fn handled_after(&self, mut messages: f64) -> f64 {
        let (mut under_way, mut seconds) = (self.under_way, 0.0);
        loop {
            let a_second = under_way * BATCH / self.batch_seconds;
            if messages <= a_second {
                return seconds + messages / a_second;
            }
            if under_way >= self.pollers.most {
                return seconds + messages / a_second;
            }
            messages -= a_second;
            seconds += 1.0;
            under_way = (under_way + self.pollers.a_second).min(self.pollers.most);
        }
    }

    /// Handles what is left.
    pub(crate) fn finish(&mut self) {
        self.pass_until(self.second.saturating_add(86_400));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLLERS: Pollers = Pollers { at_first: 5.0, a_second: 5.0, most: 20.0 };

    #[test]
    fn what_is_due_at_once_is_handled_the_faster_the_longer_it_takes() {
        // Five batches of ten messages a second at first, five more with each second, twenty at the most.
        let mut dispatch = Dispatch::new(POLLERS, 1.0);
        assert_eq!(dispatch.due(0, 50.0), (0.0, 1_000.0));
        assert_eq!(dispatch.due(100, 50.0 + 100.0 + 150.0).1, 3_000.0);
        let (first, last) = dispatch.due(101, 100.0);
        assert!((2_000.0..2_500.0).contains(&first) && last > first, "{first} {last}");
        dispatch.finish();
        assert_eq!(dispatch.left, 0.0);
        assert!((10.0..=20.0).contains(&dispatch.most.0), "{:?}", dispatch.most);
    }

    #[test]
    fn no_more_are_under_way_than_the_most() {
        let mut dispatch = Dispatch::new(POLLERS, 1.0);
        let (_, last) = dispatch.due(0, 10_000.0);
        // 50 + 100 + 150 in the first three seconds, then 200 a second.
        assert_eq!(last, (3.0 + 9_700.0 / 200.0) * 1e3);
    }
}
