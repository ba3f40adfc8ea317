//! What a case gets: a client, a name space, and time.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{Message, QueueAttributeName};
use tidegate_domain::clock::ManualClock;
use tidegate_embedded::Embedded;

/// How a case ends: an error is a call that should have succeeded; an expectation that does not hold is an assertion.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// How time passes for the service under test.
#[derive(Clone)]
pub enum Passage {
    /// By the clock of an embedded service, at once.
    Moved(Arc<ManualClock>, Embedded),
    /// By waiting.
    Real,
}

impl Passage {
    /// Lets `seconds` pass, and a little more where that is real time.
    pub async fn pass(&self, seconds: u64) {
        match self {
            Self::Moved(clock, embedded) => {
                clock.advance_ms(i64::try_from(seconds * 1000).unwrap_or_default());
                embedded.clock_moved();
            }
            Self::Real => tokio::time::sleep(Duration::from_millis(seconds * 1000 + 200)).await,
        }
    }
}

/// One case's place to work.
#[derive(Clone)]
pub struct Bench {
    /// A client of the service under test, without retries.
    pub client: Client,
    /// What the names of all queues of this case begin with.
    pub prefix: String,
    /// How time passes there.
    pub passage: Passage,
}

impl Bench {
    /// A name for a queue of this case.
    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Creates a queue with these attributes; FIFO when its name says so. Returns its URL.
    ///
    /// # Errors
    /// Those of `CreateQueue`.
    pub async fn queue(
        &self,
        name: &str,
        attributes: &[(QueueAttributeName, &str)],
    ) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        let mut create = self.client.create_queue().queue_name(self.name(name));
        for (name, value) in attributes {
            create = create.attributes(name.clone(), *value);
        }
        if name.ends_with(".fifo") {
            create = create.attributes(QueueAttributeName::FifoQueue, "true");
        }
        Ok(create.send().await?.queue_url.unwrap_or_default())
    }

    /// Sends a message with this body; returns its id.
    ///
    /// # Errors
    /// Those of `SendMessage`.
    pub async fn send(
        &self,
        url: &str,
        body: &str,
    ) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        let sent = self.client.send_message().queue_url(url).message_body(body).send().await?;
        Ok(sent.message_id.unwrap_or_default())
    }

    /// Sends a message to a FIFO queue, with its body as deduplication id.
    ///
    /// # Errors
    /// Those of `SendMessage`.
    pub async fn send_fifo(&self, url: &str, group: &str, body: &str) -> Outcome {
        let send = self.client.send_message().queue_url(url).message_body(body);
        send.message_group_id(group).message_deduplication_id(body).send().await?;
        Ok(())
    }

    /// Receives up to ten messages without waiting.
    ///
    /// # Errors
    /// Those of `ReceiveMessage`.
    pub async fn receive(&self, url: &str) -> Result<Vec<Message>, Box<dyn std::error::Error + Send + Sync>> {
        let receive = self.client.receive_message().queue_url(url).max_number_of_messages(10);
        Ok(receive.send().await?.messages.unwrap_or_default())
    }

    /// Receives exactly one message.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub async fn receive_one(&self, url: &str) -> Result<Message, Box<dyn std::error::Error + Send + Sync>> {
        let mut messages = self.receive(url).await?;
        match (messages.pop(), messages.len()) {
            (Some(message), 0) => Ok(message),
            (last, more) => {
                Err(format!("expected one message, got {}", more + usize::from(last.is_some())).into())
            }
        }
    }

    /// The bodies of up to ten messages, received without waiting.
    ///
    /// # Errors
    /// Those of `ReceiveMessage`.
    pub async fn bodies(&self, url: &str) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.receive(url).await?.into_iter().filter_map(|message| message.body).collect())
    }

    /// Deletes a received message.
    ///
    /// # Errors
    /// Those of `DeleteMessage`.
    pub async fn delete(&self, url: &str, message: &Message) -> Outcome {
        self.client.delete_message().queue_url(url).receipt_handle(receipt(message)).send().await?;
        Ok(())
    }

    /// One attribute of a queue.
    ///
    /// # Errors
    /// Those of `GetQueueAttributes`.
    pub async fn attribute(
        &self,
        url: &str,
        name: QueueAttributeName,
    ) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        let got =
            self.client.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send().await?;
        Ok(got.attributes.unwrap_or_default().remove(&name))
    }
}

/// The receipt handle of a received message.
pub fn receipt(message: &Message) -> &str {
    message.receipt_handle().unwrap_or_default()
}

/// The error code of a call that must fail, as SDKs show it.
///
/// # Errors
/// When the call succeeded, or failed without a code.
pub fn refusal<T: Debug, E: ProvideErrorMetadata + Debug>(
    result: Result<T, E>,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    match result {
        Ok(response) => Err(format!("expected a refusal, got {response:?}").into()),
        Err(error) => error.code().map(str::to_owned).ok_or_else(|| format!("no code in {error:?}").into()),
    }
}
