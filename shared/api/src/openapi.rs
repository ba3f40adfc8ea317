//! The routes and their OpenAPI document: one list makes both, so neither can name what the other lacks.

use std::sync::LazyLock;

use axum::Router;
use axum::response::IntoResponse;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use tidegate_protocol::{
    Dst, EarlyClose, EventBridgeTarget, HttpTarget, Interval, LambdaTarget, Problem, Release, SnsTarget,
    SqsTarget, StepFunctionsTarget, Target, Unreadable,
};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, Response};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::routes::{
    backfills, bulk, calendars, changes, clients, dead_letters, events, health, index, jobs, keys, lateness,
    one_times, overdue, patches, policies, quotas, reschedules, runs, samples, schedules, secrets,
    selections, sidelines, skips, targets, tokens, triggers, versions,
};
use crate::wire::bounds::{close, state_bounds};
use crate::wire::bulk::BulkBody;
use crate::wire::calendar::CalendarBody;
use crate::wire::client::{ClientBody, ClientPatch, JobDefaultsBody, RotateBody, SuspendBody};
use crate::wire::dead_letter::{DiscardBody, RedriveBody};
use crate::wire::flow::WindowBody;
use crate::wire::index::ShardsBody;
use crate::wire::job::JobBody;
use crate::wire::job_calls::{PauseBody, RescheduleBody, RollbackBody};
use crate::wire::key::KeyBody;
use crate::wire::overdue::ExpectBody;
use crate::wire::policy::{CloseBody, PolicyBody, RateBody};
use crate::wire::preview::PreviewBody;
use crate::wire::quota::QuotasBody;
use crate::wire::retry::RetryBody;
use crate::wire::rules::MisfireBody;
use crate::wire::run::CancelBody;
use crate::wire::secret::SecretBody;
use crate::wire::selection::SelectionBody;
use crate::wire::sideline::{DrainBody, SidelineBody};
use crate::wire::target::HttpTargetBody;
use crate::wire::token::{ExtendBody, FreeBody, ReleaseBody};
use crate::wire::trigger::EveryBody;
use crate::{ApiState, reference, webhooks};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidegate",
        description = "A throttled cron and batch scheduler. Events are delivered at least once; the event id is the \
            consumer's idempotency key. Every answer that is not a 2xx is a problem (RFC 9457) that names the field, \
            the value and the fix."
    ),
    components(schemas(Problem)),
    security(("client_key" = [])),
    modifiers(&Keys)
)]
struct Document;

struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        for (name, description) in [
            (
                "client_key",
                "An API key of a client, as it was shown once. The admin key does as well, with the header Tidegate-Client: <client_id>",
            ),
            ("admin_key", "The admin key of the deployment"),
        ] {
            let bearer =
                HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build();
            components.add_security_scheme(name, SecurityScheme::Http(bearer));
        }
    }
}

/// Says which bounds the fields of bodies have.
fn tell_of_bounds(document: &mut utoipa::openapi::OpenApi) {
    let components = document.components.get_or_insert_default();
    state_bounds::<BulkBody>(components);
    state_bounds::<CalendarBody>(components);
    state_bounds::<CancelBody>(components);
    state_bounds::<ClientBody>(components);
    state_bounds::<ClientPatch>(components);
    state_bounds::<CloseBody>(components);
    state_bounds::<Release>(components);
    state_bounds::<EveryBody>(components);
    state_bounds::<HttpTargetBody>(components);
    state_bounds::<DiscardBody>(components);
    state_bounds::<DrainBody>(components);
    state_bounds::<ExpectBody>(components);
    state_bounds::<ExtendBody>(components);
    state_bounds::<FreeBody>(components);
    state_bounds::<JobBody>(components);
    state_bounds::<JobDefaultsBody>(components);
    state_bounds::<KeyBody>(components);
    state_bounds::<MisfireBody>(components);
    state_bounds::<PauseBody>(components);
    state_bounds::<PolicyBody>(components);
    state_bounds::<PreviewBody>(components);
    state_bounds::<QuotasBody>(components);
    state_bounds::<RateBody>(components);
    state_bounds::<RedriveBody>(components);
    state_bounds::<ReleaseBody>(components);
    state_bounds::<RescheduleBody>(components);
    state_bounds::<RetryBody>(components);
    state_bounds::<RollbackBody>(components);
    state_bounds::<RotateBody>(components);
    state_bounds::<SecretBody>(components);
    state_bounds::<SelectionBody>(components);
    state_bounds::<ShardsBody>(components);
    state_bounds::<SidelineBody>(components);
    state_bounds::<SuspendBody>(components);
    state_bounds::<WindowBody>(components);
}

/// Says of the parts that bodies share with answers that a body has no further members in them.
fn tell_of_closed_parts(document: &mut utoipa::openapi::OpenApi) {
    let components = document.components.get_or_insert_default();
    close::<Dst>(components);
    close::<EarlyClose>(components);
    close::<EventBridgeTarget>(components);
    close::<HttpTarget>(components);
    close::<Interval>(components);
    close::<LambdaTarget>(components);
    close::<SnsTarget>(components);
    close::<SqsTarget>(components);
    close::<StepFunctionsTarget>(components);
    close::<Target>(components);
    close::<Unreadable>(components);
}

/// Says of every operation that it may answer with a problem.
fn tell_of_problems(document: &mut utoipa::openapi::OpenApi) {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    let problem = Response::builder()
        .description("Refused or failed: a problem that names the field, the value and the fix")
        .content("application/problem+json", content);
    let components = document.components.get_or_insert_default();
    components.responses.insert("Problem".to_owned(), problem.into());
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            let problem = Ref::from_response_name("Problem");
            operation.responses.responses.insert("default".to_owned(), RefOr::Ref(problem));
        }
    }
}

fn with_document() -> (Router<ApiState>, utoipa::openapi::OpenApi) {
    let (routes, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health::health))
        .routes(routes!(clients::register_client, clients::list_clients))
        .routes(routes!(clients::read_client, clients::patch_client, clients::delete_client))
        .routes(routes!(clients::suspend_client))
        .routes(routes!(clients::resume_client))
        .routes(routes!(clients::read_own_client))
        .routes(routes!(quotas::read_own_usage))
        .routes(routes!(quotas::read_usage))
        .routes(routes!(lateness::read_own_lateness))
        .routes(routes!(lateness::read_lateness))
        .routes(routes!(keys::create_key, keys::list_keys))
        .routes(routes!(keys::revoke_key))
        .routes(routes!(keys::create_key_for, keys::list_keys_of))
        .routes(routes!(keys::revoke_key_of))
        .routes(routes!(clients::rotate_webhook_secret))
        .routes(routes!(policies::create_policy, policies::list_policies))
        .routes(routes!(
            policies::read_policy,
            policies::put_policy,
            patches::patch_policy,
            policies::delete_policy
        ))
        .routes(routes!(policies::pause_policy))
        .routes(routes!(policies::resume_policy))
        .routes(routes!(policies::close_policy))
        .routes(routes!(policies::open_policy))
        .routes(routes!(sidelines::read_sideline, sidelines::sideline_caller))
        .routes(routes!(sidelines::drain_caller))
        .routes(routes!(sidelines::sideline_job))
        .routes(routes!(sidelines::drain_job))
        .routes(routes!(sidelines::read_sideline_of_client, sidelines::sideline_client))
        .routes(routes!(sidelines::drain_client))
        .routes(routes!(targets::list_targets))
        .routes(routes!(policies::list_holders))
        .routes(routes!(samples::read_samples))
        .routes(routes!(jobs::create_job, jobs::list_jobs))
        .routes(routes!(jobs::read_job, jobs::put_job, patches::patch_job, jobs::delete_job))
        .routes(routes!(one_times::list_one_time_jobs))
        .routes(routes!(bulk::create_jobs))
        .routes(routes!(jobs::pause_job))
        .routes(routes!(jobs::resume_job))
        .routes(routes!(triggers::trigger_job))
        .routes(routes!(reschedules::reschedule_job))
        .routes(routes!(versions::list_versions))
        .routes(routes!(versions::read_version))
        .routes(routes!(versions::roll_back))
        .routes(routes!(changes::list_changes))
        .routes(routes!(skips::skip_launch))
        .routes(routes!(backfills::backfill_job))
        .routes(routes!(selections::pause_jobs))
        .routes(routes!(selections::resume_jobs))
        .routes(routes!(selections::delete_jobs))
        .routes(routes!(schedules::list_upcoming))
        .routes(routes!(schedules::look_ahead))
        .routes(routes!(runs::list_all_runs))
        .routes(routes!(runs::count_runs))
        .routes(routes!(runs::cancel_runs))
        .routes(routes!(overdue::list_overdue))
        .routes(routes!(schedules::preview_schedule))
        .routes(routes!(calendars::list_calendars))
        .routes(routes!(calendars::read_calendar, calendars::put_calendar, calendars::delete_calendar))
        .routes(routes!(calendars::preview_calendar))
        .routes(routes!(secrets::list_secrets))
        .routes(routes!(secrets::put_secret, secrets::delete_secret))
        .routes(routes!(index::read_index))
        .routes(routes!(index::raise_shards))
        .routes(routes!(runs::list_runs))
        .routes(routes!(runs::read_run))
        .routes(routes!(runs::cancel_run))
        .routes(routes!(runs::list_events))
        .routes(routes!(events::list_all_events))
        .routes(routes!(events::explain_event))
        .routes(routes!(events::list_failures))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(dead_letters::count_dead_letters))
        .routes(routes!(dead_letters::redrive_dead_letters))
        .routes(routes!(dead_letters::discard_dead_letters))
        .routes(routes!(dead_letters::read_dead_letter))
        .routes(routes!(tokens::release_tokens))
        .routes(routes!(tokens::extend_tokens))
        .routes(routes!(tokens::free_tokens))
        .routes(routes!(read_openapi))
        .routes(routes!(read_docs))
        .split_for_parts();
    tell_of_bounds(&mut document);
    tell_of_closed_parts(&mut document);
    tell_of_problems(&mut document);
    webhooks::add_to(&mut document);
    (routes, document)
}

/// The routes, without their state.
pub(crate) fn routes() -> Router<ApiState> {
    with_document().0
}

static TEXT: LazyLock<String> = LazyLock::new(|| {
    // A document of this crate's own types always becomes JSON; an empty one would fail its snapshot test.
    let mut text = with_document().1.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
});

/// The OpenAPI document of the routes, as JSON.
pub fn openapi_json() -> &'static str {
    &TEXT
}

/// Shows this document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "health", security(()), responses(
    (status = 200, description = "The OpenAPI document", content_type = "application/json", body = serde_json::Value),
))]
async fn read_openapi() -> axum::response::Response {
    ([(CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}

static PAGE: LazyLock<String> =
    LazyLock::new(|| reference::page(&serde_json::from_str(openapi_json()).unwrap_or_default()));

/// Shows the same on a page for people.
#[utoipa::path(get, path = "/v1/docs", tag = "health", security(()), responses(
    (status = 200, description = "The page", content_type = "text/html", body = String),
))]
async fn read_docs() -> axum::response::Response {
    let headers =
        [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, reference::CONTENT_POLICY)];
    (headers, PAGE.as_str()).into_response()
}
