//! Refilling a slot group: it takes a range of the run at the head of the line, in three steps that may be repeated.
//!
//! The group writes down which entry it takes of, takes a range of that entry under its refill number, and puts it in
//! place. A crash between any two of them is finished by whoever looks at the group next.

use chrono::{DateTime, Utc};
use tidegate_domain::flow::{BatchWindow, OnDeadline};
use tidegate_domain::ids::RunId;
use tidegate_domain::job::Terms;
use tidegate_domain::occurrence::{NonRun, StopReason};
use tidegate_domain::slots::{GroupKey, Range, RunRef, SlotGroup, Transition};
use tidegate_store::line::{LineEntry, Portion, Take, run_of_place};
use tidegate_store::slots::Written;

use super::overlap::Turn;
use crate::effect::{Effect, PolicyRef, WaitingRun};
use crate::{Engine, EngineError};

/// Entries of the line that are looked at first for one that may be served, and when none of them may.
const LINE_LOOKS: [i32; 2] = [8, 100];

/// What an entry of the line has for a slot group.
enum Next {
    /// It may take of it.
    Entry(String),
    /// Nothing now; something from an instant on.
    Later(DateTime<Utc>),
    Nothing,
}

impl Engine {
    /// The place of the entry of the line that a group may take of; `None`: nothing waits that may go now.
    pub(super) async fn next_entry(
        &self,
        seen: &SlotGroup,
        more: &mut Vec<Effect>,
    ) -> Result<Option<String>, EngineError> {
        let GroupKey { client, policy, .. } = &seen.key;
        let mut later: Option<DateTime<Utc>> = None;
        for look in LINE_LOOKS {
            let head = self.store().line_head(client, policy, self.now(), look).await?;
            let whole = head.len() < look.unsigned_abs() as usize;
            for entry in head {
                match self.look_at(seen, &entry, more).await? {
                    Next::Entry(place) => return Ok(Some(place)),
                    Next::Later(at) => later = Some(later.map_or(at, |known| known.min(at))),
                    Next::Nothing => {}
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
        let now = self.now();
        let launch_at = entry.run.launch_at();
        let terms = self.run_terms(&policy.client, &entry.run).await?;
        let reason = match &terms {
            // Stopped, or its payload is gone with its job; a first reason stays.
            None => Some(StopReason::PayloadGone.as_str()),
            Some(terms) if terms.terms.is_too_old(launch_at, now) => Some(NonRun::Expired.as_str()),
            Some(terms) => {
                let window = terms.terms.flow.window;
                window.filter(|window| window.is_over(launch_at, now)).map(|_| StopReason::Deadline.as_str())
            }
        };
        if let Some(reason) = reason {
            let waiting = WaitingRun { policy, run: entry.run.clone(), priority: entry.priority() };
            more.push(Effect::Stop(waiting, reason));
            return Ok(Next::Nothing);
        }
        let Some(terms) = terms else { return Ok(Next::Nothing) };
        let (turn, stop) = self.turn_of(&policy, entry).await?;
        more.extend(stop);
        if turn != Turn::Go || !seen.can_hold(terms.terms.flow.cost.get()) {
            return Ok(Next::Nothing);
        }
        let count = terms.terms.count.get();
        Ok(match terms.terms.flow.window {
            Some(window) if entry.cursor >= window.admissible(launch_at, count, now) => {
                Next::Later(window.admits_at(launch_at, count, entry.cursor))
            }
            _ => Next::Entry(entry.place.clone()),
        })
    }

    /// Second and third step of a refill: take a range of the entry, and put it in place.
    pub(super) async fn finish_refill(
        &self,
        group: &mut SlotGroup,
        place: &str,
        more: &mut Vec<Effect>,
    ) -> Result<(), EngineError> {
        let GroupKey { client, policy, group: number } = &group.key;
        let run = run_of_place(place)?;
        let terms = self.run_terms(client, &run).await?;
        let terms = terms.as_deref().map(|terms| &terms.terms);
        let upto = terms.map_or(u32::MAX, |terms| self.admissible(&run, terms));
        let part = (portion(group), upto);
        let taken = self.store().take_range((client, policy, *number), place, group.refills, part).await?;
        let (start, end, last) = match taken {
            Take::Taken { start, end, last } => (start, end, last),
            Take::Empty => (0, 0, false),
            Take::Lost => return Ok(()),
        };
        // Of a single event that nobody waits for, its record says enough.
        let is_told = |terms: &Terms| terms.count.get() > 1 || terms.flow.is_watched();
        if start == 0 && end > 0 && terms.is_some_and(is_told) {
            self.store().run_started(client, &run, self.now()).await?;
        }
        let range = range_of(&run, terms, start, end);
        let commit = Transition::commit_refill(group, Some(range));
        let policy = PolicyRef::of(group);
        if let Written::Done(now_seen) | Written::Refused(Some(now_seen)) =
            self.store().perform(&group.key, &commit).await?
        {
            *group = now_seen;
        }
        if last && let Some(found) = self.store().line_entry(&policy.client, &policy.policy, place).await? {
            more.extend(self.exhausted(&policy, &found).await?);
        }
        Ok(())
    }

    /// Up to which event of a run may be admitted now: a paced one keeps the rest for later.
    fn admissible(&self, run: &RunId, terms: &Terms) -> u32 {
        let (count, window) = (terms.count.get(), terms.flow.window);
        window.map_or(count, |window| window.admissible(run.launch_at(), count, self.now()))
    }

    /// Nothing is left of an entry: it is removed. When its run was stopped, whoever waits for its end is told first.
    pub(super) async fn exhausted(
        &self,
        policy: &PolicyRef,
        entry: &LineEntry,
    ) -> Result<Vec<Effect>, EngineError> {
        let mut effects = Vec::new();
        if self.run_terms(&policy.client, &entry.run).await?.is_none()
            && let Some(row) = self.store().run(&policy.client, &entry.run).await?
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
        for group in &entry.groups {
            let key = GroupKey { client: client.clone(), policy: policy.clone(), group: *group };
            let found = self.store().slot_group(&key).await?;
            if found.is_some_and(|group| group.refilling() == Some(&entry.place)) {
                return Ok(());
            }
        }
        self.store().remove_exhausted(client, policy, &entry.place).await?;
        Ok(())
    }
}

/// What a group takes of what it finds in the line. A group that has neighbours leaves most of it to them, the more so
/// towards the end: what one group alone has left of a run, its neighbours' free slots cannot serve.
fn portion(group: &SlotGroup) -> Portion {
    let (cap, limit) = (group.share.cap, group.share.limit);
    Portion { cap, of: if cap >= limit { cap } else { limit.saturating_mul(2) } }
}

/// The range `start..end` of a run. Without terms its run was stopped meanwhile: the group will drop what it took.
fn range_of(run: &RunId, terms: Option<&Terms>, start: u32, end: u32) -> (Range, RunRef) {
    let flow = terms.map(|terms| &terms.flow);
    let expires = |window: &BatchWindow| window.on_deadline == OnDeadline::Expire;
    let window = flow.and_then(|flow| flow.window).filter(expires);
    let range = Range {
        run_number: 0,
        next: start,
        left: end.saturating_sub(start),
        cost: flow.map_or(1, |flow| flow.cost.get()),
        deadline: window.map(|window| window.ends_at(run.launch_at())),
    };
    (range, RunRef { run: run.clone(), watched: flow.is_some_and(|flow| flow.is_watched()) })
}
