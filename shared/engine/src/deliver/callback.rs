//! Telling a client that a run has come to its end: whom `on_completion` of its job names, and the address of its heartbeat.
//!
//! It travels through the dispatch queue, so nobody who counts the last outcome waits for an endpoint. The ids are
//! `<run>.completed` and `<run>.heartbeat`.
//!
//! A heartbeat is spoken as Healthchecks does: a call of its address says that all events succeeded, one of `/fail` beneath it that
//! some did not. Where a job has nobody else to tell, the run is marked when it was told; otherwise its mark is of the completion.

use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::target::Target;
use tidegate_protocol::Completion;
use tidegate_store::runs::RunRow;

use super::Delivery;
use super::event::rfc3339;
use super::telling::Told;
use crate::EngineError;
use crate::outgoing::beneath;
use crate::queues::message::{Message, Telling};

impl Delivery {
    /// Tells a client of a run's end, now or, when that fails, later.
    pub(crate) async fn call_back(
        &self,
        client: &ClientId,
        run: &RunId,
        telling: &Telling,
    ) -> Result<(), EngineError> {
        let Some(row) = self.store.run(client, run).await? else { return Ok(()) };
        let flow = &row.terms.flow;
        let (target, id) = match telling.heartbeat {
            true => {
                (flow.heartbeat.as_deref().map(|target| pinged(target, &row)), format!("{run}.heartbeat"))
            }
            false => (flow.on_completion.clone(), completion_id(run)),
        };
        let Some(target) = target else { return Ok(()) };
        let is_marked = !telling.heartbeat || flow.on_completion.is_none();
        if is_marked && row.announced.is_some() {
            return Ok(());
        }
        let told = Told {
            client,
            run,
            target: &target,
            id,
            body: serde_json::to_string(&completion(client, &row)).unwrap_or_default(),
            // From the end of the run on: the first call comes soon after it.
            since: row.last_outcome_at.unwrap_or_else(|| self.clock.now()),
        };
        let wait = |tries, asked_for, now, draw| row.terms.retry_in(tries, asked_for, now, draw);
        if let Some(announced) = self.tell(told, telling, Message::Callback, wait).await?
            && is_marked
        {
            self.store.mark_announced(client, run, &announced).await?;
        }
        Ok(())
    }
}

/// The address of a heartbeat that says how a run ended.
fn pinged(target: &Target, run: &RunRow) -> Target {
    let is_well = run.stopped.is_none() && run.tally.succeeded == run.terms.count.get();
    match target {
        Target::Http { url, call } if !is_well => {
            Target::Http { url: beneath(url, "fail"), call: call.clone() }
        }
        target => target.clone(),
    }
}

/// What a client is told of a run's end.
fn completion(client: &ClientId, run: &RunRow) -> Completion {
    let tally = run.tally;
    Completion {
        r#type: "run.completed".to_owned(),
        id: completion_id(&run.id),
        run_id: run.id.to_string(),
        job_id: run.id.job().to_string(),
        client_id: client.to_string(),
        state: if run.stopped.is_some() { "stopped" } else { "finished" }.to_owned(),
        reason: run.stopped.clone(),
        count: run.terms.count.get(),
        succeeded: tally.succeeded,
        failed: tally.failed,
        expired: tally.expired,
        dead: tally.dead,
        left_out: tally.left_out,
        launch_at: rfc3339(run.id.launch_at()),
        started_at: run.started_at.map(rfc3339),
        finished_at: run.last_outcome_at.map(rfc3339),
    }
}

fn completion_id(run: &RunId) -> String {
    format!("{run}.completed")
}
