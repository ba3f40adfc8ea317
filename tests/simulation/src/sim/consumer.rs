//! Scripted consumers: they release once, twice, late or never, extend, forge, and die.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, Utc};
use tidegate_domain::token::Token;

use super::coverage::CoveredFault;
use super::dice::Dice;
use super::mix::{HABITS, Habit};
use crate::world::Received;

/// What a consumer is going to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Release(Token),
    Extend(Token),
    /// A token that was never given.
    Forge(Token),
}

/// What consumers are going to do, and when.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    acts: BTreeMap<(DateTime<Utc>, u64), Act>,
    next: u64,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: DateTime<Utc>, act: Act) {
        self.next += 1;
        self.acts.insert((at, self.next), act);
    }

    /// Takes what is due, at the most ten releases or one other act.
    pub(crate) fn due(&mut self, now: DateTime<Utc>) -> Vec<Act> {
        let mut due = Vec::new();
        while let Some(first) = self.acts.first_entry() {
            let alone = !matches!(first.get(), Act::Release(_));
            if first.key().0 > now || due.len() == 10 || (alone && !due.is_empty()) {
                break;
            }
            due.push(first.remove());
            if alone {
                break;
            }
        }
        due
    }

    /// An event came: decides what its consumer makes of it. What is told has been done thereby.
    pub(crate) fn plan(
        &mut self,
        dice: &Dice,
        event: &Received,
        now: DateTime<Utc>,
        lease_seconds: u32,
    ) -> Option<CoveredFault> {
        let token = event.token.clone()?;
        let lease = i64::from(lease_seconds);
        let later = |seconds: i64| now + Duration::seconds(seconds);
        let work = dice.below(lease.unsigned_abs().min(20) + 1) as i64;
        match dice.weighted(&HABITS) {
            Habit::Releases => self.add(later(work), Act::Release(token)),
            Habit::ReleasesTwice => {
                self.add(later(work), Act::Release(token.clone()));
                self.add(later(work + dice.below(20) as i64), Act::Release(token));
            }
            Habit::ReleasesAfterLease => {
                self.add(later(lease + dice.below(60) as i64), Act::Release(token));
            }
            Habit::ExtendsBefore => {
                self.add(later(work), Act::Extend(token.clone()));
                self.add(later(lease - 1), Act::Extend(token.clone()));
                self.add(later(lease + work), Act::Release(token));
            }
            Habit::ForgesBefore => {
                self.add(later(work), Act::Forge(forged(dice, &token)));
                self.add(later(work), Act::Release(token));
            }
            Habit::Dies => return Some(CoveredFault::Unreleased),
        }
        None
    }
}

fn forged(dice: &Dice, token: &Token) -> Token {
    let mut forged = token.clone();
    let lease = &mut forged.lease;
    match dice.below(5) {
        0 => lease.fence += 1_000 + dice.below(40),
        1 => lease.index += 1,
        2 => lease.pack_number += 1,
        3 => lease.slot = (lease.slot + 1) % 16,
        _ => forged.group.group += 100 + dice.below(3) as u32,
    }
    forged
}
