//! Compaction: outcomes of released events move from their slot group into the history of their runs.
//!
//! The outcomes are set apart under a number, then written as a row whose key follows from that number, then added to
//! the run's tally, which counts each number once, then forgotten. Each step may be repeated, by anybody who finds
//! outcomes set apart.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use tidegate_domain::job::HistoryDays;
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{Compaction, Ended, Outcome, SlotGroup, Transition};
use tidegate_store::dead_letters::{DeadLetter, Waited};
use tidegate_store::events::{HistoryOf, HistoryRow, OwnRow, Record};
use tidegate_store::journal::{Entry, EventStep};
use tidegate_store::runs::Tally;
use tidegate_store::slots::Written;
use tracing::error;

use super::Throttle;
use crate::EngineError;
use crate::effect::Effect;
use crate::error::readable;

/// Packs whose outcomes are kept at once.
const PACKS_AT_ONCE: usize = 16;

impl Throttle {
    /// Compacts the outcomes of a group, or finishes a compaction that somebody else began.
    pub(crate) async fn compact(&self, mut seen: SlotGroup) -> Result<Vec<Effect>, EngineError> {
        if seen.compaction == Compaction::Idle {
            if seen.outcomes.is_empty() {
                return Ok(Vec::new());
            }
            match self.store.perform(&seen.key, &Transition::begin_compaction(&seen)).await? {
                Written::Done(now_seen) => seen = now_seen,
                // Somebody else compacts them.
                Written::Refused(_) => return Ok(Vec::new()),
            }
        }
        // By pack: events of one that were sent again have other numbers, and what is kept is kept once for each pack.
        let mut by_pack: BTreeMap<&PackId, (HistoryDays, Vec<Ended>)> = BTreeMap::new();
        for entry in seen.compacting() {
            match seen.packs.get(&entry.pack_number) {
                Some(known) => {
                    let (_, ends) = by_pack.entry(&known.pack).or_insert((known.history_days, Vec::new()));
                    ends.extend(seen.ended(entry));
                }
                None => {
                    let (group, pack_number) = (&seen.key, entry.pack_number);
                    error!(?group, pack_number, "outcomes name a pack that their group does not know");
                }
            }
        }
        let number = (seen.key.group, seen.compactions);
        let keeps: Vec<_> =
            by_pack.iter().map(|(pack, kept)| self.keep_ends(&seen, number, pack, kept)).collect();
        let kept: Vec<_> = stream::iter(keeps).buffered(PACKS_AT_ONCE).try_collect().await?;
        let mut effects: Vec<Effect> = kept.into_iter().flatten().collect();
        // Last: until then, whoever finds them set apart concludes their runs once more.
        effects.push(Effect::EndCompaction(Box::new(seen)));
        Ok(effects)
    }

    /// Keeps how events of one pack have ended; what follows when they are of a run.
    async fn keep_ends(
        &self,
        seen: &SlotGroup,
        number: (u32, u64),
        pack: &PackId,
        (kept, ends): &(HistoryDays, Vec<Ended>),
    ) -> Result<Option<Effect>, EngineError> {
        let client = &seen.key.client;
        let of = HistoryOf::pack(&seen.key.policy, pack);
        self.store.keep_outcomes(client, &of, number, ends, (self.clock.now(), *kept)).await?;
        self.keep_dead_letters(&PolicyRef::of(seen), pack, (ends, *kept)).await?;
        // Of single events nobody counts more.
        let PackId::Run(run) = pack else { return Ok(None) };
        let tally = Tally::of(ends.iter().map(|ended| ended.outcome));
        let added = self.store.add_outcomes(client, run, number, tally, self.clock.now()).await?;
        Ok(added.row.map(|row| Effect::Conclude(client.clone(), Box::new(row))))
    }

    /// Notes for the bus how events of a pack have ended, and keeps the dead letters of those that did not succeed. Of those that were not delivered, the ones whose history says
    /// why: the others were not wanted any more.
    async fn keep_dead_letters(
        &self,
        policy: &PolicyRef,
        pack: &PackId,
        (ends, kept): (&[Ended], HistoryDays),
    ) -> Result<(), EngineError> {
        let reasons = self.reasons(policy, pack, ends).await?;
        let lost: Vec<&Ended> = ends
            .iter()
            .filter(|ended| match ended.outcome {
                Outcome::Succeeded => false,
                Outcome::Failed | Outcome::Expired => true,
                Outcome::Dead => reasons.contains_key(&ended.index),
            })
            .collect();
        if lost.is_empty() && !self.store.has_journal() {
            return Ok(());
        }
        let singles = match pack {
            PackId::Run(_) => None,
            PackId::Singles(id) => readable(self.contents.pack(policy, *id).await)?,
        };
        let event = |index: u32| match pack {
            PackId::Run(run) => Some(run.event(index)),
            PackId::Singles(_) => Some(singles.as_ref()?.member(index)?.run_id().event(0)),
        };
        let at = self.clock.now();
        for ended in ends {
            let (end, reason) = match ended.outcome {
                Outcome::Succeeded => (EventStep::Succeeded, None),
                Outcome::Failed => (EventStep::Failed, None),
                Outcome::Expired => (EventStep::Expired, None),
                Outcome::Dead => match reasons.get(&ended.index) {
                    Some(reason) => (EventStep::Dead, Some(reason)),
                    // It was not wanted any more: its run says so.
                    None => continue,
                },
            };
            let Some(event) = event(ended.index) else { continue };
            self.store.note(|| {
                let (whose, end) = ((&policy.client, Some(&policy.policy)), (end, ended.attempts));
                Entry { reason: reason.cloned(), ..Entry::of_event(whose, &event, end, at) }
            });
        }
        if lost.is_empty() {
            return Ok(());
        }
        let letter = |ended: &Ended| {
            let Ended { index, outcome, attempts } = *ended;
            let waited = Some(Waited { policy: policy.policy.clone(), pack: pack.clone(), index });
            let reason = reasons.get(&index).cloned().filter(|_| outcome == Outcome::Dead);
            let letter = DeadLetter { event: event(index)?, outcome, attempts, at, reason, waited };
            Some(Record::DeadLetter { client: policy.client.clone(), letter, kept })
        };
        Ok(self.store.keep(&lost.into_iter().filter_map(letter).collect::<Vec<_>>()).await?)
    }

    /// Why targets did not take events, by their numbers: of those that ended with the delivery that it is of.
    async fn reasons(
        &self,
        policy: &PolicyRef,
        pack: &PackId,
        ends: &[Ended],
    ) -> Result<BTreeMap<u32, String>, EngineError> {
        let dead: BTreeMap<u32, u8> = ends
            .iter()
            .filter(|ended| ended.outcome == Outcome::Dead)
            .map(|ended| (ended.index, ended.attempts))
            .collect();
        if dead.is_empty() {
            return Ok(BTreeMap::new());
        }
        let of = HistoryOf::pack(&policy.policy, pack);
        let wanted: Vec<_> = dead.keys().map(|index| (OwnRow::Event, *index)).collect();
        let found = self.store.own_rows_each(&policy.client, &of, &wanted).await?;
        let reason = |row: HistoryRow| match row {
            HistoryRow::Event(event) if dead.get(&event.index) == Some(&event.attempts) => {
                Some((event.index, event.reason?))
            }
            _ => None,
        };
        Ok(found.rows.into_iter().filter_map(reason).collect())
    }

    /// Forgets the outcomes that were compacted.
    pub(crate) async fn end_compaction(&self, seen: &SlotGroup) -> Result<Vec<Effect>, EngineError> {
        self.store.perform(&seen.key, &Transition::end_compaction(seen)).await?;
        Ok(Vec::new())
    }
}
