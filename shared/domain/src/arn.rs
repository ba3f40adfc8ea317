//! ARNs of what events may go to beside queues and endpoints, and where in AWS it is.
//!
//! An ARN is read once, when a job is written: from then on its region is one that a host may be named by.

use std::fmt::{self, Display};

use thiserror::Error;

use crate::limits::TARGET_URL_BYTES;

/// A service of AWS that takes events under an ARN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// A bus takes entries, which its rules pass on.
    EventBridge,
    /// A topic takes messages, which its subscribers get.
    Sns,
    /// A function is invoked, and nobody waits for its answer.
    Lambda,
    /// An execution of a state machine is started.
    StepFunctions,
}

/// What is the same for everything of a service.
struct Facts {
    /// The kind of target, as the API and logs name it.
    kind: &'static str,
    /// The field that carries the ARN.
    field: &'static str,
    /// What the ARN calls the service, what its hosts begin with, and what requests to it are signed for.
    signed_for: &'static str,
    /// The environment variable that names an endpoint in place of those of AWS, as the SDKs of AWS read it.
    endpoint_variable: &'static str,
    /// What stands before the name in the last part of the ARN.
    before_name: &'static str,
    /// The longest name.
    name_bytes: usize,
    /// What a name may have beside letters and digits.
    signs: &'static [u8],
    /// The form, for sentences.
    form: &'static str,
}

/// The ARN of something of one of the services.
///
/// Invariant: it names the service, a region of a partition that is known, an account of twelve digits and a name that the
/// service could have given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arn {
    service: Service,
    text: String,
}

/// Why a text is no ARN of something of a service.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArnError {
    /// Longer than [`TARGET_URL_BYTES`].
    #[error("{field} is {bytes} bytes long; {TARGET_URL_BYTES} is the most")]
    TooLong {
        /// The field that carries it.
        field: &'static str,
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A part of it is wrong.
    #[error("{field} '{value}' {wrong}; it must be {form}")]
    Part {
        /// The field that carries it.
        field: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        wrong: &'static str,
        /// What it looks like.
        form: &'static str,
    },
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::EventBridge, Self::Sns, Self::Lambda, Self::StepFunctions];

    const fn facts(self) -> &'static Facts {
        match self {
            Self::EventBridge => &Facts {
                kind: "event_bridge",
                field: "bus_arn",
                signed_for: "events",
                endpoint_variable: "AWS_ENDPOINT_URL_EVENTBRIDGE",
                before_name: "event-bus/",
                name_bytes: 256,
                signs: b".-_/",
                form: "arn:aws:events:<region>:<account of 12 digits>:event-bus/<name>",
            },
            Self::Sns => &Facts {
                kind: "sns",
                field: "topic_arn",
                signed_for: "sns",
                endpoint_variable: "AWS_ENDPOINT_URL_SNS",
                before_name: "",
                name_bytes: 256,
                signs: b"-_",
                form: "arn:aws:sns:<region>:<account of 12 digits>:<name>, with '.fifo' behind the name of a FIFO topic",
            },
            Self::Lambda => &Facts {
                kind: "lambda",
                field: "function_arn",
                signed_for: "lambda",
                endpoint_variable: "AWS_ENDPOINT_URL_LAMBDA",
                before_name: "function:",
                name_bytes: 140,
                signs: b"-_",
                form: "arn:aws:lambda:<region>:<account of 12 digits>:function:<name>, with ':<version or alias>' behind it if one is meant",
            },
            Self::StepFunctions => &Facts {
                kind: "step_functions",
                field: "state_machine_arn",
                signed_for: "states",
                endpoint_variable: "AWS_ENDPOINT_URL_SFN",
                before_name: "stateMachine:",
                name_bytes: 80,
                signs: b"-_.+=@",
                form: "arn:aws:states:<region>:<account of 12 digits>:stateMachine:<name>, with ':<version or alias>' behind it if one is meant",
            },
        }
    }

    /// The kind of target that it is, as the API and logs name it.
    pub const fn kind(self) -> &'static str {
        self.facts().kind
    }

    /// The field of a job that carries an ARN of it.
    pub const fn field(self) -> &'static str {
        self.facts().field
    }

    /// What requests to it are signed for.
    pub const fn signed_for(self) -> &'static str {
        self.facts().signed_for
    }

    /// The environment variable that names an endpoint in place of those of AWS, as the SDKs of AWS read it.
    pub const fn endpoint_variable(self) -> &'static str {
        self.facts().endpoint_variable
    }

    /// Whether what stands behind `before_name` is a name that it could have given.
    fn names(self, text: &str) -> bool {
        let Facts { name_bytes, signs, .. } = self.facts();
        let is_of = |text: &str, signs: &[u8], most: usize| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || signs.contains(&b);
            (1..=most).contains(&text.len()) && text.bytes().all(fits)
        };
        match self {
            Self::EventBridge => is_of(text, signs, *name_bytes),
            Self::Sns => is_of(text.strip_suffix(".fifo").unwrap_or(text), signs, *name_bytes),
            Self::Lambda | Self::StepFunctions => {
                let (name, qualifier) = text.split_once(':').map_or((text, None), |(n, q)| (n, Some(q)));
                is_of(name, signs, *name_bytes) && qualifier.is_none_or(|q| is_of(q, b"-_$.", 128))
            }
        }
    }
}

impl Arn {
    /// Reads the ARN of something of a service.
    ///
    /// ```
    /// use tidegate_domain::arn::{Arn, Service};
    ///
    /// let topic = Arn::new(Service::Sns, "arn:aws:sns:eu-west-1:123456789012:orders.fifo")?;
    /// assert_eq!((topic.region(), topic.host()), ("eu-west-1", "sns.eu-west-1.amazonaws.com".to_owned()));
    /// assert!(Arn::new(Service::Lambda, topic.as_str()).is_err());
    /// # Ok::<(), tidegate_domain::arn::ArnError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArnError`], which says which part is wrong.
    pub fn new(service: Service, text: &str) -> Result<Self, ArnError> {
        let Facts { field, signed_for, before_name, form, .. } = *service.facts();
        if text.len() > TARGET_URL_BYTES {
            return Err(ArnError::TooLong { field, bytes: text.len() });
        }
        let wrong = |wrong| ArnError::Part { field, value: text.to_owned(), wrong, form };
        let mut parts = text.splitn(6, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (arn, partition, of, region, account, resource) =
            (next(), next(), next(), next(), next(), next());
        if arn != "arn" {
            return Err(wrong("is no ARN"));
        }
        if of != signed_for {
            return Err(wrong("is of another service"));
        }
        if !is_region(region) {
            return Err(wrong("names no region"));
        }
        if suffix_of(partition).is_none() || partition_of(region) != partition {
            return Err(wrong("has a partition that its region is not in, or that is not known"));
        }
        if account.len() != 12 || !account.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong("names no account"));
        }
        match resource.strip_prefix(before_name) {
            Some(name) if service.names(name) => Ok(Self { service, text: text.to_owned() }),
            _ => Err(wrong("has no name that there could be")),
        }
    }

    /// The ARN of something of any of the services; `None` when it is of none.
    pub fn of_any(text: &str) -> Option<Self> {
        Service::ALL.into_iter().find_map(|service| Self::new(service, text).ok())
    }

    /// Whose it is.
    pub fn service(&self) -> Service {
        self.service
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The region that it is in.
    pub fn region(&self) -> &str {
        self.text.split(':').nth(3).unwrap_or_default()
    }

    /// The host of its service in its region.
    pub fn host(&self) -> String {
        let partition = self.text.split(':').nth(1).unwrap_or_default();
        let suffix = suffix_of(partition).unwrap_or_default();
        format!("{}.{}.{suffix}", self.service.signed_for(), self.region())
    }
}

impl Display for Arn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a text is like the name of a region: `eu-west-1`, `us-gov-east-1`.
pub fn is_region(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    let mut words = text.split('-');
    let last = words.next_back().unwrap_or_default();
    let is_number = matches!(last.len(), 1 | 2) && last.bytes().all(|b| b.is_ascii_digit());
    text.len() <= 32 && text.contains('-') && is_number && words.all(is_word)
}

/// The partition of AWS that a region is in: accounts, roles and their permissions end with it.
pub fn partition_of(region: &str) -> &'static str {
    match region {
        _ if region.starts_with("cn-") => "aws-cn",
        _ if region.starts_with("us-gov-") => "aws-us-gov",
        _ if region.starts_with("us-iso") || region.starts_with("eu-iso") => "aws-iso",
        _ if region.starts_with("eusc-") => "aws-eusc",
        _ => "aws",
    }
}

/// What the hosts of a partition end in.
fn suffix_of(partition: &str) -> Option<&'static str> {
    match partition {
        "aws" | "aws-us-gov" => Some("amazonaws.com"),
        "aws-cn" => Some("amazonaws.com.cn"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_of_the_four_services_are_read_with_their_hosts() {
        for (text, service, region, host) in [
            (
                "arn:aws:events:eu-west-1:123456789012:event-bus/default",
                Service::EventBridge,
                "eu-west-1",
                "events.eu-west-1.amazonaws.com",
            ),
            (
                "arn:aws:events:us-east-1:123456789012:event-bus/aws.partner/acme/x_1",
                Service::EventBridge,
                "us-east-1",
                "events.us-east-1.amazonaws.com",
            ),
            (
                "arn:aws-cn:sns:cn-north-1:123456789012:orders.fifo",
                Service::Sns,
                "cn-north-1",
                "sns.cn-north-1.amazonaws.com.cn",
            ),
            (
                "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:work:$LATEST",
                Service::Lambda,
                "us-gov-west-1",
                "lambda.us-gov-west-1.amazonaws.com",
            ),
            (
                "arn:aws:states:eu-west-1:123456789012:stateMachine:Nightly-Import:live",
                Service::StepFunctions,
                "eu-west-1",
                "states.eu-west-1.amazonaws.com",
            ),
        ] {
            let arn = Arn::new(service, text).unwrap();
            assert_eq!((arn.region(), &*arn.host(), arn.as_str()), (region, host, text));
            assert_eq!(Arn::of_any(text), Some(arn));
        }
    }

    #[test]
    fn what_is_wrong_with_an_arn_is_said() {
        let refused = |service, text: &str| Arn::new(service, text).unwrap_err().to_string();
        assert_eq!(
            refused(Service::Sns, "arn:aws:sqs:eu-west-1:123456789012:jobs"),
            "topic_arn 'arn:aws:sqs:eu-west-1:123456789012:jobs' is of another service; it must be \
             arn:aws:sns:<region>:<account of 12 digits>:<name>, with '.fifo' behind the name of a FIFO topic"
        );
        for (service, text, wrong) in [
            (Service::Sns, "orders", "is no ARN"),
            (Service::Sns, "https://sns.eu-west-1.amazonaws.com/", "is no ARN"),
            (Service::Sns, "arn:aws:sns::123456789012:orders", "names no region"),
            (Service::Sns, "arn:aws:sns:evil.example/:123456789012:orders", "names no region"),
            (Service::Sns, "arn:aws:sns:cn-north-1:123456789012:orders", "partition"),
            (Service::Sns, "arn:aws-iso:sns:us-iso-east-1:123456789012:orders", "partition"),
            (Service::Sns, "arn:aws:sns:eu-west-1:12345:orders", "names no account"),
            (Service::Sns, "arn:aws:sns:eu-west-1:123456789012:", "no name"),
            (Service::Sns, "arn:aws:sns:eu-west-1:123456789012:orders:0f3c", "no name"),
            (Service::Sns, "arn:aws:sns:eu-west-1:123456789012:.fifo", "no name"),
            (Service::EventBridge, "arn:aws:events:eu-west-1:123456789012:rule/x", "no name"),
            (Service::EventBridge, "arn:aws:events:eu-west-1:123456789012:event-bus/a b", "no name"),
            (Service::Lambda, "arn:aws:lambda:eu-west-1:123456789012:function:a:b:c", "no name"),
            (Service::Lambda, "arn:aws:lambda:eu-west-1:123456789012:layer:a", "no name"),
            (Service::StepFunctions, "arn:aws:states:eu-west-1:123456789012:execution:a:b", "no name"),
        ] {
            let says = refused(service, text);
            assert!(says.contains(wrong), "{says}");
        }
        let long = format!("arn:aws:sns:eu-west-1:123456789012:{}", "x".repeat(600));
        assert!(matches!(Arn::new(Service::Sns, &long), Err(ArnError::TooLong { .. })));
    }
}
