//! From the file to stored jobs. A row that cannot be one is refused with its line and the reason; the others go on.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Write};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use tidegate_domain::ids::{CalendarId, PolicyId};
use tidegate_domain::job::Job;

use super::occupied::Occupied;
use super::piece::JOBS;
use super::roster::{Enrolment, Roster};
use super::row::{self, JobRow, Row, RowError};
use super::shape::Shape;
use super::source::Source;
use super::stage::Stage;

/// Jobs stored at once.
const BATCH_JOBS: usize = 500;

/// Policies that jobs may name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Known<'a> {
    /// Any: nobody asks what they say.
    Any,
    /// None: there is no file of them.
    None,
    /// Those of a file.
    InFile(&'a HashSet<PolicyId>),
}

/// What became of the rows.
pub(crate) struct Intake {
    /// The jobs that were stored.
    pub(crate) roster: Roster,
    /// The rows that were not, in the order of their lines.
    pub(crate) refused: Vec<Refused>,
    /// How the jobs lie in the index.
    pub(crate) shape: Shape,
    /// Where their rows lie.
    pub(crate) occupied: Occupied,
    /// Zones that scans look at.
    pub(crate) zones: usize,
}

impl Intake {
    /// Whether the run counts as failed: nothing could be computed, or something could not and that is not accepted.
    pub(crate) fn failed(&self, strict: bool) -> bool {
        !self.refused.is_empty() && (strict || self.roster.len() == 0)
    }
}

/// A row that is no job and no calendar.
#[derive(Debug, Serialize)]
pub(crate) struct Refused {
    id: Option<String>,
    line: u64,
    error: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, line, error } = self;
        match id {
            Some(id) => write!(f, "line {line} ({id}): {error}"),
            None => write!(f, "line {line}: {error}"),
        }
    }
}

impl Refused {
    /// Writes it as a JSON line.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

/// Reads every row and stores what it says. `policies`: those that jobs may name.
pub(crate) async fn read(
    mut source: Source,
    stage: &Stage,
    from: DateTime<Utc>,
    policies: Known<'_>,
) -> anyhow::Result<Intake> {
    let mut intake = Reading::new(stage, policies);
    let mut rows = 0_u64;
    while let Some((line, text)) = source.next()? {
        rows += 1;
        match row::read(text, line, from) {
            Ok(row) => intake.take(line, row).await?,
            Err(RowError { id, reason }) => intake.refused.push(Refused { id, line, error: reason }),
        }
    }
    anyhow::ensure!(
        rows > 0,
        "failed to read {}: it is empty; give a JSON object to a line, such as \
         {{\"id\": \"nightly\", \"expression\": \"0 3 * * *\", \"zone\": \"Europe/Berlin\"}}",
        source.name()
    );
    intake.finish().await
}

struct Reading<'a> {
    stage: &'a Stage,
    policies: Known<'a>,
    enrolment: Enrolment,
    refused: Vec<Refused>,
    shape: Shape,
    occupied: Occupied,
    batch: Vec<Job>,
    zones: HashSet<Tz>,
    calendars: HashMap<CalendarId, u64>,
    /// Jobs whose calendars have not been met yet.
    waiting: Vec<(u64, Box<JobRow>)>,
}

impl<'a> Reading<'a> {
    fn new(stage: &'a Stage, policies: Known<'a>) -> Self {
        Self {
            stage,
            policies,
            enrolment: Enrolment::default(),
            refused: Vec::new(),
            shape: Shape::default(),
            occupied: Occupied::default(),
            batch: Vec::with_capacity(BATCH_JOBS),
            zones: HashSet::new(),
            calendars: HashMap::new(),
            waiting: Vec::new(),
        }
    }

    async fn take(&mut self, line: u64, row: Row) -> anyhow::Result<()> {
        match row {
            Row::Job(job) if self.lacks_policy(&job) => self.refuse_without_policy(line, &job),
            Row::Job(job) => match self.enrolment.enrol(&job, line) {
                Err(before) => self.refuse_twice(line, "id", job.id.as_str(), before),
                Ok(()) if self.missing(&job).is_some() => self.waiting.push((line, job)),
                Ok(()) => self.store(*job).await?,
            },
            Row::Calendar(id, exclusions) => match self.calendars.get(&id) {
                Some(before) => self.refuse_twice(line, "calendar_id", id.as_str(), *before),
                None => {
                    self.calendars.insert(id.clone(), line);
                    self.stage.put_calendar(id, exclusions).await?;
                }
            },
        }
        Ok(())
    }

    fn refuse_twice(&mut self, line: u64, key: &str, id: &str, before: u64) {
        let error = format!("{key} '{id}' is on line {before} already: give each row a name of its own");
        self.refused.push(Refused { id: Some(id.to_owned()), line, error });
    }

    fn lacks_policy(&self, job: &JobRow) -> bool {
        let policy = job.draft.terms.policy.as_ref();
        policy.is_some_and(|policy| match self.policies {
            Known::Any => false,
            Known::None => true,
            Known::InFile(policies) => !policies.contains(policy),
        })
    }

    fn refuse_without_policy(&mut self, line: u64, job: &JobRow) {
        let policy = job.draft.terms.policy.as_ref().map(PolicyId::as_str).unwrap_or_default();
        let lacks = match self.policies {
            Known::None => "has no row, since --policies is not given: name a file and",
            _ => "is not in the file of --policies:",
        };
        let error = format!(
            "policy_id: policy '{policy}' {lacks} add a row {{\"policy_id\": \"{policy}\", \
             \"max_in_flight\": 10}} to it, or leave policy_id out"
        );
        self.refused.push(Refused { id: Some(job.id.to_string()), line, error });
    }

    /// The first calendar of a job that has not been met.
    fn missing<'j>(&self, job: &'j JobRow) -> Option<&'j CalendarId> {
        job.draft.rules.all_calendars().find(|id| !self.calendars.contains_key(*id))
    }

    async fn store(&mut self, row: JobRow) -> anyhow::Result<()> {
        self.shape.add(&row.draft);
        let job = self.stage.job(row);
        self.occupied.add(&job);
        self.batch.push(job);
        if self.batch.len() >= BATCH_JOBS {
            self.stage.import(&self.batch, &mut self.zones).await?;
            self.batch.clear();
        }
        Ok(())
    }

    async fn finish(mut self) -> anyhow::Result<Intake> {
        for (line, job) in std::mem::take(&mut self.waiting) {
            match self.missing(&job) {
                None => self.store(*job).await?,
                Some(missing) => {
                    let error = format!(
                        "calendar '{missing}' is not in the file: add a row {{\"calendar_id\": \"{missing}\", \
                         \"dates\": [...]}}, or leave it out of the job"
                    );
                    self.enrolment.strike(&job.id);
                    self.refused.push(Refused { id: Some(job.id.to_string()), line, error });
                }
            }
        }
        self.stage.import(&self.batch, &mut self.zones).await?;
        self.refused.sort_by_key(|refused| refused.line);
        let roster = self.enrolment.finish();
        anyhow::ensure!(roster.len() <= JOBS, "the file has {} jobs; {JOBS} is the most", roster.len());
        let zones = self.zones.len();
        Ok(Intake { roster, refused: self.refused, shape: self.shape, occupied: self.occupied, zones })
    }
}
