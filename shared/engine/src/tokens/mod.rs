//! Tokens, as those see them who ask: events arrive, policies are woken, consumers release and extend, operators free.
//!
//! Each call asks the throttle, which answers with effects, and has them carried out.
//!
//! | who | where |
//! | --- | --- |
//! | events that are due and did not wait in the line | `arrive` |
//! | messages that wake a policy, and the tick through them | `wake` |
//! | consumers, by a call or a message of the release queue | `release`, `together`, `release_queue` |
//! | operators | `free` |
//! | whoever is about to change a job | `mark_dirty` |
//!
//! Deliberately absent: what tokens are and when one may be given (`throttle`, `tidegate_domain::slots`).

mod arrive;
mod entry;
mod free;
mod recheck;
mod release;
mod release_queue;
mod together;
mod wake;

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tidegate_domain::clock::Clock;
use tidegate_store::Store;

use crate::EngineError;
use crate::contents::Contents;
use crate::effect_loop::EffectLoop;
use crate::queues::Queues;
use crate::throttle::Throttle;
use crate::token_key::{TokenKey, TokenKeys};
pub use entry::{EntryError, read_release, read_token};
pub use release::Extended;
pub(crate) use together::Together;

/// What events, consumers and operators do with tokens.
pub struct Tokens {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) keys: Arc<TokenKeys>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) effects: Arc<EffectLoop>,
    pub(crate) together: Together,
}

/// Slot groups in which tokens are released, freed or extended at once: those of a call of ten tokens and a few more.
const RELEASED_AT_ONCE: usize = 16;

/// Does some things, several at once, and all of them whatever becomes of one. The answers are in no particular order; the
/// first error counts.
async fn all_of<F, T>(things: impl Iterator<Item = F>) -> Result<Vec<T>, EngineError>
where
    F: Future<Output = Result<Vec<T>, EngineError>>,
{
    let things: Vec<F> = things.collect();
    let done: Vec<_> = stream::iter(things).buffer_unordered(RELEASED_AT_ONCE).collect().await;
    let done: Vec<Vec<T>> = done.into_iter().collect::<Result<_, _>>()?;
    Ok(done.into_iter().flatten().collect())
}

impl Tokens {
    /// The key that this deployment signs tokens with. The first who needs it makes it; it is read once per process.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the stored key cannot be read.
    pub fn key(&self) -> BoxFuture<'_, Result<Arc<TokenKey>, EngineError>> {
        Box::pin(self.keys.key())
    }
}
