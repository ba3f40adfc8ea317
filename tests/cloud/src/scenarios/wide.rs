//! A policy of very many tokens: how soon all of them are held, and how soon a run is cancelled that has something in each slot
//! group.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tidegate_domain::ids::PolicyId;
use tidegate_domain::job::{Count, Terms, Trigger};
use tidegate_engine::JobDraft;

use super::herd::options;
use super::jobs::{HERD, named, neighbour, policy, terms};
use super::{Report, midnight, minutes, part};
use crate::cloud::Cloud;
use crate::consumer::{Consumer, Work};
use crate::lambda::Function;

/// Tokens of the full policy: 834 slot groups.
const TOKENS: usize = 10_000;
/// Events for each token.
const ROUNDS: usize = 20;
/// How long a consumer works on an event.
const TAKES: Duration = Duration::from_secs(5);

pub(super) async fn cancelled(seed: u64, share: f64) -> Result<Report> {
    let tokens = part(TOKENS, share);
    let (events, mut cloud) = (ROUNDS * tokens, Cloud::new(options(seed)?).await?);
    let (engine, queue) = (cloud.engine(), cloud.target("herd").await?);
    engine.tick().await?;
    let id: PolicyId = "wide".parse()?;
    policy(&engine, &id, u32::try_from(tokens)?, 600).await?;
    let of_many = Terms { count: Count::new(events as u64)?, policy: Some(id.clone()), ..terms(&queue)? };
    named(&engine, HERD, "batch", JobDraft::new(Trigger::at(midnight()?), of_many)).await?;
    neighbour(&engine, &cloud.target("neighbour").await?).await?;
    let key = cloud.register(HERD).await?;
    let work = Work { takes: TAKES, releases_together: 10, result: None };
    let consumer = Consumer::start(&cloud, &queue, &key, (tokens.div_ceil(4), work))?;
    cloud.start()?;
    cloud.until_instant(midnight()?).await;
    let all = cloud.until(minutes(30), |_| consumer.most_at_once() * 100 >= tokens * 95).await;
    let mut report = Report::default();
    report.tell("19 of 20 tokens were held", format!("{all:?} from midnight on"));
    report.must(all.is_some_and(|took| took <= minutes(2)), "within two minutes");

    let runs = engine.queries().runs(&HERD.parse()?, &"batch".parse()?, None).await?.rows;
    let run = runs.first().context("no run")?.id.to_string();
    let path = format!("/v1/jobs/batch/runs/{run}/cancel");
    let (began, before) = (cloud.now(), cloud.arrivals.count_of(HERD));
    let (status, body) = cloud.caller().call("POST", &path, &key, &json!({})).await?;
    let took = (cloud.now() - began).to_std()?;
    let limit = Function::Master.as_deployed().timeout;
    report.must(
        status.is_success() && took <= limit,
        format!("cancelled in {took:?}, {limit:?} at the most: {status}"),
    );
    if !status.is_success() {
        report.tell("the answer", body.to_string());
    }
    // Consumers end what they have, and the tick what the call left.
    cloud.until_instant(cloud.now() + minutes(15)).await;
    let after = cloud.arrivals.count_of(HERD);
    report.tell("came", format!("{before} before the call, {after} of {events} in the end"));
    let runs = engine.queries().runs(&HERD.parse()?, &"batch".parse()?, None).await?.rows;
    let tally = runs.first().context("no run")?.tally;
    report.must(
        tally.total() as usize == events && tally.succeeded as usize == after,
        format!("the counts add up: {} succeeded, {} left out", tally.succeeded, tally.left_out),
    );
    report.must(tally.left_out > 0, "some were left out");
    let status = engine.queries().policy(&HERD.parse()?, &id).await?.context("no policy")?;
    let (held, waiting) = (status.load.in_flight, status.load.waiting);
    report.must((held, waiting) == (0, 0), format!("{held} are held and {waiting} wait at the end"));
    report.must(consumer.most_at_once() <= tokens, format!("{} at once", consumer.most_at_once()));
    report.must_miss_no_minute(&cloud);
    report.must_give_nothing_up(&cloud).await?;
    report.tell_of(&cloud, after);
    Ok(report)
}
