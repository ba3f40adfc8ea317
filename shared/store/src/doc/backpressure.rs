//! What is done about a consumer that cannot keep up, as stored.

use chrono::DateTime;
use serde::{Deserialize, Serialize};
use tidegate_domain::backpressure::{Backpressure, ClosedBy, Closure};
use tidegate_domain::time::clamped;

/// Backpressure as an attribute of a row: JSON with short names.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BackpressureDoc {
    /// Steps.
    n: u8,
    /// When the last was taken, in milliseconds since the epoch.
    at: i64,
    /// Until when it is closed, in seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    u: Option<i64>,
    /// Its client closed it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    c: bool,
    /// Why.
    w: String,
}

impl From<&Backpressure> for BackpressureDoc {
    fn from(state: &Backpressure) -> Self {
        let closed = state.closed();
        Self {
            n: state.steps(),
            at: state.stepped_at().timestamp_millis(),
            u: closed.map(|closed| closed.until.timestamp()),
            c: closed.is_some_and(|closed| closed.by == ClosedBy::Client),
            w: state.because().to_owned(),
        }
    }
}

impl BackpressureDoc {
    /// Its JSON text.
    pub(crate) fn encode(state: &Backpressure) -> String {
        // Serialising a plain struct to a string has no way to fail.
        serde_json::to_string(&Self::from(state)).unwrap_or_default()
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(text: &str) -> Result<Backpressure, String> {
        let Self { n, at, u, c, w } = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let stepped_at = DateTime::from_timestamp_millis(at).map(clamped).ok_or("'at': no instant")?;
        let by = if c { ClosedBy::Client } else { ClosedBy::Consumer };
        let closed = u.map(|second| match DateTime::from_timestamp(second, 0).map(clamped) {
            Some(until) => Ok(Closure { until, by }),
            None => Err("'u': no instant".to_owned()),
        });
        Ok(Backpressure::stored(n, stepped_at, closed.transpose()?, w))
    }
}

#[cfg(test)]
mod tests {
    use chrono::Duration;
    use tidegate_domain::backpressure::Sign;

    use super::*;

    #[test]
    fn backpressure_reads_back_and_its_stored_form_is_pinned() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        let sign =
            |asks_s: Option<i64>| Sign { asks_for: asks_s.map(Duration::seconds), because: "busy".into() };
        let after = |asks_s| Backpressure::after(None, 8, &sign(asks_s), now).unwrap();
        for (state, pinned) in [
            (after(None), r#"{"n":1,"at":1790000000000,"w":"busy"}"#),
            (after(Some(60)), r#"{"n":1,"at":1790000000000,"u":1790000060,"w":"busy"}"#),
            (
                Backpressure::closed_by_client(now, "repairs"),
                r#"{"n":0,"at":1790000000000,"u":1790000000,"c":true,"w":"repairs"}"#,
            ),
        ] {
            assert_eq!(BackpressureDoc::encode(&state), pinned);
            assert_eq!(BackpressureDoc::decode(pinned), Ok(state));
        }
        for unreadable in ["", "{}", r#"{"n":1,"at":9223372036854775807,"w":""}"#] {
            assert!(BackpressureDoc::decode(unreadable).is_err(), "{unreadable}");
        }
    }
}
