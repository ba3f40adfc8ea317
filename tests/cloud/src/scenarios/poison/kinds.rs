//! The rows that are spoilt: one kind of each on purpose, and one attribute of every row of another client as a seed says.

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Count, Payload, Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::time::{CronSpec, parse_zone};
use tidegate_engine::JobDraft;
use tidegate_store::tables::Table;
use tidegate_testkit::rows::{self, Row};

use super::super::jobs::{SMALL, named, policy_of, terms};
use super::super::{midnight, minutes};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};
use crate::lambda::Function;
use crate::version::Version;

/// The client of whose rows one of each kind is spoilt.
pub(super) const SPOILT: &str = "spoilt";
/// The client of whose rows each is spoilt.
pub(super) const BROKEN: &str = "broken";
/// The client whose own rows are spoilt, not those of its jobs.
pub(super) const MARKED: &str = "marked";
/// Events of the run that several slot groups share, and their tokens.
pub(super) const GROUPED: usize = 60;
const GROUPED_TOKENS: u32 = 36;
/// Events of each run whose payload doubles.
pub(super) const DOUBLING: usize = 100;
/// Quotes of a payload that doubles when it is written as JSON in JSON: twice this is more than a row may have.
const QUOTES: usize = 30_000;
/// A payload that lies in its job.
const LARGE: usize = 1_000;
/// Policies that are paused until what waits under them is spoilt.
const PAUSED: [&str; 3] = ["pack", "entry", "run"];
/// Tables with rows of clients.
const TABLES: [Table; 6] =
    [Table::Jobs, Table::Launch, Table::Runs, Table::Events, Table::Policies, Table::Clients];

/// Those whose rows are spoilt, and a consumer of what is delivered all the same.
pub(super) struct Poison {
    seed: u64,
    _consumer: Consumer,
}

impl Poison {
    pub(super) async fn add(cloud: &Cloud, seed: u64) -> Result<Self> {
        let queue = cloud.target("spoilt").await?;
        add_one_of_each(cloud, &queue).await?;
        add_marked(cloud, &queue).await?;
        add_broken(cloud, &queue).await?;
        let work = Work { takes: std::time::Duration::from_millis(100), releases_together: 10, result: None };
        let key = cloud.register(SPOILT).await?;
        Ok(Self { seed, _consumer: Consumer::start(cloud, &queue, &key, (4, work))? })
    }

    /// Before the tick that plans midnight: jobs, rows of the index, a slot group, and the rows of a client. How many rows.
    pub(super) async fn spoil_what_is_stored(&self, cloud: &Cloud) -> Result<usize> {
        let mut spoilt = 0;
        for (table, what) in [
            (Table::Launch, "|spoilt|index-at"),
            (Table::Launch, "|spoilt|index-cron"),
            (Table::Jobs, "job-row"),
            (Table::Jobs, "job-granted"),
            (Table::Clients, MARKED),
        ] {
            spoilt += spoil(cloud, table, |_, sort_key| sort_key.contains(what)).await?;
        }
        spoilt += spoil(cloud, Table::Policies, |partition, sort_key| {
            sort_key == "slots" && partition == "spoilt|groups|0000"
        })
        .await?;
        Ok(spoilt + self.spoil_broken(cloud).await?)
    }

    /// When midnight is planned, and what is throttled waits under policies that are paused: runs, packs and entries.
    /// Then they are resumed. How many rows.
    pub(super) async fn spoil_what_is_planned(&self, cloud: &Cloud) -> Result<usize> {
        let mut spoilt = self.spoil_broken(cloud).await?;
        spoilt += spoil(cloud, Table::Runs, |partition, sort_key| {
            partition.starts_with("spoilt|~") && sort_key.starts_with("pack|")
        })
        .await?;
        spoilt += spoil(cloud, Table::Runs, |partition, _| partition == "spoilt|run").await?;
        spoilt += spoil(cloud, Table::Policies, |partition, _| partition == "spoilt|entry|line").await?;
        // Environments remember packs and runs that they read: new ones read them as they are now.
        cloud.deploy(Function::Handler, Version::This);
        for paused in PAUSED {
            let (client, id): (_, PolicyId) = (SPOILT.parse()?, paused.parse()?);
            cloud.engine().policies().pause(&client, &id, false, None).await?;
        }
        Ok(spoilt)
    }

    /// Makes one attribute unreadable of every row of the client: how many they are.
    async fn spoil_broken(&self, cloud: &Cloud) -> Result<usize> {
        let mut spoilt = 0;
        for table in TABLES {
            for mut row in rows::all(&cloud.tables(), table).await? {
                let mut names = attributes(&row);
                if ![key(&row, "pk"), key(&row, "sk")].iter().any(|key| key.contains(BROKEN))
                    || names.is_empty()
                {
                    continue;
                }
                let chosen = names.swap_remove((self.seed as usize + spoilt) % names.len());
                row.insert(chosen, nonsense());
                rows::put(&cloud.tables(), table, row).await?;
                spoilt += 1;
            }
        }
        ensure!(spoilt > 0, "nothing of {BROKEN} is there to be spoilt");
        Ok(spoilt)
    }
}

/// Makes all attributes unreadable of the rows with these keys: how many they are, at least one.
async fn spoil(cloud: &Cloud, table: Table, is_meant: impl Fn(&str, &str) -> bool) -> Result<usize> {
    let mut spoilt = 0;
    for mut row in rows::all(&cloud.tables(), table).await? {
        if is_meant(key(&row, "pk"), key(&row, "sk")) {
            attributes(&row).into_iter().for_each(|name| drop(row.insert(name, nonsense())));
            rows::put(&cloud.tables(), table, row).await?;
            spoilt += 1;
        }
    }
    ensure!(spoilt > 0, "no row of {} is there to be spoilt", table.name());
    Ok(spoilt)
}

fn nonsense() -> AttributeValue {
    AttributeValue::S("written by nobody".to_owned())
}

/// A part of a row's key.
pub(super) fn key<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get(name).and_then(|key| key.as_s().ok()).map_or("", String::as_str)
}

fn attributes(row: &Row) -> Vec<String> {
    let names = row.keys().filter(|name| !["pk", "sk"].contains(&name.as_str()));
    let mut names: Vec<String> = names.cloned().collect();
    names.sort_unstable();
    names
}

fn each_minute() -> Result<Trigger> {
    Ok(Trigger::Cron { spec: CronSpec::parse("* * * * *")?, zone: parse_zone("Europe/Berlin")? })
}

/// Jobs of which one row each is spoilt, named after it, and policies of the same names.
async fn add_one_of_each(cloud: &Cloud, queue: &str) -> Result<()> {
    let (engine, plain) = (cloud.engine(), terms(queue)?);
    let at_midnight = |terms: Terms| Ok::<_, anyhow::Error>(JobDraft::new(Trigger::at(midnight()?), terms));
    let large = Payload::new(serde_json::to_string(&"x".repeat(LARGE))?)?;
    let doubling = Payload::new(serde_json::to_string(&"\"".repeat(QUOTES))?)?;
    for (id, tokens) in
        [("pack", 1), ("entry", 1), ("run", 1), ("granted", 1), ("groups", GROUPED_TOKENS), ("doubling", 100)]
    {
        policy_of(&engine, SPOILT, &id.parse()?, PolicyTerms::new(tokens, 60)?).await?;
    }
    for paused in PAUSED {
        engine.policies().pause(&SPOILT.parse()?, &paused.parse()?, true, None).await?;
    }
    let under =
        |policy: &str| Ok::<_, anyhow::Error>(Terms { policy: Some(policy.parse()?), ..plain.clone() });
    let many = |count: usize, terms: Terms| {
        Ok::<_, anyhow::Error>(Terms { count: Count::new(count as u64)?, ..terms })
    };
    named(&engine, SPOILT, "index-cron", JobDraft::new(each_minute()?, plain.clone())).await?;
    for (id, terms) in [
        ("index-at", plain.clone()),
        ("job-row", Terms { payload: large.clone(), ..plain.clone() }),
        ("job-granted", Terms { payload: large, ..under("granted")? }),
        ("pack-a", under("pack")?),
        ("pack-b", under("pack")?),
        ("entry-a", under("entry")?),
        ("entry-b", under("entry")?),
        ("run", many(5, under("run")?)?),
        ("groups", many(GROUPED, under("groups")?)?),
        ("doubling", many(DOUBLING, Terms { payload: doubling.clone(), ..plain.clone() })?),
        ("doubling-throttled", many(DOUBLING, Terms { payload: doubling, ..under("doubling")? })?),
    ] {
        named(&engine, SPOILT, id, at_midnight(terms)?).await?;
    }
    // So that its slot groups are there before midnight.
    let before = Trigger::at(midnight()? - minutes(3));
    let terms = many(GROUPED, under("groups")?)?;
    named(&engine, SPOILT, "groups-before", JobDraft::new(before, terms)).await
}

/// A client with a job, which was changed: what is planned for it is looked up.
async fn add_marked(cloud: &Cloud, queue: &str) -> Result<()> {
    cloud.register(MARKED).await?;
    named(&cloud.engine(), MARKED, "plain", JobDraft::new(Trigger::at(midnight()?), terms(queue)?)).await?;
    Ok(cloud.store().mark_dirty(&MARKED.parse()?, midnight()? + minutes(10)).await?)
}

async fn add_broken(cloud: &Cloud, queue: &str) -> Result<()> {
    let (engine, small): (_, PolicyId) = (cloud.engine(), SMALL.parse()?);
    policy_of(&engine, BROKEN, &small, PolicyTerms::new(2, 60)?).await?;
    let plain = terms(queue)?;
    let throttled = Terms { policy: Some(small), ..plain.clone() };
    named(&engine, BROKEN, "each-minute", JobDraft::new(each_minute()?, plain)).await?;
    for single in ["single-a", "single-b", "single-c"] {
        named(&engine, BROKEN, single, JobDraft::new(Trigger::at(midnight()?), throttled.clone())).await?;
    }
    Ok(())
}
