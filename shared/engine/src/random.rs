//! The one way randomness enters the engine: an argument, so that a seed replays a run.

use std::sync::atomic::{AtomicU64, Ordering};

/// Gives random numbers. Keys and ids are made of them, so a deployment needs [`SystemRandom`].
///
/// ```
/// use tidegate_engine::random::{Random, SeededRandom};
///
/// let (one, other) = (SeededRandom::new(7), SeededRandom::new(7));
/// assert_eq!(one.next_u128(), other.next_u128(), "a seed replays a run");
/// ```
pub trait Random: Send + Sync + 'static {
    /// 64 random bits.
    fn next_u64(&self) -> u64;

    /// 128 random bits.
    fn next_u128(&self) -> u128 {
        u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())
    }
}

/// The operating system's randomness: fit for keys.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        // A machine without randomness must not hand out keys that can be guessed.
        getrandom::u64().unwrap_or_else(|_| std::process::abort())
    }
}

/// Numbers that follow from a seed (SplitMix64): for tests and the simulator, never for keys.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The sequence of `seed`, from its beginning.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut z = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
