//! What clients take of their quotas before they write, and what they have taken.
//!
//! Nothing is given back when something is deleted, or when a write that was taken for never came: what lies in tables is counted anew
//! when it seems to be full.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, Utc};
use futures::future::BoxFuture;
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{USAGE_DAYS_SHOWN, ZONES_PER_TAKE};
use tidegate_domain::quota::{Ask, Counted, OverQuota, Quota, Taken};
use tidegate_domain::usage::Tally;
use tidegate_store::Store;
use tidegate_store::clients::Client;
use tidegate_store::quotas::Rows;
use tracing::warn;

use crate::{EngineError, deadline};

/// Takes of quotas, and counts what they bound.
pub struct QuotaTaker {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
}

impl QuotaTaker {
    /// Takes what some writes of a client ask for, before they are made; the first of them that fit: for each why it must not be made,
    /// or `None`. Where its quotas bound none of them, no call is made.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the row cannot be read; `OutOfTime` when what the
    /// client has cannot be counted in time. All that was asked for may be taken then: in two minutes, or at its launch, it is given back.
    pub fn take<'a>(
        &'a self,
        client: &'a Client,
        asks: &'a [Ask],
    ) -> BoxFuture<'a, Result<Vec<Option<OverQuota>>, EngineError>> {
        Box::pin(async move {
            let mut answers = vec![None; asks.len()];
            let bounded = asks.iter().zip(&mut answers).filter(|(ask, _)| ask.is_bounded_by(&client.quotas));
            let (mut part, mut zones) = (Vec::new(), BTreeSet::new());
            for (ask, answer) in bounded {
                zones.extend(ask.zone.map(|zone| zone.name()));
                if zones.len() > ZONES_PER_TAKE {
                    self.take_part(client, std::mem::take(&mut part)).await?;
                    zones = ask.zone.map(|zone| zone.name()).into_iter().collect();
                }
                part.push((ask, answer));
            }
            self.take_part(client, part).await?;
            Ok(answers)
        })
    }

    async fn take_part(
        &self,
        client: &Client,
        mut part: Vec<(&Ask, &mut Option<OverQuota>)>,
    ) -> Result<(), EngineError> {
        let mut counted = BTreeSet::new();
        while !part.is_empty() {
            let asks: Vec<&Ask> = part.iter().map(|(ask, _)| *ask).collect();
            let now = self.clock.now();
            let (refused, taken) = self.store.take_of_quotas(&client.id, &client.quotas, &asks, now).await?;
            if refused.iter().any(Option::is_none) {
                self.count_what_is_due(client, &asks, &taken).await;
            }
            let mut left = Vec::new();
            for ((ask, answer), refused) in part.into_iter().zip(&refused) {
                *answer = refused.map(|quota| taken.refusal(quota, &client.quotas, now));
                if refused.is_some() {
                    left.push((ask, answer));
                }
            }
            let full: BTreeSet<Counted> =
                refused.iter().flatten().filter_map(|quota| quota.counted()).collect();
            let to_count: Vec<Counted> = full.into_iter().filter(|of| counted.insert(*of)).collect();
            let mut is_counted = false;
            for of in to_count {
                is_counted |= self.count(client, of, &taken).await?;
            }
            if !is_counted {
                break;
            }
            part = left;
        }
        Ok(())
    }

    /// Counts anew what is to be counted though it is not full. The write that was taken for does not fail with it.
    async fn count_what_is_due(&self, client: &Client, asks: &[&Ask], taken: &Taken) {
        let now_ms = self.clock.now().timestamp_millis();
        for of in Counted::ALL {
            let is_asked = asks.iter().any(|ask| match of {
                Counted::Zones => ask.zone.is_some(),
                of => ask.adds == Some(of),
            });
            let is_bounded = client.quotas.most_of(of).is_some();
            if is_asked
                && is_bounded
                && taken.is_due(of, &client.quotas, now_ms)
                && let Err(error) = self.count(client, of, taken).await
            {
                warn!(client = %client.id, of = of.name(), %error, "what a client has was not counted");
            }
        }
    }

    /// Counts what a client has of something; whether the row may say something else now. Not where somebody counts, or did a moment ago.
    async fn count(&self, client: &Client, of: Counted, taken: &Taken) -> Result<bool, EngineError> {
        let (store, quotas, now) = (&self.store, &client.quotas, self.clock.now());
        if client.revision == 1 && !taken.is_counted(of, quotas) {
            // Who is registered with quotas has nothing before it takes of them.
            store.count_nothing(&client.id, of, quotas, taken.clone(), now).await?;
            return Ok(true);
        }
        let claimed = store.claim_count(&client.id, of, taken.clone(), now).await?;
        let Some(claim) = claimed else { return Ok(false) };
        let mut rows = Rows::default();
        loop {
            deadline::check(&*self.clock)?;
            let page = store.count_rows(&client.id, of, rows.next.take()).await?;
            rows.number = rows.number.saturating_add(page.number);
            rows.zones.extend(page.zones);
            rows.next = page.next;
            if rows.next.is_none() {
                break;
            }
        }
        store.finish_count(&client.id, &claim, &rows, quotas, self.clock.now()).await?;
        Ok(true)
    }

    /// Counts what a client has whose quotas have changed, so that its next call need not. What fails here is left to that call.
    pub fn count_all<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for of in Counted::ALL.into_iter().filter(|of| client.quotas.most_of(*of).is_some()) {
                let counted = async {
                    let taken = self.store.taken_of_quotas(&client.id).await?;
                    match taken.is_counted(of, &client.quotas) {
                        true => Ok(true),
                        false => self.count(client, of, &taken).await,
                    }
                };
                if let Err(error) = counted.await {
                    warn!(client = %client.id, of = of.name(), %error, "what a client has was not counted");
                }
            }
        })
    }

    /// What a client has taken of its quotas: of each that writes take of, how much there is at the most, and when that was counted;
    /// of those of events, how many go in this minute and how many wait.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses a call or does not answer, or the row cannot be read.
    pub fn usage<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<Vec<Usage>, EngineError>> {
        Box::pin(async move {
            let bounded =
                Quota::ALL.into_iter().filter_map(|quota| Some((quota, client.quotas.most(quota)?)));
            let bounded: Vec<(Quota, u32)> = bounded.collect();
            let now = self.clock.now();
            let mut usages = self.events_usage(client, now).await?;
            if bounded.is_empty() {
                return Ok(usages);
            }
            let taken = self.store.taken_of_quotas(&client.id).await?;
            let usage = |(quota, most): (Quota, u32)| {
                let used = taken.used(quota, &client.quotas, now);
                let counted_at = used.and_then(|_| taken.counted_at(quota.counted()?));
                Usage { quota: UsedQuota::Writes(quota), most, used, counted_at }
            };
            usages.splice(0..0, bounded.into_iter().map(usage));
            Ok(usages)
        })
    }

    /// What was emitted for a client on each of the last days in which there was anything, the latest last: as far as it is told.
    ///
    /// # Errors
    /// [`EngineError::Store`] when DynamoDB refuses the call or does not answer.
    pub fn days<'a>(
        &'a self,
        client: &'a ClientId,
    ) -> BoxFuture<'a, Result<Vec<(NaiveDate, Tally)>, EngineError>> {
        Box::pin(async move {
            let today = self.clock.now().date_naive();
            let before = u64::from(USAGE_DAYS_SHOWN.saturating_sub(1));
            let first = today.checked_sub_days(Days::new(before)).unwrap_or(NaiveDate::MIN);
            let page = self.store.usage(client, (first, today)).await?;
            for row in &page.unreadable {
                warn!(%client, day = row.sort_key, reason = row.reason, "what was used on a day cannot be read");
            }
            Ok(page.rows)
        })
    }

    /// How many events of a client go in this minute, and how many wait, where its quotas bound that.
    async fn events_usage(&self, client: &Client, now: DateTime<Utc>) -> Result<Vec<Usage>, EngineError> {
        let Some(pace) = client.quotas.events_pace() else { return Ok(Vec::new()) };
        let (goes, waits) = pace.used(self.store.places_end(&client.id).await?, now);
        let usage = |quota, most, used| Usage { quota, most, used: Some(used), counted_at: None };
        let waiting = pace.waiting.map(|most| usage(UsedQuota::Waiting, most.get(), waits));
        let goes = usage(UsedQuota::EventsPerMinute, pace.per_minute.get(), goes);
        Ok([goes].into_iter().chain(waiting).collect())
    }
}

/// A quota of which something is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedQuota {
    /// Writes take of it.
    Writes(Quota),
    /// Events that nothing throttles and that go in a minute.
    EventsPerMinute,
    /// The same that wait for a later one.
    Waiting,
}

/// How much of a quota is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Which.
    pub quota: UsedQuota,
    /// How much there may be.
    pub most: u32,
    /// How much there is at the most; `None`: it was not counted yet.
    pub used: Option<u64>,
    /// When it was last counted; `None`: it was not, or is never.
    pub counted_at: Option<DateTime<Utc>>,
}
