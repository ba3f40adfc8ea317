//! Whose turn it is in a standard queue: fair between message groups, at the cost of one number for each message.
//!
//! Start-time fair queueing: a message's rank is one more than the later of its group's last rank and the rank that was
//! served last. A group with a long backlog so takes ever later ranks, and a message of a quiet group goes to the front.
//! Messages without a group count as one group.

use std::collections::HashMap;

/// Groups remembered before those that no longer matter are forgotten for the first time.
const REMEMBERED_GROUPS: usize = 1024;

/// The ranks given and served in one queue.
#[derive(Debug)]
pub(super) struct Turns {
    served: i64,
    last_of_group: HashMap<String, i64>,
    forget_at: usize,
}

impl Default for Turns {
    fn default() -> Self {
        Self::restored(0, HashMap::new())
    }
}

impl Turns {
    /// The turns of a queue that was read from its store.
    pub(super) fn restored(served: i64, last_of_group: HashMap<String, i64>) -> Self {
        Self { served, last_of_group, forget_at: REMEMBERED_GROUPS }
    }

    /// The rank of the first of `count` messages of `group` that become ready now; the others have those after it.
    pub(super) fn next(&mut self, group: Option<&str>, count: i64) -> i64 {
        let group = group.unwrap_or_default();
        let served = self.served;
        if let Some(last) = self.last_of_group.get_mut(group) {
            let first = served.max(*last) + 1;
            *last = first + count - 1;
            return first;
        }
        if self.last_of_group.len() >= self.forget_at {
            // A group whose last rank has been served starts again from there, remembered or not.
            self.last_of_group.retain(|_, last| *last > served);
            self.forget_at = REMEMBERED_GROUPS.max(2 * self.last_of_group.len());
        }
        self.last_of_group.insert(group.to_owned(), served + count);
        served + 1
    }

    /// The highest rank that was received.
    pub(super) fn served(&self) -> i64 {
        self.served
    }

    /// Notes that the message with `rank` was received.
    pub(super) fn serve(&mut self, rank: i64) {
        self.served = self.served.max(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_group_goes_ahead_of_a_backlog() {
        let mut turns = Turns::default();
        let noisy: Vec<i64> = (0..100).map(|_| turns.next(Some("noisy"), 1)).collect();
        turns.serve(noisy[4]);
        let quiet = turns.next(Some("quiet"), 1);
        assert!(quiet <= noisy[5], "{quiet} should not wait behind {}", noisy[5]);
    }

    #[test]
    fn one_group_is_served_in_order() {
        let mut turns = Turns::default();
        let ranks: Vec<i64> = (0..10).map(|_| turns.next(None, 1)).collect();
        assert!(ranks.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn messages_that_come_together_take_as_many_turns() {
        let (mut together, mut alone) = (Turns::default(), Turns::default());
        for turns in [&mut together, &mut alone] {
            let rank = turns.next(Some("other"), 1);
            turns.serve(rank);
        }
        assert_eq!(together.next(Some("g"), 3), 2);
        assert_eq!([(); 3].map(|()| alone.next(Some("g"), 1)), [2, 3, 4]);
        assert_eq!((together.next(Some("g"), 2), alone.next(Some("g"), 1)), (5, 5));
    }

    #[test]
    fn served_groups_are_forgotten() {
        let mut turns = Turns::default();
        for group in 0..10 * REMEMBERED_GROUPS {
            let rank = turns.next(Some(&group.to_string()), 1);
            turns.serve(rank);
        }
        assert!(turns.last_of_group.len() <= REMEMBERED_GROUPS);
    }
}
