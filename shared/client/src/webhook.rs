//! Verifying the calls that Tidegate makes of an endpoint: signatures of Standard Webhooks.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::Sha256;

use crate::consumer::limits;
use crate::{Message, MessageError};

/// Verifies calls by any of several secrets, so that a secret can be replaced: give the new and the old one meanwhile.
///
/// ```
/// use std::time::SystemTime;
///
/// use http::{HeaderMap, StatusCode};
/// use tidegate_client::{Message, WebhookError, WebhookVerifier};
///
/// fn answer(verifier: &WebhookVerifier, headers: &HeaderMap, body: &[u8]) -> StatusCode {
///     match verifier.verify(headers, body, SystemTime::now()) {
///         Ok(Message::Event(event)) => println!("working on {} {}", event.event_id, event.payload),
///         Ok(Message::Completion(run)) => println!("run {} has {}", run.run_id, run.state),
///         Err(WebhookError::Message(_)) => return StatusCode::UNPROCESSABLE_ENTITY,
///         Err(_) => return StatusCode::UNAUTHORIZED,
///     }
///     StatusCode::NO_CONTENT
/// }
/// # let verifier = WebhookVerifier::new(["whsec_f1G4tjPCN9nHZejqz/eS5isRna3QzX+Ciy/YkLIZjXg="])?;
/// # assert_eq!(answer(&verifier, &HeaderMap::new(), b"{}"), StatusCode::UNAUTHORIZED);
/// # Ok::<(), tidegate_client::SecretError>(())
/// ```
#[derive(Clone)]
pub struct WebhookVerifier {
    keys: Vec<Hmac<Sha256>>,
    tolerance: Duration,
}

/// Why secrets cannot be used. Secrets are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Nothing would ever be verified.
    #[error("give at least one secret")]
    None,
    /// A secret has no bytes.
    #[error("secret {0} is empty")]
    Empty(usize),
    /// A secret is not what registering the client showed.
    #[error("secret {0} is not base64 after 'whsec_'")]
    NotBase64(usize),
}

/// Why a call is not an event or a completion of Tidegate's. But for [`WebhookError::Message`], answer it with 401.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// It lacks a header.
    #[error("the header '{0}' is missing")]
    MissingHeader(&'static str),
    /// It does not say when it was made.
    #[error("'webhook-timestamp' is no number of seconds")]
    NoTimestamp,
    /// It was made too long ago: somebody may repeat it.
    #[error("'webhook-timestamp' is too old: by {by_s} s")]
    TooOld {
        /// How long ago, in seconds.
        by_s: u64,
    },
    /// It was made in the future, or this clock is wrong.
    #[error("'webhook-timestamp' is too far ahead: by {by_s} s")]
    TooFarAhead {
        /// How far ahead, in seconds.
        by_s: u64,
    },
    /// It was signed with another secret, or changed since.
    #[error("no signature of the call fits any secret")]
    NoSignature,
    /// It is genuine, and its body is neither an event nor a completion: answer it with 422.
    #[error(transparent)]
    Message(#[from] MessageError),
}

impl fmt::Debug for WebhookVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookVerifier").field("tolerance", &self.tolerance).finish_non_exhaustive()
    }
}

impl WebhookVerifier {
    /// A verifier by secrets, each `whsec_` and base64 as registering a client shows it.
    ///
    /// # Errors
    /// When there is no secret, or one is of another form.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        let keys = secrets.into_iter().enumerate().map(|(place, secret)| key(place, secret.as_ref()));
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(SecretError::None);
        }
        Ok(Self { keys, tolerance: limits::TOLERANCE })
    }

    /// How far the timestamp of a call may be off: 300 seconds unless it is said.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Verifies the bytes of a body as they arrived, and reads the event or the completion. The same one may come again:
    /// this remembers nothing.
    ///
    /// # Errors
    /// When the call is not to be trusted, or is and its body does not read.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<Message, WebhookError> {
        let id = header(headers, "webhook-id")?;
        let timestamp = header(headers, "webhook-timestamp")?;
        let signatures = header(headers, "webhook-signature")?;
        self.check_time(timestamp, now)?;
        let given = signatures.split(|&byte| byte == b' ').filter_map(|text| text.strip_prefix(b"v1,"));
        let given: Vec<Vec<u8>> = given.filter_map(|text| BASE64_STANDARD.decode(text).ok()).collect();
        let mut fits = false;
        for key in &self.keys {
            let mac = [id, b".", timestamp, b".", body]
                .iter()
                .fold(key.clone(), |mac, part| mac.chain_update(part));
            // Every pair is compared, so that the time taken tells nothing.
            for signature in &given {
                fits |= mac.clone().verify_slice(signature).is_ok();
            }
        }
        if !fits {
            return Err(WebhookError::NoSignature);
        }
        Ok(Message::read(body)?)
    }

    fn check_time(&self, timestamp: &[u8], now: SystemTime) -> Result<(), WebhookError> {
        let is_number = (1..=15).contains(&timestamp.len()) && timestamp.iter().all(u8::is_ascii_digit);
        let text = str::from_utf8(timestamp).ok().filter(|_| is_number);
        let sent_s = text.and_then(|text| text.parse().ok()).ok_or(WebhookError::NoTimestamp)?;
        let (sent, now) = (Duration::from_secs(sent_s), now.duration_since(UNIX_EPOCH).unwrap_or_default());
        let off = now.abs_diff(sent);
        match (off > self.tolerance, now > sent) {
            (false, _) => Ok(()),
            (true, true) => Err(WebhookError::TooOld { by_s: off.as_secs() }),
            (true, false) => Err(WebhookError::TooFarAhead { by_s: off.as_secs() }),
        }
    }
}

fn key(place: usize, secret: &str) -> Result<Hmac<Sha256>, SecretError> {
    let text = secret.strip_prefix("whsec_").unwrap_or(secret);
    let key = BASE64_STANDARD.decode(text).map_err(|_| SecretError::NotBase64(place))?;
    if key.is_empty() {
        return Err(SecretError::Empty(place));
    }
    // A key of HMAC may have any length.
    Hmac::new_from_slice(&key).map_err(|_| SecretError::Empty(place))
}

fn header<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<&'h [u8], WebhookError> {
    headers.get(name).map(http::HeaderValue::as_bytes).ok_or(WebhookError::MissingHeader(name))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::consumer::fakes::body;

    // The request of docs/messages.md.
    const SECRET: &str = "whsec_f1G4tjPCN9nHZejqz/eS5isRna3QzX+Ciy/YkLIZjXg=";
    const OLD_SECRET: &str = "whsec_YW4gb2xkZXIga2V5";
    const SENT_AT: u64 = 1_795_318_389;
    const SIGNATURE: &str = "v1,wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=";
    const BODY: &[u8] = br#"{"event_id":"hello.1.1795305600.0","job_id":"hello","client_id":"acme","run_id":"hello.1.1795305600","index":0,"count":1,"launch_at":"2026-11-22T00:00:00Z","attempt":1,"payload":{"report":"daily"}}"#;

    fn headers(timestamp: &str, signature: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("Webhook-Id", HeaderValue::from_static("hello.1.1795305600.0"));
        headers.insert("webhook-timestamp", timestamp.parse().unwrap());
        headers.insert("webhook-signature", HeaderValue::from_bytes(signature).unwrap());
        headers
    }

    fn documented() -> HeaderMap {
        headers(&SENT_AT.to_string(), SIGNATURE.as_bytes())
    }

    fn signed(secret: &str, body: &[u8]) -> HeaderMap {
        let mac = key(0, secret)
            .unwrap()
            .chain_update(format!("hello.1.1795305600.0.{SENT_AT}."))
            .chain_update(body);
        let signature = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        headers(&SENT_AT.to_string(), signature.as_bytes())
    }

    fn verified(secrets: &[&str], headers: &HeaderMap, body: &[u8], at_s: u64) -> Result<Message, String> {
        let verifier = WebhookVerifier::new(secrets).unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(at_s);
        verifier.verify(headers, body, now).map_err(|error| error.to_string())
    }

    fn is_event(verified: Result<Message, String>) -> bool {
        matches!(verified, Ok(Message::Event(event)) if event.payload["report"] == "daily")
    }

    #[test]
    fn the_documented_call_is_an_event() {
        assert!(is_event(verified(&[SECRET], &documented(), BODY, SENT_AT)));
    }

    #[test]
    fn any_of_the_secrets_and_any_of_the_signatures_may_fit() {
        for secrets in [[SECRET, OLD_SECRET], [OLD_SECRET, SECRET]] {
            assert!(is_event(verified(&secrets, &documented(), BODY, SENT_AT)));
            assert!(is_event(verified(&secrets, &signed(OLD_SECRET, BODY), BODY, SENT_AT)));
        }
        let one_of_three = format!("v1a,abcd v1,AAAA {SIGNATURE}");
        let headers = headers(&SENT_AT.to_string(), one_of_three.as_bytes());
        assert!(is_event(verified(&[SECRET], &headers, BODY, SENT_AT)));
        let replaced = verified(&[OLD_SECRET], &documented(), BODY, SENT_AT);
        assert_eq!(replaced.unwrap_err(), "no signature of the call fits any secret");
    }

    #[test]
    fn another_signature_does_not_fit() {
        let bare = SIGNATURE.strip_prefix("v1,").unwrap();
        for signature in ["", "v1,", "v1,AAAA", "v1,é", bare, &format!("v2,{bare}"), &SIGNATURE[..43]] {
            let headers = headers(&SENT_AT.to_string(), signature.as_bytes());
            let error = verified(&[SECRET], &headers, BODY, SENT_AT).unwrap_err();
            assert_eq!(error, "no signature of the call fits any secret", "{signature}");
        }
    }

    #[test]
    fn what_was_signed_cannot_be_changed() {
        let mut other_id = documented();
        other_id.insert("webhook-id", HeaderValue::from_static("other"));
        let longer = [BODY, b" "].concat();
        let later = headers(&(SENT_AT + 1).to_string(), SIGNATURE.as_bytes());
        for (headers, body) in [(&other_id, BODY), (&documented(), &longer), (&later, BODY)] {
            let error = verified(&[SECRET], headers, body, SENT_AT).unwrap_err();
            assert_eq!(error, "no signature of the call fits any secret");
        }
    }

    #[test]
    fn a_timestamp_may_be_off_by_five_minutes() {
        for at_s in [SENT_AT - 300, SENT_AT + 300] {
            assert!(is_event(verified(&[SECRET], &documented(), BODY, at_s)));
        }
        let old = verified(&[SECRET], &documented(), BODY, SENT_AT + 301).unwrap_err();
        assert_eq!(old, "'webhook-timestamp' is too old: by 301 s");
        let ahead = verified(&[SECRET], &documented(), BODY, SENT_AT - 301).unwrap_err();
        assert_eq!(ahead, "'webhook-timestamp' is too far ahead: by 301 s");
    }

    #[test]
    fn a_timestamp_is_a_number_of_seconds() {
        for timestamp in ["", "now", "1e9", "-1", "+1795318389", "1795318389.5", &"1".repeat(5_000), "²"] {
            let headers = headers(timestamp, SIGNATURE.as_bytes());
            let error = verified(&[SECRET], &headers, BODY, SENT_AT).unwrap_err();
            assert_eq!(error, "'webhook-timestamp' is no number of seconds", "{timestamp}");
        }
    }

    #[test]
    fn a_header_that_is_missing_is_named() {
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            let mut headers = documented();
            headers.remove(name);
            let error = verified(&[SECRET], &headers, BODY, SENT_AT).unwrap_err();
            assert_eq!(error, format!("the header '{name}' is missing"));
        }
    }

    #[test]
    fn a_genuine_body_that_does_not_read_is_another_error() {
        let mut no_count = body(0);
        no_count.as_object_mut().unwrap().remove("count");
        let text = no_count.to_string();
        let verifier = WebhookVerifier::new([SECRET]).unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(SENT_AT);
        let error = verifier.verify(&signed(SECRET, text.as_bytes()), text.as_bytes(), now).unwrap_err();
        assert!(matches!(error, WebhookError::Message(MessageError::Event(_))), "{error}");
    }

    #[test]
    fn secrets_are_base64_and_not_shown() {
        let none: [&str; 0] = [];
        assert_eq!(WebhookVerifier::new(none).unwrap_err(), SecretError::None);
        assert_eq!(WebhookVerifier::new([SECRET, "whsec_"]).unwrap_err(), SecretError::Empty(1));
        assert_eq!(WebhookVerifier::new(["whsec_not base64"]).unwrap_err(), SecretError::NotBase64(0));
        let shown = format!("{:?}", WebhookVerifier::new([SECRET]).unwrap());
        assert_eq!(shown, "WebhookVerifier { tolerance: 300s, .. }");
    }
}
