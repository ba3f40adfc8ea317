//! What a writer does to a job while a tick runs.

use std::collections::BTreeSet;

use chrono::{DateTime, Duration, Utc};
use serde_json::Value;
use tidegate_domain::ids::JobId;
use tidegate_domain::job::{Job, Trigger};
use tidegate_domain::time::{CronSpec, Instants, Rate, parse_zone};
use tidegate_engine::{Engine, EngineError, JobDelete, JobDraft, Written};
use tidegate_simulation::world::{CLIENT, JobSpec};
use tidegate_store::Spread;
use tidegate_store::launch::at_shard;

/// What a writer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    CreateCron,
    CreateRate,
    CreateAt { ahead_s: i64, named: bool },
    CreateSet,
    Replace,
    Pause,
    Resume,
    Delete,
}

/// What came of it.
#[derive(Debug)]
pub enum Done {
    Written(Box<Written<Job>>),
    Deleted(JobDelete),
}

fn cron(expression: &str, zone: &str) -> Trigger {
    Trigger::Cron { spec: CronSpec::parse(expression).unwrap(), zone: parse_zone(zone).unwrap() }
}

impl Act {
    /// The job as it is before; `None`: there is none.
    pub fn before(self) -> Option<Trigger> {
        match self {
            Self::Replace | Self::Pause | Self::Resume | Self::Delete => Some(cron("* * * * *", "UTC")),
            _ => None,
        }
    }

    /// Whether it acts on a job that is paused.
    pub fn begins_paused(self) -> bool {
        self == Self::Resume
    }

    /// What it writes.
    fn trigger(self, now: DateTime<Utc>) -> Trigger {
        let ahead = |seconds| now + Duration::seconds(seconds);
        match self {
            Self::CreateCron => cron("* * * * *", "Asia/Kathmandu"),
            Self::CreateRate => Trigger::Rate { rate: Rate::new(50, ahead(50)).unwrap(), anchored: false },
            Self::CreateAt { ahead_s, .. } => Trigger::at(ahead(ahead_s)),
            Self::CreateSet => {
                Trigger::At(Instants::new([10, 70, 180, 234, 235, 236, 290].map(ahead)).unwrap())
            }
            _ => cron("*/2 * * * *", "Europe/Berlin"),
        }
    }

    fn draft(trigger: Trigger, queue: &str) -> JobDraft {
        JobSpec::new(trigger, queue).unwrap().failures_only().into_draft()
    }

    /// Brings the job into the state that it acts on.
    pub async fn prepare(self, engine: &Engine, id: &JobId, queue: &str) -> Vec<Written<Job>> {
        let Some(trigger) = self.before() else { return Vec::new() };
        let client = CLIENT.parse().unwrap();
        let draft = Self::draft(trigger, queue);
        let mut written = vec![engine.jobs().create(&client, Some(id.clone()), draft).await.unwrap()];
        if self.begins_paused() {
            written.push(engine.jobs().pause(&client, id, true, None).await.unwrap());
        }
        written
    }

    /// The call.
    pub async fn call(self, engine: Engine, id: JobId, queue: String) -> Result<Done, EngineError> {
        let client = CLIENT.parse().unwrap();
        let now = engine.clock().now();
        let draft = Self::draft(self.trigger(now), &queue);
        Ok(match self {
            Self::Delete => Done::Deleted(engine.jobs().delete(&client, &id, None).await?),
            Self::Pause | Self::Resume => {
                Done::Written(Box::new(engine.jobs().pause(&client, &id, self == Self::Pause, None).await?))
            }
            Self::Replace => Done::Written(Box::new(engine.jobs().replace(&client, id, draft, None).await?)),
            Self::CreateAt { named: false, .. } => {
                Done::Written(Box::new(engine.jobs().create(&client, None, draft).await?))
            }
            _ => Done::Written(Box::new(engine.jobs().create(&client, Some(id), draft).await?)),
        })
    }

    /// Whether a request of a tick is a step: it may touch what the writer does. Reads of other partitions commute with
    /// everything that the writer does.
    pub fn stops(
        self,
        id: &JobId,
        shard_of_generated: u32,
        now: DateTime<Utc>,
    ) -> impl Fn(&Value) -> bool + Send + Sync + use<> {
        let mut partitions = BTreeSet::new();
        for trigger in self.before().into_iter().chain([self.trigger(now)]) {
            let children = trigger.cadence().children();
            let zone = trigger.zone();
            partitions
                .extend(children.iter().map(|key| format!("{}|{}|00", zone.name(), key.launch_expression())));
        }
        let shard = match self {
            Self::CreateAt { named: false, .. } => shard_of_generated,
            _ => at_shard(&CLIENT.parse().unwrap(), id, Spread::default()),
        };
        move |body| match body["ExpressionAttributeValues"][":pk"]["S"].as_str() {
            Some(pk) if pk.starts_with("AT|") => pk.ends_with(&format!("|{shard:02}")),
            Some(pk) if pk.starts_with("active|") => false,
            Some(pk) if pk.contains("|H:") || pk.contains("|W:") || pk.contains("|M") => {
                partitions.contains(pk)
            }
            _ => true,
        }
    }
}
