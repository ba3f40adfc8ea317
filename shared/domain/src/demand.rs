//! What is due in steps of time, beside what a limit lets begin in each: whether it can keep up.

use crate::bounded::bounded;
use crate::limits::{HELD_MS, STEP_SECONDS};

bounded! {
    /// The length of a step, in seconds.
    StepSeconds(u32), "step_seconds", STEP_SECONDS, default 3_600
}
bounded! {
    /// How long an event holds its token, in milliseconds.
    HeldMs(u32), "held_ms", HELD_MS
}

/// More was due than could begin: it waits from the first step on in which that was so, until all has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// The step at whose end something waits for the first time.
    pub begins: usize,
    /// How much waits at the end of the step where most does.
    pub most: u64,
    /// That step.
    pub most_at: usize,
    /// The step by whose end nothing of it waits any more; `None`: something waits at the end of the last one.
    pub ends: Option<usize>,
}

/// The largest backlog of what is due in each step, where so much can begin in a step, and what does not waits for the next. `None`: a
/// step's due begins within it, always.
///
/// ```
/// use tidegate_domain::demand::backlog;
///
/// assert_eq!(backlog(&[10, 10], 10.0), None);
/// let noon = backlog(&[0, 25, 0, 0, 0], 10.0).unwrap();
/// assert_eq!((noon.begins, noon.most, noon.most_at, noon.ends), (1, 15, 1, Some(3)));
/// ```
pub fn backlog(due: &[u64], per_step: f64) -> Option<Backlog> {
    let (mut waits, mut begins, mut largest) = (0.0_f64, 0, None::<Backlog>);
    for (step, due) in due.iter().enumerate() {
        let waited = waits > 0.0;
        waits = (waits + *due as f64 - per_step).max(0.0);
        if waits <= 0.0 {
            if let Some(backlog) = largest.as_mut().filter(|backlog| waited && backlog.begins == begins) {
                backlog.ends = Some(step);
            }
            continue;
        }
        if !waited {
            begins = step;
        }
        let most = waits.ceil() as u64;
        if largest.is_none_or(|largest| most > largest.most) {
            largest = Some(Backlog { begins, most, most_at: step, ends: None });
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_of_several_is_told_and_whether_it_ends() {
        let twice = backlog(&[15, 0, 40, 0, 0, 0, 5], 10.0).unwrap();
        assert_eq!(twice, Backlog { begins: 2, most: 30, most_at: 2, ends: Some(5) });
        let grows = backlog(&[12, 12, 12], 10.0).unwrap();
        assert_eq!(grows, Backlog { begins: 0, most: 6, most_at: 2, ends: None });
        // A smaller one after it does not end it once more.
        let first = backlog(&[30, 0, 0, 15, 0], 10.0).unwrap();
        assert_eq!((first.most, first.ends), (20, Some(2)));
    }

    proptest! {
        /// The reference serves whole events one by one.
        #[test]
        fn what_waits_is_what_was_due_and_did_not_begin(
            due in proptest::collection::vec(0_u64..50, 0..40),
            per_step in 1_u32..40,
        ) {
            let (mut waits, mut most) = (0, 0);
            for due in &due {
                waits = (waits + due).saturating_sub(per_step.into());
                most = most.max(waits);
            }
            let told = backlog(&due, per_step.into());
            prop_assert_eq!(told.map_or(0, |backlog| backlog.most), most);
            prop_assert_eq!(told.is_some_and(|backlog| backlog.ends.is_none()) && most > 0, told.is_some_and(|backlog| {
                let mut waits = 0_u64;
                due.iter().enumerate().all(|(step, due)| {
                    waits = (waits + due).saturating_sub(per_step.into());
                    step <= backlog.begins || waits > 0
                })
            }));
        }
    }
}
