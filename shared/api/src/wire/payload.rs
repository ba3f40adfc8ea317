//! Payloads as they travel: one for every event, a list with one for each, or a template.

use serde_json::value::RawValue;
use tidegate_domain::job::{Count, Payload};
use tidegate_domain::template::Template;

use crate::problem::FieldErrors;
use crate::wire::number::Number;

/// The fields of a body that make up its payload.
#[derive(Debug)]
pub(crate) struct PayloadFields {
    pub(crate) count: Option<Number<Count>>,
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) payloads: Option<Vec<Box<RawValue>>>,
    pub(crate) payload_template: Option<Box<RawValue>>,
}

/// How many events there are, and what they carry.
#[derive(Debug)]
pub(crate) struct CheckedPayload {
    pub(crate) count: Count,
    pub(crate) payload: Payload,
}

impl PayloadFields {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(self, errors: &mut FieldErrors) -> Option<CheckedPayload> {
        let Self { count, payload, payloads, payload_template } = self;
        let counted = count.map(|count| count.check(errors));
        let kept = |errors: &mut FieldErrors, field: &str, checked| errors.keep(field, (), checked);
        let payload = match (payload, payloads, payload_template) {
            (payload, None, None) => {
                let text = payload.unwrap_or_default();
                kept(errors, "payload", Payload::new(text.get().to_owned()))
            }
            (None, Some(list), None) => return check_list(&list, counted, errors),
            (None, None, Some(template)) => check_template(template.get(), errors),
            (payload, payloads, _) => {
                let given = match (payload.is_some(), payloads.is_some()) {
                    (true, true) => "'payloads' and 'payload'",
                    (true, false) => "'payload_template' and 'payload'",
                    (false, _) => "'payloads' and 'payload_template'",
                };
                let field = if payloads.is_some() { "payloads" } else { "payload_template" };
                let message = format!("the job has both {given}; give one of the three");
                errors.add(field, (), message);
                None
            }
        };
        Some(CheckedPayload { count: counted.unwrap_or(Some(Count::DEFAULT))?, payload: payload? })
    }
}

/// The field of a body that a payload was given in.
pub(crate) fn field_of(payload: &Payload) -> &'static str {
    match payload {
        Payload::Inline(_) | Payload::InJob => "payload",
        Payload::List(_) => "payloads",
        Payload::Template(_) => "payload_template",
    }
}

fn check_list(
    list: &[Box<RawValue>],
    counted: Option<Option<Count>>,
    errors: &mut FieldErrors,
) -> Option<CheckedPayload> {
    if list.is_empty() {
        errors.add("payloads", (), "payloads is empty; give one for each event, or leave it out");
        return None;
    }
    let listed = list.len();
    if let Some(Some(count)) = counted.map(|count| count.map(Count::get))
        && count as usize != listed
    {
        let message = format!(
            "count is {count}, but payloads holds {listed}, one for each event; leave count out, or give as many"
        );
        errors.add("count", count, message);
        return None;
    }
    let texts: Vec<&str> = list.iter().map(|payload| payload.get()).collect();
    let payload = errors.keep("payloads", (), Payload::list(format!("[{}]", texts.join(","))))?;
    let listed = errors.keep("count", listed, Count::new(listed as u64))?;
    counted.unwrap_or(Some(listed)).map(|count| CheckedPayload { count, payload })
}

fn check_template(json: &str, errors: &mut FieldErrors) -> Option<Payload> {
    let payload = errors.keep("payload_template", (), Payload::template(json.to_owned()))?;
    errors.keep("payload_template", (), Template::check(json)).map(|()| payload)
}
