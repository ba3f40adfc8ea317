//! The jobs of a dry run: each has a rank, its place in the order of the ids, and a zone that it is shown in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chrono_tz::Tz;
use tidegate_domain::ids::JobId;

use super::row::JobRow;

/// Ids as they are met, each once.
#[derive(Default)]
pub(super) struct Enrolment {
    seen: HashMap<JobId, Enrolled>,
}

struct Enrolled {
    line: u64,
    zone: Tz,
    events: u32,
}

/// All jobs, by rank.
pub(super) struct Roster {
    ranks: HashMap<JobId, u32>,
    jobs: Vec<Listed>,
    zones: Vec<Tz>,
}

/// A job as far as its lines need it.
pub(super) struct Listed {
    pub(super) id: JobId,
    /// Where its zone lies among [`Roster::zones`].
    pub(super) zone: u16,
    /// Events of each of its launches.
    pub(super) events: u32,
}

impl Enrolment {
    /// Takes a job, or says on which line its id was before.
    pub(super) fn enrol(&mut self, job: &JobRow, line: u64) -> Result<(), u64> {
        match self.seen.entry(job.id.clone()) {
            Entry::Occupied(before) => Err(before.get().line),
            Entry::Vacant(place) => {
                place.insert(Enrolled { line, zone: job.zone, events: job.draft.terms.count.get() });
                Ok(())
            }
        }
    }

    /// Takes an id back: its job was refused after all.
    pub(super) fn strike(&mut self, id: &JobId) {
        self.seen.remove(id);
    }

    /// The jobs in the order of their ids.
    pub(super) fn finish(self) -> Roster {
        let mut enrolled: Vec<_> = self.seen.into_iter().collect();
        enrolled.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut zones, mut places) = (Vec::new(), HashMap::new());
        let mut jobs = Vec::with_capacity(enrolled.len());
        for (id, Enrolled { zone, events, .. }) in enrolled {
            let zone = *places.entry(zone).or_insert_with(|| {
                zones.push(zone);
                // The database has a few hundred zones.
                (zones.len() - 1) as u16
            });
            jobs.push(Listed { id, zone, events });
        }
        let ranks = (0..).zip(&jobs).map(|(rank, job)| (job.id.clone(), rank)).collect();
        Roster { ranks, jobs, zones }
    }
}

impl Roster {
    /// The place of a job in the order of ids.
    pub(super) fn rank(&self, id: &JobId) -> Option<u32> {
        self.ranks.get(id).copied()
    }

    /// The job of a rank.
    pub(super) fn job(&self, rank: u32) -> Option<&Listed> {
        self.jobs.get(rank as usize)
    }

    /// The zones of all jobs, each once.
    pub(super) fn zones(&self) -> &[Tz] {
        &self.zones
    }

    /// How many jobs there are.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{self, Row};
    use super::*;

    fn row(id: &str, zone: &str) -> JobRow {
        let line = format!(r#"{{"id":"{id}","expression":"@daily","zone":"{zone}"}}"#);
        match row::read(line.as_bytes(), 1, chrono::DateTime::UNIX_EPOCH) {
            Ok(Row::Job(job)) => *job,
            _ => panic!("{line} should be a job"),
        }
    }

    #[test]
    fn ranks_follow_the_ids_and_an_id_counts_once() {
        let mut enrolment = Enrolment::default();
        assert_eq!(enrolment.enrol(&row("b", "UTC"), 1), Ok(()));
        assert_eq!(enrolment.enrol(&row("a", "Europe/Berlin"), 2), Ok(()));
        assert_eq!(enrolment.enrol(&row("b", "UTC"), 3), Err(1));
        let c = row("c", "UTC");
        assert_eq!(enrolment.enrol(&c, 4), Ok(()));
        enrolment.strike(&c.id);
        let roster = enrolment.finish();
        assert_eq!((roster.len(), roster.rank(&c.id)), (2, None));
        let first = roster.job(0).unwrap();
        assert_eq!((first.id.as_str(), first.events, roster.rank(&first.id)), ("a", 1, Some(0)));
        assert_eq!(roster.zones()[usize::from(first.zone)], Tz::Europe__Berlin);
    }
}
