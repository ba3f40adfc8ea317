//! The loop that carries out effects, and what follows from them.
//!
//! It is the one place that knows both the throttle and delivery. Nothing recurses: what follows from an effect is put before
//! what is left.

use std::sync::Arc;

use tidegate_domain::clock::Clock;
use tidegate_domain::policy::PolicyRef;
use tracing::warn;

use crate::EngineError;
use crate::deliver::Delivery;
use crate::effect::Effect;
use crate::queues::message::Message;
use crate::queues::{Outgoing, Queues};
use crate::throttle::Throttle;

/// Effects of one call. What is left beyond it waits for the tick.
const EFFECTS_PER_CALL: usize = 10_000;

/// Carries out effects.
pub(crate) struct EffectLoop {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) delivery: Arc<Delivery>,
}

impl EffectLoop {
    /// Carries out effects and all that follows from them. Says how many events were granted.
    pub(crate) async fn carry_out(&self, effects: Vec<Effect>) -> Result<usize, EngineError> {
        let mut open = effects;
        open.reverse();
        let mut granted = 0;
        for _ in 0..EFFECTS_PER_CALL {
            let Some(effect) = open.pop() else { return Ok(granted) };
            if let Effect::Send(events) = &effect {
                granted += events.len();
            }
            let mut more = match self.carry_out_one(effect).await {
                Ok(more) => more,
                Err(error) => {
                    self.send_what_was_granted(open).await;
                    return Err(error);
                }
            };
            more.reverse();
            open.append(&mut more);
        }
        warn!(left = open.len(), next = ?open.last(), "effects are left to the next look");
        Ok(granted)
    }

    /// What holds tokens is sent though something else failed: nobody else would send it before its lease ends.
    async fn send_what_was_granted(&self, left: Vec<Effect>) {
        for effect in left.into_iter().rev() {
            if let Effect::Send(granted) = effect
                && let Err(error) = self.delivery.send_granted(granted).await
            {
                warn!(%error, "what was granted waits for the end of its leases");
            }
        }
    }

    async fn carry_out_one(&self, effect: Effect) -> Result<Vec<Effect>, EngineError> {
        match effect {
            Effect::Send(granted) => self.delivery.send_granted(granted).await,
            Effect::Release(releases) => self.throttle.release_unsent(releases).await,
            Effect::Serve(group) => self.throttle.serve_group(*group).await,
            Effect::ServeAnew(key) => self.throttle.serve_anew(&key).await,
            Effect::DropRange(key, run) => self.throttle.drop_range_of(&key, &run).await.map(|_| Vec::new()),
            Effect::Admit(admission) => self.throttle.admit(*admission).await,
            Effect::Reconcile(reconciliation) => self.throttle.reconcile(*reconciliation).await,
            Effect::Reshare(group) => self.throttle.reshare(&group).await,
            Effect::Compact(group) => self.throttle.compact(*group).await,
            Effect::EndCompaction(group) => self.throttle.end_compaction(&group).await,
            Effect::Wake(policy, due_at) => self.throttle.wake_at(&policy, due_at).await.map(|()| Vec::new()),
            Effect::Stop(waiting, reason) => self.throttle.stop(waiting, reason).await,
            Effect::Conclude(client, run) => Ok(self.throttle.conclude_run(&client, &run)),
            Effect::StopSingles(policy, entry, reason) => {
                self.throttle.stop_entry(policy, *entry, reason).await
            }
            Effect::RemoveEntry(policy, entry) => {
                self.throttle.remove_entry(&policy, &entry).await.map(|()| Vec::new())
            }
            Effect::Announce(client, run) => self
                .queues
                .dispatch(&[Outgoing::now(&client, Message::callback(&client, &run, 0))])
                .await
                .map(|()| Vec::new()),
            Effect::Fail(error) => Err(error),
            Effect::WakeNow(PolicyRef { client, policy }) => {
                let wake = Message::wake(&client, &policy, self.clock.now());
                self.queues.dispatch(&[Outgoing::now(&client, wake)]).await.map(|()| Vec::new())
            }
        }
    }
}
