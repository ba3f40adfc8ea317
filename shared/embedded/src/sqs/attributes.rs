//! The attributes of a queue that its owner sets: parsed and checked once, then typed.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::{Code, Refused};
use super::limits;
use super::name::QueueName;

/// How a message that keeps failing leaves its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redrive {
    /// The dead-letter queue.
    pub(super) target: QueueName,
    /// A message received this often and not deleted is moved at the next receive.
    pub(super) max_receive_count: i64,
}

/// What the owner of a queue has set, with AWS's defaults for the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) delay_s: i64,
    pub(super) visibility_s: i64,
    pub(super) retention_s: i64,
    pub(super) wait_s: i64,
    pub(super) message_bytes: usize,
    pub(super) redrive: Option<Redrive>,
    pub(super) content_based_deduplication: bool,
    /// Deduplication ids count within their message group, not in the whole queue.
    pub(super) deduplication_by_group: bool,
    /// Everything as it was set, by name: what is stored, compared and returned.
    given: BTreeMap<String, String>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            delay_s: 0,
            visibility_s: 30,
            retention_s: 345_600,
            wait_s: 0,
            message_bytes: limits::MESSAGE_BYTES,
            redrive: None,
            content_based_deduplication: false,
            deduplication_by_group: false,
            given: BTreeMap::new(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RedrivePolicy {
    dead_letter_target_arn: String,
    max_receive_count: serde_json::Value,
}

impl Attributes {
    /// The attributes after `changes`, for a queue that is (not) FIFO.
    ///
    /// # Errors
    /// `InvalidAttributeName` and `InvalidAttributeValue`, as AWS gives them.
    pub(super) fn with(&self, changes: &BTreeMap<String, String>, fifo: bool) -> Result<Self, Refused> {
        let mut changed = self.clone();
        for (name, value) in changes {
            changed.set(name, value, fifo)?;
            if value.is_empty() {
                changed.given.remove(name);
            } else {
                changed.given.insert(name.clone(), value.clone());
            }
        }
        Ok(changed)
    }

    fn set(&mut self, name: &str, value: &str, fifo: bool) -> Result<(), Refused> {
        match name {
            "DelaySeconds" => self.delay_s = number(name, value, 0, limits::DELAY_S)?,
            "VisibilityTimeout" => self.visibility_s = number(name, value, 0, limits::VISIBILITY_S)?,
            "MessageRetentionPeriod" => self.retention_s = number(name, value, 60, 1_209_600)?,
            "ReceiveMessageWaitTimeSeconds" => self.wait_s = number(name, value, 0, limits::WAIT_S)?,
            "MaximumMessageSize" => {
                let bytes = number(name, value, 1024, limits::MESSAGE_BYTES as i64)?;
                self.message_bytes = usize::try_from(bytes).unwrap_or(limits::MESSAGE_BYTES);
            }
            "RedrivePolicy" => self.redrive = redrive(value)?,
            // Kept and returned, without effect in one process.
            "Policy"
            | "RedriveAllowPolicy"
            | "KmsMasterKeyId"
            | "KmsDataKeyReusePeriodSeconds"
            | "SqsManagedSseEnabled" => {}
            "ContentBasedDeduplication" if fifo => self.content_based_deduplication = boolean(name, value)?,
            "FifoQueue" if fifo && value == "true" => {}
            "DeduplicationScope" if fifo => {
                self.deduplication_by_group = choice(name, value, "queue", "messageGroup")?;
            }
            "FifoThroughputLimit" if fifo => {
                choice(name, value, "perQueue", "perMessageGroupId")?;
            }
            _ => return Err(Refused::new(Code::InvalidAttributeName, format!("Unknown Attribute {name}."))),
        }
        Ok(())
    }

    /// Whether a queue with these attributes is what `wanted` describes: attributes that `wanted` leaves out do not count.
    pub(super) fn agree_with(&self, wanted: &BTreeMap<String, String>, fifo: bool) -> Result<bool, Refused> {
        let mut same = self.with(wanted, fifo)?;
        same.given.clone_from(&self.given);
        let kept =
            |name: &String| matches!(name.as_str(), "Policy" | "KmsMasterKeyId" | "RedriveAllowPolicy");
        let kept_equal = wanted
            .iter()
            .filter(|(name, _)| kept(name))
            .all(|(name, value)| self.given.get(name) == Some(value));
        Ok(same == *self && kept_equal)
    }

    /// As set, for the store.
    pub(super) fn given(&self) -> &BTreeMap<String, String> {
        &self.given
    }

    /// By name with the defaults filled in, as `GetQueueAttributes` returns them.
    pub(super) fn listed(&self, fifo: bool) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            ("DelaySeconds".to_owned(), self.delay_s.to_string()),
            ("VisibilityTimeout".to_owned(), self.visibility_s.to_string()),
            ("MessageRetentionPeriod".to_owned(), self.retention_s.to_string()),
            ("ReceiveMessageWaitTimeSeconds".to_owned(), self.wait_s.to_string()),
            ("MaximumMessageSize".to_owned(), self.message_bytes.to_string()),
            ("SqsManagedSseEnabled".to_owned(), "true".to_owned()),
        ]);
        if fifo {
            all.insert("FifoQueue".to_owned(), "true".to_owned());
            all.insert("ContentBasedDeduplication".to_owned(), self.content_based_deduplication.to_string());
            all.insert("DeduplicationScope".to_owned(), "queue".to_owned());
            all.insert("FifoThroughputLimit".to_owned(), "perQueue".to_owned());
        }
        all.extend(self.given.clone());
        all
    }
}

fn invalid(name: &str) -> Refused {
    Refused::new(Code::InvalidAttributeValue, format!("Invalid value for the parameter {name}."))
}

fn number(name: &str, value: &str, least: i64, most: i64) -> Result<i64, Refused> {
    value.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| invalid(name))
}

fn boolean(name: &str, value: &str) -> Result<bool, Refused> {
    choice(name, value, "false", "true")
}

/// Whether `value` is `yes`; `no` is the only other choice.
fn choice(name: &str, value: &str, no: &str, yes: &str) -> Result<bool, Refused> {
    match value {
        value if value == yes => Ok(true),
        value if value == no => Ok(false),
        _ => Err(invalid(name)),
    }
}

/// The dead-letter queue that attributes as they were sent ask for, if they do in a form that can be read.
pub(super) fn redrive_target(given: &BTreeMap<String, String>) -> Option<QueueName> {
    redrive(given.get("RedrivePolicy")?).ok()?.map(|redrive| redrive.target)
}

fn redrive(value: &str) -> Result<Option<Redrive>, Refused> {
    if value.is_empty() {
        return Ok(None);
    }
    let refused = |reason: &str| Refused::value(value, "RedrivePolicy", reason);
    let policy: RedrivePolicy =
        serde_json::from_str(value).map_err(|_| refused("Redrive policy is not a valid JSON map."))?;
    let count = policy.max_receive_count.as_i64().or_else(|| policy.max_receive_count.as_str()?.parse().ok());
    let max_receive_count = count.filter(|count| (1..=1000).contains(count)).ok_or_else(|| {
        refused("Invalid value for maxReceiveCount: must be between 1 and 1000, both included.")
    })?;
    let target = QueueName::from_arn(&policy.dead_letter_target_arn)
        .ok_or_else(|| refused("Dead letter target is not the ARN of a queue."))?;
    Ok(Some(Redrive { target, max_receive_count }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str, fifo: bool) -> Result<Attributes, Code> {
        let changes = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Attributes::default().with(&changes, fifo).map_err(|refused| refused.code)
    }

    #[test]
    fn values_out_of_range_and_unknown_names_are_refused() {
        assert_eq!(set("DelaySeconds", "900", false).map(|set| set.delay_s), Ok(900));
        assert_eq!(set("DelaySeconds", "901", false), Err(Code::InvalidAttributeValue));
        assert_eq!(set("MessageRetentionPeriod", "59", false), Err(Code::InvalidAttributeValue));
        assert_eq!(set("VisibilityTimeout", "soon", false), Err(Code::InvalidAttributeValue));
        assert_eq!(set("Colour", "red", false), Err(Code::InvalidAttributeName));
        assert_eq!(set("ContentBasedDeduplication", "true", false), Err(Code::InvalidAttributeName));
        assert_eq!(set("FifoQueue", "false", true), Err(Code::InvalidAttributeName));
    }

    #[test]
    fn a_redrive_policy_takes_its_count_as_text_or_number_and_ends_when_emptied() {
        let policy = |count: &str| {
            format!(
                r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":{count}}}"#
            )
        };
        for count in ["3", "\"3\""] {
            let attributes = set("RedrivePolicy", &policy(count), false).unwrap();
            assert_eq!(attributes.redrive.as_ref().map(|redrive| redrive.max_receive_count), Some(3));
            let emptied =
                attributes.with(&BTreeMap::from([("RedrivePolicy".into(), String::new())]), false).unwrap();
            assert_eq!(emptied, Attributes::default());
        }
        assert_eq!(set("RedrivePolicy", &policy("0"), false), Err(Code::InvalidParameterValue));
        assert_eq!(set("RedrivePolicy", "{", false), Err(Code::InvalidParameterValue));
    }

    #[test]
    fn a_queue_agrees_with_a_description_that_says_less() {
        let queue = set("DelaySeconds", "5", false).unwrap();
        let wanted = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(queue.agree_with(&BTreeMap::new(), false), Ok(true));
        assert_eq!(queue.agree_with(&wanted("DelaySeconds", "5"), false), Ok(true));
        assert_eq!(queue.agree_with(&wanted("VisibilityTimeout", "30"), false), Ok(true));
        assert_eq!(queue.agree_with(&wanted("DelaySeconds", "6"), false), Ok(false));
        assert_eq!(queue.agree_with(&wanted("Policy", "{}"), false), Ok(false));
    }
}
