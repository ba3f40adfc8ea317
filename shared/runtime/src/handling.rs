//! The handler loops: each long-polls a queue of ours and hands its messages to the engine. Stand in for the event source
//! mappings of the functions and for their answers of failed messages.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use tidegate_calls::{Call as _, Way};
use tidegate_domain::limits::SQS_BATCH;
use tidegate_engine::{Engine, Handled, Redelivery};
use tracing::{error, warn};

use crate::stop::{Stop, Wait};

/// How long a receive waits for messages, in seconds: the most that SQS allows.
const POLL_SECONDS: i32 = 20;
/// How long a loop rests when the queue itself fails.
const REST: Duration = Duration::from_secs(1);

/// A queue of ours, as a handler sees it.
pub(crate) struct Inbox {
    sqs: Client,
    way: Way,
    url: String,
    handling: Handling,
}

/// How the messages of a receive are handled.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handling {
    /// As messages of the dispatch queue or the scan queue.
    Dispatched,
    /// As messages of the release queue.
    Releases,
}

/// A message that was handled, and how it leaves the queue or stays.
struct Answered {
    receipt: String,
    received: u32,
    handled: Handled,
}

/// Receives, handles and acknowledges until the runtime stops; what is in hand then is finished.
pub(crate) async fn handle_messages(engine: Engine, inbox: Inbox, mut stop: Stop) {
    loop {
        let received = tokio::select! {
            biased;
            () = stop.asked() => return,
            received = inbox.receive() => received,
        };
        match received {
            Some(messages) => {
                inbox.acknowledge(&engine, handle(&engine, inbox.handling, messages).await).await;
                // The embedded stores answer without a pause: without this one, a busy handler would keep its thread.
                tokio::task::yield_now().await;
            }
            None if stop.wait(REST).await == Wait::Stopped => return,
            None => {}
        }
    }
}

/// Handles the messages of a receive together: one that waits for an HTTP target keeps no other waiting.
async fn handle(engine: &Engine, handling: Handling, messages: Vec<Message>) -> Vec<Answered> {
    let texts: Vec<(&str, u32)> =
        messages.iter().map(|m| (m.body.as_deref().unwrap_or_default(), times_received(m))).collect();
    let handled = match handling {
        Handling::Dispatched => engine.handle_all(&texts).await,
        Handling::Releases => engine.handle_releases(&texts).await,
    };
    let answered = |(message, handled): (Message, Handled)| {
        let received = times_received(&message);
        Answered { receipt: message.receipt_handle.unwrap_or_default(), received, handled }
    };
    messages.into_iter().zip(handled).map(answered).collect()
}

fn times_received(message: &Message) -> u32 {
    let attributes = message.attributes.as_ref();
    attributes
        .and_then(|all| all.get(&MessageSystemAttributeName::ApproximateReceiveCount)?.parse().ok())
        .unwrap_or(1)
}

impl Inbox {
    pub(crate) fn new((sqs, way): (Client, Way), url: String, handling: Handling) -> Self {
        Self { sqs, way, url, handling }
    }

    /// `None` when the queue failed.
    async fn receive(&self) -> Option<Vec<Message>> {
        let receive = self
            .sqs
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(SQS_BATCH as i32)
            .wait_time_seconds(POLL_SECONDS)
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        match receive.send_by(&self.way).await {
            Ok(received) => Some(received.messages.unwrap_or_default()),
            Err(error) => {
                error!(%error, queue = self.url, "a queue of ours gives no messages");
                None
            }
        }
    }

    /// Deletes what is done, and makes what is not come again soon.
    async fn acknowledge(&self, engine: &Engine, answered: Vec<Answered>) {
        let (done, again): (Vec<_>, Vec<_>) =
            answered.into_iter().enumerate().partition(|(_, answered)| answered.handled == Handled::Done);
        self.delete(done).await;
        let again =
            again.into_iter().map(|(_, Answered { receipt, received, .. })| Redelivery { receipt, received });
        engine.queues().put_off(&self.url, &again.collect::<Vec<_>>()).await;
    }

    async fn delete(&self, done: Vec<(usize, Answered)>) {
        let entry = |(id, answered): (usize, Answered)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(id.to_string())
                .receipt_handle(answered.receipt)
                .build()
                .ok()
        };
        let entries: Vec<_> = done.into_iter().filter_map(entry).collect();
        if entries.is_empty() {
            return;
        }
        let delete = self.sqs.delete_message_batch().queue_url(&self.url).set_entries(Some(entries));
        match delete.send_by(&self.way).await {
            Ok(out) if out.failed().is_empty() => {}
            Ok(out) => warn!(failed = ?out.failed(), "handled messages stay and will come again"),
            Err(error) => warn!(%error, "handled messages stay and will come again"),
        }
    }
}
