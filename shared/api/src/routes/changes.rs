//! What was changed, when, by whom and from where.

use axum::Json;
use axum::extract::State;
use chrono::DateTime;
use tidegate_domain::change::{Kind, What};
use tidegate_domain::limits::INSTANTS_S;
use tidegate_engine::author;
use tidegate_protocol::{ChangeList, Unreadable};
use tidegate_store::changes::ChangeRow;
use tidegate_store::clients::Client;
use tidegate_store::{Page, PageOf, StoreError};
use tracing::warn;

use super::filling::Filling;
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Asked, Cursor, Paged};
use crate::problem::Problem;
use crate::wire::change::{ChangesQuery, Wanted, view};
use crate::wire::when::{read_of_query, window_of_query};
use crate::wire::{instant, spoiled};

/// Lists what was changed of this client's, the latest first: jobs, policies, calendars, keys, secrets and the client itself, each
/// with what was done, by which key and from where; and what was done to runs, dead letters and held tokens. Changes are kept for 90 days, or for the client's `history_days` when these are
/// more. One-time jobs that are created are not among them: the job is the record. Of a `kind` and an `id`, up to 1,000 changes are
/// looked at for each page, which may show few of them, or none, and have a `next_cursor`: the list ends where that is null. What a
/// job said before each change, `GET /v1/jobs/{job_id}/versions` shows.
#[utoipa::path(get, path = "/v1/changes", tag = "changes", params(ChangesQuery), responses(
    (status = 200, description = "A page of changes", body = ChangeList),
))]
pub(crate) async fn list_changes(
    State(state): State<ApiState>,
    Caller(client): Caller,
    Asked(query): Asked<ChangesQuery>,
) -> Result<Json<ChangeList>, Problem> {
    let asked = Paged::read(query.cursor.clone(), query.limit.as_deref())?;
    let given = asked.after.is_some();
    let wanted = query.wanted()?;
    let since = read_of_query("since", query.since.as_deref())?.unwrap_or_default();
    let last = DateTime::from_timestamp(*INSTANTS_S.end(), 0).unwrap_or_default();
    let until = read_of_query("until", query.until.as_deref())?.unwrap_or(last);
    window_of_query(since, until)?;
    let page = selected(&state, &client, (since, until), &wanted, asked).await;
    let page = page.map_err(|e| Cursor::refusal(given, "list changes", &e))?;
    let mut unreadable = spoiled::views(page.unreadable, "");
    let mut changes = Vec::with_capacity(page.rows.len());
    for row in &page.rows {
        match view(row) {
            Ok(change) => changes.push(change),
            Err(error) => unreadable.push(Unreadable {
                id: format!("{} {} at {}", row.kind, row.id, instant(row.at)),
                reason: error.to_string(),
            }),
        }
    }
    Ok(Json(ChangeList { changes, unreadable, next_cursor: Cursor::next_of(page.next) }))
}

/// A page of the changes that are asked for, of the next few.
async fn selected(
    state: &ApiState,
    client: &Client,
    window: (DateTime<chrono::Utc>, DateTime<chrono::Utc>),
    wanted: &Wanted,
    asked: PageOf,
) -> Result<Page<ChangeRow>, StoreError> {
    let mut filling = Filling::descending(asked, wanted.has_all());
    loop {
        let mut page = state.engine.store().changes(&client.id, window, filling.next()).await?;
        page.rows.retain(|change| wanted.has(change));
        if filling.is_done_with(page, |change| change.sort_key.clone()) {
            return Ok(filling.into_page());
        }
    }
}

/// Records what a call has done without changing what anything says. The call does not fail with it: the log has what it did.
pub(super) async fn record(state: &ApiState, client: &Client, done: (Kind, &str, String), what: What) {
    let change = author::change(what, state.engine.clock().now());
    let (kind, id, of) = done;
    let recorded = state.engine.store().record_done(&client.id, (kind, id, of.clone()), &change).await;
    if let Err(error) = recorded {
        warn!(client = %client.id, kind = kind.as_str(), id, of, what = what.as_str(), %error, "what was done is not recorded");
    }
}
