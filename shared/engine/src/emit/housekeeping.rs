//! Housekeeping: what a tick does beside its emission. It tells workers of parts that nobody works on, emits what dead
//! masters left in the outbox, wakes the active policies, has the jobs looked at whose launches should be over, and once a day has
//! the rows kept for longer of what waits in policies.
//!
//! It never stands before emission, and gets on however little time is left for it: parts and outbox rows vanish as they
//! are done, and the waking of policies keeps a cursor. Doing any of it twice changes nothing.

use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::limits::{ACTIVE_SHARDS, OUTBOX_SHARDS, WATCH_SHARDS};
use tidegate_domain::time::{days, seconds};
use tidegate_store::Unreadable;
use tidegate_store::clients::Deletion;
use tidegate_store::launch::{OutboxEntry, owner_of};
use tidegate_store::policies::ActivePolicy;
use tidegate_store::scans::launches_from;
use tracing::error;

use super::Emission;
use super::outbox::Emitter;
use super::report::TickReport;
use crate::figures::ROWS_SET_ASIDE;
use crate::queues::Outgoing;
use crate::queues::message::Message;
use crate::{EngineError, deadline, figures};

/// Policies that are woken before it is kept how far the waking came.
const WOKEN_BETWEEN_KEEPS: usize = 250;
/// Outbox rows that are published at once.
const PUBLISHED_AT_ONCE: usize = 16;
/// Rows that cannot be read and are recorded at once.
const RECORDED_AT_ONCE: usize = 16;
/// Outbox rows that are published between two looks at the clock.
const PUBLISHED_BETWEEN_LOOKS: usize = 64;

/// How long after a policy became active, and then how often, the rows of what waits in it are kept for longer.
const RETAIN_EVERY: TimeDelta = days(1);

/// Clients that are being deleted and that one tick looks after, at the most; they are drawn anew each time.
const DELETIONS_LOOKED_AT: usize = 20;
/// How long after a step of a deletion could be taken a tick asks for it once more.
const STEP_FORGOTTEN: TimeDelta = seconds(300);

/// Whether the message that asks for the next step of a deletion seems to be lost.
fn is_forgotten(deletion: &Deletion, now: DateTime<Utc>) -> bool {
    now - deletion.stands_since() >= STEP_FORGOTTEN
}

/// How far the waking of active policies came.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    shard: u32,
    after: Option<String>,
    /// Shards that are still to be visited, this one included.
    left: u32,
    /// The fencing number of the tick that keeps the cursor; `None`: nobody does.
    fence: Option<u64>,
    /// When the tick began. What has been active only since then was just given a wake-up by its emission.
    began_at: Option<DateTime<Utc>>,
    /// Whether a cursor is stored.
    is_kept: bool,
    /// How many were woken since it was.
    unkept: usize,
    /// The clients that are being deleted, as far as the tick has seen.
    pub(super) deleting: Vec<ClientId>,
    /// Whether there may be watches, as far as the tick has seen.
    pub(super) watched: bool,
}

impl Waking {
    /// All active policies, from the first on. Nothing is kept.
    pub(crate) fn of_all() -> Self {
        Self { left: ACTIVE_SHARDS, ..Self::default() }
    }

    /// All active policies, from where the last tick came to, for one that began at `now`.
    pub(crate) fn from(woken_to: Option<&str>, fence: u64, now: DateTime<Utc>) -> Self {
        let place = woken_to.and_then(|to| {
            let (shard, after) = to.split_once(' ')?;
            let shard = shard.parse().ok().filter(|shard| *shard < ACTIVE_SHARDS)?;
            Some((shard, Some(after.to_owned()).filter(|after| !after.is_empty())))
        });
        let (shard, after) = place.unwrap_or_default();
        // Around, and then the first shard again, for what lies before the cursor.
        let left = ACTIVE_SHARDS + u32::from(after.is_some());
        let (fence, began_at, is_kept) = (Some(fence), Some(now), woken_to.is_some());
        Self { shard, after, left, fence, began_at, is_kept, ..Self::default() }
    }

    /// Whether a policy became active since the tick began. A time that is still to come is of a clock that was ahead, and
    /// says nothing: such a policy would be woken by no tick until then.
    fn has_just_become_active(&self, active: &ActivePolicy, now: DateTime<Utc>) -> bool {
        self.began_at.is_some_and(|began_at| (began_at..=now).contains(&active.since))
    }

    fn go_on(&mut self, after: Option<String>) {
        if after.is_none() {
            self.shard = (self.shard + 1) % ACTIVE_SHARDS;
            self.left = self.left.saturating_sub(1);
        }
        self.after = after;
    }
}

impl Emission {
    /// Does what is to be done, until an instant; some of each in any case.
    pub(crate) async fn keep_house(
        &self,
        waking: &mut Waking,
        grace_seconds: i64,
        until: DateTime<Utc>,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let parts = self.wake_parts(until).await;
        let published = self.publish_outbox(grace_seconds, until, report).await;
        let woken = self.wake_active(waking, until, report).await;
        let deletions = self.wake_deletions(&std::mem::take(&mut waking.deleting)).await;
        let watches = match std::mem::take(&mut waking.watched) {
            true => self.wake_watches(until).await,
            false => Ok(()),
        };
        parts.and(published).and(woken).and(deletions).and(watches)
    }

    /// Has the jobs looked at of which a launch should be over by now. What a tick does not come to is due in the next.
    async fn wake_watches(&self, until: DateTime<Utc>) -> Result<(), EngineError> {
        let now = self.clock.now();
        for shard in 0..WATCH_SHARDS {
            let mut after = None;
            loop {
                let page = self.store.due_watches(shard, now, after).await?;
                for row in &page.unreadable {
                    error!(watch = row.sort_key, reason = row.reason, "a watch cannot be read");
                }
                let looks: Vec<_> = page
                    .rows
                    .into_iter()
                    .map(|watch| Outgoing::now(&watch.client, Message::look(&watch)))
                    .collect();
                self.queues.dispatch(&looks).await?;
                after = page.next;
                if self.clock.now() >= until {
                    return Ok(());
                }
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Has deletions of clients go on whose message seems to be lost, and forgets those that have ended. While no client is being
    /// deleted it does nothing.
    async fn wake_deletions(&self, deleting: &[ClientId]) -> Result<(), EngineError> {
        for client in deleting.iter().take(DELETIONS_LOOKED_AT) {
            let found = match self.store.client_as_it_is(client).await {
                Ok(found) => found,
                // The next tick asks again, and no other client waits for it.
                Err(error) => {
                    error!(%client, %error, "how far the deletion of a client came cannot be read");
                    continue;
                }
            };
            match found.and_then(|client| client.deleting) {
                Some(deletion) if is_forgotten(&deletion, self.clock.now()) => {
                    self.queues.dispatch(&[Outgoing::next_step(client, &deletion)]).await?;
                }
                Some(_) => {}
                None => self.store.list_deletion(client, false).await?,
            }
        }
        Ok(())
    }

    /// Sends the messages of the parts that were forgotten, and sets aside those that cannot be read.
    async fn wake_parts(&self, until: DateTime<Utc>) -> Result<(), EngineError> {
        let now = self.clock.now();
        let mut after = None;
        loop {
            let page = self.store.parts(after).await?;
            let (mut idle, mut unreadable) = (Vec::new(), Vec::new());
            for (id, part) in page.rows {
                if let Some(from) = launches_from(&id) {
                    figures::oldest_part(now - from);
                }
                match part {
                    Ok(part) if part.is_forgotten(now) => idle.push(id),
                    Ok(_) => {}
                    Err(error) => unreadable.push((id, error.into())),
                }
            }
            let asides: Vec<_> =
                unreadable.iter().map(|(id, error)| self.set_part_aside(id, error)).collect();
            stream::iter(asides).buffer_unordered(RECORDED_AT_ONCE).try_collect::<()>().await?;
            self.queues.send_parts(&idle).await?;
            after = page.next;
            if after.is_none() || self.clock.now() >= until {
                return Ok(());
            }
        }
    }

    /// Keeps a part that cannot be read out of the way of others, with the reason.
    pub(crate) async fn set_part_aside(&self, id: &str, reason: &EngineError) -> Result<(), EngineError> {
        error!(part = id, %reason, { ROWS_SET_ASIDE } = 1_u64, "a part of an emission is set aside");
        Ok(self.store.set_part_aside(id, &reason.to_string(), self.clock.now()).await?)
    }

    /// Publishes what masters left in the outbox: they died between a job's write and its first launches. What fails
    /// stops no other.
    async fn publish_outbox(
        &self,
        grace_seconds: i64,
        until: DateTime<Utc>,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        let now = self.clock.now();
        let mut first_error = None;
        for shard in 0..OUTBOX_SHARDS {
            let mut after = None;
            loop {
                let page = self.store.outbox(shard, after).await?;
                report.rows_corrupt += page.unreadable.len() as u64;
                let records: Vec<_> =
                    page.unreadable.iter().map(|row| self.record_unreadable_outbox(row)).collect();
                stream::iter(records).buffer_unordered(RECORDED_AT_ONCE).try_collect::<()>().await?;
                let mut due: Vec<OutboxEntry> = page.rows;
                due.retain(|outbox| (now - outbox.written_at).num_seconds() >= grace_seconds);
                for some in due.chunks(PUBLISHED_BETWEEN_LOOKS) {
                    let publish = some
                        .iter()
                        .map(|outbox| self.publish(outbox, true, Emitter::Tick))
                        .collect::<Vec<_>>();
                    let mut published = stream::iter(publish).buffer_unordered(PUBLISHED_AT_ONCE);
                    while let Some(published) = published.next().await {
                        match published {
                            Ok(counts) => report.add(counts),
                            Err(error) => {
                                error!(%error, "failed to publish launches from the outbox: the next tick tries again");
                                first_error = first_error.or(Some(error));
                            }
                        }
                    }
                    if self.clock.now() >= until {
                        return first_error.map_or(Ok(()), Err);
                    }
                }
                if deadline::is_over(&*self.clock) {
                    return first_error.map_or(Ok(()), Err);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Records under its job that its outbox row cannot be read, once a day. The row stays until it expires.
    async fn record_unreadable_outbox(&self, outbox: &Unreadable) -> Result<(), EngineError> {
        error!(
            outbox = outbox.sort_key,
            reason = outbox.reason,
            { ROWS_SET_ASIDE } = 1_u64,
            "an outbox row cannot be read"
        );
        let Some((client, job)) = owner_of(&outbox.sort_key) else { return Ok(()) };
        let now = self.clock.now();
        let day = DateTime::from_timestamp(now.timestamp().div_euclid(86_400) * 86_400, 0).unwrap_or(now);
        self.store.record_unreadable(&client, &job, day, now).await?;
        Ok(())
    }

    /// Wakes active policies, a page at a time. What is left goes on at the cursor.
    pub(crate) async fn wake_active(
        &self,
        waking: &mut Waking,
        until: DateTime<Utc>,
        report: &mut TickReport,
    ) -> Result<(), EngineError> {
        while waking.left > 0 {
            let page = self.store.active_policies(waking.shard, waking.after.take()).await?;
            let now = self.clock.now();
            let is_old =
                |active: &&ActivePolicy| now - active.retained_at.unwrap_or(active.since) >= RETAIN_EVERY;
            let retain = |active: &ActivePolicy| {
                Outgoing::now(&active.client, Message::retain(&active.client, &active.policy, None))
            };
            let retains: Vec<_> = page.rows.iter().filter(is_old).map(retain).collect();
            let is_due = |active: &ActivePolicy| !waking.has_just_become_active(active, now);
            let due = page.rows.into_iter().filter(is_due).map(|active| (active.client, active.policy));
            // The key says whose it is, whatever else of the row can be read.
            let named = page.unreadable.iter().filter_map(|row| {
                let (client, policy) = row.sort_key.split_once('|')?;
                Some((client.parse().ok()?, policy.parse().ok()?))
            });
            let wake = |(client, policy): (ClientId, PolicyId)| {
                let (named, policy) = (client.to_string(), policy.to_string());
                Outgoing::now(&client, Message::Wake { client: named, policy, due_s: None })
            };
            let wakes: Vec<_> = due.chain(named).map(wake).collect();
            report.policies_woken += wakes.len() as u64;
            self.queues.dispatch(&wakes).await?;
            self.queues.dispatch(&retains).await?;
            waking.go_on(page.next);
            waking.unkept = waking.unkept.saturating_add(wakes.len());
            let is_over = self.clock.now() >= until;
            // A tick that is killed has got on; one that has little to wake writes nothing.
            if waking.left > 0 && (waking.unkept >= WOKEN_BETWEEN_KEEPS || (is_over && waking.unkept > 0)) {
                self.keep_waking(waking).await?;
            }
            if is_over {
                return Ok(());
            }
        }
        if waking.is_kept
            && let Some(fence) = waking.fence
        {
            self.store.keep_woken_to(fence, None).await?;
            waking.is_kept = false;
        }
        Ok(())
    }

    async fn keep_waking(&self, waking: &mut Waking) -> Result<(), EngineError> {
        let Some(fence) = waking.fence else { return Ok(()) };
        let place = format!("{} {}", waking.shard, waking.after.as_deref().unwrap_or_default());
        self.store.keep_woken_to(fence, Some(&place)).await?;
        (waking.is_kept, waking.unkept) = (true, 0);
        Ok(())
    }
}
