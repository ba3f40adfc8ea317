//! Events that nothing throttles and whose target cannot keep up: they are held back until it can. Throttled ones wait for their
//! policy.
//!
//! Only targets that take time (`Transport::is_inline`) are asked about: queues take whatever comes.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tidegate_domain::backpressure::{Backpressure, Sign};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::time::{milliseconds, shifted};
use tidegate_store::Write;
use tracing::warn;

use super::Delivery;
use super::chunk::{Part, whole};
use crate::EngineError;
use crate::queues::Outgoing;
use crate::queues::message::{Chunk, Message};

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
        let mut closed = BTreeMap::<String, Option<Backpressure>>::new();
        for part in &parts {
            let target = &part.occurrence.terms.target;
            if !target.transport().is_inline && !closed.contains_key(target.address()) {
                let state = self.store.target_backpressure(&client, target.address()).await?;
                let state = state.and_then(|state| state.at(self.clock.now()));
                closed.insert(target.address().to_owned(), state.filter(|state| state.closed().is_some()));
            }
        }
        let (mut open, mut held) = (Vec::with_capacity(parts.len()), BTreeMap::<&str, Vec<&Part>>::new());
        for part in &parts {
            match closed.get_key_value(part.occurrence.terms.target.address()) {
                Some((address, Some(_))) => held.entry(address).or_default().push(part),
                _ => open.push(part),
            }
        }
        if held.is_empty() {
            return Ok(Some(parts));
        }
        let later = held.iter().filter_map(|(address, parts)| {
            let state = closed.get(*address)?.as_ref()?;
            let not_before = self.returns_at(state).max(launch_at);
            let items = parts.iter().map(|part| whole(part)).collect();
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
        if open.is_empty() {
            return Ok(None);
        }
        let is_open = |part: &Part| !held.contains_key(part.occurrence.terms.target.address());
        let is_open: Vec<bool> = parts.iter().map(is_open).collect();
        Ok(Some(parts.into_iter().zip(is_open).filter_map(|(part, open)| open.then_some(part)).collect()))
    }

    fn returns_at(&self, state: &Backpressure) -> DateTime<Utc> {
        let opens_at = state.eases_at();
        let spread_ms = SPREAD_MS.saturating_mul(state.steps().into());
        let drawn_ms = self.random.next_u64().checked_rem(spread_ms.max(1)).unwrap_or_default();
        shifted(opens_at, milliseconds(i64::try_from(drawn_ms).unwrap_or_default()))
    }

    /// Closes the targets that show that they cannot keep up. Where that fails, the next event shows it again.
    pub(super) async fn note_signs(&self, client: &ClientId, signs: BTreeMap<String, Sign>) {
        for (address, sign) in signs {
            if let Err(error) = self.note_sign(client, &address, &sign).await {
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
