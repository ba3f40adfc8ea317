//! A consumer's queue, read with the AWS SDK.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{Credentials, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::inbox::{Event, Inbox};

/// How long one receive call waits for a message, in seconds.
const WAIT_SECONDS: i32 = 2;
/// How long to wait before a deployed queue is asked again.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// A standard queue of this test's own.
#[derive(Debug)]
pub struct Queue {
    sqs: Client,
    url: String,
    poller: Option<JoinHandle<()>>,
}

impl Queue {
    /// Creates a queue of this name at `AWS_ENDPOINT_URL`.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn create(name: &str) -> Result<Self> {
        Self::create_by(client().await, name).await
    }

    /// Creates a queue of this name in another region.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn create_in(region: &'static str, name: &str) -> Result<Self> {
        let config = client().await.config().to_builder().region(Region::new(region));
        Self::create_by(Client::from_conf(config.build()), name).await
    }

    /// Creates a queue of this name with other credentials.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn create_with(credentials: Credentials, name: &str) -> Result<Self> {
        let config = client().await.config().to_builder().credentials_provider(credentials);
        Self::create_by(Client::from_conf(config.build()), name).await
    }

    async fn create_by(sqs: Client, name: &str) -> Result<Self> {
        let created = sqs.create_queue().queue_name(name).send().await?;
        let url = created.queue_url.context("a created queue has no URL")?;
        Ok(Self { sqs, url, poller: None })
    }

    /// The queue with this URL.
    pub async fn at(url: &str) -> Self {
        Self { sqs: client().await, url: url.to_owned(), poller: None }
    }

    /// Lets an account make these calls, which is another than the queue's.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn admit(&self, account: &str, actions: &[&str]) -> Result<()> {
        let arn = QueueAttributeName::QueueArn;
        let asked = self.sqs.get_queue_attributes().queue_url(&self.url).attribute_names(arn.clone());
        let attributes = asked.send().await?.attributes.unwrap_or_default();
        let statement = json!({"Effect": "Allow", "Action": actions, "Resource": attributes.get(&arn),
            "Principal": {"AWS": format!("arn:aws:iam::{account}:root")}});
        let policy = json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
        let set = self.sqs.set_queue_attributes().queue_url(&self.url);
        set.attributes(QueueAttributeName::Policy, policy).send().await?;
        Ok(())
    }

    /// Creates a queue with the tag of the queues of a stack.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn create_of_stack(name: &str, stack: &str) -> Result<Self> {
        let sqs = client().await;
        let created = sqs.create_queue().queue_name(name).tags("tidegate:stack", stack).send().await?;
        let url = created.queue_url.context("a created queue has no URL")?;
        Ok(Self { sqs, url, poller: None })
    }

    /// The queue whose name ends like this, and which is there already.
    ///
    /// # Errors
    /// When there is none.
    pub async fn find(ending: &str) -> Result<Self> {
        let sqs = client().await;
        let urls = sqs.list_queues().send().await?.queue_urls.unwrap_or_default();
        let url = urls.into_iter().find(|url| url.ends_with(ending));
        Ok(Self { sqs, url: url.with_context(|| format!("no queue ends in {ending}"))?, poller: None })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn send(&self, body: &str) -> Result<()> {
        self.sqs.send_message().queue_url(&self.url).message_body(body).send().await?;
        Ok(())
    }

    /// Asks again and again, until no message is in the queue or in flight.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn until_empty(&self) -> Result<()> {
        let counts = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        loop {
            let asked = self.sqs.get_queue_attributes().queue_url(&self.url);
            let answer = asked.set_attribute_names(Some(counts.to_vec())).send().await?;
            let attributes = answer.attributes.unwrap_or_default();
            if counts.iter().all(|name| attributes.get(name).is_some_and(|count| count == "0")) {
                return Ok(());
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    /// The next message, whatever it is; it is deleted.
    ///
    /// # Errors
    /// When none comes within a time, or the service refuses.
    pub async fn next_message(&self, within: Duration) -> Result<String> {
        let receive = async {
            loop {
                let received =
                    self.sqs.receive_message().queue_url(&self.url).wait_time_seconds(WAIT_SECONDS);
                let Some(message) = received.send().await?.messages.unwrap_or_default().pop() else {
                    continue;
                };
                let receipt = message.receipt_handle.unwrap_or_default();
                self.sqs.delete_message().queue_url(&self.url).receipt_handle(receipt).send().await?;
                return Ok::<String, anyhow::Error>(message.body.unwrap_or_default());
            }
        };
        tokio::time::timeout(within, receive).await.context("no message in time")?
    }

    /// Its URL, as a job's target names it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts to receive into an inbox, until this queue is dropped.
    pub fn receive_into(&mut self, inbox: Inbox) {
        let (sqs, url) = (self.sqs.clone(), self.url.clone());
        self.poller = Some(tokio::spawn(async move {
            loop {
                if let Err(error) = receive_once(&sqs, &url, &inbox).await {
                    inbox.deliver(Err(error.context("failed to receive")));
                    return;
                }
            }
        }));
    }

    /// Removes the queue.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn remove(mut self) -> Result<()> {
        self.stop();
        self.sqs.delete_queue().queue_url(&self.url).send().await?;
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(poller) = self.poller.take() {
            poller.abort();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The credentials of another account: what `TIDEGATE_E2E_OTHER_ACCESS_KEY_ID` and `TIDEGATE_E2E_OTHER_SECRET_ACCESS_KEY` say. An
/// emulator on this machine takes the number of an account for its key.
///
/// # Errors
/// When they are not set, and somebody else's AWS needs them.
pub fn another_account() -> Result<Credentials> {
    let other = |name: &str| env::var(format!("TIDEGATE_E2E_OTHER_{name}"));
    let endpoint = env::var("AWS_ENDPOINT_URL").unwrap_or_default();
    let is_here = ["http://127.0.0.1:", "http://localhost:"].iter().any(|here| endpoint.starts_with(here));
    let (key, secret) = match (other("ACCESS_KEY_ID"), other("SECRET_ACCESS_KEY")) {
        (Ok(key), Ok(secret)) => (key, secret),
        _ if is_here => ("111122223333".to_owned(), "other".to_owned()),
        _ => bail!("TIDEGATE_E2E_OTHER_ACCESS_KEY_ID and TIDEGATE_E2E_OTHER_SECRET_ACCESS_KEY are not set"),
    };
    Ok(Credentials::new(key, secret, other("SESSION_TOKEN").ok(), None, "the other account"))
}

async fn client() -> Client {
    let http =
        aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(http).load().await;
    Client::new(&config)
}

async fn receive_once(sqs: &Client, url: &str, inbox: &Inbox) -> Result<()> {
    let received = sqs
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(10)
        .wait_time_seconds(WAIT_SECONDS)
        .send()
        .await?;
    for message in received.messages.unwrap_or_default() {
        inbox.deliver(Event::read(message.body.as_deref().unwrap_or_default()));
        let handle = message.receipt_handle.context("a received message has no receipt")?;
        sqs.delete_message().queue_url(url).receipt_handle(handle).send().await?;
    }
    Ok(())
}
