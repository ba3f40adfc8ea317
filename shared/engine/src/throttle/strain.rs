//! A policy whose consumer cannot keep up is slowed or closed, and recovers: its limit follows the backpressure in its row, as it
//! follows what its client says.
//!
//! Nobody needs to be at hand when a step is due. Whoever looks after the policy finds what is left of the backpressure, and asks
//! to be woken for the next step; where that is lost, the tick or the next event does the same.

use tidegate_domain::backpressure::{Backpressure, Sign};
use tidegate_domain::limits::WRITE_ROUNDS;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_store::Write;
use tracing::{info, warn};

use super::Throttle;
use crate::EngineError;
use crate::effect::Effect;

impl Throttle {
    /// Does what follows from a sign that the consumer of a policy cannot keep up.
    pub(crate) async fn strained(&self, policy: &PolicyRef, sign: &Sign) -> Result<Vec<Effect>, EngineError> {
        let now = self.clock.now();
        if self.memory.is_sign_known(policy, sign, now) {
            return Ok(Vec::new());
        }
        for _ in 0..WRITE_ROUNDS {
            let Some(seen) = self.store.policy(&policy.client, &policy.policy).await? else {
                return Ok(Vec::new());
            };
            let limit = seen.terms.max_in_flight();
            let Some(next) = Backpressure::after(seen.backpressure.as_ref(), limit, sign, now) else {
                return Ok(Vec::new());
            };
            let (eases_at, closed) = (next.eases_at(), next.closed());
            if let Some(restrained) = self.replace_backpressure(&seen, Some(next)).await? {
                let PolicyRef { client, policy: id } = policy;
                let (until, limit) = (closed.map(|closed| closed.until), restrained.open_limit());
                warn!(%client, policy = %id, limit, until = until.map(tracing::field::display), because = sign.because, "a policy is held back: its consumer cannot keep up");
                self.converge(restrained).await?;
                return Ok(vec![Effect::Wake(policy.clone(), eases_at)]);
            }
        }
        // Whoever sees the next sign does it.
        Err(EngineError::Contended { what: "a policy", rounds: WRITE_ROUNDS })
    }

    /// A policy without the backpressure that is over, and who looks after it when the rest is.
    pub(crate) async fn eased(&self, policy: Policy) -> Result<(Policy, Option<Effect>), EngineError> {
        let Some(seen) = &policy.backpressure else { return Ok((policy, None)) };
        let name = PolicyRef::new(&policy.client, &policy.id);
        let left = seen.at(self.clock.now());
        let next_at = left.as_ref().map(Backpressure::eases_at);
        let wake = next_at.map(|at| Effect::Wake(name, at));
        if left.as_ref() == Some(seen) {
            return Ok((policy, wake));
        }
        let Some(eased) = self.replace_backpressure(&policy, left).await? else {
            // It was changed at the same time: whoever did looks after it.
            return Ok((policy, wake));
        };
        info!(client = %eased.client, policy = %eased.id, limit = eased.limit(), "a policy recovers");
        let (eased, _) = self.converge(eased).await?;
        Ok((eased, wake))
    }

    /// `None`: the policy was changed since it was seen.
    async fn replace_backpressure(
        &self,
        seen: &Policy,
        backpressure: Option<Backpressure>,
    ) -> Result<Option<Policy>, EngineError> {
        let mut next = Policy { backpressure, ..seen.clone() };
        next.plan = seen.plan.changed(seen.limit(), next.limit());
        // On the list first: should we die half way, the next tick brings the shares into step.
        self.store.touch_active(&seen.client, &seen.id, self.clock.now()).await?;
        Ok((self.store.replace_policy(&next, seen, None).await? == Write::Done).then_some(next))
    }
}
