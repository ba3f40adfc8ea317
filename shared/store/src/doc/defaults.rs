//! What a client's jobs have that say nothing of it, as stored.

use serde::{Deserialize, Serialize};
use tidegate_domain::job::{Attempts, History, HistoryDays, JobDefaults};
use tidegate_domain::rules::Relevancy;

use super::Rest;
use super::retry::RetryDoc;

/// The defaults of a client; what is absent is as without a client.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct DefaultsDoc {
    /// When an event is sent again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    k: Option<RetryDoc>,
    /// Deliveries at the most.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    m: Option<u8>,
    /// How old a launch may be, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    r: Option<u32>,
    /// What is kept: `a` for all, `f` for failures, `n` for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    h: Option<char>,
    /// Days that it is kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    d: Option<u16>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&JobDefaults> for DefaultsDoc {
    fn from(defaults: &JobDefaults) -> Self {
        Self {
            k: defaults.retry.as_ref().map(|retry| RetryDoc::of(None, retry)),
            m: defaults.max_attempts.map(Attempts::get),
            r: defaults.relevancy.map(Relevancy::seconds),
            h: defaults.history.map(|history| match history {
                History::All => 'a',
                History::Failures => 'f',
                History::None => 'n',
            }),
            d: defaults.history_days.map(HistoryDays::get),
            rest: Rest::default(),
        }
    }
}

impl DefaultsDoc {
    pub(crate) fn read(&self) -> Result<JobDefaults, String> {
        let history = match self.h {
            None => None,
            Some('a') => Some(History::All),
            Some('f') => Some(History::Failures),
            Some('n') => Some(History::None),
            Some(other) => return Err(format!("'h': '{other}' is no kind of history")),
        };
        let attempts = self.m.map(|most| Attempts::new(most.into())).transpose();
        let history_days = self.d.map(|days| HistoryDays::new(days.into())).transpose();
        let relevancy = self.r.map(|seconds| Relevancy::new(seconds.into())).transpose();
        Ok(JobDefaults {
            retry: self.k.as_ref().map(RetryDoc::read).transpose()?,
            max_attempts: attempts.map_err(|e| e.to_string())?,
            relevancy: relevancy.map_err(|e| e.to_string())?,
            history,
            history_days: history_days.map_err(|e| e.to_string())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::retry::{Backoff, Retry, RetryWait};

    use super::*;

    #[test]
    fn the_stored_form_of_defaults_is_pinned() {
        let fixed = Backoff::Fixed { wait: RetryWait::new(9).unwrap() };
        let all = JobDefaults {
            retry: Some(Retry { backoff: fixed, ..Retry::default() }),
            max_attempts: Attempts::new(3).ok(),
            relevancy: Relevancy::new(600).ok(),
            history: Some(History::Failures),
            history_days: HistoryDays::new(30).ok(),
        };
        let kept = JobDefaults { retry: Some(Retry::default()), ..JobDefaults::default() };
        for (defaults, pinned) in [
            (all, r#"{"k":{"b":"f","w":9},"m":3,"r":600,"h":"f","d":30}"#),
            (kept, r#"{"k":{}}"#),
            (JobDefaults::default(), "{}"),
        ] {
            let text = serde_json::to_string(&DefaultsDoc::from(&defaults)).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<DefaultsDoc>(&text).unwrap().read(), Ok(defaults));
        }
        assert!(serde_json::from_str::<DefaultsDoc>(r#"{"h":"x"}"#).unwrap().read().is_err());
    }
}
