//! Queues: what travels through our own, how batches are cut, and a look at a consumer's queue.

pub(crate) mod batch;
mod inbox;
pub mod message;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::QueueAttributeName;
use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tidegate_calls::{Attribute, BatchEntry, RefusedEntry, send_batch};
use tidegate_domain::clock::Clock;
use tidegate_domain::ids::ClientId;
use tidegate_domain::limits::{DUE_MS_ATTRIBUTE, SQS_BATCH, SQS_DELAY_SECONDS, WRITE_ROUNDS};
use tidegate_domain::policy::PolicyRef;
use tidegate_domain::quota::DeliveryShare;
use tidegate_domain::sideline::SidelineOf;
use tidegate_domain::target::queue_name;
use tidegate_domain::time::ceil_second;
use tidegate_store::Pause as _;
use tidegate_store::clients::Deletion;

use crate::EngineError;
use crate::bus::BusTarget;
use crate::outgoing::sqs_text;
use crate::pauses::Pauses;
use crate::reach::PrivateTargets;
use crate::regions::Regions;
use crate::services::Services;
use batch::{batches, blames_a_message, blames_its_entry};
pub use inbox::Redelivery;
use message::{GrantedEvent, Message, Telling};
use turns::Turns;

/// A message that comes more than this before it is due was cut short by the longest delay of SQS, in seconds. Within it,
/// clocks that differ may be the reason.
const EARLY_SECONDS: i64 = 60;
/// Batch calls under way at once.
const CALLS_AT_ONCE: usize = 16;
/// What the attribute of a delayed message adds to its size, in bytes: name, type and value.
const DUE_BYTES: usize = DUE_MS_ATTRIBUTE.len() + "Number".len() + 13;

/// What differs between deployments. On AWS `template.yaml` says it.
#[derive(Debug, Clone)]
pub struct Config {
    /// The URL of the queue between emission and delivery.
    pub dispatch_queue_url: String,
    /// The URL of the queue of the parts of large scans.
    pub scan_queue_url: String,
    /// The URL of the queue that consumers release tokens through.
    pub release_queue_url: String,
    /// The URL of the queue where messages of the dispatch and scan queues end that will never be handled.
    pub dead_letter_queue_url: String,
    /// The URL of the queue where messages of the release queue end that are none.
    pub release_dead_letter_queue_url: String,
    /// Which private, loopback and link-local addresses HTTP targets may have.
    pub private_targets: PrivateTargets,
    /// How the services are reached that targets other than queues and endpoints are in. By default they are not.
    pub services: Services,
    /// Where what runs and events came to is published. By default nowhere.
    pub bus: BusTarget,
    /// Whether is kept, minute by minute, what goes on in policies, a write unit and some reads for each in which something does; by
    /// day what is emitted for clients, and by hour how late their events come, a write unit each for five minutes.
    pub samples: bool,
}

impl Config {
    /// The URLs of the queues of the deployment itself.
    pub fn own_queues(&self) -> [&str; 5] {
        let Self {
            dispatch_queue_url,
            scan_queue_url,
            release_queue_url,
            dead_letter_queue_url,
            release_dead_letter_queue_url,
            private_targets: _,
            services: _,
            bus: _,
            samples: _,
        } = self;
        [
            dispatch_queue_url,
            scan_queue_url,
            release_queue_url,
            dead_letter_queue_url,
            release_dead_letter_queue_url,
        ]
    }
}

/// Sends to our own queues.
pub struct Queues {
    sqs: aws_sdk_sqs::Client,
    regions: Arc<Regions>,
    clock: Arc<dyn Clock>,
    pauses: Pauses,
    config: Config,
    turns: Turns,
}

/// What came of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// It can be deleted: its work is done, or it was set aside with its reason.
    Done,
    /// It must come again, later: see [`Queues::put_off`]. After the `maxReceiveCount` of `template.yaml` it ends in the
    /// dead-letter queue.
    Retry,
}

/// A message for the dispatch queue.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    message: Message,
    /// By whose name the fair-queue group is found: a noisy client delays itself only.
    client: ClientId,
    not_before: Option<DateTime<Utc>>,
}

impl Outgoing {
    pub(crate) fn now(client: &ClientId, message: Message) -> Self {
        Self { message, client: client.clone(), not_before: None }
    }

    /// A message that is seen at `not_before` or up to a second later, never earlier.
    pub(crate) fn at(client: &ClientId, message: Message, not_before: DateTime<Utc>) -> Self {
        Self { message, client: client.clone(), not_before: Some(not_before) }
    }

    /// Asks for the next step of a client's deletion, when it may be taken.
    pub(crate) fn next_step(client: &ClientId, deletion: &Deletion) -> Self {
        let message = Message::Delete { client: client.to_string(), step: deletion.step };
        Self::at(client, message, deletion.not_before())
    }

    /// Wake-ups of policies, the earliest first: one for each second in which something becomes due in one.
    pub(crate) fn wakes(due: impl IntoIterator<Item = (PolicyRef, DateTime<Utc>)>) -> Vec<Self> {
        let mut wakes = BTreeMap::new();
        for (policy, due_at) in due {
            wakes.entry((ceil_second(due_at), policy)).or_insert(due_at);
        }
        let wake = |((_, PolicyRef { client, policy }), due_at)| {
            Self::at(&client, Message::wake(&client, &policy, due_at), due_at)
        };
        wakes.into_iter().map(wake).collect()
    }

    /// Has what is set aside under a client or a job drained from now on.
    pub(crate) fn drain(client: &ClientId, of: &SidelineOf) -> Self {
        Self::now(client, Message::drain(client, of))
    }

    /// Whose it is and what it is about, for logs and errors.
    fn describe(&self) -> String {
        match &self.message {
            Message::Chunk(chunk) | Message::Arrival(chunk) => {
                let job = chunk.items.first().map_or("", |item| &*item.job);
                format!("client {}, job {job}", self.client)
            }
            Message::Sent(sent) => {
                let job = sent.chunk.items.first().map_or("", |item| &*item.job);
                format!("client {}, job {job}, sent", self.client)
            }
            Message::Event(GrantedEvent { pack, .. }) => format!("client {}, pack {pack}", self.client),
            Message::Callback(Telling { run, .. }) | Message::Overdue(Telling { run, .. }) => {
                format!("client {}, run {run}", self.client)
            }
            Message::Look { job, .. } => format!("client {}, job {job}", self.client),
            Message::Wake { policy, .. } | Message::Retain { policy, .. } => {
                format!("client {}, policy {policy}", self.client)
            }
            Message::Release { .. }
            | Message::Scan { .. }
            | Message::Drain { .. }
            | Message::Delete { .. } => {
                format!("client {}", self.client)
            }
        }
    }

    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    fn delay_seconds(&self, now: DateTime<Utc>) -> i32 {
        let Some(not_before) = self.not_before else { return 0 };
        let ms = (not_before - now).num_milliseconds().max(0);
        let seconds = (ms + 999) / 1_000;
        // What has to wait for longer comes so early that it is seen to be, and is sent on for the rest.
        let most = i64::from(SQS_DELAY_SECONDS);
        let delay = if seconds > most { most - EARLY_SECONDS } else { seconds };
        i32::try_from(delay).unwrap_or(i32::MAX)
    }
}

/// What a look at a consumer's queue told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueCheck {
    /// There is a queue under this URL that we may look at.
    Exists {
        /// Whether it is a FIFO queue, by the end of its name.
        fifo: bool,
    },
    /// There is none under this URL.
    Missing,
    /// It is one of our own (dispatch, scan or release), or its name begins like one's, as that of dead letters does:
    /// no target.
    Ours,
    /// No message of ours can reach it, for this reason: we may not look at it, or it is where no role of ours is known.
    OutOfReach(String),
    /// SQS did not say; it refused the question for this reason, or did not answer.
    Unknown(String),
}

/// What became of a call.
enum Taken {
    /// All of its messages, but for those that are named as refused.
    AllThatWillBe,
    /// None: SQS refuses the call because of what is in it.
    Refused { reason: String },
}

/// A message that the dispatch queue will never take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The place of the message among those that were to be sent.
    pub(crate) index: usize,
    /// What SQS said.
    pub(crate) reason: String,
}

/// A message as it is sent.
struct Entry<'m> {
    index: usize,
    body: String,
    outgoing: &'m Outgoing,
}

impl Queues {
    pub(crate) fn new(
        sqs: aws_sdk_sqs::Client,
        regions: Arc<Regions>,
        clock: Arc<dyn Clock>,
        pauses: Pauses,
        config: Config,
    ) -> Self {
        Self { sqs, regions, clock, pauses, config, turns: Turns::default() }
    }

    /// Gives the messages of some clients more turns than one from now on, and all others one.
    pub(crate) fn go_by_shares(&self, shares: &BTreeMap<ClientId, DeliveryShare>) {
        self.turns.go_by(shares);
    }

    /// What differs between deployments.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sends messages to the dispatch queue, as many to a call as it may hold. Entries that are refused for a reason that
    /// may pass are sent again a few times, each time after a longer pause.
    ///
    /// # Errors
    /// When some were not taken. Those that were are handled all the same: whatever sends again must be idempotent.
    pub(crate) async fn dispatch(&self, messages: &[Outgoing]) -> Result<(), EngineError> {
        match self.dispatch_each(messages).await?.into_iter().next() {
            None => Ok(()),
            Some(Refusal { index, reason }) => {
                let who = messages.get(index).map(Outgoing::describe).unwrap_or_default();
                Err(EngineError::Queue { sent: messages.len(), reason, who })
            }
        }
    }

    /// The same for messages of many: one that SQS will never take is named, and stops no other.
    ///
    /// # Errors
    /// When the queue does not answer, or took some not for a reason that may pass.
    pub(crate) async fn dispatch_each(&self, messages: &[Outgoing]) -> Result<Vec<Refusal>, EngineError> {
        let entries = messages.iter().enumerate().map(|(index, outgoing)| {
            let body = sqs_text(outgoing.message.encode());
            let bytes = body.len() + DUE_BYTES;
            (Entry { index, body, outgoing }, bytes)
        });
        let calls: Vec<_> = batches(entries).into_iter().map(|batch| self.dispatch_batch(batch)).collect();
        // All of them, whatever becomes of one.
        let answers: Vec<_> = stream::iter(calls).buffer_unordered(CALLS_AT_ONCE).collect().await;
        let answers: Vec<Vec<Refusal>> = answers.into_iter().collect::<Result<_, _>>()?;
        Ok(answers.into_iter().flatten().collect())
    }

    async fn dispatch_batch(&self, batch: Vec<Entry<'_>>) -> Result<Vec<Refusal>, EngineError> {
        let mut open = vec![batch];
        let mut refusals = Vec::new();
        while let Some(mut batch) = open.pop() {
            match self.dispatch_call(&batch, &mut refusals).await? {
                Taken::AllThatWillBe => {}
                // Half of it at a time, until the message that is to blame stands alone.
                Taken::Refused { reason } if batch.len() == 1 => {
                    refusals.extend(
                        batch.iter().map(|entry| Refusal { index: entry.index, reason: reason.clone() }),
                    );
                }
                Taken::Refused { .. } => {
                    let half = batch.split_off(batch.len() / 2);
                    open.extend([half, batch]);
                }
            }
        }
        Ok(refusals)
    }

    async fn dispatch_call(
        &self,
        batch: &[Entry<'_>],
        refusals: &mut Vec<Refusal>,
    ) -> Result<Taken, EngineError> {
        let who = || batch.first().map(|entry| entry.outgoing.describe()).unwrap_or_default();
        let failed = |reason: String| EngineError::Queue { sent: batch.len(), reason, who: who() };
        let mut left: Vec<&Entry<'_>> = batch.iter().collect();
        let mut reason = String::new();
        for round in 1..=WRITE_ROUNDS {
            if round > 1 && !self.pauses.before(round).await {
                break;
            }
            let entries: Vec<_> = left.iter().map(|entry| self.entry(entry)).collect();
            let queue_url = &self.config.dispatch_queue_url;
            let refused = match send_batch(&self.sqs, queue_url, &entries, self.regions.way()).await {
                Ok(refused) => refused,
                Err(error) => {
                    let reason = told(&error);
                    return match error.code().is_some_and(blames_a_message) {
                        true => Ok(Taken::Refused { reason }),
                        false => Err(failed(reason)),
                    };
                }
            };
            let mut again = Vec::new();
            for RefusedEntry { index, code, reason: told, .. } in refused {
                match left.get(index).copied() {
                    Some(entry) if blames_its_entry(&code) => {
                        refusals.push(Refusal { index: entry.index, reason: told });
                    }
                    entry => {
                        again.extend(entry);
                        reason = told;
                    }
                }
            }
            if again.is_empty() {
                return Ok(Taken::AllThatWillBe);
            }
            left = again;
        }
        Err(failed(reason))
    }

    fn entry<'e>(&self, Entry { body, outgoing, .. }: &'e Entry<'_>) -> BatchEntry<'e> {
        let delay_seconds = outgoing.delay_seconds(self.clock.now());
        let due_at = outgoing.not_before.filter(|_| delay_seconds > 0);
        let due = due_at.map(|due_at| {
            let value = due_at.timestamp_millis().to_string();
            Attribute { name: DUE_MS_ATTRIBUTE, kind: "Number", value }
        });
        BatchEntry {
            body: body.into(),
            attributes: due.into_iter().collect(),
            delay_seconds: Some(delay_seconds),
            group_id: Some(self.turns.group(&outgoing.client)),
            deduplication_id: None,
        }
    }

    /// Whether a message came before its time, because no delay is long enough: it is sent again with the rest.
    pub(crate) fn is_early(&self, due_at: DateTime<Utc>) -> bool {
        (due_at - self.clock.now()).num_seconds() > EARLY_SECONDS
    }

    /// Tells workers of parts, through the scan queue.
    pub(crate) async fn send_parts(&self, ids: &[String]) -> Result<(), EngineError> {
        let calls: Vec<_> = ids.chunks(SQS_BATCH).map(|ids| self.send_parts_call(ids)).collect();
        let sent: Vec<_> = stream::iter(calls).buffer_unordered(CALLS_AT_ONCE).collect().await;
        sent.into_iter().collect()
    }

    async fn send_parts_call(&self, ids: &[String]) -> Result<(), EngineError> {
        let failed = |reason: String| EngineError::ScanQueue { reason };
        let entry = |part: &String| {
            let body = Message::Scan { part: part.clone() }.encode();
            BatchEntry { body: body.into(), ..BatchEntry::default() }
        };
        let entries: Vec<_> = ids.iter().map(entry).collect();
        let queue_url = &self.config.scan_queue_url;
        let refused = send_batch(&self.sqs, queue_url, &entries, self.regions.way()).await;
        match refused.map_err(|e| failed(told(&e)))?.into_iter().next() {
            None => Ok(()),
            Some(RefusedEntry { reason, .. }) => Err(failed(reason)),
        }
    }

    /// Whether a URL names a queue of our own, whose messages nobody else may write.
    pub(crate) fn is_own_queue(&self, queue_url: &str) -> bool {
        self.config.own_queues().iter().any(|own_url| is_same_or_beside(own_url, queue_url))
    }

    /// Looks whether a consumer's queue is there, by one call to SQS. Never fails: what went wrong is `Unknown`.
    pub fn check_queue<'a>(&'a self, queue_url: &'a str) -> BoxFuture<'a, QueueCheck> {
        Box::pin(async move {
            if self.is_own_queue(queue_url) {
                return QueueCheck::Ours;
            }
            if let Some(partition) = self.regions.other_partition(queue_url) {
                let reason =
                    format!("it is in the partition {partition} of AWS, where no role of Tidegate is known");
                return QueueCheck::OutOfReach(reason);
            }
            let look = self.regions.client_of(queue_url).get_queue_attributes().queue_url(queue_url);
            match look.attribute_names(QueueAttributeName::QueueArn).send().await {
                Ok(_) => QueueCheck::Exists { fifo: queue_url.ends_with(".fifo") },
                Err(e) if e.as_service_error().is_some_and(|e| e.is_queue_does_not_exist()) => {
                    QueueCheck::Missing
                }
                Err(e) if e.code().is_some_and(|code| code.contains("NonExistentQueue")) => {
                    QueueCheck::Missing
                }
                Err(e) if e.code().is_some_and(is_not_allowed) => QueueCheck::OutOfReach(told(&e)),
                Err(e) => QueueCheck::Unknown(told(&e)),
            }
        })
    }
}

/// Whether a code says that no repeat will be allowed either: by a policy, by a key's, or since the account has not enabled the
/// region, where its credentials are not known then.
fn is_not_allowed(code: &str) -> bool {
    let of_regions = ["InvalidClientTokenId", "UnrecognizedClientException", "OptInRequired"];
    code.contains("AccessDenied") || of_regions.contains(&code)
}

/// What SQS said of a call, or the connection.
fn told<E, R>(error: &SdkError<E, R>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug,
{
    error.message().map_or_else(|| error.to_string(), str::to_owned)
}

/// Whether `queue_url` names the queue of `own_url`, or one whose name begins with its name as its dead letters' does.
///
/// Names alone are compared: hosts have several spellings, and the embedded SQS goes by the name whatever the account. A
/// URL that names no queue is taken for ours, since nobody can tell where it leads.
fn is_same_or_beside(own_url: &str, queue_url: &str) -> bool {
    match (queue_name(own_url), queue_name(queue_url)) {
        (Some(own), Some(other)) => other.starts_with(own),
        (_, other) => other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_not_enabled_is_out_of_reach_as_a_queue_that_is_not_allowed_is() {
        for (code, is) in [
            ("AccessDenied", true),
            ("AccessDeniedException", true),
            ("KMS.AccessDeniedException", true),
            ("InvalidClientTokenId", true),
            ("UnrecognizedClientException", true),
            ("OptInRequired", true),
            ("RequestThrottled", false),
            ("InternalFailure", false),
        ] {
            assert_eq!(is_not_allowed(code), is, "{code}");
        }
    }

    #[test]
    fn our_own_queues_are_known_under_any_host() {
        let own = "https://sqs.eu-west-1.amazonaws.com/123456789012/tidegate-dispatch";
        for (url, ours) in [
            (own, true),
            ("https://eu-west-1.queue.amazonaws.com/123456789012/tidegate-dispatch", true),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/tidegate-dispatch-dead-letters", true),
            ("https://sqs.eu-west-1.amazonaws.com//123456789012/tidegate-dispatch", true),
            ("http://127.0.0.1:9324/000000000000/x/tidegate-dispatch", true),
            ("http://127.0.0.1:9324//tidegate-dispatch", true),
            ("http://127.0.0.1:9324/0/tidegate-dispatch", true),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs", false),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/my-tidegate-dispatch", false),
        ] {
            assert_eq!(is_same_or_beside(own, url), ours, "{url}");
        }
    }
}
