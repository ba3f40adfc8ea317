//! What waits under a policy: a bucket that empties as fast as tokens come back.
//!
//! Tokens are held for as long as a consumer works and hands over; a rate lets so many events begin. Whoever comes when all
//! tokens are held waits. Priorities move events before others and change none of the sums, so they are not looked at.

use crate::facts::Policy;
use crate::limits::HANDOVER_GROWTH;
use crate::spread::Spread;

/// By how much events differ that find a token at once, in milliseconds. Measured on the model of AWS.
const UNEVEN_MS: f64 = 200.0;

/// A stretch of time in which events of a policy waited, in Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// When the first began to wait.
    pub from_s: f64,
    /// When the last one was admitted.
    pub to_s: f64,
    /// The most events that waited at once.
    pub most: f64,
}

/// Events that are delivered evenly between two instants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Delivered {
    pub(crate) events: f64,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

/// The line of a policy and its tokens, from second to second.
#[derive(Debug, Clone)]
pub(crate) struct Backlog {
    /// Events that begin in a second when some wait.
    per_second: f64,
    /// Events that begin at once when nobody is there.
    at_once: f64,
    /// Events that wait or are in flight.
    inside: f64,
    at_s: f64,
    waiting: Option<Waiting>,
    /// The longest stretch in which events waited.
    pub(crate) longest: Option<Waiting>,
    /// The last one.
    pub(crate) last: Option<Waiting>,
    pub(crate) waits: Spread,
    pub(crate) events: f64,
}

impl Backlog {
    pub(crate) fn new(policy: &Policy, handover_seconds: f64) -> Self {
        let tokens = f64::from(policy.tokens);
        let handover_seconds = handover_seconds * (1.0 + HANDOVER_GROWTH * (tokens / 10.0).log10().max(0.0));
        let held_seconds = (policy.work_seconds + handover_seconds).max(1e-3);
        let (mut per_second, mut at_once) = (tokens / held_seconds, tokens);
        if let Some((rate, burst)) = policy.rate
            && rate < per_second
        {
            (per_second, at_once) = (rate, burst.min(tokens));
        }
        Self {
            per_second,
            at_once,
            inside: 0.0,
            at_s: 0.0,
            waiting: None,
            longest: None,
            last: None,
            waits: Spread::default(),
            events: 0.0,
        }
    }

    /// Events that begin in a second when some wait, each of one token.
    pub(crate) fn per_second(&self) -> f64 {
        self.per_second
    }

    /// The most events that begin in a second.
    pub(crate) fn most_in_a_second(&self) -> f64 {
        self.at_once + self.per_second
    }

    /// How many tokens are free for events that come now, up to those that begin at once.
    pub(crate) fn free(&self) -> f64 {
        (self.at_once - self.inside).max(0.0)
    }

    /// When everything that is inside will be delivered.
    pub(crate) fn busy_until_s(&self) -> f64 {
        self.at_s + self.inside / self.per_second
    }

    /// Lets time pass up to an instant: what was delivered until then.
    pub(crate) fn pass_until(&mut self, at_s: f64) -> Delivered {
        let from_s = self.at_s;
        let events = (self.per_second * (at_s - from_s).max(0.0)).min(self.inside);
        let to_s = from_s + events / self.per_second;
        if let Some(waiting) = self.waiting
            && self.inside - events <= self.at_once
        {
            let ends_s = from_s + ((self.inside - self.at_once) / self.per_second).max(0.0);
            self.close(Waiting { to_s: ends_s, ..waiting });
        }
        self.inside = if self.inside - events < 1e-9 { 0.0 } else { self.inside - events };
        self.at_s = at_s.max(from_s);
        Delivered { events, from_s, to_s }
    }

    /// So many events come now, each of which takes some tokens, the first of them so much after their launch.
    pub(crate) fn come(&mut self, events: f64, cost: f64, late_ms: f64) {
        let wait_ms = |inside: f64| ((inside - self.at_once) / self.per_second).max(0.0) * 1e3 + late_ms;
        let tokens = events * cost;
        let (first, last) = (wait_ms(self.inside + cost), wait_ms(self.inside + tokens));
        // Those who find a token wait for nobody; the others wait longer and longer.
        let at_once = (self.free() / cost).min(events);
        self.waits.add(at_once, late_ms, late_ms + UNEVEN_MS);
        self.waits.add(events - at_once, first, last);
        self.inside += tokens;
        self.events += events;
        let waiting = self.inside - self.at_once;
        if waiting > 1e-9 {
            let begun = Waiting { from_s: self.at_s, to_s: f64::INFINITY, most: 0.0 };
            let so_far = self.waiting.unwrap_or(begun);
            self.waiting = Some(Waiting { most: so_far.most.max(waiting), ..so_far });
        }
    }

    /// Lets everything be delivered: until when that takes.
    pub(crate) fn finish(&mut self) -> Delivered {
        let takes = self.inside / self.per_second;
        self.pass_until(self.at_s + takes + 1.0)
    }

    fn close(&mut self, waiting: Waiting) {
        self.waiting = None;
        self.last = Some(waiting);
        let length = |of: &Waiting| of.to_s - of.from_s;
        if self.longest.as_ref().is_none_or(|longest| length(&waiting) > length(longest)) {
            self.longest = Some(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(tokens: u32, work_seconds: f64, rate: Option<(f64, f64)>) -> Policy {
        Policy { id: "p".to_owned(), tokens, rate, work_seconds, released_together: 1 }
    }

    #[test]
    fn what_finds_no_token_waits_until_one_comes_back() {
        // Ten tokens of two seconds: five events a second.
        let mut backlog = Backlog::new(&policy(10, 2.0, None), 0.0);
        backlog.pass_until(100.0);
        backlog.come(110.0, 1.0, 0.0);
        assert_eq!(backlog.waits.most_ms(), 20_000.0);
        assert_eq!(backlog.pass_until(110.0), Delivered { events: 50.0, from_s: 100.0, to_s: 110.0 });
        let rest = backlog.finish();
        assert_eq!((rest.events, rest.to_s), (60.0, 122.0));
        assert_eq!(backlog.last, Some(Waiting { from_s: 100.0, to_s: 120.0, most: 100.0 }));
        assert_eq!(backlog.free(), 10.0);
    }

    #[test]
    fn a_rate_that_is_slower_than_the_tokens_is_what_counts() {
        let mut backlog = Backlog::new(&policy(10, 0.1, Some((1.0, 1.0))), 0.0);
        backlog.come(61.0, 1.0, 0.0);
        assert_eq!(backlog.waits.most_ms(), 60_000.0);
        let quick = Backlog::new(&policy(10, 10.0, Some((100.0, 100.0))), 0.0);
        assert_eq!(quick.per_second(), 1.0);
    }

    #[test]
    fn an_event_that_takes_several_tokens_counts_for_several() {
        let mut backlog = Backlog::new(&policy(12, 1.0, None), 0.0);
        backlog.come(4.0, 6.0, 0.0);
        assert_eq!((backlog.waits.most_ms(), backlog.longest), (1_000.0, None));
        backlog.finish();
        assert_eq!(backlog.longest.map(|waiting| waiting.to_s), Some(1.0));
    }
}
