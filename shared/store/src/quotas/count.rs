//! Counting what a client has, where its row says that it may have no more: claimed by one call at a time, and told to the row.
//!
//! What was taken and is still being written when the count passes is not in it. Calls end within a minute, so it was taken in the minute
//! before the count was claimed or since: that is added to what was counted.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::Select;
use chrono::{DateTime, Utc};
use tidegate_calls::Call as _;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{
    COUNT_AGAIN_MOST_SECONDS, COUNT_AGAIN_MS_PER_ROW, COUNT_AGAIN_SECONDS, COUNT_CLAIM_SECONDS,
    MINUTE_SECONDS, WRITE_ROUNDS,
};
use tidegate_domain::quota::{Counted, Quotas, Taken};

use super::{Change, IN_MINUTE, ZONE, read};
use crate::item::{Key, text};
use crate::jobs::{self, JobRow};
use crate::rows::{Query, Updated};
use crate::tables::{PARTITION_KEY, SORT_KEY, Table};
use crate::{Result, Store, StoreError, calendars, policies};

/// Zones that are told to a row in one write, so that its expression is not too long.
const ZONES_PER_COUNT: usize = 80;

/// That a call counts what a client has of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountClaim {
    of: Counted,
    /// What names it in the row.
    claim_ms: i64,
    /// When it began, in milliseconds since the epoch.
    began_ms: i64,
    /// What was taken then.
    taken: Taken,
}

/// Rows that were counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// How many they are.
    pub number: u64,
    /// The zones of their cron triggers, where those were asked for.
    pub zones: BTreeSet<String>,
    /// Where to go on; `None`: these were the last.
    pub next: Option<String>,
}

fn ms(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000)
}

impl Store {
    /// Claims the count of what a client has of something, over what was `seen` of its row. `None`: somebody counts, or did a moment ago.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn claim_count(
        &self,
        client: &ClientId,
        of: Counted,
        mut seen: Taken,
        now: DateTime<Utc>,
    ) -> Result<Option<CountClaim>> {
        let began_ms = now.timestamp_millis();
        let claim_ms = began_ms.saturating_add(ms(COUNT_CLAIM_SECONDS));
        for _ in 0..WRITE_ROUNDS {
            if seen.counts.get(&of).is_some_and(|count| count.next_ms > began_ms) {
                return Ok(None);
            }
            let claim = claim(of, &seen, (began_ms, claim_ms), seen.minute_at(now));
            match self.update(claim.into_update(client)).await? {
                Updated::Done(row) => {
                    return Ok(Some(CountClaim { of, claim_ms, began_ms, taken: read(&row)? }));
                }
                Updated::Refused(row) => seen = row.as_ref().map(read).transpose()?.unwrap_or_default(),
            }
        }
        Ok(None)
    }

    /// Says that a client has nothing yet of what is counted, over what was `seen` of its row: for one that had its quotas from the
    /// beginning. Where it was counted since, nothing changes.
    ///
    /// # Errors
    /// As [`Self::claim_count`].
    pub async fn count_nothing(
        &self,
        client: &ClientId,
        of: Counted,
        quotas: &Quotas,
        mut seen: Taken,
        now: DateTime<Utc>,
    ) -> Result<()> {
        for _ in 0..WRITE_ROUNDS {
            if seen.is_counted(of, quotas) {
                return Ok(());
            }
            let nothing = nothing(of, &seen, quotas, (now.timestamp_millis(), seen.minute_at(now)));
            match self.update(nothing.into_update(client)).await? {
                Updated::Done(_) => return Ok(()),
                Updated::Refused(row) => seen = row.as_ref().map(read).transpose()?.unwrap_or_default(),
            }
        }
        Ok(())
    }

    /// A page of the rows that a client has of something, read consistently. For zones its jobs are read whole.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses the call or does not answer.
    pub async fn count_rows(&self, client: &ClientId, of: Counted, after: Option<String>) -> Result<Rows> {
        let (table, pk, part) = match of {
            Counted::Zones => return self.zones_of_jobs(client, after).await,
            // Tombstones have no trigger.
            Counted::Jobs => (Table::Jobs, client.to_string(), None),
            Counted::Policies => (Table::Policies, client.to_string(), Some(policies::POLICY)),
            Counted::Calendars => (Table::Clients, calendars::partition(client), None),
        };
        let mut call = self
            .db
            .query()
            .table_name(self.name(table))
            .select(Select::Count)
            .consistent_read(true)
            .expression_attribute_values(":pk", text(&*pk));
        let mut condition = format!("{PARTITION_KEY} = :pk");
        if let Some(part) = part {
            condition.push_str(&format!(" AND begins_with({SORT_KEY}, :part)"));
            call = call.expression_attribute_values(":part", text(part));
        }
        if of == Counted::Jobs {
            call = call
                .filter_expression("attribute_exists(#when)")
                .expression_attribute_names("#when", jobs::WHEN);
        }
        if let Some(after) = after {
            call = call.set_exclusive_start_key(Some(Key::new(pk, after).attributes()));
        }
        let out = call.key_condition_expression(condition).send_by(&self.way).await;
        let out = out.map_err(|e| StoreError::aws("Query", table, &e))?;
        let next = out.last_evaluated_key.as_ref().and_then(|key| key.get(SORT_KEY)?.as_s().ok()).cloned();
        Ok(Rows { number: u64::try_from(out.count).unwrap_or_default(), zones: BTreeSet::new(), next })
    }

    async fn zones_of_jobs(&self, client: &ClientId, after: Option<String>) -> Result<Rows> {
        let query = Query { consistent: true, after, ..Query::of(Table::Jobs, client.as_str()) };
        let page = self.query(query).await?;
        let number = page.rows.len() as u64;
        let page = page.read(Table::Jobs, jobs::read);
        let mut zones = BTreeSet::new();
        for row in page.rows {
            if let JobRow::Live(job) = row
                && let Some(zone) = job.trigger.cron_zone()
            {
                zones.insert(zone.name().to_owned());
            }
        }
        Ok(Rows { number, zones, next: page.next })
    }

    /// Tells the row what was counted. Where another call has claimed the count since, nothing changes.
    ///
    /// # Errors
    /// `StoreError::Aws` when DynamoDB refuses a call or does not answer, `StoreError::Corrupt` when the row cannot be read.
    pub async fn finish_count(
        &self,
        client: &ClientId,
        claim: &CountClaim,
        counted: &Rows,
        quotas: &Quotas,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let mut taken = claim.taken.clone();
        for _ in 0..WRITE_ROUNDS.saturating_mul(2) {
            let finish = finish(claim, counted, quotas, &taken, now);
            match self.update(finish.into_update(client)).await? {
                Updated::Done(row) => taken = read(&row)?,
                Updated::Refused(row) => taken = row.as_ref().map(read).transpose()?.unwrap_or_default(),
            }
            if taken.counts.get(&claim.of).is_none_or(|count| count.next_ms != claim.claim_ms) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Claims a count: `since` is what is taken from the minute before on.
fn claim(of: Counted, seen: &Taken, (now_ms, claim_ms): (i64, i64), minute: i64) -> Change {
    let (mut change, name) = (Change::default(), of.name());
    change.begin_row(seen, minute);
    change.set(format!("{name}_next = :claim"));
    change.value(":claim", claim_ms);
    let is_there = seen.counts.contains_key(&of);
    if is_there {
        change.when(format!("{name}_next <= :now"));
        change.value(":now", now_ms);
    } else {
        change.when(format!("attribute_not_exists({name}_next)"));
    }
    if of == Counted::Zones {
        if !is_there {
            let zero = change.zero();
            change.set(format!("{name} = {zero}"));
        }
        return change;
    }
    if let Some(in_minute) = seen.minute {
        // What was taken in which minute is as it was seen.
        change.when(format!("{IN_MINUTE} = :minute"));
        change.value(":minute", in_minute);
    }
    let since = match seen.minute.map_or(i64::MAX, |seen| minute.saturating_sub(seen)) {
        0 if is_there => format!("{name}_now + {name}_before"),
        1 if is_there => format!("{name}_now"),
        _ => change.zero().to_owned(),
    };
    change.set(format!("{name}_since = {since}"));
    if !is_there {
        let zero = change.zero();
        change.set(format!("{name} = {zero}, {name}_now = {zero}, {name}_before = {zero}"));
    }
    change
}

/// Says of something that a client has none of it.
fn nothing(of: Counted, seen: &Taken, quotas: &Quotas, (now_ms, minute): (i64, i64)) -> Change {
    let (mut change, name) = (Change::default(), of.name());
    change.begin_row(seen, minute);
    let zero = change.zero();
    let since_ms = quotas.counted_since.map_or(0, |since| since.timestamp_millis());
    change.set(format!("{name} = {zero}, {name}_next = :now, {name}_counted = :counted"));
    if of != Counted::Zones {
        change.set(format!("{name}_now = {zero}, {name}_before = {zero}, {name}_since = {zero}"));
    }
    change.value(":now", now_ms);
    // The clock that the client was registered by may be ahead of this one.
    change.value(":counted", now_ms.max(since_ms));
    change.when(format!("(attribute_not_exists({name}_counted) OR {name}_counted < :counted_since)"));
    change.value(":counted_since", since_ms);
    change
}

/// Tells what was counted. Zones are told some at a time: the count is over with the last of them.
fn finish(claim: &CountClaim, counted: &Rows, quotas: &Quotas, taken: &Taken, now: DateTime<Utc>) -> Change {
    let (mut change, name) = (Change::default(), claim.of.name());
    change.when(format!("{name}_next = :claim"));
    change.value(":claim", claim.claim_ms);
    if claim.of == Counted::Zones && tell_zones(&mut change, claim, counted, taken) {
        return change;
    }
    let for_rows = i64::try_from(counted.number).unwrap_or(i64::MAX).saturating_mul(COUNT_AGAIN_MS_PER_ROW);
    let wait_ms = ms(COUNT_AGAIN_SECONDS).saturating_add(for_rows).min(ms(COUNT_AGAIN_MOST_SECONDS));
    change.set(format!("{name}_next = :next, {name}_counted = :counted"));
    change.value(":next", now.timestamp_millis().saturating_add(wait_ms));
    change.value(":counted", claim.began_ms);
    if claim.of == Counted::Zones {
        return change;
    }
    let count = taken.counts.get(&claim.of).copied().unwrap_or_default();
    // What is taken from now on is added to both alike. What was counted before may be too little where it is to be counted anew.
    let is_trusted = taken.is_counted(claim.of, quotas) && !taken.is_due(claim.of, quotas, claim.began_ms);
    if !is_trusted || counted.number.saturating_add(count.since) < count.at_most {
        change.set(format!("{name} = {name}_since + :rows"));
        change.value(":rows", counted.number);
    }
    change
}

/// Takes zones off that no job has and that nobody took of late, and adds those that jobs have; whether there are more.
fn tell_zones(change: &mut Change, claim: &CountClaim, counted: &Rows, taken: &Taken) -> bool {
    let claimed_in = claim.began_ms.div_euclid(ms(MINUTE_SECONDS));
    let is_gone =
        |zone: &str, minute: i64| !counted.zones.contains(zone) && minute < claimed_in.saturating_sub(1);
    let gone = taken.zones.iter().filter(|(zone, minute)| is_gone(zone, **minute));
    let gone = gone.map(|(zone, minute)| (zone, Some(*minute)));
    let found = counted.zones.iter().filter(|zone| !taken.zones.contains_key(*zone));
    let mut all = gone.chain(found.map(|zone| (zone, None)));
    let mut more = 0_i128;
    for (place, (zone, taken_in)) in all.by_ref().take(ZONES_PER_COUNT).enumerate() {
        change.name(format!("#zone{place}"), format!("{ZONE}{zone}"));
        match taken_in {
            Some(minute) => {
                change.remove.push(format!("#zone{place}"));
                change.when(format!("#zone{place} = :zone{place}"));
                change.value(format!(":zone{place}"), minute);
                more = more.saturating_sub(1);
            }
            None => {
                let zero = change.zero();
                change.set(format!("#zone{place} = {zero}"));
                more = more.saturating_add(1);
            }
        }
    }
    // Who takes one that is not there adds to the number.
    change.add("zones :zones");
    change.value(":zones", more);
    change.when("zones = :zones_seen");
    change.value(":zones_seen", taken.counts.get(&Counted::Zones).map_or(0, |count| count.at_most));
    all.next().is_some()
}
