//! What a consumer receives.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A delivered event: the text of an SQS message, or the body of a POST. Version 1; fields are only ever added.
///
/// It may come more than once: `event_id` is the same each time. `P` is how the payload is kept: as a value for who reads
/// it, as the job's own text for who sends it.
///
/// ```
/// use tidegate_protocol::Event;
///
/// let body = r#"{"event_id":"nightly.3.1790000000.17","job_id":"nightly","client_id":"acme",
///     "run_id":"nightly.3.1790000000","index":17,"count":20,"launch_at":"2026-09-21T13:33:20Z",
///     "attempt":1,"payload":{"shop":7}}"#;
/// let event: Event = body.parse()?;
/// assert_eq!((event.index, event.payload["shop"].as_u64()), (17, Some(7)));
/// # Ok::<(), tidegate_protocol::EventError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = DeliveredEvent, bound = ""))]
pub struct Event<P = Value> {
    /// The idempotency key: the same for every delivery of the event.
    pub event_id: String,
    /// The name of the client's job.
    pub job_id: String,
    /// The name of the client.
    pub client_id: String,
    /// The id of the run that it belongs to.
    pub run_id: String,
    /// Its number in the run, from 0.
    pub index: u32,
    /// How many events the run has.
    pub count: u32,
    /// When the run was due, RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub launch_at: String,
    /// Which delivery of the event this is, from 1. Deliveries that failed count.
    pub attempt: u32,
    /// To be released when the work is done; `None` where nothing throttles.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub token: Option<String>,
    /// When the token is taken back unless it is extended, RFC 3339; `None` where nothing throttles.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_expires_at: Option<String>,
    /// What the job carries for this event, as JSON.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: P,
}

/// Why a delivered event does not read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The text is no event.
    #[error("the event cannot be read: {0}")]
    Body(#[source] serde_json::Error),
    /// The payload has not the form of the consumer's type.
    #[error("the payload cannot be read: {0}")]
    Payload(#[source] serde_json::Error),
}

impl Event {
    /// The payload as a type of the consumer's.
    ///
    /// # Errors
    /// When it has not that form.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Result<T, EventError> {
        T::deserialize(&self.payload).map_err(EventError::Payload)
    }
}

impl FromStr for Event {
    type Err = EventError;

    fn from_str(body: &str) -> Result<Self, EventError> {
        serde_json::from_str(body).map_err(EventError::Body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"event_id":"nightly.3.1790000000.17","job_id":"nightly","client_id":"acme",
        "run_id":"nightly.3.1790000000","index":17,"count":20,"launch_at":"2026-09-21T13:33:20Z","attempt":1,
        "token":"tok.acme.small.0.3.17.2.17","lease_expires_at":"2026-09-21T13:34:20Z","payload":{"shop":7},
        "a_later_field":true}"#;

    #[test]
    fn a_delivered_event_is_read_and_later_fields_do_no_harm() {
        let event: Event = BODY.parse().unwrap();
        assert_eq!((event.event_id.as_str(), event.index, event.count), ("nightly.3.1790000000.17", 17, 20));
        assert_eq!(event.token.as_deref(), Some("tok.acme.small.0.3.17.2.17"));
        assert_eq!(event.payload["shop"], 7);
        let shop: std::collections::BTreeMap<String, u8> = event.payload_as().unwrap();
        assert_eq!(shop["shop"], 7);
        assert!(event.payload_as::<Vec<u8>>().is_err());
    }

    #[test]
    fn an_event_without_a_token_is_read_and_another_text_is_refused() {
        let mut body: Value = serde_json::from_str(BODY).unwrap();
        body["token"].take();
        body.as_object_mut().unwrap().remove("lease_expires_at");
        let event: Event = body.to_string().parse().unwrap();
        assert_eq!((event.token, event.lease_expires_at), (None, None));
        let error = "{}".parse::<Event>().unwrap_err().to_string();
        assert_eq!(error, "the event cannot be read: missing field `event_id` at line 1 column 2");
    }
}
