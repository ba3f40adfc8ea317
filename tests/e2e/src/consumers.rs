//! What stands beside the deployment for the tests to point jobs at, from the environment that `cargo xtask e2e` sets: targets in
//! other services, and the consumers' examples.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::api::Api;

/// How long a run may take whose longest event takes [`LONG_WORK_SECONDS`].
const RUN_WITHIN: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How long an example may take to end after its last event.
const END_WITHIN: Duration = Duration::from_secs(60);

/// The lease of the events, in seconds: the shortest there is.
const LEASE_SECONDS: u64 = 10;
/// How long the work of one of them takes: its lease ends before that unless it is extended.
const LONG_WORK_SECONDS: u64 = 14;
/// How many events there are, of which one takes long and one fails.
const COUNT: usize = 8;
/// How many may be in flight.
const LIMIT: usize = 3;
/// What the one that fails says.
const ERROR: &str = "the shop does not answer";

/// What stands beside the deployment.
#[derive(Debug, Clone, Deserialize)]
pub struct Consumers {
    /// The address of the API for programs of their own.
    pub url: String,
    /// The key of the client whose events the functions consume.
    pub key: String,
    /// What the stack says where things are.
    outputs: BTreeMap<String, String>,
    /// How the examples are called that read a queue, by their language.
    examples: BTreeMap<String, Vec<String>>,
}

impl Consumers {
    /// Reads `TIDEGATE_E2E_CONSUMERS`.
    ///
    /// # Errors
    /// When it is not set or does not read: these tests never pass by not running.
    pub fn from_environment() -> Result<Self> {
        let text = env::var("TIDEGATE_E2E_CONSUMERS");
        let text =
            text.context("TIDEGATE_E2E_CONSUMERS is not set; run these tests with `cargo xtask e2e`")?;
        serde_json::from_str(&text).context("TIDEGATE_E2E_CONSUMERS does not read")
    }

    /// An output of the stack.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn output(&self, name: &str) -> Result<&str> {
        self.outputs.get(name).map(String::as_str).with_context(|| format!("the stack has no {name}"))
    }

    /// Starts the example of a language, which ends by itself after the events of one [`Work`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_example(&self, language: &str, queue_url: &str, key: &str) -> Result<Example> {
        let words = self.examples.get(language).with_context(|| format!("no example in {language}"))?;
        let (program, arguments) = words.split_first().context("an example without a program")?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped());
        command.env("TIDEGATE_URL", &self.url).env("TIDEGATE_API_KEY", key).env("QUEUE_URL", queue_url);
        command.env("COUNT", COUNT.to_string());
        let child = command.spawn().with_context(|| format!("failed to start {words:?}"))?;
        Ok(Example { child })
    }
}

/// An example that runs. It is killed when dropped.
#[derive(Debug)]
pub struct Example {
    child: Child,
}

impl Example {
    /// Waits for its end, and gives the ids that it printed.
    ///
    /// # Errors
    /// When it does not end in time, or not well, or printed an id twice.
    pub async fn end(mut self) -> Result<BTreeSet<String>> {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    return Ok::<_, anyhow::Error>(status);
                }
                sleep(POLL_EVERY).await;
            }
        };
        let status = timeout(END_WITHIN, ended).await.context("it does not end after its last event")??;
        ensure!(status.success(), "it ended with {status}");
        let mut text = String::new();
        self.child.stdout.take().context("its output is not read")?.read_to_string(&mut text)?;
        let printed: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        ensure!(printed.len() == text.lines().count(), "it worked on an event twice:\n{text}");
        Ok(printed)
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It may have ended, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A batch under a policy whose work says itself how long it takes and whether it fails, as the examples read it.
#[derive(Debug)]
pub struct Work<'a> {
    /// The API with the client's key.
    pub api: &'a Api,
    /// The job, and its policy.
    pub job_id: &'a str,
}

impl Work<'_> {
    /// Schedules it to a queue, a few seconds from now.
    ///
    /// # Errors
    /// When the API refuses.
    pub async fn schedule(&self, queue_url: &str) -> Result<()> {
        let policy =
            json!({"policy_id": self.job_id, "max_in_flight": LIMIT, "lease_seconds": LEASE_SECONDS});
        self.api.post("/v1/policies", policy).await?.expect(201)?;
        let mut payloads = vec![json!({}); COUNT];
        payloads[1] = json!({"seconds": LONG_WORK_SECONDS});
        payloads[2] = json!({"error": ERROR});
        let at = (Utc::now() + TimeDelta::seconds(3)).to_rfc3339_opts(SecondsFormat::Secs, true);
        let job = json!({"trigger": {"at": at}, "policy_id": self.job_id, "payloads": payloads,
            "target": {"sqs": {"queue_url": queue_url}}});
        self.api.put(&format!("/v1/jobs/{}", self.job_id), job).await?.expect(201)?;
        Ok(())
    }

    /// Waits until its run has finished, and gives the ids of its events.
    ///
    /// # Errors
    /// When it does not finish in time, when another event failed than the one that was to, or when one was delivered twice.
    pub async fn see_through(&self) -> Result<BTreeSet<String>> {
        let runs = format!("/v1/jobs/{}/runs", self.job_id);
        let finished = async {
            loop {
                let run = self.api.get(&runs).await?.expect(200)?["runs"][0].clone();
                if run["state"] == "finished" {
                    return Ok::<Value, anyhow::Error>(run);
                }
                sleep(POLL_EVERY).await;
            }
        };
        let run = match timeout(RUN_WITHIN, finished).await {
            Ok(run) => run?,
            Err(_) => anyhow::bail!("not finished: {}", self.api.get(&runs).await?.expect(200)?),
        };
        let counts = ["succeeded", "failed", "expired", "dead", "left_out"].map(|name| run[name].clone());
        ensure!(counts == [COUNT - 1, 1, 0, 0, 0], "the run ended otherwise: {run}");
        let run_id = run["run_id"].as_str().context("a run without an id")?;
        let listed = self.api.get(&format!("{runs}/{run_id}/events")).await?.expect(200)?;
        let events = listed["events"].as_array().context("no list of events")?;
        ensure!(events.iter().all(|event| event["attempts"] == 1), "the lease of one ended: {listed}");
        let failed: Vec<_> = events.iter().filter(|event| event["status"] == "failed").collect();
        ensure!(failed.len() == 1 && failed[0]["index"] == 2, "another failed: {listed}");
        // A language may put the name of an exception before its text.
        let error = failed[0]["error"].as_str().unwrap_or_default();
        ensure!(error.ends_with(ERROR), "it failed otherwise: {}", failed[0]);
        Ok((0..COUNT).map(|index| format!("{run_id}.{index}")).collect())
    }
}
