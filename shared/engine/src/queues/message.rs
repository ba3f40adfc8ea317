//! What travels through the dispatch queue: JSON with short names, in the format that rows are in (`tidegate_store::FORMAT`).
//!
//! Every message may come twice, late or never: each says all that its handling needs, and handling it again changes
//! nothing that the first time has not.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_domain::ids::{ClientId, JobId, PolicyId, RunId};
use tidegate_domain::limits::{EVENTS_PER_CHUNK, SQS_BATCH};
use tidegate_domain::occurrence::Occurrence;
use tidegate_domain::pack::SinglesKind;
use tidegate_domain::sideline::SidelineOf;
use tidegate_domain::time::{ceil_second, clamped};
use tidegate_store::FORMAT;
use tidegate_store::doc::{Rest, TermsDoc};
use tidegate_store::watches::Watch;

use crate::EngineError;

/// Events of the messages that are received together, at the most.
const ARRIVALS_AT_ONCE: u32 = EVENTS_PER_CHUNK * SQS_BATCH as u32;
/// Jobs of a chunk from which on it is noted that all of them are stored. The note is a write and a read, and saves a read of each:
/// a write unit costs as much as five read units, and each of these reads is half a unit.
const NOTED_FROM: usize = 12;

/// A message of the dispatch queue, or of the scan queue. It may come twice, late or never.
///
/// ```
/// use tidegate_engine::message::Message;
///
/// let wake = Message::Wake { client: "acme".to_owned(), policy: "small".to_owned(), due_s: None };
/// assert_eq!(wake.encode(), r#"{"v":1,"wake":{"client":"acme","policy":"small"}}"#);
/// assert_eq!(Message::decode(&wake.encode())?, wake);
/// assert!(Message::decode(r#"{"v":99}"#).is_err());
/// # Ok::<(), tidegate_engine::EngineError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Events of one client that nothing throttles, due at one instant.
    Chunk(Chunk),
    /// Single events of one policy, priority, cost and instant: they are due, and have not joined its line.
    Arrival(Chunk),
    /// Events of a chunk were sent, and what became of them could not be kept: it is to be kept now.
    Sent(SentChunk),
    /// Something may be granted in a policy: look after it.
    Wake {
        /// The client whose policy it is.
        client: String,
        /// The policy's name within the client.
        policy: String,
        /// When something becomes due in it, in seconds since the epoch; absent: now.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        due_s: Option<i64>,
    },
    /// Something has waited in a policy for long: its rows are to be kept for longer.
    Retain {
        /// The client whose policy it is.
        client: String,
        /// The policy's name within the client.
        policy: String,
        /// Where the page of its line begins that is looked at; absent: at the first.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        after: Option<String>,
    },
    /// A part of a large scan waits for a worker. Travels through the scan queue.
    Scan {
        /// The id of the part's row.
        part: String,
    },
    /// What is set aside under a client, or a job, drains: the next of it is to be sent.
    Drain {
        /// The client.
        client: String,
        /// The job; absent: the whole client.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        job: Option<String>,
    },
    /// A client is being deleted: the next step of it is to be taken.
    Delete {
        /// The client.
        client: String,
        /// Which step: one that was taken is not taken again.
        step: u64,
    },
    /// A granted event that still has to reach its target.
    Event(GrantedEvent),
    /// A run has come to its end, and its client is to be told.
    Callback(Telling),
    /// A launch of a job should be over by now: it is to be looked at whether it is.
    Look {
        /// The client whose job it is.
        client: String,
        /// The name of the job.
        job: String,
        /// The instant of the watch, in seconds since the epoch.
        due_s: i64,
    },
    /// A launch was not over in time, and its client is to be told.
    Overdue(Telling),
    /// A release that could not be applied when it arrived.
    Release {
        /// The token's text, unsigned: nobody else writes to this queue.
        token: String,
        /// Whether the event succeeded; else it failed, unless it is `dead`.
        succeeded: bool,
        /// It could not be delivered: nobody released it.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        dead: bool,
        /// What its consumer said; absent: nothing.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        text: Option<String>,
    },
}

/// Events of one client, due at one instant: at most `EVENTS_PER_CHUNK`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The client whose events they are.
    #[serde(rename = "c")]
    pub client: String,
    /// The launch instant, in seconds since the epoch.
    #[serde(rename = "l")]
    pub launch_s: i64,
    /// When the rows were read that it follows from, in milliseconds since the epoch: later changes are looked up.
    #[serde(rename = "o")]
    pub as_of_ms: i64,
    /// A tick that died may have sent it already: whether it was is looked up.
    #[serde(rename = "rep", skip_serializing_if = "std::ops::Not::not", default)]
    pub repeat: bool,
    /// It was sent before its jobs were stored, and they may never have been.
    #[serde(rename = "new", skip_serializing_if = "std::ops::Not::not", default)]
    pub ahead: bool,
    /// Its events have their places among those that go in a minute, by the quota of their client.
    #[serde(rename = "g", skip_serializing_if = "std::ops::Not::not", default)]
    pub placed: bool,
    /// Which attempt of delivery this is, from 1.
    #[serde(rename = "t")]
    pub attempt: u8,
    /// When the first of the attempts before it failed, in seconds since the epoch; absent in the first one.
    #[serde(rename = "f", skip_serializing_if = "Option::is_none", default)]
    pub failing_since_s: Option<i64>,
    /// It is not sent before, in milliseconds since the epoch; absent: it is sent at its launch.
    #[serde(rename = "nb", skip_serializing_if = "Option::is_none", default)]
    pub not_before_ms: Option<i64>,
    /// The events, by run.
    #[serde(rename = "i")]
    pub items: Vec<ChunkItem>,
    /// What a newer version sent beside that: it stays when the rest of the chunk is sent later.
    #[serde(flatten)]
    pub rest: Rest,
}

/// A chunk that was sent, and what became of its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentChunk {
    /// The events that were sent. None of them is sent again because of this message.
    #[serde(rename = "s")]
    pub chunk: Chunk,
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// The id of the chunk that is to be marked as sent; absent where what is kept of its events says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mark: Option<String>,
    /// Those that were not delivered.
    #[serde(rename = "x", skip_serializing_if = "Vec::is_empty", default)]
    pub undelivered: Vec<Undelivered>,
}

/// An event of a chunk that was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    /// Its place among the events of the chunk, from 0.
    #[serde(rename = "n")]
    pub place: u32,
    /// Why, when it is dead; absent when it is tried again.
    #[serde(rename = "r", skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// Where and when single events arrive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrivalsAt {
    pub(crate) client: ClientId,
    /// Whose line it is.
    pub(crate) policy: PolicyId,
    pub(crate) kind: SinglesKind,
    /// When they are due.
    pub(crate) launch_at: DateTime<Utc>,
}

impl ArrivalsAt {
    /// Where single events arrive; `None` when that is not one line, or there are none.
    pub(crate) fn of(members: &[Occurrence]) -> Option<Self> {
        let line = |member: &Occurrence| member.terms.policy.clone().zip(SinglesKind::of(member));
        let first = members.first()?;
        let (policy, kind) =
            line(first).filter(|at| members.iter().all(|member| line(member).as_ref() == Some(at)))?;
        Some(Self { client: first.client.clone(), policy, kind, launch_at: first.launch_at })
    }
}

/// Some events of one run: at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkItem {
    /// The name of the job.
    #[serde(rename = "j")]
    pub job: String,
    /// The revision of the job that the run is of.
    #[serde(rename = "r")]
    pub revision: u32,
    /// Index of the first event.
    #[serde(rename = "a")]
    pub from: u32,
    /// Index behind the last event; at most the count of the run.
    #[serde(rename = "b")]
    pub to: u32,
    /// What each carries and where it goes.
    #[serde(rename = "d")]
    pub terms: TermsDoc,
    /// What a newer version sent beside that.
    #[serde(flatten)]
    pub rest: Rest,
}

/// A granted event that still has to reach its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedEvent {
    /// The id of the pack that it is of.
    pub pack: String,
    /// Whether it may not be wanted any more: that is asked before it is sent.
    #[serde(rename = "recheck", skip_serializing_if = "std::ops::Not::not", default)]
    pub recheck: bool,
    /// Days that what becomes of it is kept; absent: as by default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history_days: Option<u16>,
    /// The text of the token that it holds, unsigned.
    pub token: String,
    /// When the lease ends, in milliseconds since the epoch.
    pub lease_end_ms: i64,
    /// Which delivery of the event this is, from 1, not counting those that failed.
    pub attempt: u8,
    /// How many deliveries of the event its target did not take before.
    pub failures: u8,
    /// When the first of them failed, in seconds since the epoch; absent where none has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failing_since_s: Option<i64>,
    /// What a newer version sent beside that: it stays when the event is sent later.
    #[serde(flatten)]
    pub rest: Rest,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
struct Versioned<M> {
    #[serde(default = "first_format")]
    v: u32,
    #[serde(flatten)]
    message: M,
}

fn first_format() -> u32 {
    1
}

/// A client is to be told something of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telling {
    /// The client whose run it is.
    pub client: String,
    /// The id of the run, or of what would be one.
    pub run: String,
    /// How often telling failed before.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub failures: u8,
    /// When it is to be told, in seconds since the epoch; absent: now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub due_s: Option<i64>,
    /// The address of the job's heartbeat is to be told, and not whom the message is for otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub heartbeat: bool,
}

impl Telling {
    /// It is to be told now, for the first time.
    pub(crate) fn now(client: &ClientId, run: &RunId) -> Self {
        let (client, run) = (client.to_string(), run.to_string());
        Self { client, run, failures: 0, due_s: None, heartbeat: false }
    }

    /// The same once more, at an instant: telling failed `failures` times.
    pub(crate) fn again(&self, failures: u8, due_at: DateTime<Utc>) -> Self {
        Self { failures, due_s: Some(due_at.timestamp()), ..self.clone() }
    }

    /// Whose run it is of, and which.
    pub(crate) fn of(&self) -> Result<(ClientId, RunId), EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        let client = self.client.parse().map_err(|e| bad(format!("'client': {e}")))?;
        let run = self.run.parse().map_err(|e| bad(format!("'run': {e}")))?;
        Ok((client, run))
    }
}

impl Message {
    /// A wake-up of a policy in which something becomes due at an instant.
    pub(crate) fn wake(client: &ClientId, policy: &PolicyId, due_at: DateTime<Utc>) -> Self {
        // Whole seconds, rounded up: what is due is never looked at before.
        let due_s = ceil_second(due_at);
        Self::Wake { client: client.to_string(), policy: policy.to_string(), due_s: Some(due_s) }
    }

    /// Has the rows of what waits in a policy kept for longer, from a page of its line on.
    pub(crate) fn retain(client: &ClientId, policy: &PolicyId, after: Option<String>) -> Self {
        Self::Retain { client: client.to_string(), policy: policy.to_string(), after }
    }

    /// Has what is set aside under a client or a job sent.
    pub(crate) fn drain(client: &ClientId, of: &SidelineOf) -> Self {
        let job = match of {
            SidelineOf::Client => None,
            SidelineOf::Job(job) => Some(job.to_string()),
        };
        Self::Drain { client: client.to_string(), job }
    }

    /// Has a job looked at of which a launch should be over.
    pub(crate) fn look(watch: &Watch) -> Self {
        let Watch { client, job, due, .. } = watch;
        Self::Look { client: client.to_string(), job: job.to_string(), due_s: due.timestamp() }
    }

    /// The same kind of message with other events.
    pub(crate) fn with(&self, chunk: Chunk) -> Self {
        match self {
            Self::Arrival(_) => Self::Arrival(chunk),
            _ => Self::Chunk(chunk),
        }
    }

    /// Its JSON text, in format `FORMAT`.
    pub fn encode(&self) -> String {
        // Serialising plain structs to a string has no way to fail.
        serde_json::to_string(&Versioned { v: FORMAT, message: self }).unwrap_or_default()
    }

    /// Reads what [`Message::encode`] wrote, in this version or an earlier one.
    ///
    /// # Errors
    /// [`EngineError::Message`] when the text is no message, [`EngineError::NewerMessage`] when it is one of a newer format.
    pub fn decode(text: &str) -> Result<Self, EngineError> {
        if let Some(message) = Self::decode_as_written(text) {
            return Ok(message);
        }
        let bad = |reason: String| EngineError::Message { reason };
        let versioned: Versioned<Self> = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
        match versioned.v {
            format if format <= FORMAT => Ok(versioned.message),
            format => Err(EngineError::NewerMessage { format }),
        }
    }

    /// One that stands as this version writes it: the format, and nothing else beside the message. With others serde makes a tree of
    /// the whole before it reads it, which was a twentieth of a herd's time.
    fn decode_as_written(text: &str) -> Option<Self> {
        let message = text.strip_prefix(&format!(r#"{{"v":{FORMAT},"#))?;
        serde_json::from_str(&format!("{{{message}")).ok()
    }
}

impl Chunk {
    /// Its client and launch instant.
    ///
    /// # Errors
    /// When they are not what this version writes.
    pub(crate) fn head(&self) -> Result<(ClientId, DateTime<Utc>), EngineError> {
        self.head_of(EVENTS_PER_CHUNK)
    }

    /// The same of arrivals: those of messages that were received together are handled as one.
    ///
    /// # Errors
    /// When they are not what this version writes.
    pub(crate) fn head_of_arrivals(&self) -> Result<(ClientId, DateTime<Utc>), EngineError> {
        self.head_of(ARRIVALS_AT_ONCE)
    }

    fn head_of(&self, most: u32) -> Result<(ClientId, DateTime<Utc>), EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        let client = self.client.parse().map_err(|e| bad(format!("'c': {e}")))?;
        let mut events = 0_u32;
        for ChunkItem { from, to, .. } in &self.items {
            let of_item = to.checked_sub(*from).filter(|of_item| *of_item > 0);
            let of_item = of_item.ok_or_else(|| bad(format!("'i': no event lies from {from} to {to}")))?;
            events = events.saturating_add(of_item);
        }
        if events > most {
            return Err(bad(format!("'i': {events} events; {most} is the most")));
        }
        let launch_at =
            DateTime::from_timestamp(self.launch_s, 0).ok_or_else(|| bad("'l': no instant".into()))?;
        Ok((client, clamped(launch_at)))
    }

    /// From when on it is sent: its launch, or the end of the wait after a failure.
    pub(crate) fn due_at(&self, launch_at: DateTime<Utc>) -> DateTime<Utc> {
        let not_before = self.not_before_ms.and_then(DateTime::from_timestamp_millis);
        not_before.map_or(launch_at, |not_before| clamped(not_before).max(launch_at))
    }

    /// Whether it is noted when all its jobs are stored, so that nobody looks for each of them.
    pub(crate) fn is_noted(&self) -> bool {
        self.ahead && self.items.len() >= NOTED_FROM
    }

    /// Whether its events are redriven: they are not delivered for the first time, and none is sent again by itself.
    pub(crate) fn is_redriven(&self) -> bool {
        self.attempt > 1 && self.failing_since_s.is_none()
    }

    /// The line that its events arrive at, and the occurrences that they are of.
    ///
    /// # Errors
    /// When they are not single events for one line.
    pub(crate) fn arrivals(&self) -> Result<(ArrivalsAt, Vec<Occurrence>), EngineError> {
        let (client, launch_at) = self.head_of_arrivals()?;
        let members: Vec<Occurrence> =
            self.items.iter().map(|item| item.occurrence(&client, launch_at)).collect::<Result<_, _>>()?;
        match ArrivalsAt::of(&members) {
            Some(at) => Ok((at, members)),
            None => Err(EngineError::Message { reason: "'i': they are not for one line".to_owned() }),
        }
    }

    /// What it is known by, in 32 hex digits: the same events in the same attempt have the same id, whoever sends them. One that
    /// went ahead of its jobs has another: that it came says nothing of those that were stored after it.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        let ahead = if self.ahead { " ahead" } else { "" };
        hash.update(format!("{} {} {}{ahead}", self.client, self.launch_s, self.attempt));
        for item in &self.items {
            hash.update(format!(" {} {} {} {}", item.job, item.revision, item.from, item.to));
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl ChunkItem {
    /// The occurrence that its events belong to.
    ///
    /// # Errors
    /// When it is not what this version writes.
    pub(crate) fn occurrence(
        &self,
        client: &ClientId,
        launch_at: DateTime<Utc>,
    ) -> Result<Occurrence, EngineError> {
        let bad = |reason: String| EngineError::Message { reason };
        let job: JobId = self.job.parse().map_err(|e| bad(format!("'j': {e}")))?;
        let terms = self.terms.read().map_err(|e| bad(format!("'d': {e}")))?;
        let count = terms.count.get();
        if self.to > count {
            return Err(bad(format!("'b': {} is beyond the {count} events of the run", self.to)));
        }
        Ok(Occurrence { client: client.clone(), job, revision: self.revision, launch_at, terms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_is_pinned() {
        let wake = Message::Wake { client: "acme".into(), policy: "small".into(), due_s: None };
        assert_eq!(wake.encode(), r#"{"v":1,"wake":{"client":"acme","policy":"small"}}"#);
        let telling = |failures, heartbeat| Telling {
            client: "acme".into(),
            run: "nightly.1.5".into(),
            failures,
            due_s: (failures > 0).then_some(7),
            heartbeat,
        };
        for (message, text) in [
            (
                Message::Callback(telling(0, false)),
                r#"{"v":1,"callback":{"client":"acme","run":"nightly.1.5"}}"#,
            ),
            (
                Message::Callback(telling(2, true)),
                r#"{"v":1,"callback":{"client":"acme","run":"nightly.1.5","failures":2,"due_s":7,"heartbeat":true}}"#,
            ),
            (
                Message::Overdue(telling(1, false)),
                r#"{"v":1,"overdue":{"client":"acme","run":"nightly.1.5","failures":1,"due_s":7}}"#,
            ),
        ] {
            assert_eq!(message.encode(), text);
            assert_eq!(Message::decode(text).unwrap(), message);
        }
        let chunk = r#"{"v":1,"chunk":{"c":"acme","l":1790000000,"o":1789999900000,"t":1,"i":[{"j":"nightly","r":2,"a":0,"b":1,"d":{"n":1,"q":"https://x/1/a","b":"null","m":5}}]}}"#;
        for text in [chunk.to_owned(), chunk.replacen("chunk", "arrival", 1)] {
            let message = Message::decode_as_written(&text).unwrap();
            assert_eq!(message.encode(), text);
            assert_eq!(Message::decode(&text.replacen(":1", ": 1", 1)).unwrap(), message);
        }
    }

    #[test]
    fn the_wire_form_of_what_was_sent_is_pinned() {
        let sent = r#"{"v":1,"sent":{"s":{"c":"acme","l":1790000000,"o":1789999900000,"t":1,"i":[{"j":"nightly","r":2,"a":0,"b":1,"d":{"n":1,"q":"https://x/1/a","b":"null","m":5}}]},"at_ms":1790000000500,"mark":"ab","x":[{"n":0,"r":"no such queue"}]}}"#;
        let message = Message::decode(sent).unwrap();
        assert!(matches!(&message, Message::Sent(sent) if sent.undelivered[0].place == 0));
        assert_eq!(message.encode(), sent);
    }

    #[test]
    fn what_a_newer_version_sent_is_read_and_kept() {
        let wake = Message::Wake { client: "acme".into(), policy: "small".into(), due_s: None };
        for text in [
            r#"{"wake":{"client":"acme","policy":"small"}}"#,
            r#"{"v":1,"moon":1,"wake":{"client":"acme","policy":"small","tide":[2]}}"#,
        ] {
            assert_eq!(Message::decode(text).unwrap(), wake);
        }
        for text in [
            r#"{"v":1,"chunk":{"c":"acme","l":1,"o":1,"t":1,"i":[{"j":"a","r":2,"a":0,"b":1,"d":{"n":1,"q":"https://x/1/a","m":5,"moon":1},"moon":2}],"moon":{"full":true}}}"#,
            r#"{"v":1,"event":{"pack":"a.1.2","token":"t","lease_end_ms":1,"attempt":1,"failures":0,"moon":3}}"#,
        ] {
            assert_eq!(Message::decode(text).unwrap().encode(), text);
        }
    }

    #[test]
    fn what_is_no_message_is_refused_and_says_why() {
        for text in ["", "{}", "not json", r#"{"v":1,"nap":{}}"#] {
            assert!(matches!(Message::decode(text), Err(EngineError::Message { .. })), "{text}");
        }
        let newer = Message::decode(r#"{"v":2,"wake":{"client":"a","policy":"b"}}"#);
        assert!(matches!(newer, Err(EngineError::NewerMessage { format: 2 })), "{newer:?}");
    }

    #[test]
    fn a_chunk_of_events_that_are_none_or_too_many_is_refused() {
        let chunk = |ranges: &[(u32, u32)]| {
            let terms = serde_json::from_str(r#"{"n":1000,"q":"https://x/1/a","m":5}"#).unwrap();
            let item = |(from, to): &(u32, u32)| ChunkItem {
                job: "a".into(),
                revision: 1,
                from: *from,
                to: *to,
                terms: TermsDoc::clone(&terms),
                rest: Rest::default(),
            };
            let items = ranges.iter().map(item).collect();
            let rest = Rest::default();
            Chunk {
                client: "acme".into(),
                launch_s: 1,
                as_of_ms: 1,
                repeat: false,
                ahead: false,
                placed: false,
                attempt: 1,
                failing_since_s: None,
                not_before_ms: None,
                items,
                rest,
            }
        };
        let read = |ranges: &[(u32, u32)]| {
            let chunk = chunk(ranges);
            let (client, launch_at) = chunk.head()?;
            chunk.items.iter().try_for_each(|item| item.occurrence(&client, launch_at).map(drop))
        };
        assert!(read(&[(0, 100)]).is_ok() && read(&[(900, 950), (960, 1_000)]).is_ok());
        for ranges in
            [&[(0, u32::MAX)][..], &[(0, 101)], &[(0, 60), (60, 120)], &[(2, 1)], &[(1, 1)], &[(999, 1_001)]]
        {
            assert!(matches!(read(ranges), Err(EngineError::Message { .. })), "{ranges:?}");
        }
    }

    #[test]
    fn a_chunk_is_known_by_its_events_not_by_when_it_was_planned() {
        let chunk = |as_of_ms, to| Chunk {
            client: "acme".into(),
            launch_s: 1,
            as_of_ms,
            repeat: as_of_ms > 1,
            ahead: false,
            placed: false,
            attempt: 1,
            failing_since_s: None,
            not_before_ms: None,
            items: vec![ChunkItem {
                job: "a".into(),
                revision: 1,
                from: 0,
                to,
                terms: serde_json::from_str(r#"{"n":1,"q":"https://x/1/a","m":5}"#).unwrap(),
                rest: Rest::default(),
            }],
            rest: Rest::default(),
        };
        assert_eq!(chunk(1, 1).id(), chunk(2, 1).id());
        assert_ne!(chunk(1, 1).id(), chunk(1, 2).id());
    }
}
