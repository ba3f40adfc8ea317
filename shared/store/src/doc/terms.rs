//! What travels with each occurrence.

use serde::{Deserialize, Serialize};
use tidegate_domain::job::{Attempts, Count, History, Payload, Terms};
use tidegate_domain::rules::Relevancy;
use tidegate_domain::target::Target;

/// The terms of a job, as stored in rows and in dispatch messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermsDoc {
    /// Event count.
    n: u32,
    /// Policy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    p: Option<String>,
    /// Queue URL.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    q: Option<String>,
    /// HTTP URL.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    u: Option<String>,
    /// Payload as JSON text; absent when it lies in the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    b: Option<String>,
    /// Only failures are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    f: bool,
    /// Deliveries at the most.
    m: u8,
    /// How old a launch may be when it is delivered, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    r: Option<u32>,
}

impl From<&Terms> for TermsDoc {
    fn from(terms: &Terms) -> Self {
        let (q, u) = match &terms.target {
            Target::Sqs { queue_url } => (Some(queue_url.clone()), None),
            Target::Http { url } => (None, Some(url.clone())),
        };
        let b = match &terms.payload {
            Payload::Inline(json) => Some(json.clone()),
            Payload::InJob => None,
        };
        Self {
            n: terms.count.get(),
            p: terms.policy.as_ref().map(ToString::to_string),
            q,
            u,
            b,
            f: terms.history == History::Failures,
            m: terms.max_attempts.get(),
            r: terms.relevancy.map(Relevancy::seconds),
        }
    }
}

impl TermsDoc {
    /// About how many bytes it adds to a message.
    pub fn size(&self) -> usize {
        let texts = [&self.p, &self.q, &self.u, &self.b];
        // A payload is JSON in a JSON string: its quotes are escaped.
        32 + texts.into_iter().flatten().map(|text| text.len() + text.matches('"').count() + 8).sum::<usize>()
    }

    /// The terms that it stands for.
    ///
    /// # Errors
    /// Says which part no version of Tidegate would have written.
    pub fn read(&self) -> Result<Terms, String> {
        let target = match (&self.q, &self.u) {
            (Some(queue_url), None) => Target::sqs(queue_url).map_err(|e| e.to_string())?,
            (None, Some(url)) => Target::http(url).map_err(|e| e.to_string())?,
            _ => return Err("exactly one of 'q' and 'u' must be there".to_owned()),
        };
        Ok(Terms {
            count: Count::new(self.n.into()).map_err(|e| e.to_string())?,
            policy: self.p.as_deref().map(str::parse).transpose().map_err(|e| format!("'p': {e}"))?,
            target,
            payload: self.b.clone().map_or(Payload::InJob, Payload::Inline),
            history: if self.f { History::Failures } else { History::All },
            max_attempts: Attempts::new(self.m.into()).map_err(|e| e.to_string())?,
            relevancy: self
                .r
                .map(|seconds| Relevancy::new(seconds.into()))
                .transpose()
                .map_err(|e| e.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(target: Target, payload: Payload) -> Terms {
        Terms {
            count: Count::new(20).unwrap(),
            policy: Some("small".parse().unwrap()),
            target,
            payload,
            history: History::Failures,
            max_attempts: Attempts::default(),
            relevancy: None,
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
        for payload in [Payload::InJob, Payload::Inline("null".into())] {
            let terms = terms(http.clone(), payload);
            let text = serde_json::to_string(&TermsDoc::from(&terms)).unwrap();
            assert_eq!(serde_json::from_str::<TermsDoc>(&text).unwrap().read().unwrap(), terms);
        }
        let both = r#"{"n":1,"q":"https://x/1/a","u":"https://x/","m":5}"#;
        assert!(serde_json::from_str::<TermsDoc>(both).unwrap().read().is_err());
    }
}
