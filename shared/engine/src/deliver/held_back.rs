//! Events that nothing throttles and whose target cannot keep up: they are held back until it can. Throttled ones wait for their
//! policy.
//!
//! Only targets that take time (`Transport::is_inline`) are asked about: queues take whatever comes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _};
use tidegate_domain::backpressure::{Backpressure, Sign};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::target::Target;
use tidegate_domain::time::{milliseconds, shifted};
use tidegate_store::Write;
use tracing::warn;

use super::Delivery;
use super::chunk::{Part, ROWS_AT_ONCE, whole};
use crate::EngineError;
use crate::queues::Outgoing;
use crate::queues::message::{Chunk, ChunkItem, Message};

/// What is held back of one chunk comes back within so many milliseconds after its target opens, for each step of backpressure: not
/// all that waits comes at once.
const SPREAD_MS: u64 = 1_000;

/// A target without a policy has no limit that could be halved: each sign closes it for a while.
const LIMIT: u32 = 1;

impl Delivery {
    /// The parts that may be sent now; the others travel on until their targets open. `None`: all do.
    pub(super) async fn without_held_back(
        &self,
        chunk: &Chunk,
        parts: Vec<Part>,
    ) -> Result<Option<Vec<Part>>, EngineError> {
        let (client, launch_at) = chunk.head()?;
        let closed = self.closed_targets(&client, &parts).await?;
        let (held, open): (Vec<Part>, Vec<Part>) =
            parts.into_iter().partition(|part| closed.contains_key(part.occurrence.terms.target.address()));
        if held.is_empty() {
            return Ok(Some(open));
        }
        let mut later = BTreeMap::<&str, Vec<ChunkItem>>::new();
        for part in &held {
            later.entry(part.occurrence.terms.target.address()).or_default().push(whole(part));
        }
        let later = later.into_iter().filter_map(|(address, items)| {
            let not_before = self.returns_at(closed.get(address)?).max(launch_at);
            // Whoever handles this message twice sends two of these: the first that is delivered leaves its mark.
            let chunk = Chunk {
                not_before_ms: Some(not_before.timestamp_millis()),
                repeat: true,
                ahead: false,
                items,
                ..chunk.clone()
            };
            Some(Outgoing::at(&client, Message::Chunk(chunk), not_before))
        });
        self.queues.dispatch(&later.collect::<Vec<_>>()).await?;
        Ok((!open.is_empty()).then_some(open))
    }

    /// The targets of some parts that are closed, by their addresses.
    async fn closed_targets(
        &self,
        client: &ClientId,
        parts: &[Part],
    ) -> Result<BTreeMap<String, Backpressure>, EngineError> {
        let targets = parts.iter().map(|part| &part.occurrence.terms.target);
        let slow = targets.filter(|target| !target.transport().is_inline);
        let addresses: BTreeSet<&str> = slow.map(Target::address).collect();
        let looks: Vec<_> = addresses
            .into_iter()
            .map(async |address: &str| (address, self.store.target_backpressure(client, address).await))
            .collect();
        let (mut looks, mut closed) = (stream::iter(looks).buffer_unordered(ROWS_AT_ONCE), BTreeMap::new());
        while let Some((address, state)) = looks.next().await {
            let state = state?.and_then(|state| state.at(self.clock.now()));
            if let Some(state) = state.filter(|state| state.closed().is_some()) {
                closed.insert(address.to_owned(), state);
            }
        }
        Ok(closed)
    }

    fn returns_at(&self, state: &Backpressure) -> DateTime<Utc> {
        let opens_at = state.eases_at();
        let spread_ms = SPREAD_MS.saturating_mul(state.steps().into());
        let drawn_ms = self.random.next_u64().checked_rem(spread_ms.max(1)).unwrap_or_default();
        shifted(opens_at, milliseconds(i64::try_from(drawn_ms).unwrap_or_default()))
    }

    /// Closes the targets that show that they cannot keep up. Where that fails, the next event shows it again.
    pub(super) async fn note_signs(&self, client: &ClientId, signs: BTreeMap<&str, Sign>) {
        let notes: Vec<_> = signs
            .into_iter()
            .map(async |(address, sign): (&str, Sign)| self.note_sign(client, address, &sign).await)
            .collect();
        let mut notes = stream::iter(notes).buffer_unordered(ROWS_AT_ONCE);
        while let Some(noted) = notes.next().await {
            if let Err(error) = noted {
                warn!(%client, %error, "that a target cannot keep up is not noted");
            }
        }
    }

    async fn note_sign(&self, client: &ClientId, address: &str, sign: &Sign) -> Result<(), EngineError> {
        for _ in 0..WRITE_ROUNDS {
            let seen = self.store.target_backpressure(client, address).await?;
            let Some(next) = Backpressure::after(seen.as_ref(), LIMIT, sign, self.clock.now()) else {
                return Ok(());
            };
            let written =
                self.store.replace_target_backpressure((client, address), &next, seen.as_ref()).await?;
            if written == Write::Done {
                let until = next.eases_at();
                warn!(%client, %until, because = sign.because, "a target is closed: it cannot keep up");
                return Ok(());
            }
        }
        Err(EngineError::Contended { what: "a target", rounds: WRITE_ROUNDS })
    }
}
