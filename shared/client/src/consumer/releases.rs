//! Releasing tokens by one call, and whether each release was accepted.

use tidegate_protocol::{Release, ReleaseStatus};
use tokio::time::Instant;
use tracing::{error, warn};

use super::calls::Calls;

/// Releases 1 to 100 tokens. Of each: whether the API has taken the release, so that its message can go.
///
/// An error of the call is logged: then nothing was accepted.
pub(crate) async fn send_releases(
    calls: &Calls,
    entries: &[Release],
    deadline: Option<Instant>,
) -> Vec<bool> {
    let answers = match calls.release(entries, deadline).await {
        Ok(answers) => answers,
        Err(error) => {
            error!(%error, "failed to release {} tokens, their messages stay in the queue", entries.len());
            return vec![false; entries.len()];
        }
    };
    let accepted = answers.into_iter().map(|answer| {
        let (token, status) = (answer.token, answer.status);
        match status {
            ReleaseStatus::Released | ReleaseStatus::AlreadyReleased | ReleaseStatus::Accepted => true,
            // The lease was not the present one any more: nothing changed, and another delivery of the event decides.
            ReleaseStatus::Reclaimed | ReleaseStatus::Unknown => {
                warn!(token, ?status, "a token was not released");
                true
            }
            _ => {
                error!(token, ?status, detail = answer.detail, "a release was refused");
                false
            }
        }
    });
    accepted.collect()
}
