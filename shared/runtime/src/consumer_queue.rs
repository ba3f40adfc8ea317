//! Queues of consumers, which a person names at the start.

use std::str::FromStr;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use tidegate_embedded::QueueName;

use crate::queues::{self, PREFIX, QueueError};

/// The name of a queue of a consumer: as SQS allows it, and none of Tidegate's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerQueue(QueueName);

/// Why a text does not name a queue of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadQueueName {
    /// SQS has no such names.
    #[error(
        "'{0}' cannot name a queue: use 1 to 80 letters, digits, '-' and '_'; the name of a FIFO queue ends in '.fifo'"
    )]
    Form(String),
    /// A queue of ours.
    #[error("'{0}' is the name of a queue of Tidegate itself; choose another one")]
    Own(String),
}

impl FromStr for ConsumerQueue {
    type Err = BadQueueName;

    fn from_str(name: &str) -> Result<Self, BadQueueName> {
        let parsed = QueueName::new(name).ok_or_else(|| BadQueueName::Form(name.to_owned()))?;
        if queues::own_names(PREFIX).any(|own| own == name) {
            return Err(BadQueueName::Own(name.to_owned()));
        }
        Ok(Self(parsed))
    }
}

impl ConsumerQueue {
    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is a FIFO queue.
    pub fn is_fifo(&self) -> bool {
        self.0.is_fifo()
    }

    /// Creates the queue when it is missing; one that is there keeps its messages and attributes. Returns its URL.
    pub(crate) async fn create(&self, sqs: &Client) -> Result<String, QueueError> {
        let mut create = sqs.create_queue().queue_name(self.as_str());
        if self.is_fifo() {
            create = create.attributes(QueueAttributeName::FifoQueue, "true");
        }
        let created = create.send().await.map_err(|error| QueueError::new(self.as_str(), &error))?;
        Ok(created.queue_url.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_sqs_and_none_of_ours() {
        for good in ["work", "work.fifo", "tidegate-dispatch-2", "a"] {
            assert_eq!(
                good.parse::<ConsumerQueue>().map(|queue| queue.as_str().to_owned()),
                Ok(good.to_owned())
            );
        }
        for bad in ["", "a b", "work.standard", ".fifo", "ä"] {
            assert_eq!(bad.parse::<ConsumerQueue>(), Err(BadQueueName::Form(bad.to_owned())));
        }
        for own in ["tidegate-dispatch", "tidegate-scan", "tidegate-release", "tidegate-release-dead-letters"]
        {
            assert_eq!(own.parse::<ConsumerQueue>(), Err(BadQueueName::Own(own.to_owned())));
        }
    }
}
