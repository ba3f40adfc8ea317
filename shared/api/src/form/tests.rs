//! What the schemas say and what serde reads are the same.

use chrono::DateTime;
use serde_json::{Value, json};

use super::names::FOREIGN;
use super::schema::{Kind, Schema};
use super::{Form, read};
use crate::wire::backfill::BackfillBody;
use crate::wire::bulk::BulkBody;
use crate::wire::calendar::CalendarBody;
use crate::wire::client::{ClientBody, ClientPatch, RotateBody, SuspendBody};
use crate::wire::dead_letter::{DiscardBody, RedriveBody};
use crate::wire::index::ShardsBody;
use crate::wire::job::JobBody;
use crate::wire::job_calls::{PauseBody, RescheduleBody, RollbackBody};
use crate::wire::key::KeyBody;
use crate::wire::policy::{CloseBody, PolicyBody};
use crate::wire::preview::PreviewBody;
use crate::wire::run::CancelBody;
use crate::wire::secret::SecretBody;
use crate::wire::selection::SelectionBody;
use crate::wire::sideline::{DrainBody, SidelineBody};
use crate::wire::skip::SkipBody;
use crate::wire::token::{ExtendBody, FreeBody, ReleaseBody};

/// A value with every member that its schema has.
fn whole(schema: &'static Schema) -> Value {
    let alternatives = schema.alternatives();
    let Some(object) = alternatives.iter().find(|one| !one.properties.is_empty()) else {
        return match schema.taking(Kind::Array).and_then(|array| array.items.as_deref()) {
            Some(items) => json!([whole(items)]),
            None => schema.stand_in(),
        };
    };
    object.properties.iter().map(|(name, schema)| (name.clone(), whole(schema))).collect()
}

/// The path of each value within a value, itself among them.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| pointers(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| pointers(value, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

/// Members whose words answers have too: serde reads one of a later version, which the form refuses.
const OPEN_WORDS: [&str; 14] = [
    "backoff",
    "body",
    "gap",
    "history",
    "method",
    "on_deadline",
    "on_expiry",
    "overlap",
    "pace",
    "per",
    "release",
    "rule",
    "weekdays/0",
    "on_closed_day",
];
/// Members whose objects answers have too: serde passes over a member of a later version, which the form refuses.
const OPEN_OBJECTS: [&str; 8] =
    ["dst", "early_close/0", "event_bridge", "intervals/0", "lambda", "sns", "sqs", "step_functions"];

/// Whether serde is laxer than the form with this value in this place.
fn is_open(place: &str, value: &Value) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|name| place.ends_with(&format!("/{name}")));
    match value {
        Value::String(_) => is_one_of(&OPEN_WORDS),
        Value::Object(_) => is_one_of(&OPEN_OBJECTS),
        _ => false,
    }
}

/// Puts each kind of value in each place, and compares what is said of the form.
fn check<T: Form>() {
    let name = T::name();
    let schema = Schema::named(&name).unwrap_or_else(|| panic!("{name} is not in the document"));
    assert!(serde_json::from_value::<T>(schema.stand_in()).is_ok(), "{name}: {}", schema.stand_in());
    let whole = whole(schema);
    let form = |value: &Value| {
        let text = value.to_string();
        let by_serde = serde_json::from_str::<T>(&text).map(|_| ()).map_err(|error| error.to_string());
        let said = read::<T>(text.as_bytes(), DateTime::UNIX_EPOCH)
            .map(|_| ())
            .map_err(|p| p.into_messages().join("; "));
        (text, by_serde, said)
    };
    let (text, by_serde, said) = form(&whole);
    assert_eq!((by_serde, said), (Ok(()), Ok(())), "{name}: {text}");
    let mut places = Vec::new();
    pointers(&whole, "", &mut places);
    for place in &places {
        for other in [
            json!(null),
            json!(true),
            json!(1),
            json!(-1),
            json!(1.5),
            json!(u64::MAX),
            json!("x"),
            json!([]),
            json!(["x"]),
            json!([[1]]),
            json!({}),
            json!({"x": 1}),
        ] {
            let mut body = whole.clone();
            *body.pointer_mut(place).unwrap() = other.clone();
            let (text, by_serde, said) = form(&body);
            // serde would read the items of an array as the members of an object, in their order.
            let is_laxer = other.is_array() || is_open(place, &other) && by_serde.is_ok();
            if !is_laxer || said.is_ok() {
                assert_eq!(by_serde.is_ok(), said.is_ok(), "{name}{place} {text}: {by_serde:?} {said:?}");
            }
            for foreign in ["expected struct", "invalid type", "Body", "`", "unknown variant"] {
                assert!(!said.as_ref().is_err_and(|said| said.contains(foreign)), "{name}{place}: {said:?}");
            }
        }
    }
}

#[test]
fn each_foreign_name_belongs_to_an_object_of_the_document_that_has_no_such_field() {
    for (within, names, say) in FOREIGN {
        for object in *within {
            let schema = Schema::named(object).unwrap_or_else(|| panic!("{object} is not in the document"));
            for name in *names {
                assert!(!schema.properties.contains_key(*name), "{object} has the field {name}: {say}");
                let rows = FOREIGN
                    .iter()
                    .filter(|(within, names, _)| within.contains(object) && names.contains(name));
                assert_eq!(rows.count(), 1, "{object} {name}");
            }
        }
    }
}

#[test]
fn a_form_is_what_the_document_says_and_what_serde_reads() {
    check::<BackfillBody>();
    check::<BulkBody>();
    check::<CalendarBody>();
    check::<CancelBody>();
    check::<ClientBody>();
    check::<ClientPatch>();
    check::<DiscardBody>();
    check::<DrainBody>();
    check::<SidelineBody>();
    check::<SkipBody>();
    check::<SuspendBody>();
    check::<ExtendBody>();
    check::<FreeBody>();
    check::<JobBody>();
    check::<KeyBody>();
    check::<PauseBody>();
    check::<PolicyBody>();
    check::<PreviewBody>();
    check::<CloseBody>();
    check::<RedriveBody>();
    check::<RescheduleBody>();
    check::<RollbackBody>();
    check::<RotateBody>();
    check::<ReleaseBody>();
    check::<tidegate_protocol::ReleaseEntry>();
    check::<SecretBody>();
    check::<SelectionBody>();
    check::<ShardsBody>();
}
