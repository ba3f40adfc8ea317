//! JSON merge patches (RFC 7396): objects are merged member by member, null removes, anything else replaces.
//!
//! Members that a patch does not name keep their text byte for byte, payloads among them.
//!
//! Deliberately absent: what the members mean. The merged document is read and checked like one that is put.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use http::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tidegate_domain::limits::{PATCH_DEPTH, REQUEST_BODY_BYTES};

use crate::body::collect;
use crate::form::read_members;
use crate::problem::{Kind, Problem};

/// The members of a JSON object, each as it is written.
pub(crate) type Members = BTreeMap<String, Box<RawValue>>;

/// The media types of a patch.
const MEDIA_TYPES: [&str; 2] = ["application/merge-patch+json", "application/json"];

/// A merge patch: the body of a PATCH.
pub(crate) struct Patch(Members);

impl<S: Send + Sync> FromRequest<S> for Patch {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let declared = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = declared.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
        if !MEDIA_TYPES.iter().any(|known| known.eq_ignore_ascii_case(essence)) {
            let detail = format!(
                "the body is declared as '{essence}'; send a JSON merge patch with the header \
                    'Content-Type: application/merge-patch+json' (or application/json)"
            );
            return Err(Problem::new(Kind::UnsupportedMediaType, detail));
        }
        let bytes = collect(request.into_body(), REQUEST_BODY_BYTES).await?;
        read_members(&bytes).map(Self)
    }
}

impl Patch {
    /// The document with the patch merged in.
    pub(crate) fn applied_to(&self, mut document: Members) -> Result<Box<RawValue>, Problem> {
        merge(&mut document, &self.0, None, 1)?;
        raw(&document)
    }
}

/// The members of a view that are not null: null and absent mean the same to whoever reads a body.
pub(crate) fn members_of(view: &impl Serialize) -> Result<Members, Problem> {
    let mut members: Members = read_members(raw(view)?.get().as_bytes())?;
    members.retain(|_, member| member.get() != "null");
    Ok(members)
}

/// A document as text.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, Problem> {
    to_raw_value(value).map_err(|error| Problem::internal("write a merged document", &error))
}

/// `within` is the member of the whole document that a nested patch lies in.
fn merge(document: &mut Members, patch: &Members, within: Option<&str>, depth: u32) -> Result<(), Problem> {
    if depth > PATCH_DEPTH {
        let message =
            format!("the patch is nested more than {PATCH_DEPTH} objects deep; send less, or PUT the whole");
        return Err(Problem::of_field(
            Kind::InvalidBody,
            within.unwrap_or_default(),
            serde_json::Value::Null,
            message,
        ));
    }
    for (name, change) in patch {
        if change.get() == "null" {
            document.remove(name);
        } else if is_object(change) {
            let mut inner = match document.get(name) {
                Some(there) if is_object(there) => read_members(there.get().as_bytes())?,
                _ => Members::new(),
            };
            let within = within.unwrap_or(name);
            merge(&mut inner, &read_members(change.get().as_bytes())?, Some(within), depth + 1)?;
            document.insert(name.clone(), raw(&inner)?);
        } else {
            document.insert(name.clone(), change.clone());
        }
    }
    Ok(())
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(json: &str) -> Members {
        serde_json::from_str(json).unwrap()
    }

    /// The examples of RFC 7396, appendix A, whose original and patch are objects.
    #[test]
    fn patches_merge_as_the_rfc_says() {
        for (document, patch, merged) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            let applied = Patch(members(patch)).applied_to(members(document)).unwrap();
            assert_eq!(applied.get(), merged, "{document} {patch}");
        }
    }

    #[test]
    fn what_a_patch_does_not_name_keeps_its_bytes() {
        let document = r#"{"payload":{ "b" : 1.50, "a":"\u00e9" },"count":1}"#;
        let applied = Patch(members(r#"{"count":2}"#)).applied_to(members(document)).unwrap();
        assert_eq!(applied.get(), r#"{"count":2,"payload":{ "b" : 1.50, "a":"\u00e9" }}"#);
    }

    #[test]
    fn a_patch_without_end_is_refused() {
        let deep = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let apply = |levels| Patch(members(&deep(levels))).applied_to(Members::new());
        assert!(apply(PATCH_DEPTH as usize).is_ok());
        assert!(apply(PATCH_DEPTH as usize + 1).is_err());
        assert!(apply(30_000).is_err());
    }

    #[test]
    fn a_patch_that_is_nested_too_deep_names_the_member_that_it_lies_in() {
        let deep = format!("{}1{}", "{\"a\":".repeat(70), "}".repeat(70));
        let patch = Patch(members(&deep.replacen("\"a\"", "\"target\"", 1)));
        let (status, _, errors) = patch.applied_to(Members::new()).unwrap_err().into_parts();
        assert_eq!(status, 422);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), ["target"]);
    }
}
