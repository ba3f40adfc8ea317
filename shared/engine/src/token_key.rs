//! The key that tokens are signed with. A token that travels to a consumer and back carries a MAC, so nobody finds another
//! token by counting: not those of another client, and not those of the same client's other policies.
//!
//! Deliberately absent: tokens in messages of our own queues, which are not signed, since nobody else writes there.

use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tidegate_domain::token::{MAC_BYTES, SignedToken, Token};
use tidegate_store::{Store, StoreError};

use crate::EngineError;
use crate::random::Random;

/// The name under which the key is stored.
const NAME: &str = "token-key";
/// What the MAC is about, so that the key can serve no other purpose by mistake.
const PURPOSE: &[u8] = b"tidegate token 1 ";

/// Signs tokens, and tells whether a token was signed by this deployment.
#[derive(Clone)]
pub struct TokenKey(Hmac<Sha256>);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    pub(crate) fn new(secret: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(secret).ok().map(Self)
    }

    /// A token as it travels: with the first 16 bytes of its HMAC-SHA-256 (`MAC_BYTES`).
    pub fn sign(&self, token: &Token) -> SignedToken {
        let whole = self.mac_of(token).finalize().into_bytes();
        let mut mac = [0; MAC_BYTES];
        mac.iter_mut().zip(whole).for_each(|(kept, byte)| *kept = byte);
        SignedToken { token: token.clone(), mac }
    }

    /// The token, if this deployment signed it, else `None`; takes as long for a wrong MAC as for a right one, so that
    /// nobody finds one by measuring.
    pub fn verify(&self, signed: SignedToken) -> Option<Token> {
        let verified = self.mac_of(&signed.token).verify_truncated_left(&signed.mac);
        verified.is_ok().then_some(signed.token)
    }

    /// A key of 32 bytes for another purpose, from which nobody gets back to this one. No purpose begins as that of tokens does.
    pub(crate) fn derived(&self, purpose: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(purpose);
        mac.finalize().into_bytes().into()
    }

    fn mac_of(&self, token: &Token) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(PURPOSE);
        mac.update(token.to_string().as_bytes());
        mac
    }
}

/// The key of this deployment, read once per process. It never changes.
pub(crate) struct TokenKeys {
    store: Store,
    random: Arc<dyn Random>,
    known: OnceLock<Arc<TokenKey>>,
}

impl TokenKeys {
    pub(crate) fn new(store: Store, random: Arc<dyn Random>) -> Self {
        Self { store, random, known: OnceLock::new() }
    }

    /// The key of this deployment, from memory where possible. It is made by whoever needs it first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn key(&self) -> Result<Arc<TokenKey>, EngineError> {
        if let Some(known) = self.known.get() {
            return Ok(Arc::clone(known));
        }
        let fresh = [self.random.next_u128().to_be_bytes(), self.random.next_u128().to_be_bytes()].concat();
        let text = self.store.secret(NAME, &BASE64_STANDARD.encode(fresh)).await?;
        let key = BASE64_STANDARD.decode(&text).ok().and_then(|secret| TokenKey::new(&secret));
        let key = key.ok_or_else(|| StoreError::unreadable_secret(NAME))?;
        Ok(Arc::clone(self.known.get_or_init(|| Arc::new(key))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_deployment_signed_is_taken() {
        let (ours, theirs) = (TokenKey::new(&[1; 32]).unwrap(), TokenKey::new(&[2; 32]).unwrap());
        let token: Token = "tok.acme.small.0.3.17.2.9".parse().unwrap();
        let signed = ours.sign(&token);
        assert_eq!(ours.verify(signed.to_string().parse().unwrap()), Some(token.clone()));
        assert_eq!(theirs.verify(signed.clone()), None);
        // The next token of the same policy, and the same place in another one.
        for other in ["tok.acme.small.0.3.18.2.9", "tok.acme.large.0.3.17.2.9", "tok.acme.small.0.3.17.2.9.2"]
        {
            let forged = SignedToken { token: other.parse().unwrap(), mac: signed.mac };
            assert_eq!(ours.verify(forged), None, "{other}");
        }
        assert_eq!(ours.verify(SignedToken { token, mac: [0; MAC_BYTES] }), None);
    }
}
