//! Where events are delivered, and what a client may name as such a place.

use thiserror::Error;

use crate::arn::{Arn, ArnError, Service};
use crate::http_call::HttpCall;
use crate::limits::{
    DETAIL_TYPE_BYTES, EVENT_SOURCE_BYTES, EVENTS_PER_CHUNK, HTTP_EVENTS_PER_CHUNK, MESSAGE_GROUP_BYTES,
    TARGET_URL_BYTES,
};

/// A consumer's address: where events and completions are sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A standard or FIFO queue, by its URL. A FIFO queue gets a group and the event id for deduplication.
    Sqs {
        /// `https://sqs.<region>.amazonaws.com/<account>/<name>`, or an emulator's form of it.
        queue_url: String,
        /// What its messages are in order by, if it is a FIFO queue.
        group: MessageGroup,
    },
    /// An HTTP endpoint that is called once per event.
    Http {
        /// `http://` or `https://`, with a host, at most [`TARGET_URL_BYTES`].
        url: String,
        /// How it is called.
        call: Box<HttpCall>,
    },
    /// An event bus of EventBridge, by its ARN.
    EventBridge {
        /// Its ARN.
        bus: Arn,
        /// What its rules know events by.
        label: Box<BusLabel>,
    },
    /// A standard or FIFO topic of SNS. A FIFO topic gets group and deduplication id as a FIFO queue does.
    Sns {
        /// Its ARN.
        topic: Arn,
    },
    /// A function of Lambda, which is invoked and not waited for.
    Lambda {
        /// Its ARN.
        function: Arn,
    },
    /// A state machine of Step Functions, of which each delivery starts an execution.
    StepFunctions {
        /// Its ARN.
        machine: Arn,
    },
}

/// What the messages of a FIFO queue are in order by: those of one client with the same group come one after the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum MessageGroup {
    /// The job of the event.
    #[default]
    Job,
    /// Its policy; its job, where it has none.
    Policy,
    /// Always this: 1 to [`MESSAGE_GROUP_BYTES`] letters, digits, '-', '_' and '.'.
    Fixed(Box<str>),
}

impl MessageGroup {
    /// Reads a group as it is written: `job`, `policy`, or a name that is fixed.
    ///
    /// # Errors
    /// [`TargetError::Group`] when it is none of these.
    pub fn new(text: &str) -> Result<Self, TargetError> {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        match text {
            "job" => Ok(Self::Job),
            "policy" => Ok(Self::Policy),
            _ if (1..=MESSAGE_GROUP_BYTES).contains(&text.len()) && text.bytes().all(is_sign) => {
                Ok(Self::Fixed(text.into()))
            }
            _ => Err(TargetError::Group { value: text.chars().take(80).collect() }),
        }
    }

    /// As it is written; `None` where nobody wrote it.
    pub fn named(&self) -> Option<&str> {
        match self {
            Self::Job => None,
            Self::Policy => Some("policy"),
            Self::Fixed(name) => Some(name),
        }
    }
}

/// Source and detail type of the events that a job puts on a bus.
///
/// Invariant: neither is empty, longer than EventBridge takes it, or one that only AWS may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BusLabel {
    source: Option<String>,
    detail_type: Option<String>,
}

/// The source of events whose job names none.
pub const DEFAULT_SOURCE: &str = "tidegate";
/// The detail type of events whose job names none.
pub const DEFAULT_DETAIL_TYPE: &str = "Event";

impl BusLabel {
    /// A label of what a job names of it.
    ///
    /// # Errors
    /// [`TargetError::Label`].
    pub fn new(source: Option<&str>, detail_type: Option<&str>) -> Result<Self, TargetError> {
        let check = |field: &'static str, text: Option<&str>, most: usize| {
            let is_right = |text: &&str| {
                (1..=most).contains(&text.len())
                    && !text.chars().any(char::is_control)
                    && !(field == "source" && text.starts_with("aws."))
            };
            match text {
                Some(text) if !is_right(&text) => {
                    Err(TargetError::Label { field, value: text.chars().take(60).collect(), most })
                }
                text => Ok(text.map(str::to_owned)),
            }
        };
        Ok(Self {
            source: check("source", source, EVENT_SOURCE_BYTES)?,
            detail_type: check("detail_type", detail_type, DETAIL_TYPE_BYTES)?,
        })
    }

    /// What the events' source is.
    pub fn source(&self) -> &str {
        self.source.as_deref().unwrap_or(DEFAULT_SOURCE)
    }

    /// What their detail type is.
    pub fn detail_type(&self) -> &str {
        self.detail_type.as_deref().unwrap_or(DEFAULT_DETAIL_TYPE)
    }

    /// Source and detail type as far as the job names them.
    pub fn named(&self) -> (Option<&str>, Option<&str>) {
        (self.source.as_deref(), self.detail_type.as_deref())
    }
}

/// How events reach targets of a kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Transport {
    /// The kind, as logs name it, such as `sqs`.
    pub name: &'static str,
    /// The field of a job that names a target of the kind, such as `queue_url`.
    pub url_field: &'static str,
    /// Events that one message of the dispatch queue holds, so that its handling fits into a call of the handler.
    pub events_per_chunk: u32,
    /// Whether an event is sent where it was given its token. What takes time travels through the dispatch queue first, so that
    /// nobody who hands tokens on waits for it.
    pub is_inline: bool,
}

/// Queues take ten events to a call, at once.
const QUEUE: Transport =
    Transport { name: "sqs", url_field: "queue_url", events_per_chunk: EVENTS_PER_CHUNK, is_inline: true };
/// Endpoints take one event to a call, for as long as they like.
const ENDPOINT: Transport =
    Transport { name: "http", url_field: "url", events_per_chunk: HTTP_EVENTS_PER_CHUNK, is_inline: false };

/// Ten entries to a call.
const BUS: Transport = Transport::of_service(Service::EventBridge, EVENTS_PER_CHUNK);
const TOPIC: Transport = Transport::of_service(Service::Sns, EVENTS_PER_CHUNK);
/// One event to a call.
const FUNCTION: Transport = Transport::of_service(Service::Lambda, HTTP_EVENTS_PER_CHUNK);
const MACHINE: Transport = Transport::of_service(Service::StepFunctions, HTTP_EVENTS_PER_CHUNK);

impl Transport {
    /// Events for other services travel through the dispatch queue: only the handler may call these.
    const fn of_service(service: Service, events_per_chunk: u32) -> Self {
        Self { name: service.kind(), url_field: service.field(), events_per_chunk, is_inline: false }
    }
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Longer than [`TARGET_URL_BYTES`].
    #[error("{field} is {bytes} bytes long; {TARGET_URL_BYTES} is the most")]
    TooLong {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
        /// Its size, in bytes.
        bytes: usize,
    },
    /// Not the ARN of what it should be.
    #[error(transparent)]
    Arn(#[from] ArnError),
    /// A source or detail type that EventBridge would not take.
    #[error(
        "{field} '{value}' must have 1 to {most} bytes, without control characters; a source must not begin with 'aws.'"
    )]
    Label {
        /// The field that carries it.
        field: &'static str,
        /// What was given, or its beginning.
        value: String,
        /// The most that it may have, in bytes.
        most: usize,
    },
    /// Not an http or https URL with a host.
    #[error("{field} '{value}' is not a URL; give one that begins with https:// or http:// and names a host")]
    NotAUrl {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
        /// What was given.
        value: String,
    },
    /// A user name or password in the URL: it would be shown wherever the job is. The value is not repeated.
    #[error("{field} carries a user name or password before its host; remove it, signatures prove who calls")]
    Credentials {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
    },
    /// A backslash, which some programs read as a slash: what the URL names would depend on its reader.
    #[error("{field} '{value}' has a backslash; write it with '/'")]
    Backslash {
        /// The field that carries it, as [`Transport::url_field`].
        field: &'static str,
        /// What was given.
        value: String,
    },
    /// A group that cannot be one.
    #[error(
        "message_group '{value}' is neither 'job' nor 'policy' nor a name of 1 to {MESSAGE_GROUP_BYTES} letters, digits, '-', '_' \
         and '.'"
    )]
    Group {
        /// What was given, or its beginning.
        value: String,
    },
    /// A group for a queue without groups.
    #[error("message_group orders the messages of a FIFO queue, whose name ends in .fifo; leave it out")]
    GroupWithoutFifo,
    /// A queue URL whose path is not exactly `/<account>/<name>`.
    #[error(
        "queue_url '{value}' names no queue; after its host it must be exactly /<account>/<queue name>, with an account \
         of up to 12 digits and a name of up to 80 letters, digits, '-' and '_', with '.fifo' behind it for a FIFO queue"
    )]
    NoQueue {
        /// What was given.
        value: String,
    },
}

impl Target {
    /// A queue by its URL.
    ///
    /// ```
    /// use tidegate_domain::target::Target;
    ///
    /// let queue = Target::sqs("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs")?;
    /// assert!(queue.transport().is_inline);
    /// assert!(queue.is_covered_by("https://sqs.eu-west-1.amazonaws.com/123456789012/*"));
    /// assert!(Target::sqs("https://sqs.eu-west-1.amazonaws.com/jobs").is_err(), "it names no account");
    /// # Ok::<(), tidegate_domain::target::TargetError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Target::http`], and [`TargetError::NoQueue`] when the path is not `/<account>/<name>`.
    pub fn sqs(queue_url: &str) -> Result<Self, TargetError> {
        check_url("queue_url", queue_url)?;
        match queue_name(queue_url) {
            Some(_) => Ok(Self::Sqs { queue_url: queue_url.to_owned(), group: MessageGroup::Job }),
            None => Err(TargetError::NoQueue { value: queue_url.to_owned() }),
        }
    }

    /// The same queue with its messages in order by another group.
    ///
    /// # Errors
    /// [`TargetError::GroupWithoutFifo`] when it is no FIFO queue.
    pub fn grouped(self, group: MessageGroup) -> Result<Self, TargetError> {
        match self {
            Self::Sqs { queue_url, .. } if queue_url.ends_with(".fifo") => Ok(Self::Sqs { queue_url, group }),
            _ => Err(TargetError::GroupWithoutFifo),
        }
    }

    /// An HTTP endpoint by its URL, which gets a POST of each event.
    ///
    /// # Errors
    /// [`TargetError::TooLong`], [`TargetError::NotAUrl`], [`TargetError::Credentials`] or [`TargetError::Backslash`],
    /// for an address that each of them describes.
    pub fn http(url: &str) -> Result<Self, TargetError> {
        check_url("url", url)?;
        Ok(Self::Http { url: url.to_owned(), call: Box::default() })
    }

    /// The same target, called in another way; any other kind as it is.
    #[must_use]
    pub fn called(self, call: HttpCall) -> Self {
        match self {
            Self::Http { url, .. } => Self::Http { url, call: Box::new(call) },
            other => other,
        }
    }

    /// What an ARN stands for; a bus gets events with source and detail type as by default.
    pub fn by_arn(arn: Arn) -> Self {
        match arn.service() {
            Service::EventBridge => Self::EventBridge { bus: arn, label: Box::default() },
            Service::Sns => Self::Sns { topic: arn },
            Service::Lambda => Self::Lambda { function: arn },
            Service::StepFunctions => Self::StepFunctions { machine: arn },
        }
    }

    /// The same target, with events labelled so on their bus; any other kind as it is.
    #[must_use]
    pub fn labelled(self, label: BusLabel) -> Self {
        match self {
            Self::EventBridge { bus, .. } => Self::EventBridge { bus, label: Box::new(label) },
            other => other,
        }
    }

    /// Its address: a URL or an ARN.
    pub fn address(&self) -> &str {
        match self {
            Self::Sqs { queue_url, .. } => queue_url,
            Self::Http { url, .. } => url,
            Self::EventBridge { bus: arn, .. }
            | Self::Sns { topic: arn }
            | Self::Lambda { function: arn }
            | Self::StepFunctions { machine: arn } => arn.as_str(),
        }
    }

    /// Its ARN, where that is its address.
    pub fn arn(&self) -> Option<&Arn> {
        match self {
            Self::Sqs { .. } | Self::Http { .. } => None,
            Self::EventBridge { bus: arn, .. }
            | Self::Sns { topic: arn }
            | Self::Lambda { function: arn }
            | Self::StepFunctions { machine: arn } => Some(arn),
        }
    }

    /// How events reach it.
    pub fn transport(&self) -> &'static Transport {
        match self {
            Self::Sqs { .. } => &QUEUE,
            Self::Http { .. } => &ENDPOINT,
            Self::EventBridge { .. } => &BUS,
            Self::Sns { .. } => &TOPIC,
            Self::Lambda { .. } => &FUNCTION,
            Self::StepFunctions { .. } => &MACHINE,
        }
    }

    /// Whether a pattern of a client's allow-list covers it: the address itself, or a text whose single `*` stands for
    /// any run of characters. The scheme is part of the text, so a queue and an endpoint are told apart by it.
    ///
    /// Invariant: a star in the host with text behind it covers names of hosts only. It crosses none of the characters
    /// that end a host, so `https://*.acme.example/hook` covers nothing of `https://evil.example/.acme.example/hook`. In the
    /// same way a star in an ARN with text behind it stays within its part: it crosses no colon.
    pub fn is_covered_by(&self, pattern: &str) -> bool {
        let address = self.address();
        let Some((head, tail)) = pattern.split_once('*') else { return address == pattern };
        let Some(run) = address.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail)) else {
            return false;
        };
        let is_in_host = head.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        let leaves = match self.arn() {
            Some(_) => run.contains(':'),
            None => is_in_host && run.contains(['/', '?', '#', '\\', '@']),
        };
        tail.is_empty() || !leaves
    }
}

/// The name of the queue that a URL stands for; `None` when its path is not exactly `/<account>/<name>`.
///
/// One reading for acceptance and delivery: whoever compares two queues compares these.
pub fn queue_name(queue_url: &str) -> Option<&str> {
    let (_, rest) = queue_url.split_once("://")?;
    let mut segments = rest.split('/');
    let (Some(_host), Some(account), Some(name), None) =
        (segments.next(), segments.next(), segments.next(), segments.next())
    else {
        return None;
    };
    let is_account = matches!(account.len(), 1..=12) && account.bytes().all(|b| b.is_ascii_digit());
    let base = name.strip_suffix(".fifo").unwrap_or(name);
    let is_name = matches!(name.len(), 1..=80)
        && !base.is_empty()
        && base.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (is_account && is_name).then_some(name)
}

fn check_url(field: &'static str, text: &str) -> Result<(), TargetError> {
    if text.len() > TARGET_URL_BYTES {
        return Err(TargetError::TooLong { field, bytes: text.len() });
    }
    let bad = || TargetError::NotAUrl { field, value: text.to_owned() };
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or_else(bad)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(TargetError::Credentials { field });
    }
    if text.contains('\\') {
        return Err(TargetError::Backslash { field, value: text.to_owned() });
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(bad());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_queues_and_endpoints_are_targets() {
        assert!(Target::sqs("https://sqs.eu-west-1.amazonaws.com/123456789012/jobs").is_ok());
        assert!(Target::http("http://127.0.0.1:8000/hook").is_ok());
        for bad in ["jobs", "ftp://x/1/2", "https://", "https:///a/b", "http://a b/c/d"] {
            assert!(matches!(Target::sqs(bad), Err(TargetError::NotAUrl { .. })), "{bad}");
        }
        for no_queue in [
            "http://localhost:9324/jobs",
            "http://localhost:9324/000000000000/x/tidegate-dispatch",
            "http://localhost:9324//tidegate-dispatch",
            "http://localhost:9324//0/tidegate-dispatch",
            "http://localhost:9324/000000000000/jobs/",
            "http://localhost:9324/000000000000/jobs?x",
            "http://localhost:9324/000000000000/jobs#x",
            "http://localhost:9324/000000000000/%6aobs",
            "http://localhost:9324/0000000000000/jobs",
            "http://localhost:9324/me/jobs",
            "http://localhost:9324/000000000000/.fifo",
            "http://localhost:9324/000000000000/jobs.fifo.fifo",
        ] {
            assert!(matches!(Target::sqs(no_queue), Err(TargetError::NoQueue { .. })), "{no_queue}");
        }
        assert!(Target::sqs("http://localhost:9324/000000000000/jobs-1_X.fifo").is_ok());
        let backslash = "https://evil.example\\.acme.example/hook";
        assert!(matches!(Target::http(backslash), Err(TargetError::Backslash { .. })));
        assert!(matches!(Target::http("https://me:secret@x/"), Err(TargetError::Credentials { .. })));
        assert!(matches!(
            Target::http(&format!("https://x/{}", "y".repeat(600))),
            Err(TargetError::TooLong { .. })
        ));
    }

    #[test]
    fn groups_are_for_fifo_queues_and_read_back() {
        let queue = |name: &str| Target::sqs(&format!("https://x/1/{name}")).unwrap();
        for (text, group) in
            [("policy", MessageGroup::Policy), ("orders-1.x", MessageGroup::Fixed("orders-1.x".into()))]
        {
            assert_eq!(MessageGroup::new(text), Ok(group.clone()));
            assert_eq!(group.named(), Some(text));
            assert!(queue("a.fifo").grouped(group.clone()).is_ok());
            assert_eq!(queue("a").grouped(group), Err(TargetError::GroupWithoutFifo));
        }
        assert_eq!((MessageGroup::new("job"), MessageGroup::Job.named()), (Ok(MessageGroup::Job), None));
        for wrong in ["", "a b", "é", &"x".repeat(65)] {
            assert!(matches!(MessageGroup::new(wrong), Err(TargetError::Group { .. })), "{wrong}");
        }
    }

    #[test]
    fn an_allow_list_covers_by_text_with_one_star() {
        let target = Target::http("https://hooks.acme.example/a").unwrap();
        for (pattern, covers) in [
            ("*", true),
            ("https://hooks.acme.example/a", true),
            ("https://hooks.acme.example/*", true),
            ("https://*/a", true),
            ("https://hooks.acme.example/b", false),
            ("https://acme.example/*", false),
            ("https://hooks.acme.example/a*a", false),
        ] {
            assert_eq!(target.is_covered_by(pattern), covers, "{pattern}");
        }
    }

    #[test]
    fn a_star_in_an_arn_stays_in_its_part() {
        let arn = |text: &str| Target::by_arn(Arn::of_any(text).unwrap());
        let function = arn("arn:aws:lambda:eu-west-1:123456789012:function:work:live");
        for (pattern, covers) in [
            ("*", true),
            ("arn:aws:lambda:*", true),
            ("arn:aws:lambda:*:123456789012:function:work:live", true),
            ("arn:aws:lambda:eu-west-1:123456789012:function:*", true),
            ("arn:aws:lambda:eu-west-1:123456789012:function:w*:live", true),
            ("arn:aws:lambda:eu-west-1:*:live", false),
            ("arn:aws:lambda:*:live", false),
            ("https://*", false),
        ] {
            assert_eq!(function.is_covered_by(pattern), covers, "{pattern}");
        }
        assert_eq!((function.transport().name, function.transport().is_inline), ("lambda", false));
        assert_eq!(function.address(), "arn:aws:lambda:eu-west-1:123456789012:function:work:live");
    }

    #[test]
    fn what_rules_of_a_bus_know_events_by_is_checked() {
        let label = BusLabel::new(None, Some("Order Placed")).unwrap();
        assert_eq!((label.source(), label.detail_type()), ("tidegate", "Order Placed"));
        for (source, detail_type, field) in [
            (Some(""), None, "source"),
            (Some("aws.ec2"), None, "source"),
            (Some("a\nb"), None, "source"),
            (None, Some(""), "detail_type"),
        ] {
            let refused = BusLabel::new(source, detail_type).unwrap_err().to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
        assert!(BusLabel::new(Some(&"x".repeat(257)), None).is_err());
        assert!(BusLabel::new(None, Some(&"x".repeat(129))).is_err());
    }

    #[test]
    fn a_star_in_the_host_stays_in_the_host() {
        let pattern = "https://*.acme.example/hook";
        for (url, covered) in [
            ("https://a.acme.example/hook", true),
            ("https://a.b.acme.example/hook", true),
            ("https://evil.example/.acme.example/hook", false),
            ("https://evil.example?.acme.example/hook", false),
            ("https://evil.example#.acme.example/hook", false),
        ] {
            assert_eq!(Target::http(url).unwrap().is_covered_by(pattern), covered, "{url}");
        }
        let deep = Target::http("https://hooks.acme.example/a/b?c").unwrap();
        assert!(deep.is_covered_by("https://*") && deep.is_covered_by("https://hooks.acme.example/*"));
        let queue = Target::sqs("https://sqs.eu-west-1.amazonaws.com/123456789012/gamma-x").unwrap();
        assert!(queue.is_covered_by("https://sqs.eu-west-1.amazonaws.com/123456789012/gamma-*"));
    }
}
