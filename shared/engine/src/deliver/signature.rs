//! Standard Webhooks signatures: HMAC-SHA256 over id, timestamp and body, under the client's secret.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The signatures under each of some secrets, as one `webhook-signature` header has them; `None` when no secret serves.
pub(super) fn sign_all(secrets: &[String], id: &str, timestamp_s: i64, body: &str) -> Option<String> {
    let signatures: Vec<String> =
        secrets.iter().filter_map(|secret| sign(secret, id, timestamp_s, body)).collect();
    (!signatures.is_empty()).then(|| signatures.join(" "))
}

/// The `webhook-signature` header of a call; `None` when the secret is no `whsec_` and base64.
pub(super) fn sign(secret: &str, id: &str, timestamp_s: i64, body: &str) -> Option<String> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_")?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp_s}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification's reference libraries.
    #[test]
    fn agrees_with_the_published_example() {
        let signature = sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(sign("secret", "a", 1, ""), None);
    }
}
