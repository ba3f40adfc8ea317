//! Taking of quotas: all that some writes of a client take, in one conditional update of its row.

use chrono::{DateTime, Utc};
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{MINUTES_PER_TAKE, WRITE_ROUNDS};
use tidegate_domain::quota::{Ask, Counted, Portion, Quota, Quotas, Taken, fit};

use super::{BACK_IN, CREATES, Change, IN_MINUTE, WAITING, ZONE, read};
use crate::rows::Updated;
use crate::{Result, Store};

impl Store {
    /// Takes what some writes ask for of the quotas of their client, the first of them that fit: for each the quota that refuses it, or
    /// `None`; and what was taken by then. One write for most calls, two for the first of a minute, for one that is not granted all that
    /// it wants and for one that takes a zone that was not there. Where the quotas bound none of them, nothing is written.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, and then all that was asked for may be taken;
    /// `StoreError::Corrupt` when the row cannot be read.
    pub async fn take_of_quotas(
        &self,
        client: &ClientId,
        quotas: &Quotas,
        asks: &[&Ask],
        now: DateTime<Utc>,
    ) -> Result<(Vec<Option<Quota>>, Taken)> {
        let mut seen: Option<Taken> = None;
        let mut refused = fit(asks, quotas, None, now);
        for _ in 0..WRITE_ROUNDS {
            let granted = asks.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
            let granted = granted.map(|(ask, _)| *ask);
            let minute = seen.as_ref().unwrap_or(&Taken::default()).minute_at(now);
            let portion = Portion::of(granted, quotas, minute);
            if portion == Portion::default() {
                break;
            }
            let change = change(&portion, quotas, seen.as_ref(), minute);
            match self.update(change.into_update(client)).await? {
                Updated::Done(row) => return Ok((refused, read(&row)?)),
                Updated::Refused(row) => {
                    let row = row.as_ref().map(read).transpose()?.unwrap_or_default();
                    refused = fit(asks, quotas, Some(&row), now);
                    seen = Some(row);
                }
            }
        }
        // What still fits was overtaken again and again.
        let bounding = |ask: &Ask| {
            Quota::ALL.into_iter().find(|quota| {
                let alone = Portion::of([ask], &only(quotas, *quota), 0);
                alone != Portion::default()
            })
        };
        let refused =
            asks.iter().zip(refused).map(|(ask, refused)| refused.or_else(|| bounding(ask))).collect();
        let taken = match seen {
            Some(taken) => taken,
            None => self.taken_of_quotas(client).await?,
        };
        Ok((refused, taken))
    }
}

/// One of the quotas alone.
fn only(quotas: &Quotas, quota: Quota) -> Quotas {
    match quota {
        Quota::CreatesPerMinute => {
            Quotas { creates_per_minute: quotas.creates_per_minute, ..Quotas::default() }
        }
        Quota::OneTimeJobs => Quotas { one_time_jobs: quotas.one_time_jobs, ..Quotas::default() },
        Quota::Of(Counted::Jobs) => Quotas { jobs: quotas.jobs, ..Quotas::default() },
        Quota::Of(Counted::Policies) => Quotas { policies: quotas.policies, ..Quotas::default() },
        Quota::Of(Counted::Calendars) => Quotas { calendars: quotas.calendars, ..Quotas::default() },
        Quota::Of(Counted::Zones) => Quotas { zones: quotas.zones, ..Quotas::default() },
    }
}

/// Takes a portion in a minute. Without `seen` nothing is known of the row, and it must count in that minute already.
fn change(portion: &Portion, quotas: &Quotas, seen: Option<&Taken>, minute: i64) -> Change {
    let mut change = Change::default();
    let begins = seen.filter(|seen| seen.minute != Some(minute));
    change.value(":minute", minute);
    match begins {
        None => change.when("in_minute = :minute"),
        Some(seen) => begin_minute(&mut change, seen, minute, portion),
    }
    if portion.creates > 0 {
        change.value(":creates", portion.creates);
        if begins.is_none() {
            let room = room(quotas, Quota::CreatesPerMinute, portion.creates.into());
            change.add("creates :creates");
            change.when("creates <= :creates_room");
            change.value(":creates_room", room);
        }
    }
    for (of, number) in &portion.added {
        let name = of.name();
        change.add(format!("{name} :{name}, {name}_since :{name}"));
        change.when(format!("{name} <= :{name}_room"));
        change.value(format!(":{name}"), *number);
        change.value(format!(":{name}_room"), room(quotas, Quota::Of(*of), (*number).into()));
        must_be_counted(&mut change, quotas, *of);
        if begins.is_none() {
            change.add(format!("{name}_now :{name}"));
        }
    }
    take_launches(&mut change, portion, quotas, begins, minute);
    take_zones(&mut change, portion, quotas, seen);
    change
}

/// What a row may say there is before so many more are taken.
fn room(quotas: &Quotas, quota: Quota, more: u64) -> i128 {
    i128::from(quotas.most(quota).unwrap_or(u32::MAX)).saturating_sub(more.into())
}

/// What was counted before the quota was there is not taken of.
fn must_be_counted(change: &mut Change, quotas: &Quotas, of: Counted) {
    let since_ms = quotas.counted_since.map_or(0, |since| since.timestamp_millis());
    change.when(format!("{}_counted >= :counted_since", of.name()));
    change.value(":counted_since", since_ms);
}

/// A minute begins in the row: what was taken in the minute before is kept apart for one more.
fn begin_minute(change: &mut Change, seen: &Taken, minute: i64, portion: &Portion) {
    change.set(format!("{IN_MINUTE} = :minute"));
    match seen.minute {
        None => change.when(format!("attribute_not_exists({IN_MINUTE})")),
        Some(before) => {
            change.when(format!("{IN_MINUTE} = :minute_before"));
            change.value(":minute_before", before);
        }
    }
    let creates = if portion.creates > 0 { ":creates" } else { change.zero() };
    change.set(format!("{CREATES} = {creates}"));
    let is_next = seen.minute == Some(minute.saturating_sub(1));
    for of in seen.counts.keys().filter(|of| **of != Counted::Zones) {
        let name = of.name();
        let before = if is_next { format!("{name}_now") } else { change.zero().to_owned() };
        let is_taken = portion.added.contains_key(of);
        let now = if is_taken { format!(":{name}") } else { change.zero().to_owned() };
        change.set(format!("{name}_before = {before}, {name}_now = {now}"));
    }
}

/// Takes one-time jobs until they are launched. Where a minute begins, those are given back that were, unless one more of them is taken
/// meanwhile, by a clock that is behind.
fn take_launches(
    change: &mut Change,
    portion: &Portion,
    quotas: &Quotas,
    begins: Option<&Taken>,
    minute: i64,
) {
    let passed: Vec<(i64, u64)> =
        begins.into_iter().flat_map(|seen| seen.passed_by(minute)).take(MINUTES_PER_TAKE).collect();
    let back = passed.iter().fold(0_i128, |sum, (_, number)| sum.saturating_add((*number).into()));
    let taken: u64 = portion.launches.values().map(|number| u64::from(*number)).sum();
    if taken == 0 && passed.is_empty() {
        return;
    }
    change.add(format!("{WAITING} :waiting"));
    change.value(":waiting", i128::from(taken).saturating_sub(back));
    if taken > 0 {
        change.when("(attribute_not_exists(waiting) OR waiting <= :waiting_room)");
        change.value(":waiting_room", room(quotas, Quota::OneTimeJobs, taken).saturating_add(back));
    }
    for (place, (of, number)) in passed.into_iter().enumerate() {
        change.remove.push(format!("#passed{place}"));
        change.when(format!("#passed{place} = :passed{place}"));
        change.name(format!("#passed{place}"), format!("{BACK_IN}{of}"));
        change.value(format!(":passed{place}"), number);
    }
    for (place, (of, number)) in portion.launches.iter().enumerate() {
        change.add(format!("#back{place} :back{place}"));
        change.name(format!("#back{place}"), format!("{BACK_IN}{of}"));
        change.value(format!(":back{place}"), *number);
    }
}

/// Takes zones: of each that is there, that it was taken now; of each that is not, one more.
fn take_zones(change: &mut Change, portion: &Portion, quotas: &Quotas, seen: Option<&Taken>) {
    if portion.zones.is_empty() {
        return;
    }
    must_be_counted(change, quotas, Counted::Zones);
    let mut new = 0_u32;
    for (place, zone) in portion.zones.iter().enumerate() {
        change.set(format!("#zone{place} = :minute"));
        change.name(format!("#zone{place}"), format!("{ZONE}{zone}"));
        if seen.is_none_or(|seen| seen.zones.contains_key(zone)) {
            change.when(format!("attribute_exists(#zone{place})"));
        } else {
            change.when(format!("attribute_not_exists(#zone{place})"));
            new = new.saturating_add(1);
        }
    }
    if new > 0 {
        change.add("zones :zones");
        change.when("zones <= :zones_room");
        change.value(":zones", new);
        change.value(":zones_room", room(quotas, Quota::Of(Counted::Zones), new.into()));
    }
}
