//! Refilling a slot group: it takes a range of the pack at the head of the line, in three steps that may be repeated.
//!
//! The group writes down which entry it takes of, takes a range of that entry under its refill number, and puts it in
//! place. A crash between any two of them is finished by whoever looks at the group next.

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _};
use tidegate_domain::flow::{BatchWindow, OnDeadline};
use tidegate_domain::ids::RunId;
use tidegate_domain::job::Terms;
use tidegate_domain::occurrence::{SkipReason, StopReason};
use tidegate_domain::pack::{PackId, Singles, SinglesId};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::slots::{GroupKey, PackRef, Range, SlotGroup, Transition};
use tidegate_store::line::{LineEntry, Take, is_first, is_put_back, pack_of_line_key, tries_of_line_key};
use tidegate_store::slots::Written;

use super::Throttle;
use super::overlap::Turn;
use super::parts::Supply;
use super::shares::GROUPS_AT_ONCE;
use crate::EngineError;
use crate::effect::{Effect, WaitingRun};
use crate::error::readable;

/// Entries of the line that are looked at first for one that may be served, and when none of them may.
const LINE_LOOKS: [i32; 2] = [8, 100];
/// The same where runs wait in parts: a group finds its own.
const PARTS_LOOKS: [i32; 1] = [100];

/// What an entry of the line has for a slot group.
enum Next {
    /// It may take of it.
    Take,
    /// Nothing now; something from an instant on.
    Later(DateTime<Utc>),
    Nothing,
}

impl Throttle {
    /// The entry of the line that a group may take of, and what it is supplied with; `None`: nothing waits that may go now.
    pub(super) async fn next_entry(
        &self,
        (seen, supply): (&SlotGroup, Supply),
        mut known: Option<&[LineEntry]>,
        more: &mut Vec<Effect>,
    ) -> Result<Option<(LineEntry, Supply)>, EngineError> {
        let mut later: Option<DateTime<Utc>> = None;
        for look in if self.has_parts(seen) { &PARTS_LOOKS[..] } else { &LINE_LOOKS } {
            let head = match known.take() {
                Some(known) => known.to_vec(),
                None => self.line_head(&PolicyRef::of(seen), *look).await?,
            };
            let whole = head.len() < look.unsigned_abs() as usize;
            let head = self.in_turn(seen, head, whole).await?;
            for entry in &head {
                match self.look_at(seen, entry, more).await {
                    Ok(Next::Take) => {
                        let supply = supply.at((entry, &head), whole, seen.share.limit);
                        return Ok(Some((self.own_part(seen, entry, &head), supply)));
                    }
                    Ok(Next::Later(at)) => later = Some(later.map_or(at, |known| known.min(at))),
                    Ok(Next::Nothing) => {}
                    Err(error) if error.is_of_one_row() => {
                        self.set_entry_aside(&PolicyRef::of(seen), &entry.line_key, &error.to_string())
                            .await?;
                    }
                    Err(error) => return Err(error),
                }
            }
            if whole {
                break;
            }
        }
        more.extend(later.map(|at| Effect::Wake(PolicyRef::of(seen), at)));
        Ok(None)
    }

    /// Whether a group may take of an entry. Of entries of which nothing is left, or nothing may go, the end follows.
    async fn look_at(
        &self,
        seen: &SlotGroup,
        entry: &LineEntry,
        more: &mut Vec<Effect>,
    ) -> Result<Next, EngineError> {
        let policy = PolicyRef::of(seen);
        if entry.is_exhausted() {
            more.extend(self.exhausted(&policy, entry).await?);
            return Ok(Next::Nothing);
        }
        let run = match &entry.pack {
            PackId::Run(run) => run,
            PackId::Singles(id) => return self.look_at_singles(seen, entry, *id).await,
        };
        let now = self.clock.now();
        let launch_at = run.launch_at();
        let terms = self.contents.run_terms(&policy.client, run).await?;
        let reason = match &terms {
            // Stopped, or its payload is gone with its job; a first reason stays.
            None => Some(StopReason::PayloadGone.as_str()),
            Some(terms) if terms.terms.is_too_old(launch_at, now) => Some(SkipReason::Expired.as_str()),
            Some(terms) => {
                let window = terms.terms.flow.window;
                window.filter(|window| window.is_over(launch_at, now)).map(|_| StopReason::Deadline.as_str())
            }
        };
        if let Some(reason) = reason {
            if entry.tries().is_some() {
                // It lies where the launch of its run does not lead to. Stopped first: what is left out has a reason.
                let PolicyRef { client, policy } = &policy;
                self.store.stop_run(client, run, reason).await?;
                self.store.exhaust_entry((client, policy), run, entry.clone()).await?;
            }
            let rank = terms.map_or(entry.rank(), |terms| terms.terms.flow.rank());
            let waiting = WaitingRun { policy, run: run.clone(), rank };
            more.push(Effect::Stop(waiting, reason));
            return Ok(Next::Nothing);
        }
        let Some(terms) = terms else { return Ok(Next::Nothing) };
        let (turn, stop) = self.turn_of(&policy, entry, run).await?;
        more.extend(stop);
        if turn != Turn::Go || !seen.can_hold(terms.terms.flow.cost.get()) {
            return Ok(Next::Nothing);
        }
        let count = terms.terms.count.get();
        Ok(match terms.terms.flow.window {
            Some(window) if entry.cursor >= window.admissible(launch_at, count, now) => {
                Next::Later(window.admits_at(launch_at, count, entry.cursor))
            }
            _ => Next::Take,
        })
    }

    /// Whether a group may take of a pack of single events: those of them that are due.
    async fn look_at_singles(
        &self,
        seen: &SlotGroup,
        entry: &LineEntry,
        id: SinglesId,
    ) -> Result<Next, EngineError> {
        if !seen.can_hold(id.kind.cost) {
            return Ok(Next::Nothing);
        }
        let Some(pack) = self.contents.pack(&PolicyRef::of(seen), id).await? else {
            // Its time is over: whoever is granted one of them finds none.
            return Ok(Next::Take);
        };
        Ok(match pack.member(entry.cursor) {
            // Whoever wrote the pack has sent a wake-up for each of its launches.
            Some(next) if next.launch_at > self.clock.now() => Next::Nothing,
            _ => Next::Take,
        })
    }

    /// Second and third step of a refill: take a range of the entry, and put it in place.
    pub(crate) async fn finish_refill(
        &self,
        group: &mut SlotGroup,
        (line_key, seen): (&str, Option<&LineEntry>),
        supply: Supply,
        more: &mut Vec<Effect>,
    ) -> Result<(), EngineError> {
        let policy = PolicyRef::of(group);
        let (range, last) = match self.take_at(group, (line_key, seen), supply).await {
            Ok(Some((range, pack, last))) => (Some((range, pack)), last),
            Ok(None) => return Ok(()),
            Err(error) if error.is_of_one_row() => {
                self.set_entry_aside(&policy, line_key, &error.to_string()).await?;
                (None, false)
            }
            Err(error) => return Err(error),
        };
        let commit = Transition::commit_refill(group, range);
        if let Written::Done(now_seen) | Written::Refused(Some(now_seen)) =
            self.store.perform(&group.key, &commit).await?
        {
            *group = now_seen;
        }
        if last && let Some(found) = self.store.line_entry(&policy.client, &policy.policy, line_key).await? {
            more.extend(self.exhausted(&policy, &found).await?);
        }
        Ok(())
    }

    async fn take_at(
        &self,
        group: &SlotGroup,
        (line_key, seen): (&str, Option<&LineEntry>),
        supply: Supply,
    ) -> Result<Option<(Range, PackRef, bool)>, EngineError> {
        let seen = seen.filter(|seen| seen.line_key == line_key);
        match pack_of_line_key(line_key)? {
            PackId::Run(run) => self.take_of_run(group, (line_key, seen), supply, &run).await,
            PackId::Singles(id) => self.take_of_singles(group, (line_key, seen), supply, id).await,
        }
    }

    /// Takes a range of an entry, and says whether it was the last; `None`: others were faster, and the group must ask again.
    async fn take(
        &self,
        group: &SlotGroup,
        (line_key, seen): (&str, Option<&LineEntry>),
        supply: (Supply, u32),
        upto: u32,
    ) -> Result<Option<(u32, u32, bool)>, EngineError> {
        let GroupKey { client, policy, group: number } = &group.key;
        let part = (self.portion(group, line_key, supply), upto);
        let by = (client, policy, *number);
        let taken = self.store.take_range(by, line_key, group.refills, part, seen).await?;
        Ok(match taken {
            Take::Taken { start, end, last } => Some((start, end, last)),
            Take::Empty => Some((0, 0, false)),
            Take::Lost => None,
        })
    }

    async fn take_of_singles(
        &self,
        group: &SlotGroup,
        entry: (&str, Option<&LineEntry>),
        supply: Supply,
        id: SinglesId,
    ) -> Result<Option<(Range, PackRef, bool)>, EngineError> {
        let pack = self.contents.pack(&PolicyRef::of(group), id).await?;
        let due = pack.as_ref().map_or(u32::MAX, |pack| pack.due(self.clock.now()));
        // Before anything is taken: what a group is seen to be taking, whoever changes a job takes for looked up.
        let said = self.store.recheck(&group.key.client).await?;
        let history_days = pack.as_ref().map(|pack| pack.history_days()).unwrap_or_default();
        let holds_some =
            |pack: &Singles| pack.members.iter().any(|member| said.sidelines.holds_job(&member.job));
        let recheck = pack.is_none_or(|pack| pack.needs_recheck(said.until) || holds_some(&pack));
        let Some((start, end, last)) = self.take(group, entry, (supply, id.kind.cost), due).await? else {
            return Ok(None);
        };
        let (left, cost, tries) = (end.saturating_sub(start), id.kind.cost, tries_of_line_key(entry.0));
        let range = Range { pack_number: 0, next: start, left, cost, deadline: None };
        let pack = PackRef { pack: PackId::Singles(id), watched: false, recheck, history_days, tries };
        Ok(Some((range, pack, last)))
    }

    async fn take_of_run(
        &self,
        group: &SlotGroup,
        entry @ (line_key, _): (&str, Option<&LineEntry>),
        supply: Supply,
        run: &RunId,
    ) -> Result<Option<(Range, PackRef, bool)>, EngineError> {
        let client = &group.key.client;
        let terms = self.contents.run_terms(client, run).await?;
        let terms = terms.as_deref().map(|terms| &terms.terms);
        let upto = terms.map_or(u32::MAX, |terms| self.admissible(run, terms));
        let cost = terms.map_or(1, |terms| terms.flow.cost.get());
        // Before anything is taken, as of single events.
        let recheck = self.store.recheck(client).await?.sidelines.holds_job(run.job());
        let Some((start, end, last)) = self.take(group, entry, (supply, cost), upto).await? else {
            return Ok(None);
        };
        // Of a single event that nobody waits for, its record says enough.
        let is_told = |terms: &Terms| terms.count.get() > 1 || terms.flow.is_watched();
        let tries = tries_of_line_key(line_key);
        if tries.is_none() && is_first(line_key, start) && end > start && terms.is_some_and(is_told) {
            self.store.run_started(client, run, self.clock.now()).await?;
        }
        let (range, pack) = range_of(run, terms, start, end);
        let pack = PackRef { tries, recheck, ..pack };
        Ok(Some((range, pack, last)))
    }

    /// Up to which event of a run may be admitted now: a paced one keeps the rest for later.
    fn admissible(&self, run: &RunId, terms: &Terms) -> u32 {
        let (count, window) = (terms.count.get(), terms.flow.window);
        window.map_or(count, |window| window.admissible(run.launch_at(), count, self.clock.now()))
    }

    /// Nothing is left of an entry: it is removed. When its run was stopped, whoever waits for its end is told first.
    pub(super) async fn exhausted(
        &self,
        policy: &PolicyRef,
        entry: &LineEntry,
    ) -> Result<Vec<Effect>, EngineError> {
        let mut effects = Vec::new();
        // A repair leaves an entry of a run that has ended, and whose client may not have been told.
        let is_to_be_told = entry.run().is_some() && is_put_back(&entry.line_key);
        if let Some(run) = entry.run()
            && (is_to_be_told || readable(self.contents.run_terms(&policy.client, run).await)?.is_none())
            && let Some(row) = readable(self.store.run(&policy.client, run).await.map_err(EngineError::from))?
        {
            // Whoever stopped it may have died before anybody was told.
            effects.push(Effect::Conclude(policy.client.clone(), Box::new(row)));
        }
        effects.push(Effect::RemoveEntry(policy.clone(), Box::new(entry.clone())));
        Ok(effects)
    }

    /// Removes an entry of which nothing is left, once every group that took of it has its range in place.
    pub(crate) async fn remove_entry(
        &self,
        policy: &PolicyRef,
        entry: &LineEntry,
    ) -> Result<(), EngineError> {
        let PolicyRef { client, policy } = policy;
        let looks: Vec<_> = entry
            .groups
            .iter()
            .map(async |group: &u32| {
                let key = GroupKey { client: client.clone(), policy: policy.clone(), group: *group };
                self.store.slot_group(&key).await
            })
            .collect();
        let mut looks = stream::iter(looks).buffer_unordered(GROUPS_AT_ONCE);
        while let Some(found) = looks.next().await {
            if found?.is_some_and(|group| group.refilling() == Some(&entry.line_key)) {
                return Ok(());
            }
        }
        self.store.remove_exhausted(client, policy, &entry.line_key).await?;
        Ok(())
    }
}

/// The range `start..end` of a run. Without terms its run was stopped meanwhile: the group will drop what it took.
fn range_of(run: &RunId, terms: Option<&Terms>, start: u32, end: u32) -> (Range, PackRef) {
    let flow = terms.map(|terms| &terms.flow);
    let expires = |window: &BatchWindow| window.on_deadline == OnDeadline::Expire;
    let window = flow.and_then(|flow| flow.window).filter(expires);
    let range = Range {
        pack_number: 0,
        next: start,
        left: end.saturating_sub(start),
        cost: flow.map_or(1, |flow| flow.cost.get()),
        deadline: window.map(|window| window.ends_at(run.launch_at())),
    };
    let watched = flow.is_some_and(|flow| flow.is_watched());
    let history_days = terms.map(|terms| terms.history_days).unwrap_or_default();
    let pack = PackId::Run(run.clone());
    (range, PackRef { pack, watched, recheck: false, history_days, tries: None })
}
