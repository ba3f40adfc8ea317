//! What an operator does with tokens that their holders do not give back: under `on_expiry: hold`, nobody else does.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use tidegate_domain::ids::ClientId;
use tidegate_domain::slots::GroupKey;
use tidegate_domain::token::Token;

use super::{Tokens, all_of};
use crate::effect::Effect;
use crate::throttle::release::{Released, why_gone};
use crate::{EngineError, deadline};

impl Tokens {
    /// Ends leases, whether they ran out or not. With `redeliver`, their events go out once more under new leases;
    /// without, they are recorded as expired and the tokens go on to the next. Each token gets its own answer, in the
    /// order of the call; `Released` means that the lease has ended.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or a row that is needed cannot be read.
    /// `EngineError::Queue` when the dispatch queue does not take what follows, `EngineError::Contended` when a lease
    /// was changed at the same time. Some leases may have ended then; repeating the call is safe.
    pub fn free_held<'a>(
        &'a self,
        client: &'a ClientId,
        tokens: Vec<Token>,
        redeliver: bool,
    ) -> BoxFuture<'a, Result<Vec<(Token, Released)>, EngineError>> {
        Box::pin(async move {
            let mut groups: BTreeMap<GroupKey, Vec<(usize, Token)>> = BTreeMap::new();
            for (place, token) in tokens.into_iter().enumerate() {
                groups.entry(token.group.clone()).or_default().push((place, token));
            }
            // Those of one group change the same row, one after the other.
            let free = async |tokens: Vec<(usize, Token)>| {
                let mut answers = Vec::with_capacity(tokens.len());
                for (place, token) in tokens {
                    let answer = match token.client() == client {
                        true => self.free_one(&token, redeliver).await?,
                        false => Released::NotYours,
                    };
                    answers.push((place, (token, answer)));
                }
                Ok(answers)
            };
            let mut answers = all_of(groups.into_values().map(free)).await?;
            answers.sort_unstable_by_key(|(place, _)| *place);
            Ok(answers.into_iter().map(|(_, answer)| answer).collect())
        })
    }

    async fn free_one(&self, token: &Token, redeliver: bool) -> Result<Released, EngineError> {
        deadline::check(&*self.clock)?;
        let Some(snapshot) = self.throttle.snapshot(token.client(), &token.group.policy, 0).await? else {
            return Ok(Released::Unknown);
        };
        let Some(group) = self.store.slot_group(&token.group).await? else {
            return Ok(Released::Unknown);
        };
        let Some(lease) = group.leases.get(&token.lease.slot).copied().filter(|_| group.holds(&token.lease))
        else {
            return Ok(why_gone(&group, &token.lease));
        };
        let (now_seen, granted) =
            self.throttle.end_lease(group, &lease, redeliver.then_some(snapshot.lease)).await?;
        if now_seen.holds(&token.lease) {
            return Err(EngineError::Contended { what: "a lease", rounds: 1 });
        }
        let send = (!granted.is_empty()).then_some(Effect::Send(granted));
        let effects = send.into_iter().chain([Effect::Serve(Box::new(now_seen))]).collect();
        self.effects.carry_out(effects).await?;
        Ok(Released::Released)
    }
}
