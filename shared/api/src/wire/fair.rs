//! Fair shares as they travel: where in the payload the key lies, and the lane of what is there.

use serde_json::Value;
use tidegate_domain::fair::{FairBy, Lane, Pointer};
use tidegate_domain::job::Payload;

use crate::problem::FieldErrors;

/// Takes `fair_by` of a job with such a payload; `None` when it is wrong, and then `errors` says how.
///
/// The events of one run wait together, so all of them must have one value there.
pub(crate) fn check(text: &str, payload: &Payload, errors: &mut FieldErrors) -> Option<FairBy> {
    let pointer = errors.keep("fair_by", text, Pointer::new(text))?;
    let lane = errors.keep("fair_by", text, lane_at(&pointer, payload))?;
    Some(FairBy { pointer, lane })
}

fn lane_at(pointer: &Pointer, payload: &Payload) -> Result<Lane, String> {
    let at = pointer.as_str();
    let read = serde_json::from_str(payload.text().unwrap_or("null"));
    let read: Value = read.map_err(|e| e.to_string())?;
    let value = match (payload, &read) {
        (Payload::List(_), Value::Array(list)) => value_of_all(at, list)?,
        (Payload::Template(_), template) => {
            let value = value_at(at, template, "payload_template")?;
            if value.contains("{{") {
                return Err(format!(
                    "fair_by is '{at}', where payload_template has the placeholder {value}; the events of one run wait \
                     together, so name a key whose value is the same for all of them"
                ));
            }
            value
        }
        (_, payload) => value_at(at, payload, "payload")?,
    };
    Ok(Lane::of(&value))
}

/// What is at a place of each payload of a list: the same in all of them.
fn value_of_all(at: &str, list: &[Value]) -> Result<String, String> {
    let mut values = (0..).zip(list).map(|(index, payload): (usize, &Value)| {
        value_at(at, payload, &format!("payloads[{index}]")).map(|value| (index, value))
    });
    let (_, first) = values.next().transpose()?.unwrap_or_default();
    for value in values {
        let (index, other) = value?;
        if other != first {
            return Err(format!(
                "fair_by is '{at}', where payloads[0] has {first} and payloads[{index}] has {other}; the events of one run \
                 wait together, so give each value a job of its own, or leave fair_by out"
            ));
        }
    }
    Ok(first)
}

/// The JSON text of what is at a place: a string, a number or a boolean.
fn value_at(at: &str, payload: &Value, whose: &str) -> Result<String, String> {
    match payload.pointer(at) {
        Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        found => {
            let what = match found {
                Some(Value::Array(_)) => "an array",
                Some(Value::Object(_)) => "an object",
                _ => "nothing",
            };
            Err(format!(
                "fair_by is '{at}', and {whose} has {what} there; it must be a string, a number or a boolean"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(at: &str, payload: Payload) -> Result<Lane, String> {
        lane_at(&Pointer::new(at).unwrap(), &payload)
    }

    #[test]
    fn one_value_is_one_lane_wherever_it_stands() {
        let payload = |json: &str| Payload::new(json.to_owned()).unwrap();
        let acme = lane("/customer", payload(r#"{"customer": "acme", "n": 1}"#));
        assert_eq!(acme, lane("/to/0", payload(r#"{"to": ["acme"]}"#)));
        assert_eq!(acme, lane("/c", Payload::list(r#"[{"c":"acme"},{"c":"acme"}]"#.to_owned()).unwrap()));
        assert_eq!(
            acme,
            lane("/c", Payload::template(r#"{"c":"acme","i":"{{index}}"}"#.to_owned()).unwrap())
        );
        assert_ne!(lane("/c", payload(r#"{"c": "1"}"#)), lane("/c", payload(r#"{"c": 1}"#)));
    }

    #[test]
    fn what_has_no_value_of_its_own_is_refused_with_the_fix() {
        let refused = |at: &str, payload: Payload| lane(at, payload).unwrap_err();
        let payload = |json: &str| Payload::new(json.to_owned()).unwrap();
        for (json, says) in [
            (r#"{"c": [1]}"#, "payload has an array there"),
            (r#"{"c": {}}"#, "payload has an object there"),
            (r#"{"c": null}"#, "payload has nothing there"),
            ("[]", "payload has nothing there"),
        ] {
            assert!(refused("/c", payload(json)).contains(says), "{json}");
        }
        let mixed = Payload::list(r#"[{"c":1},{"c":1},{"c":2}]"#.to_owned()).unwrap();
        assert!(refused("/c", mixed).contains("payloads[0] has 1 and payloads[2] has 2"));
        let placeholder = Payload::template(r#"{"c":"{{index}}"}"#.to_owned()).unwrap();
        assert!(refused("/c", placeholder).contains("placeholder"));
    }
}
