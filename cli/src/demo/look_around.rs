//! What to try beside the demonstration: the client's key, and calls that are ready to paste.

use std::fmt;

use serde::Serialize;

use super::BATCH_EVENTS;
use super::BATCH_JOB;
use super::due::Plan;
use super::setup::POLICY;

/// The way into a demonstration that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LookAround {
    /// The key of the demo's client.
    api_key: String,
    /// What to ask, as a shell takes it.
    calls: Vec<Call>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Call {
    about: &'static str,
    command: String,
}

impl LookAround {
    /// For the API at `api_url` and the batch of `plan`.
    pub(super) fn new(api_url: &str, api_key: &str, plan: Plan) -> Self {
        // The demo's batch is stored once, so it is at its first revision.
        let last = BATCH_EVENTS - 1;
        let event = format!("{BATCH_JOB}.1.{}.{last}", plan.batch_launch_s());
        let call = |about, path: String| {
            let command = format!("curl -s {api_url}{path} -H 'authorization: Bearer {api_key}'");
            Call { about, command }
        };
        let calls = vec![
            call("the jobs", "/v1/jobs".to_owned()),
            call("the runs of the batch", format!("/v1/jobs/{BATCH_JOB}/runs")),
            call("how full the policy is", format!("/v1/policies/{POLICY}")),
            call("why the last event waits", format!("/v1/events/{event}/explain")),
        ];
        Self { api_key: api_key.to_owned(), calls }
    }
}

impl fmt::Display for LookAround {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The key of the demo's client: {}", self.api_key)?;
        writeln!(f, "Look around in another terminal while it runs:")?;
        for Call { about, command } in &self.calls {
            writeln!(f, "  {command}   # {about}")?;
        }
        Ok(())
    }
}
