//! Queue names, and the URLs and ARNs that carry them.

use super::error::Refused;

/// The region that the clients and the ARNs of the embedded services name.
pub(crate) const REGION: &str = "us-east-1";

/// The account that URLs and ARNs name.
const ACCOUNT: &str = "000000000000";
/// How the name of a FIFO queue ends.
const FIFO_SUFFIX: &str = ".fifo";

/// The name of a queue: 1 to 80 letters, digits, hyphens and underscores; FIFO names end in `.fifo`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(String);

impl QueueName {
    /// The name, if SQS allows it.
    pub fn new(name: &str) -> Option<Self> {
        Self::parse(name).ok()
    }

    /// The name in a request, if it is one.
    ///
    /// # Errors
    /// `MissingParameter` and `InvalidParameterValue`.
    pub(crate) fn parse(name: &str) -> Result<Self, Refused> {
        if name.is_empty() {
            return Err(Refused::missing("QueueName"));
        }
        let stem = name.strip_suffix(FIFO_SUFFIX).unwrap_or(name);
        let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if stem.is_empty() || name.len() > 80 || !stem.bytes().all(ordinary) {
            let reason =
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.";
            return Err(Refused::value(name, "QueueName", reason));
        }
        Ok(Self(name.to_owned()))
    }

    /// The queue of an ARN, if it is the ARN of a queue.
    pub(super) fn from_arn(arn: &str) -> Option<Self> {
        arn.strip_prefix("arn:aws:sqs:").and_then(|rest| rest.rsplit(':').next()).and_then(Self::new)
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the name of a FIFO queue.
    pub fn is_fifo(&self) -> bool {
        self.0.ends_with(FIFO_SUFFIX)
    }

    pub(super) fn arn(&self) -> String {
        format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{}", self.0)
    }

    /// The queue's URL under `base`, an origin without a path.
    pub(super) fn url(&self, base: &str) -> String {
        format!("{}/{}", place_of_queues(base), self.0)
    }
}

/// What the URLs of queues begin with under `base`, an origin without a path.
pub fn place_of_queues(base: &str) -> String {
    format!("{base}/{ACCOUNT}")
}

/// The name in a queue URL: its last part. Host and account do not count, so a stored URL outlives a change of port.
///
/// # Errors
/// `MissingParameter` for an empty URL.
pub(super) fn in_url(url: &str) -> Result<&str, Refused> {
    match url.rsplit('/').next() {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(Refused::missing("QueueUrl")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Code;
    use super::*;

    #[test]
    fn names_follow_the_rules_of_sqs() {
        for good in ["a", "jobs-1_x", "jobs.fifo", &"a".repeat(80)] {
            assert_eq!(QueueName::parse(good).map(|name| name.0), Ok(good.to_owned()));
        }
        for bad in ["a.b", ".fifo", "naïve", "a b", &"a".repeat(81)] {
            assert_eq!(
                QueueName::parse(bad).map_err(|refused| refused.code),
                Err(Code::InvalidParameterValue),
                "{bad}"
            );
        }
    }

    #[test]
    fn urls_and_arns_carry_the_name() {
        let name = QueueName::parse("jobs.fifo").unwrap();
        assert_eq!(in_url(&name.url("http://127.0.0.1:9")), Ok("jobs.fifo"));
        assert_eq!(QueueName::from_arn(&name.arn()), Some(name));
        assert_eq!(QueueName::from_arn("arn:aws:sns:us-east-1:000000000000:topic"), None);
    }
}
