//! The randomness of the model: everything that happens follows from a seed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::limits::Latency;

/// How many standard deviations lie below the tail of a [`Latency`]: 99 of 100.
const TAIL: f64 = 2.326;

/// Random choices that a seed repeats. Shared by all services of a region.
#[derive(Debug)]
pub struct Dice(Mutex<fastrand::Rng>);

impl Dice {
    /// The choices of a seed. The SDK's own, which spread its retries, follow it too, as long as one thread does everything.
    pub fn new(seed: u64) -> Self {
        fastrand::seed(seed);
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// A time of this distribution: logarithmic normal, as times of services are.
    pub fn time(&self, of: Latency) -> Duration {
        let (radius, angle) = self.with(|rng| (rng.f64(), rng.f64()));
        let normal = (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        let sigma = (of.p99_ms / of.median_ms).ln() / TAIL;
        Duration::from_secs_f64(of.median_ms / 1e3 * (sigma * normal).exp())
    }

    /// True so many times in a million.
    pub fn once_in(&self, parts_per_million: u32) -> bool {
        parts_per_million > 0 && self.with(|rng| rng.u32(0..1_000_000)) < parts_per_million
    }

    /// A time below a bound.
    pub fn below(&self, bound: Duration) -> Duration {
        self.with(|rng| bound.mul_f64(rng.f64()))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_median_and_the_tail_that_were_asked_for() {
        let (dice, of) = (Dice::new(1), Latency { median_ms: 4.0, p99_ms: 12.0 });
        let mut drawn: Vec<f64> = (0..20_000).map(|_| dice.time(of).as_secs_f64() * 1e3).collect();
        drawn.sort_by(f64::total_cmp);
        let (median, tail) = (drawn[10_000], drawn[19_800]);
        assert!((3.9..4.1).contains(&median) && (11.0..13.0).contains(&tail), "{median} {tail}");
        let again: Vec<Duration> = (0..3).map(|_| Dice::new(7).time(of)).collect();
        assert_eq!(again[0], again[2]);
    }
}
