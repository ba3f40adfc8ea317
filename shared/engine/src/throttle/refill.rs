//! Refilling a slot group: it takes a range of the run at the head of the line, in three steps that may be repeated.
//!
//! The group writes down which entry it wants, takes a range of that entry under its grant number, and puts it in place. A
//! crash between any two of them is finished by whoever looks at the group next.

use chrono::{DateTime, Utc};
use tidegate_domain::flow::{BatchWindow, OnDeadline};
use tidegate_domain::ids::{ClientId, PolicyId, RunId};
use tidegate_domain::occurrence::NonRun;
use tidegate_store::line::{LineEntry, Portion, Take};
use tidegate_store::slots::{Change, GroupKey, RangeTerms, SlotGroup};

use super::overlap::Turn;
use super::stop::{DEADLINE, PAYLOAD_GONE};
use crate::deliver::Terms;
use crate::{Engine, EngineError};

/// Entries of the line that are looked at first for one that may be served, and when none of them may.
const LINE_LOOKS: [i32; 2] = [8, 100];

/// What the line has for a slot group.
enum Next {
    Entry(Box<LineEntry>),
    /// Nothing now; something from an instant on.
    Later(DateTime<Utc>),
    Nothing,
}

impl Engine {
    /// First step of a refill: choose an entry of the line and write that down. `None`: nothing waits that may go now.
    pub(super) async fn begin_refill(&self, seen: &SlotGroup) -> Result<Option<SlotGroup>, EngineError> {
        let GroupKey { client, policy, .. } = &seen.key;
        let mut later: Option<DateTime<Utc>> = None;
        for look in LINE_LOOKS {
            let head = self.store().line_head(client, policy, self.now(), look).await?;
            let whole = head.len() < look.unsigned_abs() as usize;
            for entry in head {
                match self.look_at(seen, entry).await? {
                    Next::Entry(entry) => {
                        return Ok(match self.store().want_range(seen, &entry.place).await? {
                            Change::Done(now_seen) | Change::Refused(Some(now_seen)) => Some(now_seen),
                            Change::Refused(None) => None,
                        });
                    }
                    Next::Later(at) => later = Some(later.map_or(at, |known| known.min(at))),
                    Next::Nothing => {}
                }
            }
            if whole {
                break;
            }
        }
        if let Some(later) = later {
            self.wake_at(client, policy, later).await?;
        }
        Ok(None)
    }

    /// Whether a group may take of an entry. Entries of which nothing is left, or nothing may go, are removed.
    async fn look_at(&self, seen: &SlotGroup, entry: LineEntry) -> Result<Next, EngineError> {
        let GroupKey { client, policy, .. } = &seen.key;
        if entry.is_exhausted() {
            self.remove_finished(client, policy, &entry).await?;
            return Ok(Next::Nothing);
        }
        let now = self.now();
        let launch_at = entry.run.launch_at();
        let terms = self.run_terms(client, &entry.run).await?;
        let stopped = match &terms {
            // Stopped, or its payload is gone with its job; a first reason stays.
            None => Some(PAYLOAD_GONE),
            Some(terms) if self.is_too_old(&entry.run, terms) => Some(NonRun::Expired.as_str()),
            Some(terms) => {
                let window = terms.terms.flow.window;
                window.filter(|window| window.is_over(launch_at, now)).map(|_| DEADLINE)
            }
        };
        if let Some(reason) = stopped {
            let place = (&entry.run, entry.priority());
            Box::pin(self.stop_rest(client, policy, place, reason)).await?;
            return Ok(Next::Nothing);
        }
        let Some(terms) = terms else { return Ok(Next::Nothing) };
        if self.turn_of(client, policy, &entry).await? != Turn::Go
            || !seen.can_hold(terms.terms.flow.cost.get())
        {
            return Ok(Next::Nothing);
        }
        Ok(match terms.terms.flow.window {
            Some(window) if entry.cursor >= window.admissible(launch_at, terms.terms.count.get(), now) => {
                Next::Later(window.admits_at(launch_at, terms.terms.count.get(), entry.cursor))
            }
            _ => Next::Entry(Box::new(entry)),
        })
    }

    /// Second and third step of a refill: take a range of the wanted entry, and put it in place.
    pub(super) async fn finish_refill(&self, seen: SlotGroup) -> Result<SlotGroup, EngineError> {
        let Some(place) = seen.wanted.clone() else { return Ok(seen) };
        let GroupKey { client, policy, group } = seen.key.clone();
        let run: RunId = place
            .rsplit('|')
            .next()
            .unwrap_or_default()
            .parse()
            .map_err(|e| EngineError::Message { reason: format!("line entry '{place}': {e}") })?;
        let terms = self.run_terms(&client, &run).await?;
        let upto = terms.as_deref().map_or(u32::MAX, |terms| self.admissible(&run, terms));
        let group_key = (&client, &policy, group);
        let part = (portion(&seen), upto);
        let taken = self.store().take_range(group_key, &place, seen.grant, part).await?;
        let (start, end, last) = match taken {
            Take::Taken { start, end, last } => (start, end, last),
            Take::Empty => (0, 0, false),
            Take::Lost => return Ok(seen),
        };
        // Of a single event that nobody waits for, its record says enough.
        let is_told = |terms: &Terms| terms.terms.count.get() > 1 || terms.terms.flow.is_watched();
        if start == 0 && end > 0 && terms.as_deref().is_some_and(is_told) {
            self.store().run_started(&client, &run, self.now()).await?;
        }
        let range = (start, end - start);
        let range_terms = terms.as_deref().map_or(UNKNOWN, |terms| range_terms(&run, terms));
        let change = self.store().accept_range(&seen, &run, range, range_terms).await?;
        let now_seen = match change {
            Change::Done(now_seen) | Change::Refused(Some(now_seen)) => now_seen,
            Change::Refused(None) => seen,
        };
        if last && let Some(found) = self.store().line_entry(&client, &policy, &place).await? {
            self.remove_finished(&client, &policy, &found).await?;
        }
        Ok(now_seen)
    }

    /// Up to which event of a run may be admitted now: a paced one keeps the rest for later.
    fn admissible(&self, run: &RunId, terms: &Terms) -> u32 {
        let count = terms.terms.count.get();
        let window = terms.terms.flow.window;
        window.map_or(count, |window| window.admissible(run.launch_at(), count, self.now()))
    }

    /// Removes an entry of which nothing is left; of a run that was stopped, whoever waits for its end is told first.
    pub(super) async fn remove_finished(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        entry: &LineEntry,
    ) -> Result<(), EngineError> {
        if self.run_terms(client, &entry.run).await?.is_none()
            && let Some(row) = self.store().run(client, &entry.run).await?
        {
            // Whoever stopped it may have died before anybody was told.
            Box::pin(self.conclude_run(client, &row)).await?;
        }
        self.remove_if_settled(client, policy, entry).await
    }

    /// Removes an entry of which nothing is left, once every group that took of it has its range in place.
    pub(super) async fn remove_if_settled(
        &self,
        client: &ClientId,
        policy: &PolicyId,
        entry: &LineEntry,
    ) -> Result<(), EngineError> {
        for group in &entry.groups {
            let key = GroupKey { client: client.clone(), policy: policy.clone(), group: *group };
            let found = self.store().slot_group(&key).await?;
            if found.is_some_and(|g| g.wanted.as_deref() == Some(&*entry.place)) {
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
    let alone = group.cap >= group.limit;
    Portion { cap: group.cap, of: if alone { group.cap } else { group.limit.saturating_mul(2) } }
}

/// What a group knows of a run that was stopped meanwhile: it will drop what it took.
const UNKNOWN: RangeTerms = RangeTerms { cost: 1, deadline: None, watched: false };

fn range_terms(run: &RunId, terms: &Terms) -> RangeTerms {
    let flow = &terms.terms.flow;
    let expires = |window: &BatchWindow| window.on_deadline == OnDeadline::Expire;
    RangeTerms {
        cost: flow.cost.get(),
        deadline: flow.window.filter(expires).map(|window| window.ends_at(run.launch_at())),
        watched: flow.is_watched(),
    }
}
