//! Who is sidelined, as stored: JSON with short names.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tidegate_domain::retry::RedrivePace;
use tidegate_domain::sideline::{Drain, Sideline, Sidelines};
use tidegate_domain::time::clamped;

/// That something is sidelined, or drains.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SidelineDoc {
    /// Since when, in milliseconds since the epoch.
    s: i64,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    w: String,
    /// How it drains.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    d: Option<DrainDoc>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DrainDoc {
    /// Events in a second.
    r: u32,
    /// When it was asked for, in milliseconds since the epoch.
    s: i64,
    /// When more of it is sent, the same.
    n: i64,
}

/// What of a client is sidelined.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SidelinesDoc {
    /// All of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    c: Option<SidelineDoc>,
    /// Jobs of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    j: BTreeMap<String, SidelineDoc>,
}

impl From<&Sideline> for SidelineDoc {
    fn from(sideline: &Sideline) -> Self {
        let drain = sideline.drain.map(|drain| DrainDoc {
            r: drain.pace.get(),
            s: drain.since.timestamp_millis(),
            n: drain.next_at.timestamp_millis(),
        });
        Self { s: sideline.since.timestamp_millis(), w: sideline.because.clone(), d: drain }
    }
}

fn instant(ms: i64) -> Result<DateTime<Utc>, String> {
    DateTime::from_timestamp_millis(ms).map(clamped).ok_or_else(|| format!("{ms} is no instant"))
}

impl SidelineDoc {
    /// Its JSON text.
    pub(crate) fn encode(sideline: &Sideline) -> String {
        // Serialising a plain struct to a string has no way to fail.
        serde_json::to_string(&Self::from(sideline)).unwrap_or_default()
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(text: &str) -> Result<Sideline, String> {
        serde_json::from_str::<Self>(text).map_err(|e| e.to_string())?.read()
    }

    fn read(self) -> Result<Sideline, String> {
        let drain = |DrainDoc { r, s, n }: DrainDoc| {
            let pace = RedrivePace::new(r.into()).map_err(|e| e.to_string())?;
            Ok::<_, String>(Drain { pace, since: instant(s)?, next_at: instant(n)? })
        };
        Ok(Sideline { since: instant(self.s)?, because: self.w, drain: self.d.map(drain).transpose()? })
    }
}

impl SidelinesDoc {
    /// Its JSON text.
    pub(crate) fn encode(sidelines: &Sidelines) -> String {
        let jobs = sidelines.jobs.iter().map(|(job, sideline)| (job.to_string(), sideline.into()));
        let doc = Self { c: sidelines.client.as_ref().map(SidelineDoc::from), j: jobs.collect() };
        serde_json::to_string(&doc).unwrap_or_default()
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(text: &str) -> Result<Sidelines, String> {
        let Self { c, j } = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let jobs = j.into_iter().map(|(job, sideline)| {
            let job = job.parse().map_err(|e| format!("'{job}': {e}"))?;
            Ok::<_, String>((job, sideline.read()?))
        });
        Ok(Sidelines { client: c.map(SidelineDoc::read).transpose()?, jobs: jobs.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use tidegate_domain::sideline::SidelineOf;

    use super::*;

    #[test]
    fn sidelines_read_back_and_their_stored_form_is_pinned() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        let held = Sideline::new(now, "repairs");
        let draining = Sideline::new(now, "").draining(RedrivePace::new(10).unwrap(), now);
        let of = SidelineOf::Job("sync".parse().unwrap());
        let both = Sidelines::default().with(&SidelineOf::Client, Some(held)).with(&of, Some(draining));
        for (sidelines, pinned) in [
            (Sidelines::default(), "{}"),
            (
                both,
                r#"{"c":{"s":1790000000000,"w":"repairs"},"j":{"sync":{"s":1790000000000,"d":{"r":10,"s":1790000000000,"n":1790000000000}}}}"#,
            ),
        ] {
            assert_eq!(SidelinesDoc::encode(&sidelines), pinned);
            assert_eq!(SidelinesDoc::decode(pinned), Ok(sidelines));
        }
        for unreadable in
            ["", r#"{"c":{}}"#, r#"{"j":{"":{"s":1}}}"#, r#"{"c":{"s":1,"d":{"r":0,"s":1,"n":1}}}"#]
        {
            assert!(SidelinesDoc::decode(unreadable).is_err(), "{unreadable}");
        }
    }
}
