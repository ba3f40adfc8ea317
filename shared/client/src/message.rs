//! Telling events from completions.

use std::str::FromStr;

use serde_json::Value;
use tidegate_protocol::{Completion, Event, EventError};

/// What Tidegate sends, where both may come: to a webhook, or to a queue that is a job's target and its `on_completion`.
///
/// ```
/// use tidegate_client::Message;
///
/// let body = r#"{"type":"run.completed","id":"nightly.1.1795305600.completed","run_id":"nightly.1.1795305600",
///     "job_id":"nightly","client_id":"acme","state":"finished","reason":null,"count":5,"succeeded":4,"failed":1,
///     "expired":0,"dead":0,"left_out":0,"launch_at":"2026-11-22T00:00:00Z","started_at":null,"finished_at":null}"#;
/// match body.parse()? {
///     Message::Event(event) => println!("work on {}", event.event_id),
///     Message::Completion(run) => println!("{} of {} succeeded", run.succeeded, run.count),
/// }
/// # Ok::<(), tidegate_client::MessageError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// An event is delivered.
    Event(Event),
    /// A run has ended.
    Completion(Completion),
}

/// Why a message does not read.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The text is no JSON.
    #[error("the message cannot be read: {0}")]
    Json(#[source] serde_json::Error),
    /// It is not said to be a completion, and is no event.
    #[error(transparent)]
    Event(#[from] EventError),
    /// It is said to be a completion, and is none.
    #[error("the completion cannot be read: {0}")]
    Completion(#[source] serde_json::Error),
}

impl Message {
    /// Reads the text of a queue's message, or the body of a webhook. A completion has a `type`.
    ///
    /// # Errors
    /// When it is neither an event nor a completion.
    pub fn read(body: &[u8]) -> Result<Self, MessageError> {
        let value: Value = serde_json::from_slice(body).map_err(MessageError::Json)?;
        if value.get("type").and_then(Value::as_str) == Some("run.completed") {
            return serde_json::from_value(value).map(Self::Completion).map_err(MessageError::Completion);
        }
        Ok(Self::Event(serde_json::from_value(value).map_err(EventError::Body)?))
    }
}

impl FromStr for Message {
    type Err = MessageError;

    fn from_str(body: &str) -> Result<Self, MessageError> {
        Self::read(body.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::consumer::fakes::body;

    #[test]
    fn a_message_is_an_event_or_a_completion() {
        let completion = json!({
            "type": "run.completed", "id": "nightly.1.1795305600.completed", "run_id": "nightly.1.1795305600",
            "job_id": "nightly", "client_id": "acme", "state": "finished", "reason": null, "count": 5, "succeeded": 4,
            "failed": 1, "expired": 0, "dead": 0, "left_out": 0, "launch_at": "2026-11-22T00:00:00Z",
            "started_at": "2026-11-22T03:33:09.487Z", "finished_at": null, "a_later_field": 1,
        });
        assert!(
            matches!(completion.to_string().parse().unwrap(), Message::Completion(run) if run.succeeded == 4)
        );
        assert!(matches!(body(3).to_string().parse().unwrap(), Message::Event(event) if event.index == 3));
        let mut cut = completion;
        cut.as_object_mut().unwrap().remove("left_out");
        for (text, why) in [
            (cut.to_string(), "the completion cannot be read: missing field `left_out`"),
            ("{}".to_owned(), "the event cannot be read: missing field `event_id`"),
            ("[]".to_owned(), "the event cannot be read: "),
            ("hello".to_owned(), "the message cannot be read: "),
            ("[".repeat(100_000), "the message cannot be read: recursion limit"),
        ] {
            let error = text.parse::<Message>().unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
