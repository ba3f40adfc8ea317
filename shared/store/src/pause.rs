//! How long a call waits that is made once more. The store knows no clock: whoever opens it may give it one.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

/// Waits between the rounds of a call of which something was left undone: a table or partition was too small for it at that
/// moment, or another call was at the same rows. Who repeats at once meets the same again.
pub trait Pause: Send + Sync + 'static {
    /// Ends when round number `round` may begin, from 2. The longer, the more rounds were in vain; never the same for all who
    /// wait. `false`: there is no time for another round.
    fn before(&self, round: u32) -> BoxFuture<'_, bool>;
}

/// No wait at all: for tests that stand alone.
#[derive(Debug, Clone, Copy)]
struct AtOnce;

impl Pause for AtOnce {
    fn before(&self, _round: u32) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// The pauses of a store.
#[derive(Clone)]
pub(crate) struct Pauses(Arc<dyn Pause>);

impl Pauses {
    pub(crate) fn of(pause: impl Pause) -> Self {
        Self(Arc::new(pause))
    }

    /// Waits for a round: the first begins at once. `false`: there is no time for it.
    pub(crate) async fn before(&self, round: u32) -> bool {
        round <= 1 || self.0.before(round).await
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::of(AtOnce)
    }
}

impl fmt::Debug for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pauses")
    }
}
