//! What clients may take at the most, and what they have taken, as they travel.

use chrono::NaiveDate;
use serde::Deserialize;
use tidegate_domain::ids::ClientId;
use tidegate_domain::quota::{
    Counted, CreatesPerMinute, DeliveryShare, EventsPerLaunch, EventsPerMinute, MostCalendars, MostJobs,
    MostOneTimeJobs, MostPolicies, MostTokens, MostWaiting, MostZones, PayloadBytes, Quota, Quotas,
};
use tidegate_domain::usage::Tally;
use tidegate_engine::{Usage, UsedQuota};
use tidegate_protocol::{self as protocol, ClientUsage, QuotaName, QuotaUsage, UsageDay};
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
    /// How many of its events go in a minute of UTC: of all that no policy throttles together; what is over that goes in the minutes
    /// after, in order. Each of its policies must have a `rate` of at most that many a minute, from when it is written.
    #[schema(value_type = Option<u32>)]
    events_per_minute: Option<Number<EventsPerMinute>>,
    /// How many of its events may wait since they are over `events_per_minute`: those that find no room are skipped, and their runs
    /// say `over_quota`; without it they wait for up to a day. Each of its policies must have `max_waiting_runs` of at most that, from
    /// when it is written.
    #[schema(value_type = Option<u32>)]
    waiting: Option<Number<MostWaiting>>,
    /// How many turns its messages have where many clients have messages waiting and others have one; 1 when left out. It holds for
    /// what ticks find due, from the next one on.
    #[schema(value_type = Option<u32>)]
    delivery_share: Option<Number<DeliveryShare>>,
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
    tokens,
    events_per_minute,
    waiting,
    delivery_share
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
        let events_per_minute = check_given(self.events_per_minute, errors);
        let waiting = check_given(self.waiting, errors);
        let delivery_share = check_given(self.delivery_share, errors);
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
            events_per_minute: events_per_minute?,
            waiting: waiting?,
            delivery_share: delivery_share?,
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
        events_per_minute: quotas.events_per_minute.map(EventsPerMinute::get),
        waiting: quotas.waiting.map(MostWaiting::get),
        delivery_share: quotas.delivery_share.map(DeliveryShare::get),
    }
}

/// What is used of the quotas of a client, and what was emitted for it by day, as they are answered.
pub(crate) fn usage_view(client: &ClientId, usage: &[Usage], days: &[(NaiveDate, Tally)]) -> ClientUsage {
    let quotas = usage.iter().map(|usage| QuotaUsage {
        quota: name(usage.quota),
        most: usage.most,
        used: usage.used,
        counted_at: usage.counted_at.map(instant),
    });
    let days = days.iter().map(|(day, tally)| UsageDay {
        day: day.to_string(),
        launches: tally.launches,
        skipped: tally.skipped,
        events: tally.events(),
        throttled_events: tally.throttled,
        // To the millionth: no estimate is better.
        estimated_dollars: (tally.dollars() * 1e6).round() / 1e6,
    });
    ClientUsage { client_id: client.to_string(), quotas: quotas.collect(), days: days.collect() }
}

fn name(quota: UsedQuota) -> QuotaName {
    let quota = match quota {
        UsedQuota::EventsPerMinute => return QuotaName::EventsPerMinute,
        UsedQuota::Waiting => return QuotaName::Waiting,
        UsedQuota::Writes(quota) => quota,
    };
    match quota {
        Quota::CreatesPerMinute => QuotaName::CreatesPerMinute,
        Quota::OneTimeJobs => QuotaName::OneTimeJobs,
        Quota::Of(Counted::Jobs) => QuotaName::Jobs,
        Quota::Of(Counted::Policies) => QuotaName::Policies,
        Quota::Of(Counted::Calendars) => QuotaName::Calendars,
        Quota::Of(Counted::Zones) => QuotaName::Zones,
    }
}
