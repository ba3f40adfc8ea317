//! Telling a client that a launch was not over in time: a message to the queue, or a signed POST to the endpoint, that its admin
//! named for that.
//!
//! At least once, under the id `<run>.overdue`.

use tidegate_domain::ids::{ClientId, RunId};
use tidegate_domain::retry::Retry;
use tidegate_protocol::LaunchOverdue;
use tidegate_store::overdue::Overdue;

use super::Delivery;
use super::event::rfc3339;
use super::telling::Told;
use crate::EngineError;
use crate::queues::message::{Message, Telling};

impl Delivery {
    /// Tells a client of a launch that was not over in time, now or, when that fails, later.
    pub(crate) async fn tell_overdue(
        &self,
        client: &ClientId,
        run: &RunId,
        telling: &Telling,
    ) -> Result<(), EngineError> {
        let Some(overdue) = self.store.overdue(client, run).await?.filter(|row| row.told.is_none()) else {
            return Ok(());
        };
        let Some(target) = self.store.client(client).await?.and_then(|client| client.alerts) else {
            return Ok(());
        };
        let told = Told {
            client,
            run,
            target: &target,
            id: message_id(run),
            body: serde_json::to_string(&message(client, &overdue)).unwrap_or_default(),
            since: overdue.seen_at,
        };
        let wait = |tries, asked_for, now, draw| Retry::default().wait(tries, asked_for, now, draw);
        if let Some(announced) = self.tell(told, telling, Message::Overdue, wait).await? {
            self.store.mark_told(client, run, &announced).await?;
        }
        Ok(())
    }
}

/// What a client is told of a launch that was not over in time.
fn message(client: &ClientId, overdue: &Overdue) -> LaunchOverdue {
    let run = &overdue.run;
    LaunchOverdue {
        r#type: "launch.overdue".to_owned(),
        id: message_id(run),
        client_id: client.to_string(),
        job_id: run.job().to_string(),
        run_id: run.to_string(),
        launch_at: rfc3339(run.launch_at()),
        within_seconds: overdue.within_seconds,
        state: overdue.state.as_str().to_owned(),
        reason: overdue.reason.clone(),
        seen_at: rfc3339(overdue.seen_at),
    }
}

fn message_id(run: &RunId) -> String {
    format!("{run}.overdue")
}
