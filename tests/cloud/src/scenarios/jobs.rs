//! The jobs of scenarios, stored past the model: what it costs to create them is another question.

use anyhow::{Result, bail, ensure};
use chrono::{DateTime, Utc};
use tidegate_domain::flow::Flow;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::job::{Attempts, Count, History, HistoryDays, Payload, Terms, Trigger};
use tidegate_domain::policy::PolicyTerms;
use tidegate_domain::target::Target;
use tidegate_domain::time::{CronSpec, parse_zone};
use tidegate_engine::{Engine, JobDraft, Written};

use super::midnight;
use crate::cloud::Cloud;

/// The client whose jobs are many.
pub(super) const HERD: &str = "herd";
/// A client who has one job a minute, and must not notice the others.
pub(super) const NEIGHBOUR: &str = "neighbour";
/// The policy of the herd, where it has one.
pub(super) const SMALL: &str = "small";
/// Jobs of one bulk call.
const AT_ONCE: usize = 1_000;

/// What a job delivers: one event to this queue.
pub(super) fn terms(queue_url: &str) -> Result<Terms> {
    Ok(Terms {
        count: Count::new(1)?,
        policy: None,
        target: Target::sqs(queue_url)?,
        payload: Payload::new(r#"{"user":"user-4711","kind":"reminder"}"#.to_owned())?,
        history: History::All,
        history_days: HistoryDays::DEFAULT,
        max_attempts: None,
        retry: Default::default(),
        relevancy: None,
        flow: Flow::default(),
        unknown: Default::default(),
    })
}

/// One-time jobs, one for each of these terms.
pub(super) async fn one_times(
    engine: &Engine,
    launch_at: DateTime<Utc>,
    terms: impl Iterator<Item = Terms>,
) -> Result<()> {
    let client: ClientId = HERD.parse()?;
    let drafts: Vec<JobDraft> = terms.map(|terms| JobDraft::new(Trigger::at(launch_at), terms)).collect();
    for some in drafts.chunks(AT_ONCE) {
        let some = some.iter().map(|draft| (None, draft.clone())).collect();
        for written in engine.jobs().create_all(&client, some).await {
            ensure!(matches!(written?, Written::Created(_)), "a job was not created");
        }
    }
    Ok(())
}

/// So many jobs at midnight that nothing throttles, as many under a policy, and the neighbour's; the first tick says from where
/// on there are any. The terms of those under the policy.
pub(super) async fn two_kinds(
    cloud: &Cloud,
    jobs: usize,
    (plain, throttled): (&str, &str),
    (tokens, lease_seconds, max_attempts): (u32, u32, Attempts),
) -> Result<Terms> {
    let (engine, id): (_, PolicyId) = (cloud.engine(), SMALL.parse()?);
    engine.tick().await?;
    policy(&engine, &id, tokens, lease_seconds).await?;
    let under = Terms { policy: Some(id), max_attempts: Some(max_attempts), ..terms(throttled)? };
    let all = std::iter::repeat_n(terms(plain)?, jobs).chain(std::iter::repeat_n(under.clone(), jobs));
    one_times(&engine, midnight()?, all).await?;
    neighbour(&engine, &cloud.target("neighbour").await?).await?;
    Ok(under)
}

/// A job of many events at midnight.
pub(super) async fn batch(cloud: &Cloud, events: usize, terms: Terms) -> Result<()> {
    let batch = Terms { count: Count::new(events as u64)?, ..terms };
    named(&cloud.engine(), HERD, "batch", JobDraft::new(Trigger::at(midnight()?), batch)).await
}

/// The neighbour's job: each minute, under no policy.
pub(super) async fn neighbour(engine: &Engine, queue_url: &str) -> Result<()> {
    let trigger = Trigger::Cron { spec: CronSpec::parse("* * * * *")?, zone: parse_zone("UTC")? };
    named(engine, NEIGHBOUR, "each-minute", JobDraft::new(trigger, terms(queue_url)?)).await
}

/// A job with an id of its own.
pub(super) async fn named(engine: &Engine, client: &str, id: &str, draft: JobDraft) -> Result<()> {
    match engine.jobs().create(&client.parse()?, Some(id.parse()?), draft).await? {
        Written::Created(_) => Ok(()),
        other => bail!("failed to create job {id} of {client}: {other:?}"),
    }
}

/// A policy of the herd's.
pub(super) async fn policy(engine: &Engine, id: &PolicyId, tokens: u32, lease_seconds: u32) -> Result<()> {
    policy_of(engine, HERD, id, PolicyTerms::new(tokens, lease_seconds)?).await
}

/// A policy of a client.
pub(super) async fn policy_of(
    engine: &Engine,
    client: &str,
    id: &PolicyId,
    terms: PolicyTerms,
) -> Result<()> {
    match engine.policies().create(&client.parse()?, id.clone(), terms).await? {
        Written::Created(_) => Ok(()),
        other => bail!("failed to create policy {id}: {other:?}"),
    }
}
