//! A message on its way in: what SQS checks of it, its size and its digests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Context;

use super::error::{Code, Refused};
use super::limits;
use super::wire::{MessageAttribute, MessageAttributes, SendEntry};

/// The bytes that count towards the limits: the body and every attribute's name, type and value.
pub(super) fn size(entry: &SendEntry<'_>) -> usize {
    let attributes = entry.message_attributes.iter().map(|(name, attribute)| attribute.bytes(name));
    entry.message_body.as_ref().map_or(0, |body| body.len()) + attributes.sum::<usize>()
}

/// Checks what does not depend on the queue; returns the body.
///
/// # Errors
/// `MissingParameter`, `InvalidMessageContents` and `InvalidParameterValue`.
pub(super) fn check<'e>(entry: &'e SendEntry<'_>) -> Result<&'e str, Refused> {
    let body = entry.message_body.as_deref().filter(|body| !body.is_empty());
    let body = body.ok_or_else(|| Refused::missing("MessageBody"))?;
    if !is_text(body) {
        let message = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | \
                       #xE000 to #xFFFD | #x10000 to #x10FFFF";
        return Err(Refused::new(Code::InvalidMessageContents, message));
    }
    if entry.message_attributes.len() > limits::MESSAGE_ATTRIBUTES {
        let message = format!(
            "Number of message attributes [{}] exceeds the allowed maximum [10].",
            entry.message_attributes.len()
        );
        return Err(Refused::new(Code::InvalidParameterValue, message));
    }
    entry.message_attributes.iter().try_for_each(|(name, attribute)| check_attribute(name, attribute))?;
    check_id(entry.message_group_id.as_deref(), "MessageGroupId")?;
    check_id(entry.message_deduplication_id.as_deref(), "MessageDeduplicationId")?;
    Ok(body)
}

fn is_text(body: &str) -> bool {
    let control = body.bytes().any(|byte| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r'));
    !control && !body.contains(['\u{FFFE}', '\u{FFFF}'])
}

fn check_attribute(name: &str, attribute: &MessageAttribute<'_>) -> Result<(), Refused> {
    let refuse = |message: String| Err(Refused::new(Code::InvalidParameterValue, message));
    let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > 256 || !name.bytes().all(ordinary) || dots {
        return refuse(format!("The message attribute name '{name}' is invalid."));
    }
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return refuse(format!("The message attribute name '{name}' uses a reserved prefix."));
    }
    let logical = attribute.data_type.split('.').next().unwrap_or_default();
    let value = match logical {
        "String" | "Number" => attribute.string_value.as_deref(),
        "Binary" => attribute.binary_value.as_deref(),
        _ => {
            return refuse(format!(
                "The type of message attribute '{name}' is invalid. You must use only the following supported type prefixes: Binary, Number, String."
            ));
        }
    };
    match value {
        None | Some("") => {
            refuse(format!("Message attribute '{name}' must contain a non-empty value of type '{logical}'."))
        }
        Some(text) if logical == "Number" && text.parse::<f64>().is_err() => {
            refuse(format!("Can't cast the value of message attribute '{name}' to a number."))
        }
        Some(text) if logical == "Binary" && STANDARD.decode(text).is_err() => {
            refuse(format!("The value of message attribute '{name}' is not base64."))
        }
        Some(_) => Ok(()),
    }
}

fn check_id(id: Option<&str>, parameter: &str) -> Result<(), Refused> {
    let Some(id) = id else { return Ok(()) };
    if (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let reason =
        format!("{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.");
    Err(Refused::value(id, parameter, &reason))
}

/// The digest of a body.
pub(super) fn md5_of_body(body: &str) -> String {
    hex(&md5::compute(body).0)
}

/// The digest of attributes, as AWS documents it; none without attributes.
pub(super) fn md5_of_attributes(attributes: &MessageAttributes<'_>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut digest = Context::new();
    for (name, attribute) in attributes {
        digest_part(&mut digest, name.as_bytes());
        digest_part(&mut digest, attribute.data_type.as_bytes());
        if let Some(binary) = &attribute.binary_value {
            digest.consume([2]);
            digest_part(&mut digest, &STANDARD.decode(binary.as_bytes()).unwrap_or_default());
        } else {
            digest.consume([1]);
            digest_part(&mut digest, attribute.string_value.as_deref().unwrap_or_default().as_bytes());
        }
    }
    Some(hex(&digest.compute().0))
}

fn digest_part(digest: &mut Context, bytes: &[u8]) {
    digest.consume(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    digest.consume(bytes);
}

/// `bytes` in lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
