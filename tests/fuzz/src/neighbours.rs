//! Two other clients with a job for every minute. Nothing that anybody sends may make their events late.
//!
//! Invariant: in each minute of a round the event that is due in it has come to each neighbour's queue within that minute,
//! by the clock of the round. Events that come twice are no fault: delivery is at least once.

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use tidegate_domain::clock::Clock as _;
use tidegate_domain::ids::{ClientId, PolicyId};
use tidegate_domain::policy::PolicyTerms;
use tidegate_embedded::ClientOptions;
use tidegate_engine::{Outcome, Release, Written};
use tidegate_simulation::World;
use tidegate_simulation::world::{JobSpec, Received};
use tidegate_testkit::queue;

use crate::fault::Fault;

/// A client whose job has no policy.
const UNTHROTTLED: &str = "beta";
/// A client whose job is under a policy of one token.
const THROTTLED: &str = "gamma";
/// Seconds of the lease of its token.
const LEASE_SECONDS: u32 = 60;

/// The two.
pub struct Neighbours {
    sqs: aws_sdk_sqs::Client,
    all: [Neighbour; 2],
}

struct Neighbour {
    name: &'static str,
    client: ClientId,
    queue_url: String,
}

impl Neighbours {
    /// Gives each its queue and its job.
    ///
    /// # Errors
    /// When the world refuses one.
    pub async fn settle(world: &World) -> Result<Self> {
        let sqs = world.embedded.sqs_with(&ClientOptions::without_retries());
        let all = [Neighbour::new(UNTHROTTLED, world).await?, Neighbour::new(THROTTLED, world).await?];
        let policy: PolicyId = "one".parse()?;
        let terms = PolicyTerms::new(1, LEASE_SECONDS)?;
        match world.engine.policies().create(&all[1].client, policy, terms).await? {
            Written::Created(_) => {}
            other => bail!("failed to create the neighbour's policy: {other:?}"),
        }
        let job = |neighbour: &Neighbour| JobSpec::cron("* * * * *", "UTC", &neighbour.queue_url);
        all[0].create(world, job(&all[0])?).await?;
        all[1].create(world, job(&all[1])?.under("one")?).await?;
        Ok(Self { sqs, all })
    }

    /// Takes what has come; a fault when the event of this minute is not among it. The clock may be some milliseconds into
    /// it: whoever waits for a rate moves it.
    ///
    /// # Errors
    /// When the machinery itself fails.
    pub async fn check(&self, world: &World) -> Result<Option<Fault>> {
        let minute_s = world.clock.now().timestamp().div_euclid(60) * 60;
        let launch_at = DateTime::from_timestamp(minute_s, 0).context("failed to read the minute")?;
        for neighbour in &self.all {
            if !neighbour.receive(world, &self.sqs).await?.contains(&launch_at) {
                return Ok(Some(Fault::Late { client: neighbour.name, launch_at }));
            }
        }
        Ok(None)
    }
}

impl Neighbour {
    async fn new(name: &'static str, world: &World) -> Result<Self> {
        Ok(Self { name, client: name.parse()?, queue_url: world.queue(name).await? })
    }

    async fn create(&self, world: &World, job: JobSpec) -> Result<()> {
        let id = Some("minutely".parse()?);
        match world.engine.jobs().create(&self.client, id, job.into_draft()).await? {
            Written::Created(_) => Ok(()),
            other => bail!("failed to create the job of {}: {other:?}", self.name),
        }
    }

    /// Takes every event off the queue and releases its token; the launch instants of those of this job.
    async fn receive(&self, world: &World, sqs: &aws_sdk_sqs::Client) -> Result<Vec<DateTime<Utc>>> {
        let mut launches = Vec::new();
        loop {
            let messages = queue::receive(sqs, &self.queue_url).await?;
            if messages.is_empty() {
                return Ok(launches);
            }
            // What is no event of a neighbour was put there by an input.
            let events = messages.iter().filter_map(|m| Received::read(m.body().unwrap_or_default()).ok());
            for event in
                events.filter(|event| event.body.client_id == self.name && event.body.job_id == "minutely")
            {
                let launch_at = event.body.launch_at.parse().context("failed to read a launch instant")?;
                launches.push(launch_at);
                if let Some(token) = event.token {
                    let release = vec![Release::new(token, Outcome::Succeeded)];
                    world.engine.tokens().release(&self.client, release).await?;
                }
            }
            queue::delete(sqs, &self.queue_url, &messages).await?;
        }
    }
}
