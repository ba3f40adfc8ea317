//! What travels with each occurrence.

use serde::{Deserialize, Serialize};
use tidegate_domain::arn::Arn;
use tidegate_domain::job::{Count, History, HistoryDays, Payload, Terms};
use tidegate_domain::rules::Relevancy;
use tidegate_domain::target::{BusLabel, MessageGroup, Target};

use super::Rest;
use super::flow::FlowDoc;
use super::http_call::HttpCallDoc;
use super::retry::{self, RetryDoc};
use super::target::{joined, split};

/// The terms of a job, as stored in rows and in dispatch messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsDoc {
    /// Event count.
    n: u32,
    /// Policy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    p: Option<String>,
    /// Queue URL.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    q: Option<String>,
    /// What its messages are in order by, where that is not the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    g: Option<String>,
    /// HTTP URL.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    u: Option<String>,
    /// How it is called, where that is not as by default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    h: Option<HttpCallDoc>,
    /// ARN of anything else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    a: Option<String>,
    /// Source of events on a bus, where it is not as by default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    s: Option<String>,
    /// Their detail type, where it is not as by default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    d: Option<String>,
    /// Payload as JSON text. It lies in the job when `b`, `l` and `t` are absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    b: Option<String>,
    /// Payloads as a JSON array, one for each event.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    l: Option<String>,
    /// Template of the payloads, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    t: Option<String>,
    /// Only failures are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    f: bool,
    /// Nor are they, where `f` is set as well.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    z: bool,
    /// Days that what happened is kept; absent: as by default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    y: Option<u16>,
    /// Deliveries at the most, to versions that do not read `k`.
    m: u8,
    /// When events are sent again, and deliveries at the most; absent where `m` says all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    k: Option<RetryDoc>,
    /// How old a launch may be when it is delivered, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    r: Option<u32>,
    /// How the events go through their policy.
    #[serde(skip_serializing_if = "FlowDoc::is_default", default)]
    w: FlowDoc,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&Terms> for TermsDoc {
    fn from(terms: &Terms) -> Self {
        let (q, u) = split(&terms.target);
        let (source, detail_type) = match &terms.target {
            Target::EventBridge { label, .. } => label.named(),
            _ => (None, None),
        };
        let (m, k) = retry::split(terms.max_attempts, &terms.retry);
        let (b, l, t) = match terms.payload.clone() {
            Payload::Inline(json) => (Some(json), None, None),
            Payload::List(json) => (None, Some(json), None),
            Payload::Template(json) => (None, None, Some(json)),
            Payload::InJob => (None, None, None),
        };
        Self {
            n: terms.count.get(),
            p: terms.policy.as_ref().map(ToString::to_string),
            q,
            g: match &terms.target {
                Target::Sqs { group, .. } => group.named().map(str::to_owned),
                _ => None,
            },
            u,
            h: match &terms.target {
                Target::Http { call, .. } if !call.is_default() => Some(HttpCallDoc::from(&**call)),
                _ => None,
            },
            a: terms.target.arn().map(ToString::to_string),
            s: source.map(str::to_owned),
            d: detail_type.map(str::to_owned),
            b,
            l,
            t,
            f: terms.history != History::All,
            z: terms.history == History::None,
            y: (terms.history_days != HistoryDays::DEFAULT).then(|| terms.history_days.get()),
            m,
            k,
            r: terms.relevancy.map(Relevancy::seconds),
            w: FlowDoc::from(&terms.flow),
            rest: Rest::from(&terms.unknown),
        }
    }
}

impl TermsDoc {
    /// Takes the payload out that stands in it.
    pub(crate) fn take_payload(&mut self) -> Option<String> {
        self.b.take()
    }

    /// Puts back what was taken out.
    pub(crate) fn with_payload(self, payload: Option<String>) -> Self {
        Self { b: payload.or(self.b), ..self }
    }

    /// About how many bytes it adds to a message: what batches are cut by, before it is encoded.
    pub fn size(&self) -> usize {
        let texts =
            [&self.p, &self.q, &self.g, &self.u, &self.a, &self.s, &self.d, &self.b, &self.l, &self.t];
        // A payload is JSON in a JSON string: its quotes are escaped.
        32 + self.w.size()
            + self.k.as_ref().map_or(0, RetryDoc::size)
            + self.h.as_ref().map_or(0, HttpCallDoc::size)
            + self.rest.size()
            + texts
                .into_iter()
                .flatten()
                .map(|text| text.len() + text.matches('"').count() + 8)
                .sum::<usize>()
    }

    /// The terms that it stands for.
    ///
    /// # Errors
    /// A text that says which part no version of Tidegate would have written: a number out of bounds, a malformed name
    /// or address, or not exactly one target.
    pub fn read(&self) -> Result<Terms, String> {
        let target = match (joined(self.q.as_deref(), self.u.as_deref())?, self.a.as_deref()) {
            (Some(target), None) => target,
            (None, Some(arn)) => Target::by_arn(Arn::of_any(arn).ok_or("'a': no ARN")?),
            _ => return Err("exactly one of 'q', 'u' and 'a' must be there".to_owned()),
        };
        let target = match self.g.as_deref() {
            None => target,
            Some(group) => MessageGroup::new(group)
                .and_then(|group| target.grouped(group))
                .map_err(|e| format!("'g': {e}"))?,
        };
        let target = match (self.s.as_deref(), self.d.as_deref(), target) {
            (None, None, target) => target,
            (source, detail_type, target @ Target::EventBridge { .. }) => {
                target.labelled(BusLabel::new(source, detail_type).map_err(|e| e.to_string())?)
            }
            _ => return Err("'s' or 'd' is there without the ARN of a bus".to_owned()),
        };
        let target = match (&self.h, target) {
            (Some(call), target @ Target::Http { .. }) => {
                target.called(call.read().map_err(|e| format!("'h': {e}"))?)
            }
            (Some(_), _) => return Err("'h' is there without 'u'".to_owned()),
            (None, target) => target,
        };
        let payload = match (self.b.clone(), self.l.clone(), self.t.clone()) {
            (None, None, None) => Payload::InJob,
            (Some(json), None, None) => Payload::Inline(json),
            (None, Some(json), None) => Payload::List(json),
            (None, None, Some(json)) => Payload::Template(json),
            _ => return Err("only one of 'b', 'l' and 't' may be there".to_owned()),
        };
        let (max_attempts, retry) =
            retry::joined(self.m, self.k.as_ref()).map_err(|e| format!("'k': {e}"))?;
        Ok(Terms {
            count: Count::new(self.n.into()).map_err(|e| e.to_string())?,
            policy: self.p.as_deref().map(str::parse).transpose().map_err(|e| format!("'p': {e}"))?,
            target,
            payload,
            history: match (self.f, self.z) {
                (false, _) => History::All,
                (true, false) => History::Failures,
                (true, true) => History::None,
            },
            history_days: HistoryDays::read(self.y).map_err(|e| format!("'y': {e}"))?,
            max_attempts,
            retry,
            relevancy: self
                .r
                .map(|seconds| Relevancy::new(seconds.into()))
                .transpose()
                .map_err(|e| e.to_string())?,
            flow: self.w.read().map_err(|e| format!("'w': {e}"))?,
            unknown: self.rest.unknown(),
        })
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::flow::Flow;
    use tidegate_domain::job::Attempts;
    use tidegate_domain::retry::Retry;
    use tidegate_domain::unknown::Unknown;

    use super::*;

    fn terms(target: Target, payload: Payload) -> Terms {
        Terms {
            count: Count::new(20).unwrap(),
            policy: Some("small".parse().unwrap()),
            target,
            payload,
            history: History::Failures,
            history_days: HistoryDays::DEFAULT,
            max_attempts: Attempts::new(5).ok(),
            retry: Retry::default(),
            relevancy: None,
            flow: Flow::default(),
            unknown: Unknown::default(),
        }
    }

    #[test]
    fn the_stored_form_of_terms_is_pinned() {
        let queue = Target::sqs("https://sqs.eu-west-1.amazonaws.com/1/jobs").unwrap();
        let doc = TermsDoc::from(&terms(queue, Payload::Inline("{\"a\":1}".into())));
        assert_eq!(
            serde_json::to_string(&doc).unwrap(),
            r#"{"n":20,"p":"small","q":"https://sqs.eu-west-1.amazonaws.com/1/jobs","b":"{\"a\":1}","f":true,"m":5}"#
        );
    }

    #[test]
    fn terms_read_back() {
        let http = Target::http("https://acme.example/hook").unwrap();
        let list = Payload::List("[1,2]".into());
        let template = Payload::Template("\"{{index}}\"".into());
        let payloads = [Payload::InJob, Payload::Inline("null".into()), list, template];
        let histories = [History::None, History::Failures, History::All].into_iter().cycle();
        for (payload, history) in payloads.into_iter().zip(histories) {
            let terms = Terms { history, ..terms(http.clone(), payload) };
            let text = serde_json::to_string(&TermsDoc::from(&terms)).unwrap();
            assert_eq!(serde_json::from_str::<TermsDoc>(&text).unwrap().read().unwrap(), terms);
        }
        let long = Terms { history_days: HistoryDays::new(90).unwrap(), ..terms(http, Payload::InJob) };
        let text = serde_json::to_string(&TermsDoc::from(&long)).unwrap();
        assert!(text.contains(r#""y":90"#), "{text}");
        assert_eq!(serde_json::from_str::<TermsDoc>(&text).unwrap().read().unwrap(), long);
        let fixed = MessageGroup::Fixed("orders".into());
        let ordered = Target::sqs("https://x/1/a.fifo").unwrap().grouped(fixed).unwrap();
        let ordered = terms(ordered, Payload::InJob);
        let text = serde_json::to_string(&TermsDoc::from(&ordered)).unwrap();
        assert!(text.contains(r#""g":"orders""#), "{text}");
        assert_eq!(serde_json::from_str::<TermsDoc>(&text).unwrap().read().unwrap(), ordered);
        for broken in [
            r#"{"n":1,"q":"https://x/1/a","g":"orders","m":5}"#,
            r#"{"n":1,"q":"https://x/1/a","u":"https://x/","m":5}"#,
            r#"{"n":1,"q":"https://x/1/a","b":"1","l":"[1]","m":5}"#,
            r#"{"n":1,"q":"https://x/1/a","m":5,"w":{"c":13}}"#,
            r#"{"n":1,"q":"https://x/1/a","h":{},"m":5}"#,
            r#"{"n":1,"u":"https://x/","h":{"t":0},"m":5}"#,
            r#"{"n":1,"m":5}"#,
            r#"{"n":1,"q":"https://x/1/a","y":0,"m":5}"#,
            r#"{"n":1,"a":"arn:aws:sqs:eu-west-1:123456789012:jobs","m":5}"#,
            r#"{"n":1,"u":"https://x/","a":"arn:aws:sns:eu-west-1:123456789012:jobs","m":5}"#,
            r#"{"n":1,"a":"arn:aws:sns:eu-west-1:123456789012:jobs","s":"acme","m":5}"#,
            r#"{"n":1,"a":"arn:aws:events:eu-west-1:123456789012:event-bus/x","s":"aws.x","m":5}"#,
        ] {
            assert!(serde_json::from_str::<TermsDoc>(broken).unwrap().read().is_err(), "{broken}");
        }
    }

    #[test]
    fn how_an_endpoint_is_called_is_stored_where_it_is_not_as_by_default() {
        let target = Target::http("https://acme.example/hook").unwrap();
        let stored = |target: &Target| {
            let doc = TermsDoc::from(&terms(target.clone(), Payload::InJob));
            serde_json::to_string(&doc).unwrap()
        };
        assert_eq!(stored(&target), r#"{"n":20,"p":"small","u":"https://acme.example/hook","f":true,"m":5}"#);
        let newer = r#"{"n":20,"p":"small","u":"https://acme.example/hook","h":{"m":"GET","tide":[1]},"f":true,"m":5}"#;
        let read = serde_json::from_str::<TermsDoc>(newer).unwrap().read().unwrap();
        assert!(matches!(&read.target, Target::Http { call, .. } if call.method.as_str() == "GET"));
        assert_eq!(stored(&read.target), newer);
    }

    #[test]
    fn targets_by_their_arn_are_stored_and_read_back() {
        for (arn, label, pinned) in [
            ("arn:aws:events:eu-west-1:123456789012:event-bus/x", Some((None, None)), ""),
            (
                "arn:aws:events:eu-west-1:123456789012:event-bus/x",
                Some((Some("acme"), Some("Paid"))),
                r#","s":"acme","d":"Paid""#,
            ),
            ("arn:aws:sns:eu-west-1:123456789012:orders.fifo", None, ""),
            ("arn:aws:lambda:eu-west-1:123456789012:function:work", None, ""),
            ("arn:aws:states:eu-west-1:123456789012:stateMachine:work", None, ""),
        ] {
            let mut target = Target::by_arn(Arn::of_any(arn).unwrap());
            if let Some((source, detail_type)) = label {
                target = target.labelled(BusLabel::new(source, detail_type).unwrap());
            }
            let terms = terms(target, Payload::InJob);
            let text = serde_json::to_string(&TermsDoc::from(&terms)).unwrap();
            assert_eq!(text, format!(r#"{{"n":20,"p":"small","a":"{arn}"{pinned},"f":true,"m":5}}"#));
            assert_eq!(serde_json::from_str::<TermsDoc>(&text).unwrap().read(), Ok(terms));
        }
    }

    #[test]
    fn what_a_newer_version_stored_is_kept() {
        let newer = r#"{"n":1,"q":"https://x/1/a","m":5,"w":{"c":3,"tide":[1,2]},"moon":{"full":true}}"#;
        let terms = serde_json::from_str::<TermsDoc>(newer).unwrap().read().unwrap();
        assert_eq!(terms.flow.cost.get(), 3);
        assert_eq!(serde_json::to_string(&TermsDoc::from(&terms)).unwrap(), newer);
        assert_eq!(terms.to_travel().unknown, terms.unknown);
    }
}
