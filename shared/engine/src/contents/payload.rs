//! What the events of a run carry: the same for all, one of a list for each, or a template that differs from event to event.

use serde_json::value::RawValue;
use tidegate_domain::ids::EventId;
use tidegate_domain::job::Payload;
use tidegate_domain::template::Template;

/// The payloads of a run's events. Read once for a run, and remembered with its terms.
#[derive(Debug, Clone)]
pub(crate) enum Payloads {
    /// The same for every event, byte for byte.
    Same(Box<RawValue>),
    /// One for each, byte for byte.
    List(Vec<Box<RawValue>>),
    /// One that is filled in for each.
    Template(Template),
}

impl Payloads {
    /// Reads a payload for a run of `count` events; `None` when it does not serve them: it lies elsewhere, or is a list
    /// that has become too short since the run was planned.
    pub(crate) fn of(payload: &Payload, count: u32) -> Option<Self> {
        match payload {
            Payload::Inline(json) => {
                // Payloads are checked when a job is stored; one that is no JSON all the same reaches nobody.
                let json = RawValue::from_string(json.clone()).unwrap_or_else(|_| RawValue::NULL.to_owned());
                Some(Self::Same(json))
            }
            Payload::List(json) => {
                let list: Vec<Box<RawValue>> = serde_json::from_str(json).ok()?;
                (list.len() >= count as usize).then_some(Self::List(list))
            }
            Payload::Template(json) => Template::parse(json).ok().map(Self::Template),
            Payload::InJob => None,
        }
    }

    /// What an event of a run of `count` carries.
    pub(crate) fn for_event(&self, event: &EventId, count: u32) -> Box<RawValue> {
        match self {
            Self::Same(json) => json.clone(),
            Self::List(list) => {
                list.get(event.index() as usize).cloned().unwrap_or_else(|| RawValue::NULL.to_owned())
            }
            Self::Template(template) => RawValue::from_string(template.render(event, count))
                .unwrap_or_else(|_| RawValue::NULL.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(payload: &Payload, index: u32) -> String {
        let event = format!("nightly.1.1790000000.{index}").parse().unwrap();
        Payloads::of(payload, 3).unwrap().for_event(&event, 3).get().to_owned()
    }

    #[test]
    fn what_is_not_filled_in_is_carried_byte_for_byte() {
        let odd = "{ \"b\" : 1.50, \"a\":\"\\u00e9\" }";
        assert_eq!(carried(&Payload::Inline(odd.to_owned()), 2), odd);
        let list = Payload::List(format!("[ {odd} , 1e2,\"x\" ]"));
        assert_eq!([0, 1, 2].map(|index| carried(&list, index)), [odd, "1e2", "\"x\""]);
    }

    #[test]
    fn a_template_is_filled_in_for_each_event() {
        let template = Payload::Template(r#"{"page":"{{index1}}","of":"{{job_id}}/{{count}}"}"#.to_owned());
        assert_eq!(carried(&template, 2), r#"{"page":3,"of":"nightly/3"}"#);
    }

    #[test]
    fn a_list_that_has_become_too_short_serves_nobody() {
        assert!(Payloads::of(&Payload::List("[1,2]".to_owned()), 3).is_none());
        assert!(Payloads::of(&Payload::InJob, 1).is_none());
    }
}
