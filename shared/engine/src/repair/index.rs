//! Jobs, against their rows in the time index. The job counts: it is what its client sees.

use std::collections::{BTreeMap, BTreeSet};

use chrono_tz::Tz;
use tidegate_domain::ids::{CalendarId, ClientId, JobId};
use tidegate_domain::job::Job;
use tidegate_domain::limits::AT_GRACE_SECONDS;
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::time::{LaunchExpression, Window, seconds, shifted, whole_second};
use tidegate_store::launch::{Child, OutboxEntry};
use tidegate_store::one_times::{self, TenMinutes};
use tidegate_store::repair::{IndexKind, IndexedRow};
use tidegate_store::watches::Watch;

use super::RepairError;
use super::known::Known;
use super::report::FindingKind;
use super::session::Session;

/// Jobs whose rows are looked up together.
const JOBS_AT_ONCE: usize = 25;

/// What is seen on the way through all jobs, to be held against other tables once.
#[derive(Default)]
struct Seen {
    clients: BTreeSet<ClientId>,
    policies: BTreeSet<PolicyRef>,
    calendars: BTreeSet<(ClientId, CalendarId)>,
    /// How many shards there must be of a LaunchExpression in a zone.
    shards: BTreeMap<(String, String), (Tz, LaunchExpression, u32)>,
    /// Jobs of which only rows in the index are there.
    unknown: BTreeSet<(ClientId, JobId)>,
}

impl Seen {
    fn child(&mut self, zone: Tz, expression: LaunchExpression, shard: u32) {
        let name = (zone.name().to_owned(), expression.to_string());
        let known = self.shards.entry(name).or_insert((zone, expression, 0));
        known.2 = known.2.max(shard.saturating_add(1));
    }

    fn job(&mut self, job: &Job) {
        self.clients.insert(job.client.clone());
        let policy = job.terms.policy.as_ref().map(|policy| PolicyRef::new(&job.client, policy));
        self.policies.extend(policy);
        let calendars = job.rules.all_calendars().map(|calendar| (job.client.clone(), calendar.clone()));
        self.calendars.extend(calendars);
        for place in &job.children {
            self.child(job.trigger.zone(), place.key.launch_expression(), place.shard);
        }
    }
}

impl Session<'_> {
    /// Looks at every job and every row of the time index.
    pub(super) async fn look_at_jobs(&self, known: &Known) -> Result<(), RepairError> {
        let (mut seen, mut after) = (Seen::default(), None);
        loop {
            let page = self.store.all_of_jobs(after).await?;
            let (jobs, next) = self.readable(page);
            for jobs in jobs.chunks(JOBS_AT_ONCE) {
                self.look_at_some_jobs(jobs, &mut seen).await?;
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        let mut after = None;
        loop {
            let page = self.store.all_of_index(after).await?;
            let (rows, next) = self.readable(page);
            self.look_at_index(rows, &mut seen).await?;
            after = next;
            if after.is_none() {
                break;
            }
        }
        self.raise_shape(&seen).await?;
        self.look_at_names(known, &seen).await
    }

    async fn look_at_some_jobs(&self, jobs: &[Job], seen: &mut Seen) -> Result<(), RepairError> {
        let gaps = self.store.index_gaps(jobs, self.back_to).await?;
        for (job, gaps) in jobs.iter().zip(&gaps) {
            seen.job(job);
            if !gaps.is_empty() {
                let detail = format!("{} rows are written anew", gaps.len());
                self.found(FindingKind::JobIndexed, &job.client, &job.id, detail);
            }
        }
        self.look_at_each(jobs.iter().map(|job| self.owe_first_launches(job))).await?;
        self.watch(jobs).await?;
        let store = self.store;
        let gaps = jobs.iter().zip(&gaps).filter(|(_, gaps)| !gaps.is_empty());
        self.write_all(gaps.map(|(job, gaps)| store.fill_index(job, gaps))).await
    }

    /// Watches, from where launches are emitted again, the jobs that expect theirs to be over in time. Where one is watched already, the
    /// two become one.
    async fn watch(&self, jobs: &[Job]) -> Result<(), RepairError> {
        let store = self.store;
        let from = |job: &Job| Watch::from(job, self.back_to.max(whole_second(job.changed_at)));
        let watches: Vec<Watch> = jobs.iter().filter_map(from).collect();
        if self.apply && !watches.is_empty() {
            store.add_watches().await?;
        }
        self.write_all(watches.iter().map(|watch| store.put_watch(watch))).await
    }

    /// The launches of a job up to its `emit_from` were the master's, and no tick comes back to them.
    async fn owe_first_launches(&self, job: &Job) -> Result<(), RepairError> {
        if job.emit_from <= self.back_to {
            return Ok(());
        }
        let from = match job.revision {
            1 => shifted(job.changed_at, -seconds(AT_GRACE_SECONDS)),
            // What was due up to a change was the revision's before.
            _ => shifted(job.changed_at, seconds(1)),
        };
        if job.revision > 1 && job.changed_at >= self.back_to {
            let detail = format!("revision {} was changed at {}", job.revision, job.changed_at);
            self.found(FindingKind::JobChanged, &job.client, &job.id, detail);
        }
        let from = chrono::DateTime::from_timestamp(from.timestamp(), 0).unwrap_or(from).max(self.back_to);
        let Ok(window) = Window::new(from, job.emit_from) else { return Ok(()) };
        let child = Child::of(job);
        let is_due =
            child.candidates().firings(window).iter().any(|firing| job.rules.is_within(firing.launch_at));
        if !is_due || self.store.outbox_of(&job.client, &job.id).await?.is_some() {
            return Ok(());
        }
        let detail = format!("from {} up to {}", window.from(), window.to());
        self.found(FindingKind::FirstLaunchesOwed, &job.client, &job.id, detail);
        if self.apply {
            let outbox = OutboxEntry { child, window, written_at: job.changed_at };
            self.store.owe_first_launches(&outbox).await?;
        }
        Ok(())
    }

    async fn look_at_index(&self, rows: Vec<IndexedRow>, seen: &mut Seen) -> Result<(), RepairError> {
        // A one-time job with a generated id is the row.
        let (alone, of_jobs): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.job.one_time_shard().is_some());
        let alone: Vec<_> = alone.into_iter().filter(|row| row.kind == IndexKind::Minute).collect();
        seen.clients.extend(alone.iter().map(|row| row.client.clone()));
        self.mark_one_times(&alone).await?;
        let owing = alone.iter().filter(|row| row.emit_from.is_some_and(|from| from > self.back_to));
        let jobs = self.look_at_each(owing.map(|row| self.look_at_one_time(row))).await?;
        jobs.iter().flatten().for_each(|job| seen.job(job));
        let names: BTreeSet<(ClientId, JobId)> =
            of_jobs.iter().map(|row| (row.client.clone(), row.job.clone())).collect();
        let jobs = self.store.jobs_named(&names.into_iter().collect::<Vec<_>>()).await?;
        let mut drops = Vec::new();
        for row in &of_jobs {
            if let IndexKind::Child(zone, expression, shard) = &row.kind {
                seen.child(*zone, *expression, *shard);
            }
            let name = (row.client.clone(), row.job.clone());
            match jobs.get(&name) {
                _ if row.kind == IndexKind::Other => continue,
                // Where it is of another revision it was written anew, but for the outbox.
                Some(job) if self.store.is_place_of(job, &row.place) => {
                    if row.kind != IndexKind::Outbox || row.revision == job.revision {
                        continue;
                    }
                }
                Some(_) => {}
                None => drop(seen.unknown.insert(name)),
            }
            let place = format!("{} / {}", row.place.partition, row.place.sort_key);
            self.found(FindingKind::IndexRowRemoved, &row.client, &row.job, place);
            drops.push(row);
        }
        let store = self.store;
        self.write_all(drops.into_iter().map(|row| store.drop_index_row(row))).await
    }

    /// Writes anew the marks by which lists find one-time jobs, some of which the tables may have from before.
    async fn mark_one_times(&self, rows: &[IndexedRow]) -> Result<(), RepairError> {
        let mut marks: BTreeMap<(&ClientId, TenMinutes), BTreeSet<u32>> = BTreeMap::new();
        for row in rows {
            if let Some((of, shard)) = one_times::mark_of(&row.job) {
                marks.entry((&row.client, of)).or_default().insert(shard);
            }
        }
        let (store, now) = (self.store, self.now);
        self.write_all(
            marks.iter().map(|((client, of), shards)| store.mark_one_times(client, *of, shards, now)),
        )
        .await
    }

    /// The job that an index row is, when it is there; what it owes is in the outbox then.
    async fn look_at_one_time(&self, row: &IndexedRow) -> Result<Option<Job>, RepairError> {
        let job = self.store.one_time(&row.client, &row.job).await?;
        if let Some(job) = &job {
            self.owe_first_launches(job).await?;
        }
        Ok(job)
    }

    /// What scans must know of the index before they find its rows.
    async fn raise_shape(&self, seen: &Seen) -> Result<(), RepairError> {
        let shape = self.store.index_shape().await.map_err(crate::EngineError::from)?;
        for (zone, expression, shards) in seen.shards.values() {
            let has_zone = shape.zones.iter().any(|(known, _)| known == zone);
            let has_shards = shape.shards_of(*zone, expression) >= *shards;
            if has_zone && has_shards {
                continue;
            }
            let detail = format!("{shards} shards");
            self.found(FindingKind::IndexShapeRaised, "", format!("{zone}|{expression}"), detail);
            if self.apply {
                self.store.add_zone(*zone, self.now).await?;
                if !has_shards {
                    self.store.raise_shards(*zone, expression, *shards).await?;
                }
            }
        }
        Ok(())
    }

    /// What jobs name and nobody knows.
    async fn look_at_names(&self, known: &Known, seen: &Seen) -> Result<(), RepairError> {
        for (client, job) in &seen.unknown {
            self.found(FindingKind::JobUnknown, client, job, "only rows of the time index were there");
        }
        let (store, now) = (self.store, self.now);
        self.write_all(seen.clients.iter().map(|client| store.mark_dirty(client, now))).await?;
        let look = async |client: &ClientId| Ok((client.clone(), self.store.client(client).await?.is_none()));
        for (client, is_unknown) in self.look_at_each(seen.clients.iter().map(look)).await? {
            if is_unknown {
                self.found(FindingKind::ClientUnknown, &client, &client, "it has jobs and is not registered");
            }
        }
        for policy in seen.policies.iter().filter(|policy| !known.has_policy(policy)) {
            self.found(
                FindingKind::PolicyUnknown,
                &policy.client,
                &policy.policy,
                "jobs are throttled by it",
            );
        }
        let look = async |named: &(ClientId, CalendarId)| {
            let (client, calendar) = named;
            Ok((client.clone(), calendar.clone(), self.store.calendar(client, calendar).await?.is_none()))
        };
        for (client, calendar, is_unknown) in self.look_at_each(seen.calendars.iter().map(look)).await? {
            if is_unknown {
                self.found(FindingKind::CalendarUnknown, &client, &calendar, "jobs name it");
            }
        }
        Ok(())
    }
}
