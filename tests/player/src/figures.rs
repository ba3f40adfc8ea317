//! Figures of a row of numbers.

use std::time::{Duration, SystemTime};

/// Milliseconds since 1970, with their fractions: the same clock as the server's.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_secs_f64() * 1e3
}

/// The next whole second, in milliseconds: Tidegate knows no other instants.
pub fn whole_second(at: f64) -> f64 {
    (at / 1e3).ceil() * 1e3
}

/// The smallest value that at least `share` of the values do not exceed (nearest rank); nothing of no values.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// How many a second `count` in `ms` milliseconds are; nothing of no time.
pub fn per_second(count: usize, ms: f64) -> Option<f64> {
    (ms > 0.0).then(|| count as f64 * 1e3 / ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_value_of_its_rank() {
        assert_eq!(percentile(&[], 0.5), None);
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.51, 1.0].map(|share| percentile(&values, share)),
            [1.0, 1.0, 2.0, 3.0, 4.0].map(Some)
        );
    }

    #[test]
    fn rates_are_of_a_second_and_need_time() {
        assert_eq!(per_second(10, 2_000.0), Some(5.0));
        assert_eq!(per_second(10, 0.0), None);
    }

    #[test]
    fn whole_seconds_are_never_before() {
        assert_eq!([0.0, 1.0, 1_000.0, 1_000.5].map(whole_second), [0.0, 1_000.0, 1_000.0, 2_000.0]);
    }
}
