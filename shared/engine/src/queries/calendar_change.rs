//! What a change of a calendar would do to the jobs that name it, before it is made.
//!
//! Only what lies near a day or a stretch that the change touches is compared, so that a launch of every minute is looked at around
//! Christmas and not on each day until then.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, Utc};
use futures::future::BoxFuture;
use tidegate_domain::calendar::{Day, Exclusions, OpenDays};
use tidegate_domain::ids::{CalendarId, ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::time::{Firing, OnClosedDay, Window, days, seconds, shifted};
use tidegate_store::launch::Child;
use tidegate_store::{Page, PageOf};

use super::Queries;
use crate::scan::evaluate::evaluate;
use crate::scan::{Decision, plan_at_once};
use crate::{EngineError, deadline};

/// How far ahead launches are compared, in days.
const AHEAD_DAYS: i64 = 400;
/// Launches of one job that are compared.
const COMPARED: usize = 5_000;
/// How far the days of a zone may lie from those of UTC, in seconds.
const ZONE_SECONDS: i64 = 15 * 3_600;
/// How far the end of a day of any zone may lie from the midnight in UTC that it begins with, in seconds.
const DAY_END_SECONDS: i64 = 86_400 + ZONE_SECONDS;

/// Which launches a job would gain and lose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchChange {
    /// The job.
    pub job: JobId,
    /// Launches that are not made as things stand, and would be: what is moved elsewhere is lost where it is, and gained there.
    pub gained: Vec<DateTime<Utc>>,
    /// Launches that are made as things stand, and would not be.
    pub lost: Vec<DateTime<Utc>>,
    /// Where it has too many launches to compare them all: the last one that was compared.
    pub compared_to: Option<DateTime<Utc>>,
}

impl Queries {
    /// What the jobs that name a calendar would gain and lose by a change of it, within 400 days: those of a page of the client's jobs.
    /// One-time jobs with a generated id are not looked at. Nothing is changed.
    ///
    /// # Errors
    /// When the store does not answer, or a calendar that a job names cannot be read.
    pub fn calendar_change<'a>(
        &'a self,
        client: &'a ClientId,
        id: &'a CalendarId,
        change: Exclusions,
        page: impl Into<PageOf>,
    ) -> BoxFuture<'a, Result<Page<LaunchChange>, EngineError>> {
        let page = page.into();
        Box::pin(async move {
            let now = self.clock.now();
            let (former, change) = (self.contents.listed(client, id).await?, Arc::new(change));
            let touched = touched(former.as_deref(), &change, now);
            let mut known = BTreeMap::from([(id.clone(), former)]);
            let Page { rows, mut next, mut unreadable } = self.store.jobs(client, "", page).await?;
            let mut changes = Vec::new();
            let mut last: Option<String> = None;
            for job in rows {
                if last.is_some() && deadline::is_over(&*self.clock) {
                    unreadable.retain(|row| Some(&row.sort_key) < last.as_ref());
                    next = last;
                    break;
                }
                last = Some(job.id.to_string());
                if !job.rules.all_calendars().any(|named| named == id) {
                    continue;
                }
                for named in job.rules.all_calendars() {
                    if !known.contains_key(named) {
                        known.insert(named.clone(), self.contents.listed(client, named).await?);
                    }
                }
                let listed = |named: &CalendarId| known.get(named).cloned().flatten();
                let changed =
                    |named: &CalendarId| if named == id { Some(Arc::clone(&change)) } else { listed(named) };
                let open = (OpenDays::of(&job.rules, listed), OpenDays::of(&job.rules, changed));
                let stretches = stretches(&touched, job.rules.on_closed_day, now);
                changes.push(compare(&job, &open, &stretches, now));
            }
            Ok(Page { rows: changes, next, unreadable })
        })
    }
}

/// From when to when a day or a stretch lasts.
type FromTo = (DateTime<Utc>, DateTime<Utc>);

/// The days and stretches that a change of a calendar touches, whichever zone they are in: as far ahead, and as far back, as
/// launches may be moved from.
fn touched(former: Option<&Exclusions>, change: &Exclusions, now: DateTime<Utc>) -> Vec<FromTo> {
    let nothing = Exclusions::default();
    let former = former.unwrap_or(&nothing);
    let [later, earlier] = [OnClosedDay::NextOpenDay.reach().1, OnClosedDay::PreviousOpenDay.reach().0];
    let looked_at = (shifted(now, -later), shifted(shifted(now, days(AHEAD_DAYS)), earlier));
    let (was, is) = (all_days(former, looked_at), all_days(change, looked_at));
    // The days of another zone are other days, though they are called the same.
    let dates: BTreeSet<NaiveDate> = match former.zone == change.zone {
        true => was.symmetric_difference(&is).map(|(date, _)| *date).collect(),
        false => was.union(&is).map(|(date, _)| *date).collect(),
    };
    let of_day = |date: NaiveDate| {
        let midnight = date.and_time(NaiveTime::MIN).and_utc();
        (shifted(midnight, seconds(-ZONE_SECONDS)), shifted(midnight, seconds(DAY_END_SECONDS)))
    };
    let ends = |list: &Exclusions| -> BTreeSet<FromTo> {
        list.intervals.iter().map(|window| (window.from(), window.to())).collect()
    };
    let (was, is) = (ends(former), ends(change));
    let mut all: Vec<_> =
        dates.into_iter().map(of_day).chain(was.symmetric_difference(&is).copied()).collect();
    all.sort_unstable();
    all
}

/// The stretches to come in which what is touched may matter to a job that moves launches so, in order, without overlaps.
fn stretches(touched: &[FromTo], rule: OnClosedDay, now: DateTime<Utc>) -> Vec<Window> {
    let (end, (earlier, later)) = (shifted(now, days(AHEAD_DAYS)), rule.reach());
    let within = touched
        .iter()
        .map(|(from, to)| (shifted(*from, -earlier).max(now), shifted(*to, later).min(end)))
        .filter(|(from, to)| from < to);
    let mut merged: Vec<FromTo> = Vec::new();
    for (from, to) in within {
        match merged.last_mut() {
            Some((_, last)) if from <= *last => *last = to.max(*last),
            _ => merged.push((from, to)),
        }
    }
    merged.into_iter().filter_map(|(from, to)| Window::new(from, to).ok()).collect()
}

/// The days of a calendar that may lie between two instants in some zone, each with the time from which on the calendar has it.
fn all_days(
    list: &Exclusions,
    (from, to): (DateTime<Utc>, DateTime<Utc>),
) -> BTreeSet<(NaiveDate, NaiveTime)> {
    let (first, last) = (shifted(from, days(-2)).date_naive(), shifted(to, days(2)).date_naive());
    let dated = |day: Day| (first.year()..=last.year()).filter_map(move |year| day.in_year(year));
    let weekly = first.iter_days().take_while(|day| *day <= last);
    let weekly = weekly.filter(|day| list.weekdays.contains(day.weekday()));
    let yearly = list.yearly.iter().flat_map(|(month, day)| dated(Day::Yearly(*month, *day)));
    let whole = list.dates.iter().copied().chain(yearly).chain(weekly);
    let early = list.early_close.iter().flat_map(|close| dated(close.day).map(|date| (date, close.from)));
    whole.map(|date| (date, NaiveTime::MIN)).chain(early).collect()
}

fn compare(
    job: &Job,
    (was, is): &(OpenDays, OpenDays),
    stretches: &[Window],
    now: DateTime<Utc>,
) -> LaunchChange {
    let (child, plan) = (Child::of(job), plan_at_once(now, false));
    let mut change =
        LaunchChange { job: job.id.clone(), gained: Vec::new(), lost: Vec::new(), compared_to: None };
    let mut left = COMPARED;
    for day in stretches.iter().flat_map(days_of) {
        let mut firings = [was, is].map(|open| open.firings(&child.cadence, day));
        // Both up to the same instant: a launch that is moved is where the other has none.
        let last = left.checked_sub(1);
        let last = firings.iter().filter_map(|found| found.get(last?)).map(|firing| firing.launch_at).min();
        if let Some(last) = last {
            firings.iter_mut().for_each(|found| found.retain(|firing| firing.launch_at <= last));
        }
        left = left.saturating_sub(firings.iter().map(Vec::len).max().unwrap_or_default());
        let made = |open: &OpenDays, firings: &[Firing]| -> BTreeSet<DateTime<Utc>> {
            let mut decisions: Vec<Decision> = Vec::with_capacity(firings.len());
            evaluate(&child, firings, open, &plan, &mut decisions);
            let made = decisions.iter().filter(|decision| decision.skip_reason.is_none());
            made.map(|decision| decision.launch_at).collect()
        };
        let [before, after] = &firings;
        let (before, after) = (made(was, before), made(is, after));
        change.gained.extend(after.difference(&before));
        change.lost.extend(before.difference(&after));
        if last.is_some() {
            change.compared_to = last;
            break;
        }
    }
    change
}

/// A stretch in pieces of a day at the most: so much of a job that launches every second is computed at once.
fn days_of(stretch: &Window) -> impl Iterator<Item = Window> + use<> {
    let end = stretch.to();
    let piece = move |from: DateTime<Utc>| {
        let to = end.min(shifted(from, days(1)));
        Window::new(from, to).ok().filter(|_| from < to)
    };
    iter::successors(piece(stretch.from()), move |day| piece(day.to()))
}
