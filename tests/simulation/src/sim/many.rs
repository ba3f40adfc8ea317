//! Many histories at once, over all cores.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use super::{Bites, Failure, Options, Summary, run_with};

/// What came of histories that held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Total {
    /// How many requests reached the services.
    pub requests: u64,
    /// Events that consumers received.
    pub delivered: usize,
    /// What went wrong, and how often.
    pub bites: Bites,
}

impl Total {
    fn add(&mut self, summary: Summary) {
        self.requests += summary.requests;
        self.delivered += summary.delivered;
        for (bite, count) in summary.bites {
            *self.bites.entry(bite).or_default() += count;
        }
    }
}

/// Plays the histories of seeds over all cores, each on one thread. Of those that fail before the others stop, the one with
/// the lowest seed is told.
///
/// # Errors
/// When the machinery itself fails. What the engine does wrong is the inner `Err`.
pub fn run_all(seeds: Range<u64>, options: Options) -> Result<Result<Total, Box<Failure>>> {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Total::default());
    let worst: Mutex<Option<Result<Box<Failure>>>> = Mutex::new(None);
    let play = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || worst.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                return;
            }
            let failed = match run_with(seed, options) {
                Ok(Ok(summary)) => {
                    total.lock().unwrap_or_else(PoisonError::into_inner).add(summary);
                    continue;
                }
                Ok(Err(failure)) => Ok(failure),
                Err(error) => Err(error.context(format!("seed {seed}"))),
            };
            let mut worst = worst.lock().unwrap_or_else(PoisonError::into_inner);
            let is_worse = match (&*worst, &failed) {
                (Some(Ok(known)), Ok(failed)) => failed.seed < known.seed,
                (Some(Err(_)), _) => false,
                _ => true,
            };
            if is_worse {
                *worst = Some(failed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(play);
        }
    });
    Ok(match worst.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner)),
        Some(failed) => Err(failed?),
    })
}
