//! When a job's events are sent again, as stored.

use serde::{Deserialize, Serialize};
use tidegate_domain::job::Attempts;
use tidegate_domain::retry::{Backoff, Retry, RetryAge, RetryCeiling, RetryWait};

use super::Rest;

/// The most deliveries that versions before this document read.
const MOST_BEFORE: u8 = 20;

/// The retry rule of a job, and its most deliveries; what is absent is as by default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RetryDoc {
    /// Deliveries at the most, if there is a most.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    n: Option<u8>,
    /// Backoff: `n` for none, `f` for fixed, absent for exponential.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    b: Option<char>,
    /// The fixed wait, or the bound of the first one, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    w: Option<u32>,
    /// What the bound doubles up to, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    c: Option<u32>,
    /// For how long it is tried, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    a: Option<u32>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

/// The most deliveries as versions before this document read them, and the document; without one where they read all.
pub(super) fn split(max_attempts: Option<Attempts>, retry: &Retry) -> (u8, Option<RetryDoc>) {
    let most = max_attempts.map(Attempts::get);
    match most {
        Some(most) if most <= MOST_BEFORE && *retry == Retry::default() => (most, None),
        _ => (most.unwrap_or(MOST_BEFORE).min(MOST_BEFORE), Some(RetryDoc::of(most, retry))),
    }
}

/// What was split.
pub(super) fn joined(most: u8, doc: Option<&RetryDoc>) -> Result<(Option<Attempts>, Retry), String> {
    let attempts = |most: u8| Attempts::new(most.into()).map_err(|e| e.to_string());
    match doc {
        None => Ok((Some(attempts(most)?), Retry::default())),
        Some(doc) => Ok((doc.n.map(attempts).transpose()?, doc.read()?)),
    }
}

impl RetryDoc {
    pub(super) fn of(most: Option<u8>, retry: &Retry) -> Self {
        let default = Retry::default();
        let (b, w, c) = match retry.backoff {
            backoff if backoff == default.backoff => (None, None, None),
            Backoff::None => (Some('n'), None, None),
            Backoff::Fixed { wait } => (Some('f'), Some(wait.get()), None),
            Backoff::Exponential { first, ceiling } => (None, Some(first.get()), Some(ceiling.get())),
        };
        let a = (retry.max_age != default.max_age).then_some(retry.max_age.get());
        Self { n: most, b, w, c, a, rest: Rest::from(&retry.unknown) }
    }

    /// About how many bytes it adds to a message.
    pub(super) fn size(&self) -> usize {
        if *self == Self::default() { 8 } else { 56 + self.rest.size() }
    }

    pub(super) fn read(&self) -> Result<Retry, String> {
        let wait = |seconds: u32| RetryWait::new(seconds.into()).map_err(|e| e.to_string());
        let default = Retry::default();
        let backoff = match (self.b, self.w, self.c) {
            (None, None, None) => default.backoff,
            (Some('n'), None, None) => Backoff::None,
            (Some('f'), Some(seconds), None) => Backoff::Fixed { wait: wait(seconds)? },
            (None, Some(first), Some(ceiling)) => {
                let ceiling = RetryCeiling::new(ceiling.into()).map_err(|e| e.to_string())?;
                Backoff::Exponential { first: wait(first)?, ceiling }
            }
            _ => return Err("'b', 'w' and 'c' say no backoff together".to_owned()),
        };
        let max_age = self.a.map(|seconds| RetryAge::new(seconds.into())).transpose();
        let max_age = max_age.map_err(|e| e.to_string())?.unwrap_or_default();
        Ok(Retry { backoff, max_age, unknown: self.rest.unknown() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_rules_read_back_and_their_stored_form_is_pinned() {
        let wait = |seconds| RetryWait::new(seconds).unwrap();
        let most = |most| Some(Attempts::new(most).unwrap());
        let with = |backoff| Retry { backoff, ..Retry::default() };
        for (max_attempts, retry, m, pinned) in [
            (most(5), Retry::default(), 5, None),
            (None, Retry::default(), 20, Some("{}")),
            (most(60), Retry::default(), 20, Some(r#"{"n":60}"#)),
            (most(3), with(Backoff::None), 3, Some(r#"{"n":3,"b":"n"}"#)),
            (None, with(Backoff::Fixed { wait: wait(30) }), 20, Some(r#"{"b":"f","w":30}"#)),
            (
                None,
                Retry {
                    max_age: RetryAge::new(600).unwrap(),
                    ..with(Backoff::Exponential { first: wait(1), ceiling: RetryCeiling::new(60).unwrap() })
                },
                20,
                Some(r#"{"w":1,"c":60,"a":600}"#),
            ),
        ] {
            let (stored, doc) = split(max_attempts, &retry);
            let text = doc.as_ref().map(|doc| serde_json::to_string(doc).unwrap());
            assert_eq!((stored, text.as_deref()), (m, pinned));
            let doc = text.map(|text| serde_json::from_str::<RetryDoc>(&text).unwrap());
            assert_eq!(joined(stored, doc.as_ref()), Ok((max_attempts, retry)));
        }
        for unreadable in
            [r#"{"b":"q","w":1}"#, r#"{"b":"n","w":1}"#, r#"{"w":1}"#, r#"{"n":201}"#, r#"{"a":0}"#]
        {
            let doc = serde_json::from_str::<RetryDoc>(unreadable).unwrap();
            assert!(joined(5, Some(&doc)).is_err(), "{unreadable}");
        }
    }
}
