//! Events that nothing throttles, of a client with a quota on how many go in a minute: each has a place in time. What goes in a later
//! minute travels on until then, and what would wait for longer than may be is skipped.
//!
//! Places are given away by one conditional write a chunk. A chunk that comes twice takes places twice, and some of them stay empty.

use chrono::DateTime;
use tidegate_domain::limits::MINUTE_SECONDS;
use tidegate_domain::occurrence::SkipReason;
use tidegate_domain::quota::EventsPace;
use tidegate_domain::time::clamped;
use tracing::warn;

use super::Delivery;
use super::chunk::{Part, whole};
use crate::EngineError;
use crate::queues::Outgoing;
use crate::queues::message::{Chunk, Message};

impl Delivery {
    /// The parts that go now; the others travel on until their minute. `None`: none does.
    pub(super) async fn within_pace(
        &self,
        chunk: &Chunk,
        parts: Vec<Part>,
        pace: Option<EventsPace>,
    ) -> Result<Option<Vec<Part>>, EngineError> {
        let Some(pace) = pace.filter(|_| !chunk.placed) else { return Ok(Some(parts)) };
        let events = parts.iter().map(|part| part.to.saturating_sub(part.from)).sum();
        let (client, _) = chunk.head()?;
        let now = self.clock.now();
        let Some(begin_us) = self.store.give_places(&client, pace, events, now).await? else {
            warn!(%client, events, "events are skipped: their client has as many waiting as it may");
            let over = parts.into_iter().map(|part| (SkipReason::OverQuota.as_str(), part));
            self.skip_all(&over.collect::<Vec<_>>()).await?;
            return Ok(None);
        };
        let placed = placed(&parts, |number| {
            let place_us = pace.place(begin_us, number);
            (!pace.is_due(place_us, now)).then_some(place_us)
        });
        let mut later = Vec::new();
        let mut due = Vec::new();
        for (place_us, parts) in placed {
            let Some(place) = place_us.and_then(DateTime::from_timestamp_micros) else {
                due = parts;
                continue;
            };
            // Whoever handles this message twice sends two of these: where they are cut alike, the first leaves its mark.
            let piece = Chunk {
                not_before_ms: Some(clamped(place).timestamp_millis()),
                repeat: true,
                ahead: false,
                placed: true,
                items: parts.iter().map(whole).collect(),
                ..chunk.clone()
            };
            later.push(Outgoing::at(&client, Message::Chunk(piece), clamped(place)));
        }
        self.queues.dispatch(&later).await?;
        Ok((!due.is_empty()).then_some(due))
    }
}

/// The events of some parts, together where they go in the same minute: under the place of the first of them, or `None` where they go
/// now. `later` says at which place the event of a number goes, from 0, unless it goes now.
fn placed(parts: &[Part], later: impl Fn(u32) -> Option<i64>) -> Vec<(Option<i64>, Vec<Part>)> {
    let (mut placed, mut number) = (Vec::<(Option<i64>, Vec<Part>)>::new(), 0_u32);
    let minute_of = |place_us: i64| place_us.div_euclid(MINUTE_SECONDS.saturating_mul(1_000_000));
    for part in parts {
        for index in part.from..part.to {
            let (place_us, next) = (later(number), index.saturating_add(1));
            let begins = index == part.from;
            number = number.saturating_add(1);
            match placed.last_mut() {
                Some((first_us, group)) if first_us.map(minute_of) == place_us.map(minute_of) => {
                    match group.last_mut().filter(|_| !begins) {
                        Some(last) => last.to = next,
                        None => group.push(part.cut(index, next)),
                    }
                }
                _ => placed.push((place_us, vec![part.cut(index, next)])),
            }
        }
    }
    placed
}
