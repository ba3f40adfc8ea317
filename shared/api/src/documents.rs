//! Jobs, calendars and policies as documents, read and checked as the routes do it, for programs that have them in a file.
//!
//! Deliberately absent: what only a deployment knows, such as whether a queue, policy or calendar exists, and what is
//! stored under the same name already. Instants that are past are taken, as those of a stored job are.

use chrono::{DateTime, Utc};
use serde_json::Value;
use tidegate_domain::calendar::Exclusions;
use tidegate_domain::ids::{CalendarId, JobId, PolicyId};
use tidegate_domain::job::JobDefaults;
use tidegate_domain::policy::PolicyTerms;
use tidegate_engine::JobDraft;

use crate::form::{self, Form};
use crate::problem::{FieldErrors, Problem};
use crate::wire::calendar::CalendarBody;
use crate::wire::job::JobBody;
use crate::wire::policy::PolicyBody;
use crate::wire::trigger::Findings;

/// Reads a job as `POST /v1/jobs` takes it, with its name if it has one. `now` is when it would be created: a rate
/// without an anchor counts from there.
///
/// ```
/// # use serde_json::json;
/// let job = json!({
///     "job_id": "nightly",
///     "trigger": {"cron": "0 3 * * *", "zone": "Europe/Berlin"},
///     "target": {"http": {"url": "https://example.com/hook"}},
/// });
/// let (id, draft) = tidegate_api::documents::read_job(job, chrono::DateTime::UNIX_EPOCH).unwrap();
/// assert_eq!(id.unwrap().as_str(), "nightly");
/// assert_eq!(draft.terms.count.get(), 1);
/// ```
///
/// # Errors
/// A sentence for each fault, in the words of the API.
pub fn read_job(document: Value, now: DateTime<Utc>) -> Result<(Option<JobId>, JobDraft), Vec<String>> {
    let body: JobBody = read_form(&document, now)?;
    let mut findings = Findings::default();
    let checked = body.check(now, &JobDefaults::default(), &mut findings);
    findings.refuse_what_fires_no_more();
    finish(checked.map(|job| (job.id, job.draft)), findings.errors)
}

/// Reads a calendar as `PUT /v1/calendars/{calendar_id}` takes it, with its name beside its dates.
///
/// # Errors
/// A sentence for each fault, in the words of the API.
pub fn read_calendar(document: Value) -> Result<(CalendarId, Exclusions), Vec<String>> {
    // No field of a calendar is measured by the time.
    let body: CalendarBody = read_form(&document, DateTime::UNIX_EPOCH)?;
    let mut errors = FieldErrors::default();
    let id = match &body.calendar_id {
        Some(text) => errors.keep("calendar_id", &**text, text.parse()),
        None => {
            errors.add("calendar_id", (), "calendar_id is missing: give the calendar a name");
            None
        }
    };
    let exclusions = body.check(&mut errors);
    finish(id.zip(exclusions), errors)
}

/// Reads a policy as `POST /v1/policies` takes it.
///
/// # Errors
/// A sentence for each fault, in the words of the API.
pub fn read_policy(document: Value) -> Result<(PolicyId, PolicyTerms), Vec<String>> {
    // No field of a policy is measured by the time.
    let body: PolicyBody = read_form(&document, DateTime::UNIX_EPOCH)?;
    let mut errors = FieldErrors::default();
    let checked = body.check(&mut errors);
    let named = checked.and_then(|policy| {
        if policy.id.is_none() {
            errors.add("policy_id", (), "policy_id is missing: give the policy a name");
        }
        policy.id.map(|id| (id, policy.terms))
    });
    finish(named, errors)
}

fn read_form<T: Form>(document: &Value, now: DateTime<Utc>) -> Result<T, Vec<String>> {
    form::read(document.to_string().as_bytes(), now).map_err(Problem::into_messages)
}

fn finish<T>(read: Option<T>, errors: FieldErrors) -> Result<T, Vec<String>> {
    match read {
        Some(read) if errors.is_empty() => Ok(read),
        _ => Err(errors.into_messages()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(document: Value) -> Result<(Option<JobId>, JobDraft), Vec<String>> {
        read_job(document, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn a_job_is_read_as_the_api_reads_it() {
        let target = json!({"sqs": {"queue_url": "http://localhost/1/jobs"}});
        let document =
            json!({"trigger": {"rate": "5 minutes"}, "target": target, "payload": {"b": 1, "a": [2]}});
        let (id, draft) = job(document).unwrap();
        assert_eq!((id, draft.trigger.cadence().children().len()), (None, 12));
        let faults =
            job(json!({"trigger": {"cron": "60 * * * *"}, "target": target, "count": 0})).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        let form = job(json!({"trigger": {"cron": 7}, "target": target})).unwrap_err();
        assert!(form[0].starts_with("trigger.cron must be a string"), "{form:?}");
        let unknown = job(json!({"trigger": {"cron": "@daily"}, "target": target, "colour": 1})).unwrap_err();
        assert!(unknown[0].contains("has no field 'colour'"), "{unknown:?}");
    }

    #[test]
    fn a_policy_has_its_name_beside_its_terms() {
        let policy =
            json!({"policy_id": "mail", "max_in_flight": 3, "rate": {"events": 30, "per": "minute"}});
        let (id, terms) = read_policy(policy).unwrap();
        assert_eq!((id.as_str(), terms.max_in_flight(), terms.rate().unwrap().events()), ("mail", 3, 30));
        assert!(read_policy(json!({"max_in_flight": 3})).unwrap_err()[0].starts_with("policy_id is missing"));
        let faults = read_policy(json!({"policy_id": "mail", "max_in_flight": 0})).unwrap_err();
        assert!(faults[0].starts_with("max_in_flight is 0"), "{faults:?}");
    }

    #[test]
    fn a_calendar_has_its_name_beside_its_dates() {
        let (id, exclusions) =
            read_calendar(json!({"calendar_id": "holidays", "dates": ["2026-12-25", "01-01"]})).unwrap();
        assert_eq!((id.as_str(), exclusions.dates.len(), exclusions.yearly.len()), ("holidays", 1, 1));
        let faults = read_calendar(json!({"dates": ["soon"]})).unwrap_err();
        assert!(faults[0].starts_with("calendar_id is missing") && faults.len() == 2, "{faults:?}");
    }
}
