//! What all batch requests have in common: the checks of the batch itself, and an outcome for each entry.

use std::collections::HashSet;

use super::error::{Code, Failure, Refused};
use super::limits;
use super::wire::{BatchOutcome, Failed};

/// Checks the ids of a batch.
///
/// # Errors
/// `EmptyBatchRequest`, `TooManyEntriesInBatchRequest`, `InvalidBatchEntryId` and `BatchEntryIdsNotDistinct`.
pub(super) fn check<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Refused> {
    if ids.len() == 0 {
        return Err(Refused::new(
            Code::EmptyBatchRequest,
            "There should be at least one entry in the request.",
        ));
    }
    if ids.len() > limits::BATCH_ENTRIES {
        let message = format!(
            "Maximum number of entries per request are {}. You have sent {}.",
            limits::BATCH_ENTRIES,
            ids.len()
        );
        return Err(Refused::new(Code::TooManyEntriesInBatchRequest, message));
    }
    let mut seen = HashSet::new();
    for id in ids {
        let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if id.is_empty() || id.len() > 80 || !id.bytes().all(ordinary) {
            let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                           It can be at most 80 letters long.";
            return Err(Refused::new(Code::InvalidBatchEntryId, message));
        }
        if !seen.insert(id) {
            return Err(Refused::new(Code::BatchEntryIdsNotDistinct, format!("Id {id} repeated.")));
        }
    }
    Ok(())
}

/// Does `work` for each entry; refusals become failed entries.
///
/// # Errors
/// A failure of the store ends the batch.
pub(super) fn each<'e, E, T>(
    entries: &'e [E],
    id: impl Fn(&E) -> &str,
    mut work: impl FnMut(&'e E) -> Result<T, Failure>,
) -> Result<BatchOutcome<T>, Failure> {
    let mut outcome = BatchOutcome { successful: Vec::with_capacity(entries.len()), failed: Vec::new() };
    for entry in entries {
        match work(entry) {
            Ok(done) => outcome.successful.push(done),
            Err(Failure::Refused(Refused { code, message })) => {
                outcome.failed.push(Failed {
                    id: id(entry).to_owned(),
                    sender_fault: true,
                    code: code.query(),
                    message,
                });
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(outcome)
}
