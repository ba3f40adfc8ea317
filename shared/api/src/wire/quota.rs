//! What clients may take at the most, and what they have taken, as they travel.

use serde::Deserialize;
use tidegate_domain::ids::ClientId;
use tidegate_domain::quota::{
    Counted, CreatesPerMinute, EventsPerLaunch, MostCalendars, MostJobs, MostOneTimeJobs, MostPolicies,
    MostTokens, MostZones, PayloadBytes, Quota, Quotas,
};
use tidegate_engine::Usage;
use tidegate_protocol::{self as protocol, ClientUsage, QuotaName, QuotaUsage};
use utoipa::ToSchema;

use crate::problem::FieldErrors;
use crate::wire::bounds::bounded_fields;
use crate::wire::instant;
use crate::wire::number::{Number, check_given};

/// What a client may take at the most; what is left out is not bounded.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"creates_per_minute": 600, "payload_bytes": 16384, "jobs": 1000, "one_time_jobs": 100_000, "policies": 20}))]
pub(crate) struct QuotasBody {
    /// How many jobs it may write in a minute of UTC: each that is posted or put, alone or in bulk. Over that the answer is 429.
    #[schema(value_type = Option<u32>)]
    creates_per_minute: Option<Number<CreatesPerMinute>>,
    /// How many bytes of JSON the payload of each of its jobs may have, from when it is written: all of `payloads` together, where a job
    /// has those.
    #[schema(value_type = Option<u32>)]
    payload_bytes: Option<Number<PayloadBytes>>,
    /// How many jobs it may have at once: all but one-time jobs without a `job_id`. A one-time job with a `job_id`
    /// is one of them until 90 days after its launch, if it is not deleted before. Over that the answer is 429, here and below.
    #[schema(value_type = Option<u32>)]
    jobs: Option<Number<MostJobs>>,
    /// How many one-time jobs may wait for their launch, with a `job_id` or without: jobs with one instant. Each counts until its launch,
    /// and up to a quarter of its wait longer, also when it is deleted before. One that is moved to a later instant counts twice for so
    /// long. Those that waited before there was this quota do not count.
    #[schema(value_type = Option<u32>)]
    one_time_jobs: Option<Number<MostOneTimeJobs>>,
    /// How many policies it may have.
    #[schema(value_type = Option<u32>)]
    policies: Option<Number<MostPolicies>>,
    /// How many calendars it may have.
    #[schema(value_type = Option<u32>)]
    calendars: Option<Number<MostCalendars>>,
    /// How many zones the cron triggers of all its jobs may have together.
    #[schema(value_type = Option<u32>)]
    zones: Option<Number<MostZones>>,
    /// How many events one launch of each of its jobs may have, from when it is written.
    #[schema(value_type = Option<u32>)]
    events_per_launch: Option<Number<EventsPerLaunch>>,
    /// The most that `max_in_flight` of each of its policies may be, from when it is written.
    #[schema(value_type = Option<u32>)]
    tokens: Option<Number<MostTokens>>,
}

bounded_fields!(
    QuotasBody: creates_per_minute,
    payload_bytes,
    jobs,
    one_time_jobs,
    policies,
    calendars,
    zones,
    events_per_launch,
    tokens
);

impl QuotasBody {
    /// The quotas; `None` when one is out of its bounds, and then `errors` says so.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<Quotas> {
        let creates_per_minute = check_given(self.creates_per_minute, errors);
        let payload_bytes = check_given(self.payload_bytes, errors);
        let jobs = check_given(self.jobs, errors);
        let one_time_jobs = check_given(self.one_time_jobs, errors);
        let policies = check_given(self.policies, errors);
        let calendars = check_given(self.calendars, errors);
        let zones = check_given(self.zones, errors);
        let events_per_launch = check_given(self.events_per_launch, errors);
        let tokens = check_given(self.tokens, errors);
        Some(Quotas {
            creates_per_minute: creates_per_minute?,
            payload_bytes: payload_bytes?,
            jobs: jobs?,
            one_time_jobs: one_time_jobs?,
            policies: policies?,
            calendars: calendars?,
            zones: zones?,
            events_per_launch: events_per_launch?,
            tokens: tokens?,
            // Whoever stores them says since when.
            counted_since: None,
        })
    }
}

/// Quotas as they are answered.
pub(crate) fn view(quotas: &Quotas) -> protocol::Quotas {
    protocol::Quotas {
        creates_per_minute: quotas.creates_per_minute.map(CreatesPerMinute::get),
        payload_bytes: quotas.payload_bytes.map(PayloadBytes::get),
        jobs: quotas.jobs.map(MostJobs::get),
        one_time_jobs: quotas.one_time_jobs.map(MostOneTimeJobs::get),
        policies: quotas.policies.map(MostPolicies::get),
        calendars: quotas.calendars.map(MostCalendars::get),
        zones: quotas.zones.map(MostZones::get),
        events_per_launch: quotas.events_per_launch.map(EventsPerLaunch::get),
        tokens: quotas.tokens.map(MostTokens::get),
    }
}

/// What is used of the quotas of a client, as it is answered.
pub(crate) fn usage_view(client: &ClientId, usage: &[Usage]) -> ClientUsage {
    let quotas = usage.iter().map(|usage| QuotaUsage {
        quota: name(usage.quota),
        most: usage.most,
        used: usage.used,
        counted_at: usage.counted_at.map(instant),
    });
    ClientUsage { client_id: client.to_string(), quotas: quotas.collect() }
}

fn name(quota: Quota) -> QuotaName {
    match quota {
        Quota::CreatesPerMinute => QuotaName::CreatesPerMinute,
        Quota::OneTimeJobs => QuotaName::OneTimeJobs,
        Quota::Of(Counted::Jobs) => QuotaName::Jobs,
        Quota::Of(Counted::Policies) => QuotaName::Policies,
        Quota::Of(Counted::Calendars) => QuotaName::Calendars,
        Quota::Of(Counted::Zones) => QuotaName::Zones,
    }
}
