//! The jobs of a dry run: each has a rank, its place in the order of the ids, and a zone that it is shown in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chrono_tz::Tz;
use tidegate_domain::ids::{JobId, PolicyId};
use tidegate_domain::job::{History, Terms, Trigger};
use tidegate_domain::limits::INLINE_PAYLOAD_BYTES;
use tidegate_domain::pack::SinglesKind;
use tidegate_domain::target::Target;
use tidegate_store::doc::TermsDoc;

use super::row::JobRow;

/// Ids as they are met, each once.
#[derive(Default)]
pub(crate) struct Enrolment {
    seen: HashMap<JobId, Enrolled>,
}

struct Enrolled {
    line: u64,
    zone: Tz,
    events: u32,
    facts: Facts,
}

/// All jobs, by rank.
pub(crate) struct Roster {
    ranks: HashMap<JobId, u32>,
    jobs: Vec<Listed>,
    zones: Vec<Tz>,
}

/// A job as far as its lines need it.
pub(crate) struct Listed {
    pub(crate) id: JobId,
    /// Where its zone lies among [`Roster::zones`].
    pub(crate) zone: u16,
    /// Events of each of its launches.
    pub(crate) events: u32,
    /// What a forecast asks of it.
    pub(crate) facts: Facts,
}

/// What a forecast asks of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) policy: Option<PolicyId>,
    /// Whether each delivered event is recorded.
    pub(crate) keeps_record: bool,
    /// Whether its events wait in packs.
    pub(crate) is_packed: bool,
    pub(crate) priority: u8,
    pub(crate) cost: u32,
    pub(crate) is_http: bool,
    pub(crate) fifo_url: Option<Box<str>>,
    /// What an event adds to a message.
    pub(crate) item_bytes: u32,
    /// Read units of its row, when its payload does not travel with its events.
    pub(crate) row_reads: u32,
    /// Bytes of a payload that does not travel with occurrences.
    pub(crate) large_payload_bytes: u32,
    /// Write units of a row that holds it.
    pub(crate) row_units: u32,
    /// What a call that creates it has of it, in bytes.
    pub(crate) body_bytes: u32,
    /// Whether an answer of its HTTP target releases its token.
    pub(crate) releases_itself: bool,
    /// Whether the first delivery of each event is its last.
    pub(crate) is_delivered_once: bool,
    /// At how many instants it launches; 0 when it has another trigger.
    pub(crate) instants: u32,
    /// Whether its client chose its id.
    pub(crate) is_named: bool,
    pub(crate) has_window: bool,
    /// Whether its end means something to somebody.
    pub(crate) is_watched: bool,
}

/// What an item of a message takes beside its terms, in bytes, and what of a job's id is in that.
const ITEM_BYTES: usize = 120;
const SHORT_ID_BYTES: usize = 48;

impl Facts {
    fn of(job: &JobRow) -> Self {
        let terms = &job.draft.terms;
        let id_bytes = job.id.as_str().len().saturating_sub(SHORT_ID_BYTES);
        let item_bytes = ITEM_BYTES + id_bytes + TermsDoc::from(&terms.to_travel()).size();
        let url = terms.target.address();
        let payload_bytes = terms.payload.text().map_or(0, str::len);
        // What else there is beside queues travels as events for endpoints do.
        let is_http = !matches!(terms.target, Target::Sqs { .. });
        Self {
            policy: terms.policy.clone(),
            keeps_record: terms.history == History::All,
            is_packed: SinglesKind::fits(terms),
            priority: terms.flow.priority.get(),
            cost: terms.flow.cost.get(),
            is_http,
            fifo_url: (!is_http && url.ends_with(".fifo")).then(|| url.into()),
            // A payload has a bound.
            item_bytes: item_bytes as u32,
            row_reads: row_reads(terms),
            large_payload_bytes: if payload_bytes > INLINE_PAYLOAD_BYTES { payload_bytes as u32 } else { 0 },
            row_units: (ROW_BYTES + payload_bytes).div_ceil(WRITE_UNIT_BYTES) as u32,
            body_bytes: (BODY_BYTES + payload_bytes) as u32,
            releases_itself: terms.flow.release_on_response,
            is_delivered_once: terms.max_attempts.is_some_and(|most| most.get() == 1),
            instants: match &job.draft.trigger {
                Trigger::At(instants) => instants.iter().count() as u32,
                _ => 0,
            },
            is_named: job.is_named,
            has_window: terms.flow.window.is_some(),
            is_watched: terms.flow.is_watched(),
        }
    }
}

/// A read unit is 4 KB of what is read consistently.
const READ_UNIT_BYTES: usize = 4_096;
/// A write unit is one of what is written.
const WRITE_UNIT_BYTES: usize = 1_024;
/// Bytes of a job's row beside its payload.
const ROW_BYTES: usize = 600;
/// Bytes of a job in a call that creates it, beside its payload.
const BODY_BYTES: usize = 300;

/// Read units of a job's row, as each of its runs takes them when its payload does not travel.
fn row_reads(terms: &Terms) -> u32 {
    let payload = terms.payload.text().map_or(0, str::len);
    if payload <= INLINE_PAYLOAD_BYTES {
        return 0;
    }
    payload.saturating_add(ROW_BYTES).div_ceil(READ_UNIT_BYTES) as u32
}

impl Enrolment {
    /// Takes a job, or says on which line its id was before.
    pub(crate) fn enrol(&mut self, job: &JobRow, line: u64) -> Result<(), u64> {
        match self.seen.entry(job.id.clone()) {
            Entry::Occupied(before) => Err(before.get().line),
            Entry::Vacant(place) => {
                let (zone, events) = (job.zone, job.draft.terms.count.get());
                place.insert(Enrolled { line, zone, events, facts: Facts::of(job) });
                Ok(())
            }
        }
    }

    /// Takes an id back: its job was refused after all.
    pub(crate) fn strike(&mut self, id: &JobId) {
        self.seen.remove(id);
    }

    /// The jobs in the order of their ids.
    pub(crate) fn finish(self) -> Roster {
        let mut enrolled: Vec<_> = self.seen.into_iter().collect();
        enrolled.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut zones, mut places) = (Vec::new(), HashMap::new());
        let mut jobs = Vec::with_capacity(enrolled.len());
        for (id, Enrolled { zone, events, facts, .. }) in enrolled {
            let zone = *places.entry(zone).or_insert_with(|| {
                zones.push(zone);
                // The database has a few hundred zones.
                (zones.len() - 1) as u16
            });
            jobs.push(Listed { id, zone, events, facts });
        }
        let ranks = (0..).zip(&jobs).map(|(rank, job)| (job.id.clone(), rank)).collect();
        Roster { ranks, jobs, zones }
    }
}

impl Roster {
    /// The place of a job in the order of ids.
    pub(crate) fn rank(&self, id: &JobId) -> Option<u32> {
        self.ranks.get(id).copied()
    }

    /// The job of a rank.
    pub(crate) fn job(&self, rank: u32) -> Option<&Listed> {
        self.jobs.get(rank as usize)
    }

    /// All jobs, by rank.
    pub(crate) fn jobs(&self) -> &[Listed] {
        &self.jobs
    }

    /// The zones of all jobs, each once.
    pub(crate) fn zones(&self) -> &[Tz] {
        &self.zones
    }

    /// How many jobs there are.
    pub(crate) fn len(&self) -> usize {
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
