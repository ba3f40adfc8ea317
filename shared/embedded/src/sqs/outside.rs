//! Calls from other processes: they reach the queues of consumers, and of Tidegate's own queues only the one that consumers
//! send to, and that only to send.
//!
//! Messages of the other queues are trusted: whoever could send to them could write any event of any client. So they
//! answer like queues that do not exist.
//!
//! Deliberately absent: who calls (nothing is signed here), and what a request may ask of a queue that it can reach.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::attributes;
use super::error::{Code, Failure, Refused};
use super::requests::{self, Served};
use super::{Sqs, admin, name, wire};
use crate::reply::Reply;

/// The queues of Tidegate itself, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnQueues {
    /// Out of reach: they answer like queues that do not exist.
    pub hidden: BTreeSet<String>,
    /// Within reach of those who send to it, and of no receiver.
    pub send_only: Option<String>,
}

/// What a sender needs to ask of a queue.
const SENDING: [&str; 3] = ["GetQueueUrl", "SendMessage", "SendMessageBatch"];

impl OwnQueues {
    pub(super) fn hides(&self, name: &str) -> bool {
        self.hidden.contains(name) || self.send_only.as_deref() == Some(name)
    }
}

impl Sqs {
    /// Names the queues that callers in other processes do not reach.
    pub(crate) fn hide(&self, own: OwnQueues) {
        *self.own.write().unwrap_or_else(PoisonError::into_inner) = own;
    }

    /// Serves a request of another process.
    pub(crate) async fn call_from_outside(&self, operation: &str, body: &[u8]) -> Reply {
        let own = self.own().clone();
        if let Err(failure) = admit(&own, operation, body) {
            return failure.reply();
        }
        match operation {
            "ListQueues" => {
                self.list_for(&own, body).map_or_else(Failure::reply, |served| Reply::ok(served.body))
            }
            _ => self.call(operation, body, None).await,
        }
    }

    fn list_for(&self, own: &OwnQueues, body: &[u8]) -> Result<Served, Failure> {
        let (names, next) =
            admin::list(&self.lock(), &requests::parse(body)?, |name| !own.hides(name.as_str()))?;
        Ok(Served::plain("", &self.listing("QueueUrls", &names, next)))
    }
}

/// Refuses a request that names a queue of ours, in whatever place.
fn admit(own: &OwnQueues, operation: &str, body: &[u8]) -> Result<(), Failure> {
    let request: wire::Named = requests::parse(body)?;
    let in_url = name::in_url(&request.queue_url).unwrap_or_default();
    for name in [in_url, &request.queue_name] {
        let may_send = own.send_only.as_deref() == Some(name) && SENDING.contains(&operation);
        if own.hides(name) && !may_send {
            return Err(match operation {
                "CreateQueue" => {
                    Refused::value(name, "QueueName", "It is the name of a queue of Tidegate itself.")
                }
                _ => Refused::no_such_queue(),
            }
            .into());
        }
    }
    // Dead letters are messages too: a queue that sends them to one of ours would be a way in.
    let redrive = attributes::redrive_target(&request.attributes);
    if redrive.is_some_and(|target| own.hides(target.as_str())) {
        let message =
            "Value for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.";
        return Err(Refused::new(Code::InvalidParameterValue, message).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> OwnQueues {
        OwnQueues {
            hidden: BTreeSet::from(["tidegate-dispatch".to_owned()]),
            send_only: Some("tidegate-release".to_owned()),
        }
    }

    fn code(operation: &str, body: &str) -> Option<Code> {
        match admit(&own(), operation, body.as_bytes()) {
            Ok(()) => None,
            Err(Failure::Refused(refused)) => Some(refused.code),
            Err(Failure::Storage(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn own_queues_do_not_exist_for_others() {
        for body in [
            r#"{"QueueUrl":"http://127.0.0.1:9324/000000000000/tidegate-dispatch"}"#,
            r#"{"QueueUrl":"tidegate-dispatch"}"#,
            r#"{"QueueUrl":"http://evil.example/x/y/tidegate-dispatch"}"#,
            r#"{"QueueUrl":"mine","QueueName":"tidegate-dispatch"}"#,
        ] {
            for operation in ["SendMessage", "ReceiveMessage", "PurgeQueue", "GetQueueUrl", "DeleteQueue"] {
                assert_eq!(code(operation, body), Some(Code::QueueDoesNotExist), "{operation} {body}");
            }
        }
        let twice = r#"{"QueueUrl":"mine","QueueUrl":"tidegate-dispatch"}"#;
        assert_eq!(code("SendMessage", twice), Some(Code::MalformedInput));
        assert_eq!(
            code("CreateQueue", r#"{"QueueName":"tidegate-dispatch"}"#),
            Some(Code::InvalidParameterValue)
        );
        assert_eq!(code("SendMessage", r#"{"QueueUrl":"http://127.0.0.1:9324/000000000000/mine"}"#), None);
    }

    #[test]
    fn the_release_queue_can_be_sent_to_and_nothing_else() {
        let url = r#"{"QueueUrl":"http://127.0.0.1:9324/000000000000/tidegate-release"}"#;
        for operation in SENDING {
            assert_eq!(code(operation, url), None, "{operation}");
        }
        for operation in
            ["ReceiveMessage", "DeleteMessage", "PurgeQueue", "DeleteQueue", "SetQueueAttributes"]
        {
            assert_eq!(code(operation, url), Some(Code::QueueDoesNotExist), "{operation}");
        }
    }

    #[test]
    fn dead_letters_cannot_be_a_way_in() {
        let policy = |queue: &str| {
            let policy = format!(
                r#"{{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:{queue}","maxReceiveCount":1}}"#
            );
            serde_json::json!({"QueueName": "mine", "Attributes": {"RedrivePolicy": policy}}).to_string()
        };
        assert_eq!(code("CreateQueue", &policy("tidegate-dispatch")), Some(Code::InvalidParameterValue));
        assert_eq!(
            code("SetQueueAttributes", &policy("tidegate-release")),
            Some(Code::InvalidParameterValue)
        );
        assert_eq!(code("CreateQueue", &policy("my-dead-letters")), None);
    }
}
