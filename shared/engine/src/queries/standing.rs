//! Events under a policy that wait in its line or are in flight, of whatever jobs: what its slot groups and its line say.
//!
//! Rows are read one by one, without locks: an event that moves from one to another meanwhile may be shown twice, or not at all.
//!
//! Deliberately absent: what has no row of its own before it is due (single events with little company), and what no policy throttles.

use std::fmt;
use std::str::FromStr;

use futures::future::BoxFuture;
use tidegate_domain::ids::{ClientId, EventId, PolicyId};
use tidegate_domain::pack::PackId;
use tidegate_domain::policy::{Policy, PolicyRef};
use tidegate_domain::slots::{Lease, Refill, SlotGroup};
use tidegate_domain::time::Window;
use tidegate_store::line::LineEntry;
use tidegate_store::{Page, PageOf};

use super::Queries;
use super::history::{EventRecord, EventStatus};
use super::one_times::NoPlace;
use super::packs::Packs;
use crate::error::readable;
use crate::{EngineError, deadline};

/// Slot groups that are read together: about 25 events are in flight in each.
const GROUPS_TOGETHER: u32 = 8;
/// Pages of the line that are read for one page of events.
const LINE_PAGES: usize = 4;

/// Where the events stand that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// They wait, and are due or not: first those that slot groups took from the line, then the line in its order.
    Waiting,
    /// Their consumers have them: by slot groups.
    InFlight,
}

/// Which events under a policy are asked for.
#[derive(Debug, Clone, Copy)]
pub struct EventsWanted {
    /// Where they stand.
    pub standing: Standing,
    /// When their runs are, or were, due.
    pub window: Window,
}

/// A place in such a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandingPlace {
    /// From a slot group on; of that one behind a slot, or behind an event of the pack of a number.
    Groups {
        /// The number of the group.
        from: u32,
        /// What of it was shown; `None`: nothing.
        behind: Option<(u32, u32)>,
    },
    /// In the line.
    Line {
        /// Behind the entry with this key; `None`: from the first on.
        after: Option<String>,
        /// Of the entry with the key what is behind the event of a number.
        within: Option<(u32, String)>,
    },
}

impl Default for StandingPlace {
    fn default() -> Self {
        Self::Groups { from: 0, behind: None }
    }
}

/// ```
/// use tidegate_engine::StandingPlace;
///
/// for text in ["g3", "g3 0 17", "l", "l5|001790000000|nightly.3.1790000000", "l5|a\n17 5|b"] {
///     assert_eq!(text.parse::<StandingPlace>().unwrap().to_string(), text);
/// }
/// assert!("".parse::<StandingPlace>().is_err());
/// ```
impl fmt::Display for StandingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Groups { from, behind: None } => write!(f, "g{from}"),
            Self::Groups { from, behind: Some((first, second)) } => write!(f, "g{from} {first} {second}"),
            Self::Line { after, within } => {
                write!(f, "l{}", after.as_deref().unwrap_or_default())?;
                match within {
                    Some((index, key)) => write!(f, "\n{index} {key}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl FromStr for StandingPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        if let Some(numbers) = text.strip_prefix('g') {
            let numbers: Result<Vec<u32>, _> = numbers.split(' ').map(str::parse).collect();
            return match numbers.map_err(|_| NoPlace)?.as_slice() {
                [from] => Ok(Self::Groups { from: *from, behind: None }),
                [from, first, second] => Ok(Self::Groups { from: *from, behind: Some((*first, *second)) }),
                _ => Err(NoPlace),
            };
        }
        let text = text.strip_prefix('l').ok_or(NoPlace)?;
        let (after, within) = match text.split_once('\n') {
            None => (text, None),
            Some((after, within)) => {
                let (index, key) = within.split_once(' ').ok_or(NoPlace)?;
                (after, Some((index.parse().map_err(|_| NoPlace)?, key.to_owned())))
            }
        };
        Ok(Self::Line { after: (!after.is_empty()).then(|| after.to_owned()), within })
    }
}

/// A page that is being filled.
struct Found {
    page: Page<EventRecord>,
    most: usize,
    window: Window,
    /// Behind the last event that it has.
    last: StandingPlace,
}

impl Found {
    /// Adds an event, behind which the list goes on at a place. `true`: there is room for no more.
    fn is_full_with(&mut self, event: EventRecord, behind: StandingPlace) -> bool {
        let is_wanted = self.window.contains(event.id.run().launch_at());
        if is_wanted && self.page.rows.len() >= self.most {
            self.page.next = Some(self.last.to_string());
            return true;
        }
        self.page.rows.extend(is_wanted.then_some(event));
        self.last = behind;
        false
    }
}

fn waiting(id: EventId) -> EventRecord {
    EventRecord { id, status: EventStatus::Waiting, attempts: None, at: None, reason: None, text: None }
}

impl Queries {
    /// A page of the events under a policy that wait, or are in flight. `None` when there is no such policy. A bounded number of rows is
    /// looked at: a page may have few events, or none, and a `next`.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn events_under<'a>(
        &'a self,
        client: &'a ClientId,
        policy: &'a PolicyId,
        EventsWanted { standing, window }: EventsWanted,
        page: PageOf<StandingPlace>,
    ) -> BoxFuture<'a, Result<Option<Page<EventRecord>>, EngineError>> {
        Box::pin(async move {
            let Some(policy) = self.store.policy(client, policy).await? else { return Ok(None) };
            let place = page.after.unwrap_or_default();
            let mut found = Found {
                page: Page::new(Vec::new(), None),
                most: usize::from(page.rows.get()),
                window,
                last: place.clone(),
            };
            let in_line = match place {
                StandingPlace::Groups { from, behind } => {
                    if self.in_groups(&policy, standing, (from, behind), &mut found).await? {
                        return Ok(Some(found.page));
                    }
                    (None, None)
                }
                StandingPlace::Line { after, within } => (after, within),
            };
            if standing == Standing::Waiting {
                self.in_line(&policy, in_line, &mut found).await?;
            }
            Ok(Some(found.page))
        })
    }

    /// Adds what slot groups have. `true`: the page is full.
    async fn in_groups(
        &self,
        policy: &Policy,
        standing: Standing,
        (mut from, mut behind): (u32, Option<(u32, u32)>),
        found: &mut Found,
    ) -> Result<bool, EngineError> {
        let end = policy.plan.groups();
        while from < end {
            let to = from.saturating_add(GROUPS_TOGETHER).min(end);
            let groups = self.throttle.groups_of_numbers(policy, from..to).await?;
            let groups: Vec<SlotGroup> = groups.into_iter().flatten().collect();
            let packs = self.packs_known_to(&groups).await?;
            for group in &groups {
                let shown = behind.take_if(|_| group.key.group == from);
                let events = match standing {
                    Standing::InFlight => held(group, &packs, shown),
                    Standing::Waiting => taken(group, &packs, shown),
                };
                for (event, behind) in events {
                    let place = StandingPlace::Groups { from: group.key.group, behind: Some(behind) };
                    if found.is_full_with(event, place) {
                        return Ok(true);
                    }
                }
            }
            behind = None;
            from = to;
            found.last = StandingPlace::Groups { from, behind: None };
            if from < end && deadline::is_over(&*self.clock) {
                found.page.next = Some(found.last.to_string());
                return Ok(true);
            }
        }
        found.last = StandingPlace::Line { after: None, within: None };
        Ok(false)
    }

    /// Adds what waits in the line.
    async fn in_line(
        &self,
        policy: &Policy,
        (mut after, mut within): (Option<String>, Option<(u32, String)>),
        found: &mut Found,
    ) -> Result<(), EngineError> {
        for _ in 0..LINE_PAGES {
            let missing = found.most.saturating_sub(found.page.rows.len()).saturating_add(1);
            let limit = i32::try_from(missing).unwrap_or(i32::MAX);
            let page = self.store.line_of(&policy.client, &policy.id, after.clone(), limit).await?;
            found.page.unreadable.extend(page.unreadable);
            for entry in page.rows {
                let shown = within.take_if(|(_, key)| *key == entry.line_key).map(|(index, _)| index);
                let before = after.replace(entry.line_key.clone());
                for (index, event) in self.waiting_of(policy, &entry, shown).await? {
                    let within = Some((index, entry.line_key.clone()));
                    let place = StandingPlace::Line { after: before.clone(), within };
                    if found.is_full_with(event, place) {
                        return Ok(());
                    }
                }
                found.last = StandingPlace::Line { after: after.clone(), within: None };
            }
            match page.next {
                None => return Ok(()),
                next => after = next,
            }
            if deadline::is_over(&*self.clock) {
                break;
            }
        }
        found.page.next = Some(StandingPlace::Line { after, within: None }.to_string());
        Ok(())
    }

    /// The events of an entry that no group has, behind the one of a number: as many as a page may have, and one more.
    async fn waiting_of(
        &self,
        policy: &Policy,
        entry: &LineEntry,
        shown: Option<u32>,
    ) -> Result<Vec<(u32, EventRecord)>, EngineError> {
        let from = shown.map_or(entry.cursor, |index| index.saturating_add(1).max(entry.cursor));
        let numbers = from..entry.count.min(from.saturating_add(EVENTS_OF_ENTRY));
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        match &entry.pack {
            PackId::Run(run) => {
                // Of a run that was stopped what waits is not delivered.
                let row = self.store.find_run(&policy.client, run).await?;
                if row.is_none_or(|row| row.stopped.is_some()) {
                    return Ok(Vec::new());
                }
                Ok(numbers.map(|index| (index, waiting(run.event(index)))).collect())
            }
            PackId::Singles(id) => {
                let pack = self.contents.pack(&PolicyRef::new(&policy.client, &policy.id), *id).await;
                let Some(pack) = readable(pack)? else { return Ok(Vec::new()) };
                let event = |index| Some((index, waiting(pack.member(index)?.run_id().event(0))));
                Ok(numbers.filter_map(event).collect())
            }
        }
    }
}

/// Events of an entry of the line that are named at once: more than a page has.
const EVENTS_OF_ENTRY: u32 = 256;

/// The events that hold the tokens of a group, behind a slot.
fn held(group: &SlotGroup, packs: &Packs, shown: Option<(u32, u32)>) -> Vec<(EventRecord, (u32, u32))> {
    let behind = |slot: u32| shown.is_none_or(|(shown, _)| slot > shown);
    let leases = group.leases.iter().filter(|(slot, _)| behind(**slot));
    let event = |(slot, lease): (&u32, &Lease)| {
        let event = EventRecord {
            id: packs.event(group, &lease.id)?,
            status: EventStatus::InFlight,
            attempts: Some(group.delivery_at(lease)),
            at: Some(lease.ends_at),
            reason: None,
            text: None,
        };
        Some((event, (*slot, 0)))
    };
    leases.filter_map(event).collect()
}

/// The events that a group took from the line and has not admitted, behind one of the pack of a number.
fn taken(group: &SlotGroup, packs: &Packs, shown: Option<(u32, u32)>) -> Vec<(EventRecord, (u32, u32))> {
    let Refill::Serving(range) = &group.refill else { return Vec::new() };
    // Of another pack nothing was shown.
    let shown = shown.filter(|(pack, _)| *pack == range.pack_number).map(|(_, index)| index);
    let from = shown.map_or(range.next, |index| index.saturating_add(1).max(range.next));
    let end = range.next.saturating_add(range.left);
    let event = |index: u32| {
        let event = waiting(packs.event_of(group.pack(range.pack_number)?, index)?);
        Some((event, (range.pack_number, index)))
    };
    (from..end).filter_map(event).collect()
}
