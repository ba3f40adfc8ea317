//! The loop that carries out effects, and what follows from them.
//!
//! It is the one place that knows both the throttle and delivery. Nothing recurses: what follows from an effect is put before
//! what is left.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_domain::clock::Clock;
use tidegate_domain::policy::PolicyRef;
use tracing::warn;

use crate::bus::Bus;
use crate::deliver::Delivery;
use crate::effect::Effect;
use crate::queues::message::{Message, Telling};
use crate::queues::{Outgoing, Queues};
use crate::throttle::Throttle;
use crate::{EngineError, deadline};

/// Effects of one call. What is left beyond it is for another call.
const EFFECTS_PER_CALL: usize = 10_000;

/// Who looks after the policies of effects that there was no time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// A wake-up, at once.
    ToAWake,
    /// The tick: for calls that are wake-ups themselves. While the tables are slow, one that is followed by another one never
    /// ends, and each tick and each release begins one more.
    ToTheTick,
}

/// Carries out effects.
pub(crate) struct EffectLoop {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) bus: Option<Arc<Bus>>,
}

impl EffectLoop {
    /// Carries out effects and all that follows from them. What there is no time for is left to a wake-up. Says how many
    /// events were granted.
    pub(crate) async fn carry_out(&self, effects: Vec<Effect>) -> Result<usize, EngineError> {
        self.carry(effects, Left::ToAWake).await
    }

    /// The same, and who looks after what there is no time for.
    pub(crate) async fn carry(&self, effects: Vec<Effect>, left: Left) -> Result<usize, EngineError> {
        let mut open = effects;
        open.reverse();
        let mut granted = 0;
        for _ in 0..EFFECTS_PER_CALL {
            let Some(effect) = open.pop() else { return Ok(granted) };
            // There is no time to serve: whoever is next begins with that.
            if matches!(effect, Effect::ServeAnew(_)) && deadline::is_over(&*self.clock) {
                open.push(effect);
                break;
            }
            if let Effect::Send(events) = &effect {
                granted += events.len();
            }
            // In a box: it has room for whatever an effect may take, and callers move about what they wait for.
            let mut more = match Box::pin(self.carry_out_one(effect)).await {
                Ok(more) => more,
                Err(error) => {
                    self.send_what_was_granted(open).await;
                    return Err(error);
                }
            };
            more.reverse();
            open.append(&mut more);
            if deadline::is_over(&*self.clock) {
                break;
            }
        }
        // Many effects of quick tables go on at once.
        let left = if deadline::is_over(&*self.clock) { left } else { Left::ToAWake };
        self.leave(open, left).await?;
        Ok(granted)
    }

    /// Leaves effects to whoever looks after their policies next, which is soon. Their rows say what is to be done.
    async fn leave(&self, left: Vec<Effect>, to: Left) -> Result<(), EngineError> {
        if left.is_empty() {
            return Ok(());
        }
        warn!(left = left.len(), next = ?left.last(), "effects are left to the next look");
        let policies: BTreeSet<PolicyRef> = left.iter().filter_map(Effect::policy).collect();
        let (failures, left): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|effect| matches!(effect, Effect::Fail(_)));
        self.send_what_was_granted(left).await;
        if to == Left::ToAWake {
            let wakes: Vec<Outgoing> = policies.into_iter().map(|policy| self.wake_now(&policy)).collect();
            self.queues.dispatch(&wakes).await?;
        }
        match failures.into_iter().next() {
            Some(Effect::Fail(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn wake_now(&self, PolicyRef { client, policy }: &PolicyRef) -> Outgoing {
        Outgoing::now(client, Message::wake(client, policy, self.clock.now()))
    }

    /// What holds tokens is sent though something else failed: nobody else would send it before its lease ends.
    async fn send_what_was_granted(&self, left: Vec<Effect>) {
        for effect in left.into_iter().rev() {
            if let Effect::Send(granted) = effect
                && let Err(error) = Box::pin(self.delivery.send_granted(granted)).await
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
            Effect::DropRanges(_, keys, run) => {
                self.throttle.drop_ranges_of(&keys, &run).await.map(|()| Vec::new())
            }
            Effect::Admit(admission) => self.throttle.admit(*admission).await,
            Effect::Reconcile(reconciliation) => self.throttle.reconcile(*reconciliation).await,
            Effect::Reshare(group) => self.throttle.reshare(&group).await,
            Effect::Compact(group) => self.throttle.compact(*group).await,
            Effect::EndCompaction(group) => {
                // Until then, whoever finds the outcomes set apart notes them once more.
                if let Some(bus) = &self.bus {
                    bus.publish().await;
                }
                self.throttle.end_compaction(&group).await
            }
            Effect::Wake(policy, due_at) => self.throttle.wake_at(&policy, due_at).await.map(|()| Vec::new()),
            Effect::Strained(policy, sign) => self.throttle.strained(&policy, &sign).await,
            Effect::Stop(waiting, reason) => self.throttle.stop(waiting, reason).await,
            Effect::Conclude(client, run) => Ok(self.throttle.conclude_run(&client, &run)),
            Effect::StopSingles(policy, entry, reason) => {
                self.throttle.stop_entry(policy, *entry, reason).await
            }
            Effect::RemoveEntry(policy, entry) => {
                self.throttle.remove_entry(&policy, &entry).await.map(|()| Vec::new())
            }
            Effect::Announce { client, run, by_heartbeat } => {
                let telling = Telling { heartbeat: by_heartbeat, ..Telling::now(&client, &run) };
                let message = Message::Callback(telling);
                self.queues.dispatch(&[Outgoing::now(&client, message)]).await.map(|()| Vec::new())
            }
            Effect::Fail(error) => Err(error),
            Effect::WakeNow(policy) => {
                self.queues.dispatch(&[self.wake_now(&policy)]).await.map(|()| Vec::new())
            }
        }
    }
}
