//! A consumer that works a throttled batch off, and never holds more of it than its policy allows.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use crate::api::Api;
use crate::inbox::{Event, Inbox};

/// Real minutes pass until a schedule fires.
const FIRST_WITHIN: Duration = Duration::from_secs(240);
/// A freed token brings the next event much sooner; the rest is for a busy machine.
const NEXT_WITHIN: Duration = Duration::from_secs(60);
/// How long a consumer that releases nothing watches that nothing more comes.
const QUIET_FOR: Duration = Duration::from_secs(5);
const HISTORY_WITHIN: Duration = Duration::from_secs(60);
const HISTORY_POLL_EVERY: Duration = Duration::from_millis(500);

/// A batch that is expected, and where it arrives.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The API with the client's key.
    pub api: &'a Api,
    /// Its job.
    pub job_id: &'a str,
    /// The number of its events.
    pub count: usize,
    /// The tokens of its policy.
    pub limit: usize,
    /// What its events carry.
    pub payload: &'a Value,
    /// Where arrivals are counted.
    pub inbox: &'a Inbox,
}

impl Batch<'_> {
    /// Takes all events: first as many as there are tokens, while nothing more may come, then one for each release.
    ///
    /// # Errors
    /// When an event is missing, comes twice or early, is not what was scheduled, or more are held than allowed.
    pub async fn work_off(&self, events: &mut UnboundedReceiver<Result<Event>>) -> Result<()> {
        let mut held = VecDeque::new();
        while held.len() < self.limit {
            let patience = if held.is_empty() { FIRST_WITHIN } else { NEXT_WITHIN };
            held.push_back(self.next(events, patience).await?);
        }
        let beyond = timeout(QUIET_FOR, events.recv()).await;
        ensure!(beyond.is_err(), "{} tokens are held, and yet this arrives: {beyond:?}", self.limit);

        let mut seen = held.len();
        while let Some(event) = held.pop_front() {
            self.release(&event).await?;
            if seen < self.count {
                held.push_back(self.next(events, NEXT_WITHIN).await?);
                seen += 1;
            }
        }
        let beyond = timeout(QUIET_FOR, events.recv()).await;
        ensure!(beyond.is_err(), "all {} events were released, and yet this arrives: {beyond:?}", self.count);
        self.check_the_count()
    }

    /// Waits until the API's history tells of one run with all events succeeded.
    ///
    /// # Errors
    /// When it does not in time, or tells anything else.
    pub async fn check_the_history(&self) -> Result<()> {
        let path = format!("/v1/jobs/{}/runs", self.job_id);
        let finished = async {
            loop {
                let runs = self.api.get(&path).await?.expect(200)?;
                if runs["runs"][0]["succeeded"] == self.count {
                    return Ok::<Value, anyhow::Error>(runs);
                }
                sleep(HISTORY_POLL_EVERY).await;
            }
        };
        let runs = match timeout(HISTORY_WITHIN, finished).await {
            Ok(runs) => runs?,
            Err(_) => anyhow::bail!("not all succeeded: {}", self.api.get(&path).await?.expect(200)?),
        };
        let [run] = runs["runs"].as_array().context("no list of runs")?.as_slice() else {
            anyhow::bail!("wanted one run, got {runs}");
        };
        ensure!(run["count"] == self.count && run["failed"] == 0, "the run's count is wrong: {run}");
        let run_id = run["run_id"].as_str().context("a run without an id")?;

        let events = self.api.get(&format!("{path}/{run_id}/events")).await?.expect(200)?;
        let listed = events["events"].as_array().context("no list of events")?;
        let told: Vec<Value> = listed.iter().map(|event| json!([event["index"], event["status"]])).collect();
        let expected: Vec<Value> = (0..self.count).map(|index| json!([index, "succeeded"])).collect();
        ensure!(told == expected, "the run's events are wrong: {events}");
        Ok(())
    }

    async fn next(&self, events: &mut UnboundedReceiver<Result<Event>>, within: Duration) -> Result<Event> {
        let arrival = timeout(within, events.recv()).await;
        let event = arrival
            .with_context(|| format!("no event within {within:?}; so far {:?}", self.inbox.count()))?
            .context("the consumer has ended")??;
        ensure!(event.arrived_at >= event.launch_at, "early: {event:?}");
        ensure!(event.message["job_id"] == self.job_id, "another job's event: {event:?}");
        ensure!(event.message["count"] == self.count, "another batch's event: {event:?}");
        ensure!(event.message["payload"] == *self.payload, "another payload: {event:?}");
        Ok(event)
    }

    async fn release(&self, event: &Event) -> Result<()> {
        let token = event.token.as_deref().with_context(|| format!("no token in {event:?}"))?;
        self.inbox.finish(&event.event_id);
        self.api.release(token).await
    }

    fn check_the_count(&self) -> Result<()> {
        let count = self.inbox.count();
        ensure!(count.most_held == self.limit, "{} were held at once, not {}", count.most_held, self.limit);
        ensure!(count.deliveries.len() == self.count, "wanted {} events, got {count:?}", self.count);
        ensure!(count.deliveries.values().all(|times| *times == 1), "an event came twice: {count:?}");
        Ok(())
    }
}
