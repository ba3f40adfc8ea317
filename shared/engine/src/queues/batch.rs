//! How messages are cut into SQS batch calls: by count and by bytes, here and nowhere else; and what SQS refuses of them.
//!
//! A message that is larger than a call may be is a batch of its own, so that SQS refuses it alone.

use tidegate_domain::limits::{SQS_BATCH, SQS_BATCH_BYTES};

/// Gathers messages until they are a call.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    messages: Vec<T>,
    bytes: usize,
    most_bytes: usize,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::of_at_most(SQS_BATCH_BYTES)
    }
}

impl<T> Batch<T> {
    /// For calls of so many bytes: other services than SQS take ten messages to a call as well, but less text.
    pub(crate) fn of_at_most(most_bytes: usize) -> Self {
        Self { messages: Vec::new(), bytes: 0, most_bytes }
    }

    /// Adds a message of so many bytes. Returns the call that it no longer fits into.
    pub(crate) fn add(&mut self, message: T, bytes: usize) -> Option<Vec<T>> {
        let is_full = self.messages.len() >= SQS_BATCH || self.bytes.saturating_add(bytes) > self.most_bytes;
        let full = (is_full && !self.messages.is_empty()).then(|| std::mem::take(&mut self.messages));
        if full.is_some() {
            self.bytes = 0;
        }
        self.messages.push(message);
        self.bytes = self.bytes.saturating_add(bytes);
        full
    }

    /// The last call, if there is anything in it.
    pub(crate) fn rest(self) -> Option<Vec<T>> {
        (!self.messages.is_empty()).then_some(self.messages)
    }
}

/// Cuts messages with their sizes in bytes into calls.
pub(crate) fn batches<T>(messages: impl IntoIterator<Item = (T, usize)>) -> Vec<Vec<T>> {
    let mut open = Batch::default();
    let mut calls: Vec<Vec<T>> =
        messages.into_iter().filter_map(|(message, bytes)| open.add(message, bytes)).collect();
    calls.extend(open.rest());
    calls
}

/// Whether SQS refuses a whole call because of what a message in it says: it will refuse that message each time.
pub(crate) fn blames_a_message(code: &str) -> bool {
    ["BatchRequestTooLong", "InvalidMessageContents", "MessageTooLong"]
        .iter()
        .any(|known| code.contains(known))
}

/// The same for the code of one entry, which can be wrong in nothing but its text: all else is ours.
pub(crate) fn blames_its_entry(code: &str) -> bool {
    blames_a_message(code) || code.contains("InvalidParameterValue")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::sqs_text;

    fn cut(sizes: &[usize]) -> Vec<usize> {
        batches(sizes.iter().map(|size| ((), *size))).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_call_has_at_most_ten_messages_and_a_million_bytes() {
        assert_eq!(cut(&[]), Vec::<usize>::new());
        assert_eq!(cut(&[1; 25]), [10, 10, 5]);
        // Ten chunks whose payloads are nothing but quotes: 131 KB each.
        assert_eq!(cut(&[131_000; 10]), [7, 3]);
        assert_eq!(cut(&[SQS_BATCH_BYTES, 1]), [1, 1]);
        assert_eq!(cut(&[1, usize::MAX, 1]), [1, 1, 1]);
    }

    #[test]
    fn a_batch_for_another_service_holds_less_text() {
        let mut batch = Batch::of_at_most(100);
        let full: Vec<_> =
            [60, 40, 1, 99, 200].iter().map(|bytes| batch.add((), *bytes).map(|full| full.len())).collect();
        assert_eq!(full, [None, None, Some(2), None, Some(2)]);
        assert_eq!(batch.rest().map(|rest| rest.len()), Some(1));
    }

    #[test]
    fn what_sqs_refuses_in_a_text_is_escaped_and_means_the_same() {
        let odd = serde_json::to_string("a\u{fffe}b\u{ffff}\u{1}\u{7f}\u{10ffff}é").unwrap();
        let text = sqs_text(odd.clone());
        assert_eq!(text, "\"a\\ufffeb\\uffff\\u0001\u{7f}\u{10ffff}é\"");
        let read = |json: &str| serde_json::from_str::<String>(json).unwrap();
        assert_eq!(read(&text), read(&odd));
    }
}
