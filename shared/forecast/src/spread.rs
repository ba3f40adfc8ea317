//! How waits are spread: counts in steps that grow by a twentieth, so that a percentile is right within that, however many
//! waits there are.

/// Waits up to this many milliseconds are not told apart.
const FINEST_MS: f64 = 10.0;
/// How much longer a step is than the one before.
const GROWTH: f64 = 1.05;
/// Steps: the last one is for waits of years.
const STEPS: usize = 480;

/// Waits, each with a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    counts: Vec<f64>,
    total: f64,
    most_ms: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { counts: Vec::new(), total: 0.0, most_ms: 0.0 }
    }
}

impl Spread {
    /// Adds so many waits, evenly between two of them, in milliseconds.
    pub fn add(&mut self, count: f64, from_ms: f64, to_ms: f64) {
        if count <= 0.0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0.0; STEPS];
        }
        self.total += count;
        self.most_ms = self.most_ms.max(to_ms);
        let (first, last) = (step_of(from_ms), step_of(to_ms));
        let length = (to_ms - from_ms).max(f64::MIN_POSITIVE);
        for step in first..=last {
            let (begins, ends) = (begin_of(step).max(from_ms), begin_of(step + 1).min(to_ms));
            let part = if first == last { 1.0 } else { ((ends - begins) / length).max(0.0) };
            if let Some(counted) = self.counts.get_mut(step) {
                *counted += count * part;
            }
        }
    }

    /// Adds what another has.
    pub fn add_all(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts = vec![0.0; STEPS];
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
        self.most_ms = self.most_ms.max(other.most_ms);
    }

    /// What this part of all waits stay under, in milliseconds.
    pub fn percentile_ms(&self, part: f64) -> f64 {
        let mut left = self.total * part;
        for (step, count) in self.counts.iter().enumerate() {
            left -= count;
            if left <= self.total * 1e-9 {
                return begin_of(step + 1).min(self.most_ms);
            }
        }
        self.most_ms
    }

    /// The longest wait, in milliseconds.
    pub fn most_ms(&self) -> f64 {
        self.most_ms
    }
}

fn step_of(ms: f64) -> usize {
    if ms < FINEST_MS {
        return 0;
    }
    (((ms / FINEST_MS).ln() / GROWTH.ln()) as usize + 1).min(STEPS - 1)
}

fn begin_of(step: usize) -> f64 {
    match step {
        0 => 0.0,
        STEPS.. => f64::INFINITY,
        step => FINEST_MS * GROWTH.powi(step as i32 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_even_waits_are_their_parts() {
        let mut spread = Spread::default();
        spread.add(1_000.0, 0.0, 100_000.0);
        for part in [0.5, 0.9, 0.99] {
            let (found, want) = (spread.percentile_ms(part), part * 100_000.0);
            assert!((want..=want * 1.06).contains(&found), "{part}: {found}");
        }
        assert_eq!(spread.most_ms(), 100_000.0);
        let mut one = Spread::default();
        one.add(1.0, 500.0, 500.0);
        assert_eq!(one.percentile_ms(0.5), 500.0);
        one.add_all(&spread);
        assert_eq!(one.most_ms(), 100_000.0);
        assert_eq!(Spread::default().percentile_ms(0.99), 0.0);
    }
}
