//! The event source of the dispatch queue: how late messages are handled that are due at once.
//!
//! A queue that is emptied in batches of ten, by as many invocations as the event source has under way: a few at first, more
//! with each second in which messages are left.

use crate::account::Pollers;
use crate::cost::Cost;
use crate::counted::{MinuteLoad, place_of};

/// How long the handler takes for a batch of ten messages, in seconds. Measured on the model of AWS.
pub const BATCH_SECONDS: f64 = 0.16;
/// How much longer it takes for each record that it writes, in seconds. *Assumed*: the model of AWS shows 0.64 s for ten
/// messages of 100 recorded events in a herd of 20,000, and 0.94 s in one of 100,000, where requests are refused and repeated:
/// so much longer it takes, up to twice, as more messages wait.
pub const RECORD_SECONDS: f64 = 0.000_32;
const SLOWED_BY: f64 = 1_000.0;
/// Messages that a handler finds when many come at once and handlers are free. Measured on the model of AWS.
const FEW_MESSAGES: f64 = 3.0;
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
    /// How much longer a batch takes than that, for what its events write.
    pub(crate) of_records: f64,
    second: i64,
    under_way: f64,
    left: f64,
    /// What a message of the minute that is under way takes until its events are in their queues.
    pub(crate) of_a_message: Cost,
    /// Batches under way at the most, and when.
    pub(crate) most: (f64, i64),
}

/// The minutes that are counted, from the first of the window on.
pub(crate) struct Minutes<'a> {
    pub(crate) first: i64,
    pub(crate) loads: &'a mut [MinuteLoad],
}

impl Minutes<'_> {
    /// Messages are handled in a second, which takes something.
    fn handle(&mut self, second: i64, cost: Cost) {
        if let Some(load) = self.loads.get_mut(place_of(second.div_euclid(60), self.first)) {
            load.handled += cost;
            if cost.write_units + cost.sqs_requests > load.busiest.write_units + load.busiest.sqs_requests {
                (load.busiest, load.busiest_s) = (cost, second);
            }
        }
    }
}

impl Dispatch {
    pub(crate) fn new(pollers: Pollers, batch_seconds: f64) -> Self {
        let most = (0.0, 0);
        let (under_way, left, of_a_message) = (pollers.at_first, 0.0, Cost::NONE);
        let of_records = 0.0;
        Self { pollers, batch_seconds, of_records, second: i64::MIN, under_way, left, of_a_message, most }
    }

    /// The event source.
    pub(crate) fn pollers(&self) -> Pollers {
        self.pollers
    }

    /// So many messages are due in a second, which is later than any before: between how many milliseconds after it they are
    /// handled.
    pub(crate) fn due(&mut self, second: i64, messages: f64, minutes: &mut Minutes<'_>) -> (f64, f64) {
        self.pass_until(second, minutes);
        let before = self.left;
        self.left += messages;
        // What comes at once is taken by several handlers, a few messages each.
        let least = self.batch_seconds() * messages.min(FEW_MESSAGES) / BATCH;
        (self.handled_after(before) * 1e3, self.handled_after(self.left).max(least) * 1e3)
    }

    /// Handles what can be handled up to a second.
    fn pass_until(&mut self, second: i64, minutes: &mut Minutes<'_>) {
        while self.second < second && self.left > 0.0 {
            let batch_seconds = self.batch_seconds();
            let handled = (self.under_way * BATCH / batch_seconds).min(self.left);
            let busy = (handled * batch_seconds / BATCH).ceil().min(self.under_way);
            if busy > self.most.0 {
                self.most = (busy, self.second);
            }
            minutes.handle(self.second, self.of_a_message * handled);
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

    /// How long a batch takes now.
    fn batch_seconds(&self) -> f64 {
        self.batch_seconds + self.of_records * (1.0 + (self.left / SLOWED_BY).min(1.0))
    }

    /// In how many seconds so many messages are handled.
    fn handled_after(&self, mut messages: f64) -> f64 {
        let (mut under_way, mut seconds) = (self.under_way, 0.0);
        loop {
            let a_second = under_way * BATCH / self.batch_seconds();
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
    pub(crate) fn finish(&mut self, minutes: &mut Minutes<'_>) {
        self.pass_until(self.second.saturating_add(86_400), minutes);
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
        let mut loads = [MinuteLoad::default(); 3];
        let mut minutes = Minutes { first: 0, loads: &mut loads };
        assert_eq!(dispatch.due(0, 50.0, &mut minutes), (0.0, 1_000.0));
        assert_eq!(dispatch.due(100, 50.0 + 100.0 + 150.0, &mut minutes).1, 3_000.0);
        let (first, last) = dispatch.due(101, 100.0, &mut minutes);
        assert!((2_000.0..2_500.0).contains(&first) && last > first, "{first} {last}");
        dispatch.finish(&mut minutes);
        assert_eq!(dispatch.left, 0.0);
        assert!((10.0..=20.0).contains(&dispatch.most.0), "{:?}", dispatch.most);
    }

    #[test]
    fn no_more_are_under_way_than_the_most() {
        let mut dispatch = Dispatch::new(POLLERS, 1.0);
        let mut loads = [MinuteLoad::default(); 3];
        let mut minutes = Minutes { first: 0, loads: &mut loads };
        let (_, last) = dispatch.due(0, 10_000.0, &mut minutes);
        // 50 + 100 + 150 in the first three seconds, then 200 a second.
        assert_eq!(last, (3.0 + 9_700.0 / 200.0) * 1e3);
    }
}
