//! How values are encrypted that must not be read in the tables: ChaCha20-Poly1305 under a key of the deployment.
//!
//! Deliberately absent: where that key comes from. See decision 0044 for what this protects from, and what not.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// What a sealed text begins with: the way in which it was sealed.
const FORM: &str = "1.";

/// Encrypts texts, and decrypts those that were encrypted for the same place.
pub(crate) struct Sealing(LessSafeKey);

impl Sealing {
    /// Under a key of 32 bytes; `None` when it has another length.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(|key| Self(LessSafeKey::new(key)))
    }

    /// A text, encrypted for a place: elsewhere it cannot be opened. `random` must be the one of no other text; of 96 random
    /// bits, two are the same after some 2^48 texts.
    pub(crate) fn seal(&self, place: &str, random: u128, text: &str) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        nonce.iter_mut().zip(random.to_be_bytes()).for_each(|(byte, random)| *byte = random);
        let mut sealed = text.as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, Aad::from(place.as_bytes()), &mut sealed).ok()?;
        Some(format!("{FORM}{}", BASE64_STANDARD.encode([nonce.as_slice(), &sealed].concat())))
    }

    /// The text that was sealed for a place; `None` when it was not, by this key, or was changed since.
    pub(crate) fn open(&self, place: &str, sealed: &str) -> Option<String> {
        let mut bytes = BASE64_STANDARD.decode(sealed.strip_prefix(FORM)?).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.0.open_in_place(nonce, Aad::from(place.as_bytes()), sealed).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_opened_by_its_key_in_its_place_and_unchanged() {
        let (ours, theirs) = (Sealing::new(&[1; 32]).unwrap(), Sealing::new(&[2; 32]).unwrap());
        assert!(Sealing::new(&[1; 31]).is_none());
        let sealed = ours.seal("acme shop", 7 << 64, "k-4711").unwrap();
        assert!(!sealed.contains("4711"));
        assert_eq!(ours.open("acme shop", &sealed).as_deref(), Some("k-4711"));
        assert_eq!(theirs.open("acme shop", &sealed), None, "another deployment's key");
        assert_eq!(ours.open("umbrella shop", &sealed), None, "moved to another client's row");
        assert_ne!(
            ours.seal("acme shop", 8 << 64, "k-4711").unwrap(),
            sealed,
            "the same value shows no sameness"
        );
        // Every bit counts: those of the nonce, of the text and of the tag.
        let bytes = BASE64_STANDARD.decode(sealed.strip_prefix(FORM).unwrap()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = format!("{FORM}{}", BASE64_STANDARD.encode(changed));
            assert_eq!(ours.open("acme shop", &changed), None, "bit {bit}");
        }
        for no_seal in ["", "1.", "1.AAAA", "2.", "k-4711", &sealed[..sealed.len() - 4]] {
            assert_eq!(ours.open("acme shop", no_seal), None, "{no_seal}");
        }
    }

    /// Rows outlive versions.
    #[test]
    fn the_stored_form_is_pinned() {
        let sealed = "1.AAAAAAAAAAcAAAAAdqzz1cHNDbEGbS/FgUCUTyQNn+Y8Zw==";
        let ours = Sealing::new(&[1; 32]).unwrap();
        assert_eq!(ours.seal("acme shop", 7 << 64, "k-4711").as_deref(), Some(sealed));
    }
}
