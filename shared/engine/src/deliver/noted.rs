//! What became of events by their delivery: noted for the bus, where the deployment has one, and how late they came is counted.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::lateness::{Histogram, Lateness};
use tidegate_domain::occurrence::Occurrence;
use tidegate_store::journal::{Entry, EventStep};

use super::{Delivery, EventToSend, Sent};
use crate::queues::message::Chunk;

impl Delivery {
    /// Notes what became of events that nothing throttles, and publishes it: before the mark of their chunk is written, so that
    /// whoever dies in between sends, and notes, them again. Each has its number in its run, what came of it, and whether it is
    /// sent again if that failed.
    pub(super) async fn publish_sent<'s>(
        &self,
        events: impl Iterator<Item = (&'s Occurrence, u32, &'s Sent, bool)>,
        (attempt, now): (u8, DateTime<Utc>),
    ) {
        let Some(bus) = &self.bus else { return };
        for (occurrence, index, sent, is_sent_again) in events {
            let (end, reason) = match sent {
                Sent::Done => (EventStep::Delivered, None),
                Sent::Failed { .. } if is_sent_again => continue,
                Sent::Failed { reason, .. } | Sent::Refused { reason } => (EventStep::Dead, Some(reason)),
            };
            self.store.note(|| {
                let whose = (&occurrence.client, occurrence.terms.policy.as_ref());
                let event = occurrence.run_id().event(index);
                Entry { reason: reason.cloned(), ..Entry::of_event(whose, &event, (end, attempt), now) }
            });
        }
        bus.publish().await;
    }

    /// Counts how late events came that nothing throttles, of a chunk that was sent: so many of them are with their targets, each for
    /// the first time.
    pub(super) fn count_lateness_of(
        &self,
        chunk: &Chunk,
        (client, launch_at): (&ClientId, DateTime<Utc>),
        (delivered, now): (usize, DateTime<Utc>),
    ) {
        // What is redriven is as late as somebody asked for it.
        if delivered == 0 || chunk.is_redriven() {
            return;
        }
        let Some(lateness) = &self.lateness else { return };
        let mut unthrottled = Histogram::default();
        unthrottled.count(now.signed_duration_since(launch_at), delivered as u64);
        lateness.count(client, &Lateness { unthrottled, ..Lateness::default() });
    }

    /// Notes that a target has an event that holds a token, and counts how late it came, if that is for the first time.
    pub(super) fn note_delivered(&self, delivery: &EventToSend) {
        let EventToSend { client, event, attempt, hand_over, terms, .. } = delivery;
        let now = self.clock.now();
        let end = (EventStep::Delivered, *attempt);
        let whose = (client, terms.terms.policy.as_ref());
        self.store.note(|| Entry::of_event(whose, event, end, now));
        if let Some(lateness) = self.lateness.as_ref().filter(|_| *hand_over == 1) {
            let mut throttled = Histogram::default();
            throttled.count(now.signed_duration_since(event.run().launch_at()), 1);
            lateness.count(client, &Lateness { throttled, ..Lateness::default() });
        }
    }
}
