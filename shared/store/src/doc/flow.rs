//! How a job's events go through their policy, as stored.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde::{Deserialize, Serialize};
use tidegate_domain::fair::{FairBy, Pointer};
use tidegate_domain::flow::{BatchWindow, Cost, Deadline, Flow, MaxFailures, OnDeadline, Overlap, Priority};
use tidegate_domain::http_call::{Headers, HttpCall};
use tidegate_domain::limits::{MAX_COST, SLOTS_PER_GROUP};
use tidegate_domain::target::Target;
use tidegate_domain::time::clamped;

use super::Rest;
use super::target::{joined, split};

/// The flow of a job; what is absent is as by default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct FlowDoc {
    /// Cost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    c: Option<u32>,
    /// Priority.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    p: Option<u8>,
    /// Overlap: `s` for skip, `b` for a buffer of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    o: Option<char>,
    /// Length of the window, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    s: Option<u32>,
    /// End of the window, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    e: Option<i64>,
    /// What is not admitted in the window is skipped.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    x: bool,
    /// Events are spread over the window.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    v: bool,
    /// Failures that stop a run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    f: Option<u32>,
    /// Queue URL of the completion.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    q: Option<String>,
    /// HTTP URL of the completion.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    u: Option<String>,
    /// HTTP URL of the heartbeat.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    k: Option<String>,
    /// Where the key of fair shares lies in the payload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    j: Option<String>,
    /// The lane of its value.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    l: Option<String>,
    /// Headers of the completion.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    h: BTreeMap<String, String>,
    /// A 2xx answer releases.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    r: bool,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&Flow> for FlowDoc {
    fn from(flow: &Flow) -> Self {
        let (s, e) = match flow.window.map(|window| window.deadline) {
            None => (None, None),
            Some(Deadline::After { seconds }) => (Some(seconds.get()), None),
            Some(Deadline::At(instant)) => (None, Some(instant.timestamp_millis())),
        };
        let (q, u) = flow.on_completion.as_ref().map_or((None, None), split);
        let h = match &flow.on_completion {
            Some(Target::Http { call, .. }) => call.headers.as_map().clone(),
            _ => BTreeMap::new(),
        };
        Self {
            c: (flow.cost != Cost::default()).then_some(flow.cost.get()),
            p: (flow.priority != Priority::default()).then_some(flow.priority.get()),
            o: match flow.overlap {
                Overlap::Allow => None,
                Overlap::Skip => Some('s'),
                Overlap::BufferOne => Some('b'),
            },
            s,
            e,
            x: flow.window.is_some_and(|window| window.on_deadline == OnDeadline::Expire),
            v: flow.window.is_some_and(|window| window.paced),
            f: flow.max_failures.map(MaxFailures::get),
            q,
            u,
            k: flow.heartbeat.as_deref().and_then(|told| split(told).1),
            j: flow.fair_by.as_ref().map(|fair| fair.pointer.as_str().to_owned()),
            l: flow.fair_by.as_ref().map(|fair| fair.lane.to_string()),
            h,
            r: flow.release_on_response,
            rest: Rest::from(&flow.unknown),
        }
    }
}

/// An address that somebody is told at, as a flow that has its completion and nothing else.
pub(crate) fn told_json(target: &Target) -> String {
    let told = Flow { on_completion: Some(target.clone()), ..Flow::default() };
    // Serialising a plain struct to a string has no way to fail.
    serde_json::to_string(&FlowDoc::from(&told)).unwrap_or_default()
}

/// The address that [`told_json`] came from.
pub(crate) fn read_told(text: &str) -> Result<Target, String> {
    let told: FlowDoc = serde_json::from_str(text).map_err(|e| e.to_string())?;
    told.on_completion()?.ok_or_else(|| "no address".to_owned())
}

impl FlowDoc {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// About how many bytes it adds to a message.
    pub(super) fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let headers: usize = self.h.iter().map(|(name, value)| 6 + name.len() + value.len()).sum();
        if self.is_default() {
            0
        } else {
            96 + text(&self.q) + text(&self.u) + text(&self.k) + text(&self.j) + headers + self.rest.size()
        }
    }

    fn window(&self) -> Result<Option<BatchWindow>, String> {
        let deadline = match (self.s, self.e) {
            (None, None) => return Ok(None),
            (Some(seconds), None) => Deadline::after(seconds.into()).map_err(|e| e.to_string())?,
            (None, Some(ms)) => {
                Deadline::At(DateTime::from_timestamp_millis(ms).map(clamped).ok_or("'e': no instant")?)
            }
            (Some(_), Some(_)) => return Err("only one of 's' and 'e' may be there".to_owned()),
        };
        let on_deadline = if self.x { OnDeadline::Expire } else { OnDeadline::Continue };
        Ok(Some(BatchWindow { deadline, on_deadline, paced: self.v }))
    }

    fn fair_by(&self) -> Result<Option<FairBy>, String> {
        Ok(match (&self.j, &self.l) {
            (None, None) => None,
            (Some(pointer), Some(lane)) => Some(FairBy {
                pointer: Pointer::new(pointer).map_err(|e| format!("'j': {e}"))?,
                lane: lane.parse().map_err(|_| format!("'l': '{lane}' is no lane"))?,
            }),
            _ => return Err("'j' and 'l' are only there together".to_owned()),
        })
    }

    fn on_completion(&self) -> Result<Option<Target>, String> {
        let Some(target) = joined(self.q.as_deref(), self.u.as_deref())? else { return Ok(None) };
        let headers = Headers::new(self.h.clone()).map_err(|e| e.to_string())?;
        Ok(Some(target.called(HttpCall { headers, ..HttpCall::default() })))
    }

    pub(super) fn read(&self) -> Result<Flow, String> {
        // Of a version in which events took up to as many tokens as a group has slots.
        let of_today = |cost: u32| if cost <= SLOTS_PER_GROUP { cost.min(MAX_COST) } else { cost };
        let cost = self.c.map(|cost| Cost::new(of_today(cost).into())).transpose();
        let priority = self.p.map(|priority| Priority::new(priority.into())).transpose();
        let max_failures = self.f.map(|most| MaxFailures::new(most.into())).transpose();
        let heartbeat = self.k.as_deref().map(Target::http).transpose();
        Ok(Flow {
            cost: cost.map_err(|e| e.to_string())?.unwrap_or_default(),
            priority: priority.map_err(|e| e.to_string())?.unwrap_or_default(),
            overlap: match self.o {
                None => Overlap::Allow,
                Some('s') => Overlap::Skip,
                Some('b') => Overlap::BufferOne,
                Some(other) => return Err(format!("'o': '{other}' is no rule for overlaps")),
            },
            fair_by: self.fair_by()?,
            window: self.window()?,
            max_failures: max_failures.map_err(|e| e.to_string())?,
            on_completion: self.on_completion()?,
            heartbeat: heartbeat.map_err(|e| format!("'k': {e}"))?.map(Box::new),
            release_on_response: self.r,
            unknown: self.rest.unknown(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_read_back_and_their_stored_form_is_pinned() {
        let window = |deadline, on_deadline, paced| Some(BatchWindow { deadline, on_deadline, paced });
        let after = Deadline::after(3_600).unwrap();
        let at = Deadline::At(DateTime::from_timestamp(1_790_000_000, 0).unwrap());
        let default = Flow::default();
        let headers = BTreeMap::from([("x-key".to_owned(), "{{secret:k}}".to_owned())]);
        let headers = Headers::new(headers).unwrap();
        let told =
            Target::http("https://x/done").unwrap().called(HttpCall { headers, ..HttpCall::default() });
        for (flow, pinned) in [
            (Flow { cost: Cost::new(3).unwrap(), ..default.clone() }, r#"{"c":3}"#),
            (
                Flow {
                    priority: Priority::new(0).unwrap(),
                    overlap: Overlap::Skip,
                    window: window(after, OnDeadline::Expire, true),
                    max_failures: MaxFailures::new(10).ok(),
                    on_completion: Some(Target::http("https://x/done").unwrap()),
                    release_on_response: true,
                    ..default.clone()
                },
                r#"{"p":0,"o":"s","s":3600,"x":true,"v":true,"f":10,"u":"https://x/done","r":true}"#,
            ),
            (
                Flow {
                    fair_by: Some(FairBy {
                        pointer: Pointer::new("/customer_id").unwrap(),
                        lane: "lane2345".parse().unwrap(),
                    }),
                    overlap: Overlap::BufferOne,
                    window: window(at, OnDeadline::Continue, false),
                    on_completion: Some(Target::sqs("https://x/1/done").unwrap()),
                    ..default.clone()
                },
                r#"{"o":"b","e":1790000000000,"q":"https://x/1/done","j":"/customer_id","l":"lane2345"}"#,
            ),
            (
                Flow { on_completion: Some(told), ..default.clone() },
                r#"{"u":"https://x/done","h":{"x-key":"{{secret:k}}"}}"#,
            ),
            (
                Flow { heartbeat: Target::http("https://x/beat").ok().map(Box::new), ..default.clone() },
                r#"{"k":"https://x/beat"}"#,
            ),
            (default, "{}"),
        ] {
            let doc = FlowDoc::from(&flow);
            let text = serde_json::to_string(&doc).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<FlowDoc>(&text).unwrap().read(), Ok(flow));
        }
        let heavy = serde_json::from_str::<FlowDoc>(r#"{"c":12}"#).unwrap().read().unwrap();
        assert_eq!(heavy.cost.get(), MAX_COST);
        // An unknown rule, and a callback of two addresses, which was lost in silence.
        for unreadable in
            [r#"{"o":"q"}"#, r#"{"q":"https://x/1/done","u":"https://x/done"}"#, r#"{"j":"/a"}"#]
        {
            assert!(serde_json::from_str::<FlowDoc>(unreadable).unwrap().read().is_err(), "{unreadable}");
        }
    }
}
