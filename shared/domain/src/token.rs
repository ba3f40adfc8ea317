//! The token: the right to have one event in flight, as the consumer carries it.

use std::fmt;
use std::str::FromStr;

use crate::ids::{ClientId, IdError};
use crate::limits::SLOTS_PER_GROUP;
use crate::slots::{GroupKey, LeaseId, SlotGroup};

/// Names one lease of one slot: whose it is, where it lies, what it holds and its fencing number.
///
/// Invariant: two leases never have the same token, because the fencing number of a slot group only rises.
///
/// ```
/// use tidegate_domain::token::Token;
///
/// let token: Token = "tok.acme.small.0.3.17.2.9".parse()?;
/// assert_eq!((token.client().as_str(), token.lease.slot), ("acme", 3));
/// assert_eq!(token.to_string(), "tok.acme.small.0.3.17.2.9");
/// # Ok::<(), tidegate_domain::ids::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The slot group whose lease it is.
    pub group: GroupKey,
    /// The lease: slot, fencing number, event and cost.
    pub lease: LeaseId,
}

impl Token {
    /// The client whose policy its limit is.
    pub fn client(&self) -> &ClientId {
        &self.group.client
    }
}

impl SlotGroup {
    /// The token of a slot's present lease, as its consumer carries it; `None` when the slot is free.
    pub fn token(&self, slot: u32) -> Option<Token> {
        let lease = self.leases.get(&slot)?.id;
        Some(Token { group: self.key.clone(), lease })
    }
}

/// Bytes of a token's MAC: half of an HMAC-SHA-256, the shortest that RFC 2104 recommends.
pub const MAC_BYTES: usize = 16;

/// A token as it travels to a consumer and back: with a MAC of the deployment that gave it, so that it cannot be guessed.
///
/// That its form is right says nothing: whoever takes one from outside must verify its MAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedToken {
    /// The token.
    pub token: Token,
    /// The first bytes of its HMAC-SHA-256 under the deployment's key.
    pub mac: [u8; MAC_BYTES],
}

impl fmt::Display for SignedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.token)?;
        self.mac.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for SignedToken {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad =
            || IdError::Form { what: "token", value: text.chars().take(200).collect(), form: SIGNED_FORM };
        let (token, hex) = text.rsplit_once('.').ok_or_else(bad)?;
        if hex.len() != 2 * MAC_BYTES || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad());
        }
        let mut mac = [0; MAC_BYTES];
        for (byte, digits) in mac.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digits = str::from_utf8(digits).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(Self { token: token.parse().map_err(|_| bad())?, mac })
    }
}

const SIGNED_FORM: &str =
    "tok.<client>.<policy>.<group>.<slot>.<fence>.<pack number>.<index>[.<cost>].<signature>";
const FORM: &str = "tok.<client>.<policy>.<group>.<slot>.<fence>.<pack number>.<index>[.<cost>]";

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group: GroupKey { client, policy, group }, lease } = self;
        let LeaseId { slot, fence, pack_number, index, cost } = lease;
        write!(f, "tok.{client}.{policy}.{group}.{slot}.{fence}.{pack_number}.{index}")?;
        if *cost == 1 { Ok(()) } else { write!(f, ".{cost}") }
    }
}

impl FromStr for Token {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = || IdError::Form { what: "token", value: text.chars().take(200).collect(), form: FORM };
        let parts: Vec<&str> = text.split('.').collect();
        let ["tok", client, policy, group, slot, fence, pack_number, index, ref cost @ ..] = parts[..] else {
            return Err(bad());
        };
        let cost = match cost {
            [] => 1,
            [cost] => {
                cost.parse().ok().filter(|cost| (2..=SLOTS_PER_GROUP).contains(cost)).ok_or_else(bad)?
            }
            _ => return Err(bad()),
        };
        let group = GroupKey {
            client: client.parse()?,
            policy: policy.parse()?,
            group: group.parse().map_err(|_| bad())?,
        };
        let lease = LeaseId {
            slot: slot.parse().map_err(|_| bad())?,
            fence: fence.parse().map_err(|_| bad())?,
            pack_number: pack_number.parse().map_err(|_| bad())?,
            index: index.parse().map_err(|_| bad())?,
            cost,
        };
        Ok(Self { group, lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_token_reads_back_and_one_without_its_mac_is_refused() {
        let token: Token = "tok.acme.small.0.3.17.2.9.4".parse().unwrap();
        let signed = SignedToken { token, mac: std::array::from_fn(|n| n as u8 * 16) };
        let text = signed.to_string();
        assert_eq!(text, "tok.acme.small.0.3.17.2.9.4.00102030405060708090a0b0c0d0e0f0");
        assert_eq!(text.parse::<SignedToken>(), Ok(signed));
        let upper = text.to_uppercase();
        for bad in ["", "tok.acme.small.0.3.17.2.9", &text[1..], &text[..text.len() - 1], &upper] {
            assert!(bad.parse::<SignedToken>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_reads_back_and_a_broken_one_is_refused() {
        let text = "tok.acme.small.0.3.17.2.9";
        let token: Token = text.parse().unwrap();
        assert_eq!(token.lease, LeaseId { slot: 3, fence: 17, pack_number: 2, index: 9, cost: 1 });
        assert_eq!(token.to_string(), text);
        let heavy = "tok.acme.small.0.3.17.2.9.4";
        assert_eq!(
            heavy.parse::<Token>().map(|token| (token.lease.cost, token.to_string())),
            Ok((4, heavy.to_owned()))
        );
        for bad in [
            "",
            "tok",
            "tok.acme.small.0.3.17.2",
            "tok.acme.small.0.3.17.2.9.1",
            "tok.acme.small.0.3.17.2.9.13",
            "tok.acme.small.0.3.17.2.9.2.2",
            "tok.acme.small.-1.3.17.2.9",
        ] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }
}
