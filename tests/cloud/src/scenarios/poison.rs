//! What nobody can read or send: it is set aside with its reason, and nobody else is late because of it.

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Count, Payload, Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::time::{CronSpec, parse_zone};
use tidegate_engine::JobDraft;
use tidegate_store::tables::Table;
use tidegate_testkit::PREFIX;
use tidegate_testkit::rows::{self, Row};

use super::herd::options;
use super::jobs::{HERD, NEIGHBOUR, SMALL, named, policy_of, terms, two_kinds};
use super::{Report, midnight, minutes, part, seconds};
use crate::arrivals::Lateness;
use crate::cloud::Cloud;

/// The client whose rows are spoilt.
const SPOILT: &str = "spoilt";
/// Jobs of each kind of those who must not notice.
const JOBS: usize = 1_000;
/// Quotes of a payload that doubles when it is written as JSON in JSON: twice this is more than a row may have.
const QUOTES: usize = 30_000;
/// How late others may be, in milliseconds.
const LATE_MS: i64 = 5_000;
/// How much later they may be because of it, in milliseconds.
const LATER_MS: i64 = 1_000;
/// Tables with rows of clients.
const TABLES: [Table; 6] =
    [Table::Jobs, Table::Launch, Table::Runs, Table::Events, Table::Policies, Table::Clients];
/// Texts that no version of ours wrote: they are dead letters at once.
const FOREIGN: [&str; 4] =
    ["not JSON", r#"{"v":1,"unknown":{}}"#, r#"{"v":1,"wake":{"client":"","policy":"?"}}"#, "[]"];
/// One that a later version wrote: it waits for that.
const NEWER: &str = r#"{"v":99,"wake":{"client":"herd","policy":"small"}}"#;

pub(super) async fn of_every_kind(seed: u64, share: f64) -> Result<Report> {
    let jobs = part(JOBS, share.max(0.05));
    let alone = begin(seed, jobs).await?;
    alone.until_instant(midnight()? + minutes(20)).await;
    let alone = Lateness::of(&alone.arrivals.of(HERD));
    let cloud = begin(seed, jobs).await?;
    add_poison(&cloud).await?;

    // When all of it is planned, and little of it is delivered.
    cloud.until_instant(midnight()? - minutes(1)).await;
    let spoilt = spoil(&cloud, seed).await?;
    invent_a_zone(&cloud).await?;
    for text in FOREIGN.iter().chain([&NEWER]) {
        cloud.send_to_own_queues(text).await?;
    }
    cloud.until_instant(midnight()? + minutes(20)).await;

    let mut report = Report::default();
    report.tell("spoilt", format!("{spoilt} rows"));
    report.must(spoilt >= 10, "rows of many kinds were spoilt");
    let late = report.must_arrive(&cloud, HERD, 2 * jobs);
    report.must(late.most_ms <= LATE_MS, format!("none of them later than {}", seconds(LATE_MS)));
    let alone = alone.most_ms;
    report.must(
        late.most_ms <= alone + LATER_MS,
        format!("at most {} later than without the poison, {}", seconds(LATER_MS), seconds(alone)),
    );
    report.must_miss_no_minute(&cloud);
    let beside = Lateness::of(&cloud.arrivals.of(NEIGHBOUR));
    report.must(
        beside.most_ms <= LATER_MS,
        format!("the neighbour's minute job is at most {} late", seconds(beside.most_ms)),
    );
    let latest = cloud.latest();
    report.must(
        latest.watermark <= minutes(2),
        format!("the watermark is at most {:?} behind", latest.watermark),
    );
    let dead = cloud.dead_letters().await?;
    // A message about rows that nobody can read, and in the release queue, whose messages have no version, a newer one.
    let is_meant = |text: &str| FOREIGN.contains(&text) || text == NEWER || text.contains(SPOILT);
    let strange: Vec<&String> = dead.iter().filter(|text| !is_meant(text)).collect();
    report.must(strange.is_empty(), format!("only what nobody can handle is a dead letter, not {strange:?}"));
    let given_up = FOREIGN.iter().filter(|text| dead.iter().any(|dead| dead == *text)).count();
    report.must(
        given_up == FOREIGN.len(),
        format!("{given_up} of {} kinds of them are dead letters", FOREIGN.len()),
    );
    let aside = set_aside(&cloud).await?;
    report.must(aside > 0, format!("{aside} rows say why something was set aside"));
    report.tell_of(&cloud, 2 * jobs);
    Ok(report)
}

/// A region with those who must not notice.
async fn begin(seed: u64, jobs: usize) -> Result<Cloud> {
    let mut cloud = Cloud::new(options(seed)?).await?;
    let queue = cloud.target("herd").await?;
    two_kinds(&cloud, jobs, (&queue, &queue), (jobs as u32, 600)).await?;
    cloud.start()?;
    Ok(cloud)
}

/// Jobs of the client whose rows will be spoilt.
async fn add_poison(cloud: &Cloud) -> Result<()> {
    let (engine, small): (_, PolicyId) = (cloud.engine(), SMALL.parse()?);
    policy_of(&engine, SPOILT, &small, PolicyTerms::new(2, 60)?).await?;
    let plain = terms(&cloud.target("herd").await?)?;
    let throttled = Terms { policy: Some(small.clone()), ..plain.clone() };
    let trigger = Trigger::Cron { spec: CronSpec::parse("* * * * *")?, zone: parse_zone("Europe/Berlin")? };
    named(&engine, SPOILT, "each-minute", JobDraft::new(trigger, plain.clone())).await?;
    let at_midnight = |terms| Ok::<_, anyhow::Error>(JobDraft::new(Trigger::at(midnight()?), terms));
    let doubles = Payload::new(serde_json::to_string(&"\"".repeat(QUOTES))?)?;
    let doubling = Terms { payload: doubles, count: Count::new(100)?, ..plain };
    named(&engine, SPOILT, "doubling", at_midnight(doubling.clone())?).await?;
    let doubling = Terms { policy: Some(small), ..doubling };
    named(&engine, SPOILT, "doubling-throttled", at_midnight(doubling)?).await?;
    for single in ["single-a", "single-b", "single-c"] {
        named(&engine, SPOILT, single, at_midnight(throttled.clone())?).await?;
    }
    Ok(())
}

/// Makes one attribute unreadable of every row of the client: how many they are.
async fn spoil(cloud: &Cloud, seed: u64) -> Result<usize> {
    let mut spoilt = 0;
    for table in TABLES {
        for mut row in rows::all(&cloud.tables(), table).await? {
            let is_of_client = ["pk", "sk"].iter().any(|name| {
                row.get(*name).and_then(|key| key.as_s().ok()).is_some_and(|key| key.contains(SPOILT))
            });
            let mut names: Vec<String> =
                row.keys().filter(|name| !["pk", "sk"].contains(&name.as_str())).cloned().collect();
            names.sort_unstable();
            if !is_of_client || names.is_empty() {
                continue;
            }
            let chosen = names.swap_remove((seed as usize + spoilt) % names.len());
            row.insert(chosen, AttributeValue::S("written by nobody".to_owned()));
            rows::put(&cloud.tables(), table, row).await?;
            spoilt += 1;
        }
    }
    Ok(spoilt)
}

/// A zone that no database knows, as a later version might have.
async fn invent_a_zone(cloud: &Cloud) -> Result<()> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = cloud.tables().update_item().table_name(format!("{PREFIX}-ticker"));
    let update = update.key("pk", text("index")).key("sk", text("-"));
    let update = update.update_expression("SET #zone = :since");
    let update = update.expression_attribute_names("#zone", "zone|Mars/Olympus");
    update.expression_attribute_values(":since", AttributeValue::N("1".to_owned())).send().await?;
    Ok(())
}

/// Rows that say why something was set aside.
async fn set_aside(cloud: &Cloud) -> Result<usize> {
    let mut aside = 0;
    for table in [Table::Runs, Table::Policies, Table::Ticker] {
        let says = |row: &Row| {
            let stopped = row.get("stopped").and_then(|word| word.as_s().ok());
            row.contains_key("set_aside_because") || stopped.is_some_and(|word| word == "not_emittable")
        };
        aside += rows::all(&cloud.tables(), table).await?.iter().filter(|row| says(row)).count();
    }
    Ok(aside)
}
