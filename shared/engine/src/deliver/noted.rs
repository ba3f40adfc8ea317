//! Notes for the bus what became of events by their delivery, where the deployment has one.

use chrono::{DateTime, Utc};
use tidegate_domain::occurrence::Occurrence;
use tidegate_store::journal::{Entry, EventStep};

use super::{Delivery, EventToSend, Sent};

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

    /// Notes that a target has an event that holds a token.
    pub(super) fn note_delivered(&self, delivery: &EventToSend) {
        let EventToSend { client, event, attempt, terms, .. } = delivery;
        let end = (EventStep::Delivered, *attempt);
        let whose = (client, terms.terms.policy.as_ref());
        self.store.note(|| Entry::of_event(whose, event, end, self.clock.now()));
    }
}
