//! A policy is woken: it is looked after as a whole, or what is due in it is admitted.
//!
//! Wake-ups are SQS messages and come by the second. A policy whose bucket holds less than its rate allows in a second
//! would lose the rest, so whoever is woken for it stays for up to a second and lets each event begin when its time
//! comes. Policies without a rate, or with a burst of a second's worth or more, are never waited for.

use chrono::{DateTime, TimeDelta};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::rate_limit::RateLimit;
use tidegate_domain::time::{milliseconds, shifted};

use super::Tokens;
use crate::EngineError;
use crate::effect::{Effect, Reconciliation};
use crate::effect_loop::Left;
use crate::queues::Outgoing;
use crate::queues::message::Message;

/// How long whoever is woken stays: the next wake-up comes after it.
const STAY: TimeDelta = milliseconds(1_000);
/// The shortest wait: each look reads and writes rows.
const SHORTEST_WAIT: TimeDelta = milliseconds(10);

impl Tokens {
    /// Looks after all of a policy: repairs its shares, takes back what nobody released in time, grants what is free.
    ///
    /// Repeating it changes nothing that is in order.
    pub(crate) async fn reconcile_policy(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        left: Left,
    ) -> Result<(), EngineError> {
        let Some(policy) = self.store.policy(client, policy).await? else {
            let effects = self.throttle.abandon_line(&PolicyRef::new(client, policy)).await?;
            return self.effects.carry(effects, left).await.map(drop);
        };
        let (policy, wake) = self.throttle.eased(policy).await?;
        let policy = self.throttle.drained(policy).await?;
        let (mut overlapping, _) = self.throttle.decide_overlaps(&PolicyRef::new(client, &policy.id)).await?;
        overlapping.extend(wake);
        self.effects.carry(overlapping, left).await?;
        let (policy, mut groups) = self.throttle.converge(policy).await?;
        // When there is no time for all of them, it should not always be the same that are left.
        let first = self.clock.now().timestamp_millis().rem_euclid(groups.len().max(1) as i64);
        groups.rotate_left(first as usize);
        let all = Reconciliation::of(policy, groups);
        self.effects.carry(vec![Effect::Reconcile(Box::new(all))], left).await.map(drop)
    }

    /// Keeps the rows of what has waited for long from expiring, a page of the line at a time: the next one with a message of
    /// its own.
    pub(crate) async fn retain_waiting(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        after: Option<String>,
    ) -> Result<(), EngineError> {
        let next = self.throttle.retain_waiting(&PolicyRef::new(client, policy), after).await?;
        match next {
            Some(after) => {
                let retain = Message::retain(client, policy, Some(after));
                self.queues.dispatch(&[Outgoing::now(client, retain)]).await
            }
            None => Ok(self.store.note_retained(client, policy, self.clock.now()).await.map(drop)?),
        }
    }

    /// Looks for free slots as `Throttle::admission` does, and once more at each instant of the next second at which the
    /// rate lets another event begin.
    pub(crate) async fn admit_paced(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        left: Left,
    ) -> Result<(), EngineError> {
        let leave_at = shifted(self.clock.now(), STAY);
        loop {
            let effects = self.throttle.admission(client, policy).await?;
            let granted = self.effects.carry(effects, left).await?;
            let snapshot = self.throttle.snapshot(client, policy, 0).await?;
            let rate =
                snapshot.and_then(|snapshot| snapshot.rate).filter(|rate| RateLimit::needs_pacing(*rate));
            let Some(rate) = rate else { return Ok(()) };
            let allowed = self.store.rate_allows((client, policy), rate, self.clock.now()).await?;
            let next_at = DateTime::from_timestamp_micros(allowed.next_us).unwrap_or_default();
            if granted == 0 && next_at <= self.clock.now() {
                // The rate would let one begin: nothing waits, or no slot is free.
                return Ok(());
            }
            let next_at = next_at.max(shifted(self.clock.now(), SHORTEST_WAIT));
            if next_at >= leave_at {
                return Ok(());
            }
            self.clock.wait_until(next_at).await;
            if self.clock.now() < next_at {
                return Ok(());
            }
        }
    }
}
