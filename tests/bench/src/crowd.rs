//! Jobs by the hundred thousand: cron jobs in forty zones, and one-time jobs.

use chrono::{DateTime, Datelike, Duration, Timelike, Utc};
use chrono_tz::Tz;
use tidegate_domain::ids::{ClientId, JobId, OneTimeShard};
use tidegate_domain::job::{Job, Terms, Trigger};
use tidegate_domain::limits::AT_SHARDS;
use tidegate_domain::rules::Rules;
use tidegate_domain::time::{CronSpec, ShardedKey, WallClock};

use crate::{client, terms};

/// Zones of every kind: with and without summer time, with half and quarter hours.
pub(crate) const ZONES: [Tz; 40] = [
    Tz::UTC,
    Tz::Africa__Cairo,
    Tz::Africa__Casablanca,
    Tz::Africa__Johannesburg,
    Tz::Africa__Lagos,
    Tz::Africa__Nairobi,
    Tz::America__Anchorage,
    Tz::America__Argentina__Buenos_Aires,
    Tz::America__Bogota,
    Tz::America__Chicago,
    Tz::America__Denver,
    Tz::America__Halifax,
    Tz::America__Los_Angeles,
    Tz::America__Mexico_City,
    Tz::America__New_York,
    Tz::America__Santiago,
    Tz::America__Sao_Paulo,
    Tz::America__St_Johns,
    Tz::Asia__Bangkok,
    Tz::Asia__Dhaka,
    Tz::Asia__Dubai,
    Tz::Asia__Hong_Kong,
    Tz::Asia__Jakarta,
    Tz::Asia__Karachi,
    Tz::Asia__Kathmandu,
    Tz::Asia__Kolkata,
    Tz::Asia__Manila,
    Tz::Asia__Seoul,
    Tz::Asia__Shanghai,
    Tz::Asia__Singapore,
    Tz::Asia__Tehran,
    Tz::Asia__Tokyo,
    Tz::Australia__Lord_Howe,
    Tz::Australia__Sydney,
    Tz::Europe__Berlin,
    Tz::Europe__Istanbul,
    Tz::Europe__London,
    Tz::Europe__Moscow,
    Tz::Pacific__Auckland,
    Tz::Pacific__Chatham,
];

/// How often a cron job fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Often {
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// Makes jobs as they would have been stored at an instant.
pub(crate) struct Maker {
    client: ClientId,
    stored_at: DateTime<Utc>,
    terms: Terms,
}

impl Maker {
    pub(crate) fn new(stored_at: DateTime<Utc>) -> anyhow::Result<Self> {
        let terms = terms("http://127.0.0.1/000000000000/consumer", 1)?;
        Ok(Self { client: client()?, stored_at, terms })
    }

    /// A cron job that fires at `due_at`. Five with following numbers share a zone.
    pub(crate) fn cron(&self, number: u32, often: Often, due_at: DateTime<Utc>) -> anyhow::Result<Job> {
        let zone = ZONES[number as usize / 5 % ZONES.len()];
        let local = due_at.with_timezone(&WallClock::of(zone));
        let time = format!("{} {}", local.minute(), local.hour());
        let expression = match often {
            Often::Daily => format!("{time} * * *"),
            Often::Weekly => format!("{time} * * {}", local.weekday().num_days_from_sunday()),
            Often::Monthly => format!("{time} {} * *", local.day()),
            Often::Yearly => format!("{time} {} {} *", local.day(), local.month()),
        };
        let trigger = Trigger::Cron { spec: CronSpec::parse(&expression)?, zone };
        Ok(self.job(format!("job_{number:07}").parse()?, trigger))
    }

    /// A one-time job that fires at `due_at`, under a generated id.
    pub(crate) fn one_time(&self, number: u32, due_at: DateTime<Utc>) -> Job {
        // Any number that spreads: generated ids are random.
        let random = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = OneTimeShard {
            minute: due_at.timestamp().div_euclid(60),
            shard: (random >> 32) as u32 % AT_SHARDS,
        };
        self.job(JobId::one_time(place, random), Trigger::at(due_at))
    }

    fn job(&self, id: JobId, trigger: Trigger) -> Job {
        let children = trigger.cadence().children().into_iter().map(|key| ShardedKey { key, shard: 0 });
        Job {
            client: self.client.clone(),
            id,
            revision: 1,
            children: children.collect(),
            trigger,
            rules: Rules::default(),
            paused: false,
            paused_because: None,
            terms: self.terms.clone(),
            tags: Default::default(),
            expect: None,
            emit_from: self.stored_at - Duration::minutes(10),
            changed_at: self.stored_at,
        }
    }
}
