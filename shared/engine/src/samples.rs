//! What goes on in a policy, kept minute by minute while something does: for charts, and for whoever asks how it was.
//!
//! Taken where a tick's wake-up looked after the policy. It is worth less than that: what fails is left out.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::pack::PackId;
use tidegate_store::Store;
use tidegate_store::samples::Sample;
use tracing::debug;

use crate::EngineError;
use crate::throttle::Throttle;

/// Entries of a line that are looked at: 250 of its events each, or a whole run.
const ENTRIES_LOOKED_AT: i32 = 100;

/// Keeps what goes on in policies.
pub(crate) struct Samples {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) throttle: Arc<Throttle>,
}

impl Samples {
    /// Keeps what goes on in a policy, if anything does.
    pub(crate) async fn keep(&self, client: &ClientId, policy: &PolicyId) {
        if let Err(error) = self.try_keep(client, policy).await {
            debug!(%client, %policy, %error, "what goes on in a policy is not kept");
        }
    }

    async fn try_keep(&self, client: &ClientId, policy: &PolicyId) -> Result<(), EngineError> {
        let Some(policy) = self.store.policy(client, policy).await? else { return Ok(()) };
        let now = self.clock.now();
        let (mut in_flight, mut waiting, mut oldest) = (0_u32, 0_u32, Oldest(None));
        for group in self.throttle.groups_as_they_are(&policy).await? {
            in_flight = in_flight.saturating_add(group.held);
            if let Some(range) = group.range() {
                waiting = waiting.saturating_add(range.left);
                oldest.add(group.serving().and_then(PackId::launches_from));
            }
        }
        let head = self.store.line_head(client, &policy.id, now, ENTRIES_LOOKED_AT).await?;
        for entry in head.rows {
            waiting = waiting.saturating_add(entry.left());
            oldest.add(Some(entry.launch_at));
        }
        if in_flight == 0 && waiting == 0 {
            return Ok(());
        }
        let second = now.timestamp().div_euclid(60).saturating_mul(60);
        let at = DateTime::from_timestamp(second, 0).unwrap_or(now);
        let max_in_flight = policy.terms.max_in_flight();
        let sample = Sample { at, in_flight, max_in_flight, waiting, oldest_seconds: oldest.seconds(now) };
        Ok(self.store.keep_sample(client, &policy.id, &sample).await?)
    }
}

/// The earliest of some launches.
struct Oldest(Option<DateTime<Utc>>);

impl Oldest {
    fn add(&mut self, launch_at: Option<DateTime<Utc>>) {
        self.0 = self.0.into_iter().chain(launch_at).min();
    }

    fn seconds(&self, now: DateTime<Utc>) -> u32 {
        let waited = self.0.map_or(0, |at| (now - at).num_seconds().max(0));
        u32::try_from(waited).unwrap_or(u32::MAX)
    }
}
