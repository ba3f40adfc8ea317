//! Many jobs in one call. Each is answered by itself, in the order of the call: one that is refused spoils no other.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use serde_json::value::RawValue;
use tidegate_domain::ids::JobId;
use tidegate_domain::job::Job;
use tidegate_domain::limits::BULK_BODY_BYTES;
use tidegate_engine::{JobDraft, Written};
use tidegate_protocol::{BulkResult, BulkResults};
use tidegate_store::clients::Client;

use super::acceptance::{Accepted, Seen, accept};
use super::jobs::id_by_key;
use super::quotas::{ask_of_job, gone_meanwhile, stored_jobs, take_all};
use super::{id_taken, nothing_to_match, wrong_revision};
use crate::ApiState;
use crate::auth::Caller;
use crate::body::{Body, IdempotencyKey};
use crate::form;
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::bulk::{BulkBody, refused, stored};
use crate::wire::job::JobBody;
use crate::wire::trigger::trigger_warnings;

/// Creates up to 1,000 jobs. The call is answered with 200, and each job with the status that it would have alone.
/// Repeating the call is safe for jobs with a `job_id`, and with an `Idempotency-Key` for the others as well, in the same order.
#[utoipa::path(post, path = "/v1/jobs/bulk", tag = "jobs", request_body = BulkBody,
    params(("idempotency-key" = Option<String>, Header,
        description = "Gives jobs without a `job_id` ids that follow from it and their places, in 1 to 255 visible ASCII characters")),
    responses(
    (status = 200, description = "What came of each job", body = BulkResults),
))]
pub(crate) async fn create_jobs(
    State(state): State<ApiState>,
    Caller(client): Caller,
    IdempotencyKey(key): IdempotencyKey,
    Body(body): Body<BulkBody, BULK_BODY_BYTES>,
) -> Result<Json<BulkResults>, Problem> {
    let mut errors = FieldErrors::default();
    body.check_number(&mut errors);
    errors.into_result(Kind::InvalidBody)?;
    let (mut seen, mut names) = (Seen::default(), HashSet::new());
    let mut results: Vec<Option<BulkResult>> = Vec::with_capacity(body.jobs.len());
    let (mut drafts, mut warnings) = (Vec::new(), Vec::new());
    for (place, job) in body.jobs.iter().enumerate() {
        let by_key = key.as_ref().map(|key| id_by_key(&format!("{key} {place}")));
        results.push(match accept_part(&state, &client, (job, by_key), (&mut seen, &mut names)).await {
            Ok(accepted) => {
                drafts.push((accepted.id, accepted.draft));
                warnings.push(accepted.warnings);
                None
            }
            Err(problem) => Some(refused(problem)),
        });
    }
    let written = write_all(&state, &client, drafts).await?;
    let mut written = written.into_iter().zip(warnings).map(|(written, warnings)| answer(written?, warnings));
    let missing = || Err(Problem::internal("create jobs", &"an answer is missing"));
    let results = results.into_iter().map(|result| match result {
        Some(refused) => refused,
        None => written.next().unwrap_or_else(missing).unwrap_or_else(refused),
    });
    Ok(Json(BulkResults { results: results.collect() }))
}

/// Which of the answers is that of a job.
enum Place {
    Refused(Problem),
    New,
    Again(JobId),
}

/// Writes those jobs that the quotas of the client allow, the first of them, and says of each what came of it.
async fn write_all(
    state: &ApiState,
    client: &Client,
    drafts: Vec<(Option<JobId>, JobDraft)>,
) -> Result<Vec<Result<Written<Job>, Problem>>, Problem> {
    let ids: Vec<&JobId> = drafts.iter().filter_map(|(id, _)| id.as_ref()).collect();
    let stored = stored_jobs(state, client, &ids).await?;
    let ask = |(id, draft): &(Option<JobId>, JobDraft)| {
        ask_of_job(&draft.trigger, id.is_some(), id.as_ref().and_then(|id| stored.get(id)))
    };
    let asks: Vec<_> = drafts.iter().map(ask).collect();
    let (mut new, mut again, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for ((id, draft), refused) in drafts.into_iter().zip(take_all(state, client, &asks).await?) {
        places.push(match (refused, id) {
            (Some(problem), _) => Place::Refused(problem),
            (None, Some(id)) if stored.contains_key(&id) => {
                again.push((id.clone(), draft));
                Place::Again(id)
            }
            (None, id) => {
                new.push((id, draft));
                Place::New
            }
        });
    }
    let mut new = match new.is_empty() {
        true => Vec::new(),
        false => state.engine.jobs().create_all(&client.id, new).await,
    }
    .into_iter();
    let mut again = state.engine.jobs().create_all_again(&client.id, again).await.into_iter();
    let missing = || Problem::internal("create jobs", &"an answer is missing");
    let written = places.into_iter().map(|place| {
        let (name, written) = match place {
            Place::Refused(problem) => return Err(problem),
            Place::New => (String::new(), new.next()),
            Place::Again(id) => (id.to_string(), again.next()),
        };
        match written.ok_or_else(missing)?.map_err(|e| Problem::of_engine("create jobs", &e))? {
            Written::Absent => Err(gone_meanwhile("job", &name)),
            written => Ok(written),
        }
    });
    Ok(written.collect())
}

async fn accept_part(
    state: &ApiState,
    client: &Client,
    (job, by_key): (&RawValue, Option<JobId>),
    (seen, names): (&mut Seen, &mut HashSet<JobId>),
) -> Result<Accepted, Problem> {
    let body: JobBody = form::read(job.get().as_bytes(), state.engine.clock().now())?;
    let by_key = by_key.filter(|_| !body.has_id());
    let accepted = accept(state, client, by_key.as_ref(), body, seen).await?;
    let accepted = Accepted { id: by_key.or(accepted.id), ..accepted };
    if let Some(id) = &accepted.id
        && !names.insert(id.clone())
    {
        let message = format!("job_id '{id}' is in this call twice; the first one counts");
        return Err(Problem::of_field(Kind::InvalidBody, "job_id", id.as_str(), message));
    }
    Ok(accepted)
}

fn answer(written: Written<Job>, mut warnings: Vec<String>) -> Result<BulkResult, Problem> {
    let status = if matches!(written, Written::Created(_)) { 201 } else { 200 };
    match written {
        Written::Created(job) | Written::Replaced(job) | Written::Unchanged(job) => {
            warnings.extend(trigger_warnings(&job.trigger));
            Ok(stored(status, &job, warnings))
        }
        Written::Taken(job) => Err(id_taken("job", "job_id", job.id.as_str())),
        Written::RevisionIs(current) => Err(wrong_revision("job", "", current)),
        Written::Absent => Err(nothing_to_match("job", "")),
    }
}
