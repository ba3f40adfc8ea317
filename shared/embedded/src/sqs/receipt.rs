//! Receipt handles: which receive of which message a caller answers for.
//!
//! A handle names queue, message and the number of the receive, with a check sum so that garbage is told from a handle
//! that has become stale. It protects against mistakes, not against forgery: the service trusts its callers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::error::{Code, Refused};

/// What a receipt handle says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) queue_id: i64,
    pub(super) seq: i64,
    /// The message's receive count at that receive: the latest receive is the only valid one.
    pub(super) receive_count: i64,
}

const BYTES: usize = 28;

impl Receipt {
    pub(super) fn encode(self) -> String {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.queue_id.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.seq.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.receive_count.to_be_bytes());
        let sum = check_sum(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum);
        STANDARD.encode(bytes)
    }

    /// The receipt in `handle`, which must be of the queue `queue_id`.
    ///
    /// # Errors
    /// `ReceiptHandleIsInvalid` for anything that this service did not give out for that queue.
    pub(super) fn decode(handle: &str, queue_id: i64) -> Result<Self, Refused> {
        if handle.is_empty() {
            return Err(Refused::missing("ReceiptHandle"));
        }
        let invalid = || {
            let message = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
            Refused::new(Code::ReceiptHandleIsInvalid, message)
        };
        let bytes: [u8; BYTES] =
            STANDARD.decode(handle).ok().and_then(|bytes| bytes.try_into().ok()).ok_or_else(invalid)?;
        let number = |at: usize| {
            let mut part = [0; 8];
            part.copy_from_slice(&bytes[at..at + 8]);
            i64::from_be_bytes(part)
        };
        let receipt = Self { queue_id: number(0), seq: number(8), receive_count: number(16) };
        if bytes[24..] != check_sum(&bytes[..24]) || receipt.queue_id != queue_id {
            return Err(invalid());
        }
        Ok(receipt)
    }
}

/// FNV-1a.
fn check_sum(bytes: &[u8]) -> [u8; 4] {
    let sum =
        bytes.iter().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    sum.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIPT: Receipt = Receipt { queue_id: 3, seq: 1_763_725_000_000 << 20, receive_count: 2 };

    #[test]
    fn a_handle_says_what_was_encoded() {
        assert_eq!(Receipt::decode(&RECEIPT.encode(), 3), Ok(RECEIPT));
    }

    #[test]
    fn garbage_and_another_queues_handle_are_refused() {
        let code = |handle: &str, queue| Receipt::decode(handle, queue).unwrap_err().code;
        assert_eq!(code(&RECEIPT.encode(), 4), Code::ReceiptHandleIsInvalid);
        assert_eq!(code("garbage", 3), Code::ReceiptHandleIsInvalid);
        assert_eq!(code(&STANDARD.encode([7; BYTES]), 3), Code::ReceiptHandleIsInvalid);
        assert_eq!(code("", 3), Code::MissingParameter);
    }
}
