//! How an endpoint is called, as stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_domain::http_call::{Body, Headers, HttpCall, HttpTimeout, Method, Statuses};

use super::Rest;

/// How an endpoint is called; what is absent is as by default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct HttpCallDoc {
    /// Method, where it is not POST.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    m: Option<String>,
    /// Headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    h: BTreeMap<String, String>,
    /// The body is the payload alone.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    p: bool,
    /// How long a call may take, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    t: Option<u32>,
    /// Statuses of answers that mean that it took the event, with blanks between.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    e: Option<String>,
    /// Statuses of answers after which it is called again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    r: Option<String>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&HttpCall> for HttpCallDoc {
    fn from(call: &HttpCall) -> Self {
        let HttpCall { method, headers, body, timeout, expected, retried, unknown } = call;
        let written = |statuses: &Option<Statuses>| statuses.as_ref().map(|s| s.written().join(" "));
        Self {
            m: (*method != Method::default()).then(|| method.as_str().to_owned()),
            h: headers.as_map().clone(),
            p: *body == Body::Payload,
            t: (*timeout != HttpTimeout::default()).then_some(timeout.get()),
            e: written(expected),
            r: written(retried),
            rest: Rest::from(unknown),
        }
    }
}

impl HttpCallDoc {
    /// About how many bytes it adds to a message.
    pub(super) fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let headers = self.h.iter().map(|(name, value)| {
            name.len() + value.len() + value.matches(['"', '\\']).count() + "\"\":\"\",".len()
        });
        48 + text(&self.e) + text(&self.r) + self.rest.size() + headers.sum::<usize>()
    }

    pub(super) fn read(&self) -> Result<HttpCall, String> {
        let method = match &self.m {
            None => Some(Method::default()),
            Some(word) => Method::ALL.into_iter().find(|method| method.as_str() == word),
        };
        let statuses = |written: &Option<String>, least| {
            let read = |text: &String| {
                let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
                Statuses::new(&words, least)
            };
            written.as_ref().map(read).transpose().map_err(|e| e.to_string())
        };
        let timeout = self.t.map(|seconds| HttpTimeout::new(seconds.into())).transpose();
        let call = HttpCall {
            method: method.ok_or("'m': no method")?,
            headers: Headers::new(self.h.clone()).map_err(|e| e.to_string())?,
            body: if self.p { Body::Payload } else { Body::Event },
            timeout: timeout.map_err(|e| e.to_string())?.unwrap_or_default(),
            expected: statuses(&self.e, 1).map_err(|e| format!("'e': {e}"))?,
            retried: statuses(&self.r, 0).map_err(|e| format!("'r': {e}"))?,
            unknown: self.rest.unknown(),
        };
        call.checked().map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_read_back_and_their_stored_form_is_pinned() {
        let default = HttpCall::default();
        let headers = BTreeMap::from([("X-Page".to_owned(), "{{index}}".to_owned())]);
        for (call, pinned) in [
            (default.clone(), "{}"),
            (HttpCall { method: Method::Get, ..default.clone() }, r#"{"m":"GET"}"#),
            (HttpCall { retried: Statuses::new::<&str>(&[], 0).ok(), ..default.clone() }, r#"{"r":""}"#),
            (
                HttpCall {
                    method: Method::Put,
                    headers: Headers::new(headers).unwrap(),
                    body: Body::Payload,
                    timeout: HttpTimeout::new(3).unwrap(),
                    expected: Statuses::new(&["2xx", "404"], 1).ok(),
                    retried: Statuses::new(&["503"], 0).ok(),
                    ..default
                },
                r#"{"m":"PUT","h":{"X-Page":"{{index}}"},"p":true,"t":3,"e":"2xx 404","r":"503"}"#,
            ),
        ] {
            let doc = HttpCallDoc::from(&call);
            let text = serde_json::to_string(&doc).unwrap();
            assert_eq!(text, pinned);
            assert!(doc.size() >= text.len(), "{text}");
            assert_eq!(serde_json::from_str::<HttpCallDoc>(&text).unwrap().read(), Ok(call));
        }
        for unreadable in [
            r#"{"m":"HEAD"}"#,
            r#"{"h":{"host":"x"}}"#,
            r#"{"t":11}"#,
            r#"{"e":""}"#,
            r#"{"r":"1xx"}"#,
            r#"{"m":"GET","p":true}"#,
            r#"{"e":"404","r":"4xx"}"#,
        ] {
            assert!(serde_json::from_str::<HttpCallDoc>(unreadable).unwrap().read().is_err(), "{unreadable}");
        }
    }
}
