//! Containment: a panic ends the one message, row or request that it happened in, and nothing else.
//!
//! Every panic is a fault of ours, so it is counted and logged with whose work it was. The process goes on: what one client
//! stores, sends or answers never ends the work of another (I9). This needs `panic = "unwind"`.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use thiserror::Error;
use tracing::error;

/// How much of a panic's text is kept, in characters.
const TEXT_CHARACTERS: usize = 200;

static CONTAINED: AtomicU64 = AtomicU64::new(0);

/// A panic that was contained. Its text shows the first 200 characters of what the panic said.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("this version of Tidegate failed at it: {text}")]
pub struct Panicked {
    /// What the panic said.
    text: String,
}

/// How many panics this process has contained since it started. Anything but 0 is a fault of Tidegate's.
pub fn panics_contained() -> u64 {
    CONTAINED.load(Ordering::Relaxed)
}

/// Runs some work of one message, row or request. `whose` says what it is about, for the log.
///
/// What the work shares with other work must be as good after a panic as before: caches into which entries are put
/// whole, and stores.
///
/// # Errors
/// [`Panicked`] when the work panicked. What it had written until then stays written.
pub async fn contain<F: Future>(whose: impl FnOnce() -> String, work: F) -> Result<F::Output, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| {
        let panicked = Panicked { text: text_of(&*payload) };
        let panics = CONTAINED.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        error!(whose = whose(), text = panicked.text, panics, "a panic was contained");
        panicked
    })
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it gave no reason");
    text.chars().take(TEXT_CHARACTERS).collect()
}

/// Locks a cache, which is as good after a panic as before: each entry is put in whole.
pub(crate) fn locked<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_that_says_what_it_said() {
        let work = async { [0; 3].iter().map(|n| 7_u32.checked_div(*n).unwrap()).sum::<u32>() };
        let before = panics_contained();
        let contained = contain(|| "client acme".to_owned(), work).await;
        assert!(contained.unwrap_err().to_string().contains("unwrap"));
        assert!(panics_contained() > before);
        let fine = contain(String::new, async { 7 }).await;
        assert_eq!(fine, Ok(7));
    }
}
