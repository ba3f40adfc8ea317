//! What an operator does with tokens that their holders do not give back: under `on_expiry: hold`, nobody else does.

use tidegate_domain::ids::ClientId;
use tidegate_domain::token::Token;
use tidegate_store::slots::{Outcome, SlotGroup};

use super::release::{Released, group_of, slot_release, why_gone};
use crate::{Engine, EngineError};

impl Engine {
    /// Ends leases, whether they ran out or not. With `redeliver`, their events go out once more under new leases; without,
    /// they are recorded as expired and the tokens go on to the next. Each token gets its own answer, in the order of the
    /// call; `Released` means that the lease has ended.
    ///
    /// # Errors
    /// When the store does not answer. Repeating the call is safe.
    pub async fn free_held(
        &self,
        client: &ClientId,
        tokens: Vec<Token>,
        redeliver: bool,
    ) -> Result<Vec<(Token, Released)>, EngineError> {
        let mut answers = Vec::with_capacity(tokens.len());
        for token in tokens {
            let answer = match token.client == *client {
                true => self.free_one(&token, redeliver).await?,
                false => Released::NotYours,
            };
            answers.push((token, answer));
        }
        Ok(answers)
    }

    async fn free_one(&self, token: &Token, redeliver: bool) -> Result<Released, EngineError> {
        let Some(facts) = self.facts(&token.client, &token.policy, 0).await? else {
            return Ok(Released::Unknown);
        };
        let Some(group) = self.store().slot_group(&group_of(token)).await? else {
            return Ok(Released::Unknown);
        };
        let lease = slot_release(token, Outcome::Expired);
        let Some(held) = group.slots.get(&token.slot).copied().filter(|_| group.holds(&lease)) else {
            return Ok(why_gone(&group, &lease));
        };
        let (now_seen, granted) = self.end_lease(group, (token.slot, held), redeliver, facts.lease).await?;
        if now_seen.holds(&lease) {
            return Err(EngineError::Contended { what: "a lease", rounds: 1 });
        }
        self.send_granted(granted).await?;
        self.serve_and_send(now_seen, facts).await?;
        Ok(Released::Released)
    }

    async fn serve_and_send(&self, group: SlotGroup, facts: super::shares::Facts) -> Result<(), EngineError> {
        let served = self.serve(group, facts).await?;
        self.send_granted(served.granted).await?;
        self.flush_if_due(served.group).await.map(drop)
    }
}
