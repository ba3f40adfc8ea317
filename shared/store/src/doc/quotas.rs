//! What a client may take at the most.

use chrono::DateTime;
use serde::{Deserialize, Serialize};
use tidegate_domain::bounded::Bounded;
use tidegate_domain::quota::{
    CreatesPerMinute, DeliveryShare, EventsPerLaunch, EventsPerMinute, MostCalendars, MostJobs,
    MostOneTimeJobs, MostPolicies, MostTokens, MostWaiting, MostZones, PayloadBytes, Quotas,
};

use super::Rest;

/// The quotas of a client; what is absent is not bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct QuotasDoc {
    /// Jobs that it may write in a minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    c: Option<u32>,
    /// Bytes of JSON that the payload of each of its jobs may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    p: Option<u32>,
    /// Jobs that it may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    j: Option<u32>,
    /// One-time jobs that may wait.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    o: Option<u32>,
    /// Policies that it may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    l: Option<u32>,
    /// Calendars that it may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    k: Option<u32>,
    /// Zones that its jobs may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    z: Option<u32>,
    /// Events that a launch may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    e: Option<u32>,
    /// Tokens that a policy may have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    t: Option<u32>,
    /// Events that go in a minute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    m: Option<u32>,
    /// What may wait.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    w: Option<u32>,
    /// Turns that its messages have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    d: Option<u32>,
    /// Since when it has all of those that are counted, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    s: Option<i64>,
    /// What a newer version stored.
    #[serde(flatten)]
    rest: Rest,
}

impl From<&Quotas> for QuotasDoc {
    fn from(quotas: &Quotas) -> Self {
        Self {
            c: quotas.creates_per_minute.map(CreatesPerMinute::get),
            p: quotas.payload_bytes.map(PayloadBytes::get),
            j: quotas.jobs.map(MostJobs::get),
            o: quotas.one_time_jobs.map(MostOneTimeJobs::get),
            l: quotas.policies.map(MostPolicies::get),
            k: quotas.calendars.map(MostCalendars::get),
            z: quotas.zones.map(MostZones::get),
            e: quotas.events_per_launch.map(EventsPerLaunch::get),
            t: quotas.tokens.map(MostTokens::get),
            m: quotas.events_per_minute.map(EventsPerMinute::get),
            w: quotas.waiting.map(MostWaiting::get),
            d: quotas.delivery_share.map(DeliveryShare::get),
            s: quotas.counted_since.map(|since| since.timestamp_millis()),
            rest: Rest::default(),
        }
    }
}

fn read<L: Bounded>(most: Option<u32>) -> Result<Option<L>, String> {
    most.map(|most| L::checked(most.into())).transpose().map_err(|e| e.to_string())
}

impl QuotasDoc {
    pub(crate) fn read(&self) -> Result<Quotas, String> {
        let since = |ms| DateTime::from_timestamp_millis(ms).ok_or("'s' is no instant".to_owned());
        Ok(Quotas {
            creates_per_minute: read(self.c)?,
            payload_bytes: read(self.p)?,
            jobs: read(self.j)?,
            one_time_jobs: read(self.o)?,
            policies: read(self.l)?,
            calendars: read(self.k)?,
            zones: read(self.z)?,
            events_per_launch: read(self.e)?,
            tokens: read(self.t)?,
            events_per_minute: read(self.m)?,
            waiting: read(self.w)?,
            delivery_share: read(self.d)?,
            counted_since: self.s.map(since).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_quotas_is_pinned() {
        let creates = Quotas { creates_per_minute: CreatesPerMinute::new(600).ok(), ..Quotas::default() };
        let both = Quotas { payload_bytes: PayloadBytes::new(1_024).ok(), ..creates };
        let all = Quotas {
            jobs: MostJobs::new(1).ok(),
            one_time_jobs: MostOneTimeJobs::new(2).ok(),
            policies: MostPolicies::new(3).ok(),
            calendars: MostCalendars::new(0).ok(),
            zones: MostZones::new(5).ok(),
            events_per_launch: EventsPerLaunch::new(6).ok(),
            tokens: MostTokens::new(7).ok(),
            events_per_minute: EventsPerMinute::new(8).ok(),
            waiting: MostWaiting::new(9).ok(),
            delivery_share: DeliveryShare::new(10).ok(),
            counted_since: DateTime::from_timestamp_millis(1_795_262_640_001),
            ..both
        };
        let pinned_all = r#"{"c":600,"p":1024,"j":1,"o":2,"l":3,"k":0,"z":5,"e":6,"t":7,"m":8,"w":9,"d":10,"s":1795262640001}"#;
        for (quotas, pinned) in [
            (creates, r#"{"c":600}"#),
            (both, r#"{"c":600,"p":1024}"#),
            (all, pinned_all),
            (Quotas::default(), "{}"),
        ] {
            let text = serde_json::to_string(&QuotasDoc::from(&quotas)).unwrap();
            assert_eq!(text, pinned);
            assert_eq!(serde_json::from_str::<QuotasDoc>(&text).unwrap().read(), Ok(quotas));
        }
        for spoiled in [r#"{"c":0}"#, r#"{"p":1}"#, r#"{"z":601}"#, r#"{"t":0}"#, r#"{"d":11}"#] {
            assert!(serde_json::from_str::<QuotasDoc>(spoiled).unwrap().read().is_err());
        }
    }
}
