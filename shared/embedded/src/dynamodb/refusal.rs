//! Errors on the wire: a body that cannot be read, an operation that failed, an operation nobody serves.
//!
//! The library's request types mark their own validation errors with a prefix of the `serde` message; everything else that
//! `serde` refuses is malformed.

use dynoxide::DynoxideError;
use serde::de::DeserializeOwned;

use crate::reply::Reply;

/// What AWS puts before the message of a member error of the single-item writes.
const ENVELOPE: &str = "1 validation error detected: ";

/// The typed request in `body`.
///
/// # Errors
/// `ValidationException` for what DynamoDB validates, `SerializationException` for what it cannot read.
pub(super) fn parse<Q: DeserializeOwned>(operation: &str, body: &[u8]) -> dynoxide::Result<Q> {
    serde_json::from_slice(body).map_err(|error| classify(operation, &error.to_string()))
}

fn classify(operation: &str, message: &str) -> DynoxideError {
    let plain = message.rsplit_once(" at line ").map_or(message, |(text, _)| text);
    if let Some(text) = message.strip_prefix("SERIALIZATION_AS_READ:") {
        return DynoxideError::SerializationException(text.to_owned());
    }
    if let Some(text) = message.strip_prefix("VALIDATION_AS_READ:") {
        return DynoxideError::ValidationException(text.to_owned());
    }
    if let Some(text) = plain.strip_prefix("SERIALIZATION:") {
        return DynoxideError::SerializationException(text.to_owned());
    }
    if let Some(text) = plain.strip_prefix("VALIDATION_REQUEST:") {
        let single_write = matches!(operation, "PutItem" | "UpdateItem" | "DeleteItem");
        let envelope = if single_write && !text.starts_with(ENVELOPE) { ENVELOPE } else { "" };
        return DynoxideError::ValidationException(format!("{envelope}{text}"));
    }
    if let Some(text) = plain.strip_prefix("VALIDATION:") {
        return DynoxideError::ValidationException(text.to_owned());
    }
    let validated = ["missing field", "unknown variant", "invalid type: null", "AttributeValue"]
        .iter()
        .any(|mark| plain.contains(mark));
    if validated {
        DynoxideError::ValidationException(plain.to_owned())
    } else {
        DynoxideError::SerializationException(plain.to_owned())
    }
}

/// The reply that tells of `error`.
pub(super) fn reply(error: &DynoxideError) -> Reply {
    Reply { status: error.status_code(), body: error.to_json().into_bytes(), query_error: None }
}

/// The reply to an operation that is not served.
pub(super) fn unknown_operation(operation: &str) -> Reply {
    let message = format!("{operation} is not served by the embedded DynamoDB");
    Reply::error(400, "com.amazon.coral.service#UnknownOperationException", &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_errors_become_the_error_they_name() {
        let cases = [
            ("PutItem", "VALIDATION:bad at line 1 column 9", "ValidationException", "bad"),
            ("PutItem", "VALIDATION_REQUEST:bad", "ValidationException", "1 validation error detected: bad"),
            ("Query", "VALIDATION_REQUEST:bad", "ValidationException", "bad"),
            ("Query", "SERIALIZATION:bad", "SerializationException", "bad"),
            (
                "Query",
                "missing field `TableName` at line 1 column 2",
                "ValidationException",
                "missing field `TableName`",
            ),
            ("Query", "expected value at line 1 column 2", "SerializationException", "expected value"),
        ];
        for (operation, message, error_type, text) in cases {
            let error = classify(operation, message);
            assert!(error.error_type().ends_with(error_type), "{message}: {}", error.error_type());
            assert_eq!(error.to_string(), text, "{message}");
        }
    }
}
