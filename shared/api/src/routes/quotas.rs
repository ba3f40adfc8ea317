//! Whether a client may write jobs now, by its quota. A client without one costs nothing more.

use tidegate_domain::limits::MINUTE_SECONDS;
use tidegate_store::clients::Client;

use crate::ApiState;
use crate::problem::{Kind, Problem};

/// How many of so many jobs the client may write now, the first of them.
pub(super) async fn take_creates(state: &ApiState, client: &Client, wanted: usize) -> Result<usize, Problem> {
    let Some(most) = client.quotas.creates_per_minute else { return Ok(wanted) };
    let asked = u32::try_from(wanted).unwrap_or(u32::MAX);
    let granted =
        state.engine.store().take_creates(&client.id, most, asked, state.engine.clock().now()).await;
    let granted = granted.map_err(|e| Problem::of_store("take of a quota", &e))?;
    Ok(usize::try_from(granted).unwrap_or(wanted).min(wanted))
}

/// The same for one job, which is refused when it may not be written.
pub(super) async fn take_create(state: &ApiState, client: &Client) -> Result<(), Problem> {
    match take_creates(state, client, 1).await? {
        0 => Err(over_quota(state, client)),
        _ => Ok(()),
    }
}

/// That no more jobs are written in this minute.
pub(super) fn over_quota(state: &ApiState, client: &Client) -> Problem {
    let most = client.quotas.creates_per_minute.map_or(0, |most| most.get());
    let passed = state.engine.clock().now().timestamp().rem_euclid(MINUTE_SECONDS);
    let left = u32::try_from(MINUTE_SECONDS.saturating_sub(passed)).unwrap_or(1);
    let id = &client.id;
    let detail = format!(
        "client '{id}' may write {most} jobs a minute (quotas.creates_per_minute), and has; send this again in {left} seconds, write \
         fewer, or let the admin allow more (PATCH /v1/clients/{id})"
    );
    Problem::new(Kind::OverQuota, detail).retried_after(left)
}
