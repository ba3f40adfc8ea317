//! What is asked of a job before it is handed to the engine: its fields, its past instants, and what it refers to.
//!
//! Nothing is written here. A bulk call keeps what it has looked up in one [`Seen`], so that a thousand jobs under one
//! policy ask for it once.

use std::collections::HashMap;
use std::iter;

use tidegate_domain::ids::{CalendarId, JobId, PolicyId, SecretId};
use tidegate_domain::job::{Job, Payload, Terms, Trigger};
use tidegate_domain::target::Target;
use tidegate_engine::{JobDraft, QueueCheck};
use tidegate_store::clients::Client;

use super::{job_path, same_id};
use crate::problem::{FieldErrors, Kind, Problem};
use crate::wire::job::JobBody;
use crate::wire::payload::field_of;
use crate::wire::read_only::check_paused;
use crate::wire::target::{HEARTBEAT, url_field_of};
use crate::wire::trigger::Findings;
use crate::{ApiState, QueueHint};

/// A job that may be written.
pub(super) struct Accepted {
    /// The name in the body, if there is one.
    pub(super) id: Option<JobId>,
    pub(super) draft: JobDraft,
    /// What may not be as meant, beside what its trigger says.
    pub(super) warnings: Vec<String>,
}

/// What one call has looked up.
#[derive(Default)]
pub(super) struct Seen {
    /// The limit of each policy that is there.
    policies: HashMap<PolicyId, Option<u32>>,
    calendars: HashMap<CalendarId, bool>,
    secrets: HashMap<SecretId, bool>,
}

/// Checks a job in all respects. `in_path` is the name that it is put under.
pub(super) async fn accept(
    state: &ApiState,
    client: &Client,
    in_path: Option<&JobId>,
    body: JobBody,
    seen: &mut Seen,
) -> Result<Accepted, Problem> {
    let mut findings = Findings::default();
    let paused = body.paused;
    let checked = body.check(state.engine.clock().now(), &client.defaults, &mut findings);
    if !findings.past.is_empty() || findings.fires_no_more.is_some() || paused.is_some() {
        let id = in_path.or(checked.as_ref().and_then(|checked| checked.id.as_ref()));
        let stored = match id {
            Some(id) => state.engine.jobs().get(&client.id, id).await,
            None => Ok(None),
        };
        let stored = stored.map_err(|e| Problem::of_engine("read a job", &e))?;
        let draft = checked.as_ref().map(|checked| &checked.draft);
        refuse_past_instants(&mut findings, draft.map(|draft| &draft.trigger), stored.as_ref());
        if !draft.zip(stored.as_ref()).is_some_and(|(draft, job)| draft.launches_as(job)) {
            findings.refuse_what_fires_no_more();
        }
        let is_paused = stored.is_some_and(|job| job.paused);
        let path = job_path(id.map_or("<job_id>", JobId::as_str));
        check_paused(paused, is_paused, &path, &mut findings.errors);
    }
    findings.errors.into_result(Kind::InvalidBody)?;
    let Some(checked) = checked else {
        return Err(Problem::new(Kind::InvalidBody, "the body is not that of a job"));
    };
    if let Some(in_path) = in_path {
        same_id("job_id", checked.id.as_ref().map(JobId::as_str), in_path.as_str())?;
    }
    let mut warnings = findings.warnings;
    warnings.extend(check_surroundings(state, client, &checked.draft, seen).await?);
    Ok(Accepted { id: checked.id, draft: checked.draft, warnings })
}

/// Refuses instants that are past, but for those that the stored job has: a set is sent again whole.
fn refuse_past_instants(findings: &mut Findings, trigger: Option<&Trigger>, stored: Option<&Job>) {
    let held = match stored.map(|job| &job.trigger) {
        Some(Trigger::At(held)) => Some(held),
        _ => None,
    };
    let past = std::mem::take(&mut findings.past);
    let refused: Vec<_> =
        past.iter().filter(|past| !held.is_some_and(|held| held.contains(past.at))).collect();
    for past in &refused {
        findings.errors.add(&*past.field, &*past.given, &*past.refusal);
    }
    let Some(Trigger::At(instants)) = trigger else { return };
    let is_over = instants.iter().all(|at| past.iter().any(|past| past.at == at));
    if refused.is_empty() && is_over && held != Some(instants) {
        let message = "every instant of 'at' is past, so the trigger never fires again; delete the job, or add an \
            instant that is to come";
        findings.errors.add("trigger.at", (), message);
    }
}

/// Checks what a job refers to: the client's allow-list, the policy, the calendars, the queues, the secrets. Answers with warnings.
async fn check_surroundings(
    state: &ApiState,
    client: &Client,
    draft: &JobDraft,
    seen: &mut Seen,
) -> Result<Vec<String>, Problem> {
    let Terms { target, flow, .. } = &draft.terms;
    let callback = flow.on_completion.as_ref().map(|callback| ("on_completion", callback));
    let heartbeat = flow.heartbeat.as_deref().map(|heartbeat| (HEARTBEAT, heartbeat));
    let targets = || iter::once(("target", target)).chain(callback).chain(heartbeat);
    for (name, target) in targets() {
        refuse_off_the_list(client, name, target)?;
    }
    let mut errors = FieldErrors::default();
    check_payload(client, &draft.terms.payload, &mut errors);
    check_events(client, &draft.terms, &mut errors);
    check_policy(state, client, &draft.terms, seen, &mut errors).await?;
    for (field, ids) in [("calendars", &draft.rules.calendars), ("only_on", &draft.rules.only_on)] {
        for id in ids {
            if !is_calendar(state, client, id, seen).await? {
                let message =
                    format!("client '{}' has no calendar '{id}'; put it first, or leave it out", client.id);
                errors.add(field, id.as_str(), message);
            }
        }
    }
    let mut warnings = Vec::new();
    for (name, target) in targets() {
        if let Some((arn, why)) =
            target.arn().and_then(|arn| Some((arn, state.engine.why_out_of_reach(arn)?)))
        {
            let message = format!("'{arn}' is out of reach: {why}");
            errors.add(url_field_of(name, target), arn.as_str(), message);
        }
        warnings.extend(check_queue(state, name, target, &mut errors).await);
        check_secrets(state, client, (name, target), seen, &mut errors).await?;
    }
    errors.into_result(Kind::InvalidBody).map(|()| warnings)
}

fn refuse_off_the_list(client: &Client, name: &str, target: &Target) -> Result<(), Problem> {
    if client.allowed_targets.iter().any(|pattern| target.is_covered_by(pattern)) {
        return Ok(());
    }
    let (id, address) = (&client.id, target.address());
    let listed = match &*client.allowed_targets {
        [] => "none: let the admin name those that it may use".to_owned(),
        some => {
            format!("{}: use an address that they cover, or let the admin allow this one", some.join(", "))
        }
    };
    let message = format!(
        "client '{id}' may not target '{address}'; its allowed_targets are {listed} (PATCH /v1/clients/{id})"
    );
    Err(Problem::of_field(Kind::TargetNotAllowed, &url_field_of(name, target), target.address(), message))
}

/// Checks the payload against the client's quota. It has been within the bounds of all clients before.
fn check_payload(client: &Client, payload: &Payload, errors: &mut FieldErrors) {
    let (Some(most), Some(text)) = (client.quotas.payload_bytes, payload.text()) else { return };
    let (most, bytes, id) = (most.get(), text.len(), &client.id);
    if u32::try_from(bytes).is_ok_and(|bytes| bytes <= most) {
        return;
    }
    let message = format!(
        "the payload is {bytes} bytes of JSON; client '{id}' may send {most} (quotas.payload_bytes): store the data elsewhere and \
         send its address, or let the admin allow more (PATCH /v1/clients/{id})"
    );
    errors.add(field_of(payload), (), message);
}

/// Checks how many events a launch has against the client's quota.
fn check_events(client: &Client, terms: &Terms, errors: &mut FieldErrors) {
    let (count, id) = (terms.count.get(), &client.id);
    let Some(most) = client.quotas.events_per_launch.map(|most| most.get()).filter(|most| count > *most)
    else {
        return;
    };
    let field = match terms.payload {
        Payload::List(_) => "payloads",
        _ => "count",
    };
    let message = format!(
        "a launch has {count} events; client '{id}' may have {most} (quotas.events_per_launch): make several jobs, or let the admin \
         allow more (PATCH /v1/clients/{id})"
    );
    errors.add(field, count, message);
}

/// Checks that the policy is there and can hold an event of the job.
async fn check_policy(
    state: &ApiState,
    client: &Client,
    terms: &Terms,
    seen: &mut Seen,
    errors: &mut FieldErrors,
) -> Result<(), Problem> {
    let Some(id) = &terms.policy else { return Ok(()) };
    let Some(limit) = policy_limit(state, client, id, seen).await? else {
        let message =
            format!("client '{}' has no policy '{id}'; create it first, or leave policy_id out", client.id);
        errors.add("policy_id", id.as_str(), message);
        return Ok(());
    };
    let cost = terms.flow.cost.get();
    if cost > limit {
        let message = format!(
            "cost is {cost}, but the max_in_flight of policy '{id}' is {limit}, so an event never fits; \
                lower the cost, or raise max_in_flight first"
        );
        errors.add("cost", cost, message);
    }
    Ok(())
}

/// The limit of a policy; `None` when there is no such policy.
async fn policy_limit(
    state: &ApiState,
    client: &Client,
    id: &PolicyId,
    seen: &mut Seen,
) -> Result<Option<u32>, Problem> {
    if let Some(limit) = seen.policies.get(id) {
        return Ok(*limit);
    }
    let found = state.engine.store().policy(&client.id, id).await;
    let found = found.map_err(|e| Problem::of_store("read a policy", &e))?;
    let limit = found.map(|policy| policy.terms.max_in_flight());
    seen.policies.insert(id.clone(), limit);
    Ok(limit)
}

async fn is_calendar(
    state: &ApiState,
    client: &Client,
    id: &CalendarId,
    seen: &mut Seen,
) -> Result<bool, Problem> {
    if let Some(is) = seen.calendars.get(id) {
        return Ok(*is);
    }
    let found = state.engine.store().calendar(&client.id, id).await;
    let is = found.map_err(|e| Problem::of_store("read a calendar", &e))?.is_some();
    seen.calendars.insert(id.clone(), is);
    Ok(is)
}

/// Checks that the secrets are there that the headers of a target name.
async fn check_secrets(
    state: &ApiState,
    client: &Client,
    (name, target): (&str, &Target),
    seen: &mut Seen,
    errors: &mut FieldErrors,
) -> Result<(), Problem> {
    let Target::Http { call, .. } = target else { return Ok(()) };
    for id in call.headers.secrets() {
        let is_there = match seen.secrets.get(&id) {
            Some(is_there) => *is_there,
            None => {
                let found = state.engine.store().client_secret(&client.id, &id).await;
                found.map_err(|e| Problem::of_store("read a secret", &e))?.is_some()
            }
        };
        if !is_there {
            let message = format!(
                "client '{}' has no secret '{id}'; put it first, PUT /v1/secrets/{id}, or leave its placeholder out",
                client.id
            );
            errors.add(format!("{name}.http.headers"), id.as_str(), message);
        }
        seen.secrets.insert(id, is_there);
    }
    Ok(())
}

async fn check_queue(state: &ApiState, name: &str, target: &Target, errors: &mut FieldErrors) -> Vec<String> {
    let Target::Sqs { queue_url, .. } = target else { return Vec::new() };
    let hint = state.queue_hint(queue_url);
    if let Some(QueueHint::WrongUrl(message)) = hint {
        errors.add(url_field_of(name, target), &**queue_url, message);
        return Vec::new();
    }
    match look_up_queue(state, queue_url).await {
        QueueCheck::Exists { .. } => {}
        QueueCheck::Missing => {
            let fix = match hint {
                Some(QueueHint::HowToCreate(fix)) => fix,
                _ => "create it, or check its account and region".to_owned(),
            };
            let message = format!("no queue has the URL '{queue_url}'; {fix}");
            errors.add(url_field_of(name, target), &**queue_url, message);
        }
        QueueCheck::Ours => {
            let message =
                format!("'{queue_url}' is a queue of Tidegate itself; name a queue of your consumer");
            errors.add(url_field_of(name, target), &**queue_url, message);
        }
        QueueCheck::OutOfReach(reason) => {
            let message = format!(
                "'{queue_url}' is out of reach: {reason}; Tidegate must be allowed to look at it and to send to it, by the queue's \
                 policy and by the parameters of its stack"
            );
            errors.add(url_field_of(name, target), &**queue_url, message);
        }
        QueueCheck::Unknown(reason) => {
            return vec![format!("queue '{queue_url}' could not be looked up: {reason}")];
        }
    }
    Vec::new()
}

async fn look_up_queue(state: &ApiState, queue_url: &str) -> QueueCheck {
    let (key, now) = (queue_url.to_owned(), state.engine.clock().now());
    if state.known_queues.find(&key, now).is_some() {
        return QueueCheck::Exists { fifo: queue_url.ends_with(".fifo") };
    }
    let found = state.engine.queues().check_queue(queue_url).await;
    if matches!(found, QueueCheck::Exists { .. }) {
        state.known_queues.keep(key, now, ());
    }
    found
}
