//! When jobs fire, after `docs/schedules.md`: croner for cron expressions, plain arithmetic for everything else.
//!
//! It shares no code with what it judges, only plain data: the expression's text, the rate's numbers, the instants. It knows
//! no changes of the clocks, which histories do not reach; `domain` holds those against reference data.

use chrono::{DateTime, Duration, Offset as _, TimeZone as _, Utc};
use chrono_tz::Tz;
use croner::Cron;
use tidegate_domain::ids::{ClientId, JobId};
use tidegate_domain::job::Trigger;
use tidegate_domain::rules::Rules;

/// Every instant in `[from, to)` that a trigger names. `cron` is its expression as the client wrote it.
pub(crate) fn firings(
    trigger: &Trigger,
    cron: Option<&Cron>,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let first_s = from.timestamp() + i64::from(from.timestamp_subsec_nanos() > 0);
    let seconds = (first_s..).map_while(|second| DateTime::from_timestamp(second, 0));
    let seconds = seconds.take_while(|at| *at < to);
    match (trigger, cron) {
        (Trigger::Cron { zone, .. }, Some(cron)) => {
            let fixed_offset = offset_seconds(*zone, from) == offset_seconds(*zone, to);
            assert!(fixed_offset, "the clocks of {zone} change between {from} and {to}");
            seconds.filter(|at| cron.is_time_matching(&at.with_timezone(zone)).unwrap_or(false)).collect()
        }
        (Trigger::Cron { .. }, None) => Vec::new(),
        (Trigger::Rate { rate, .. }, _) => {
            let (every_s, anchor_s) = (i64::from(rate.every_seconds()), rate.anchor().timestamp());
            let is_beat =
                |at: &DateTime<Utc>| at.timestamp() >= anchor_s && (at.timestamp() - anchor_s) % every_s == 0;
            seconds.filter(is_beat).collect()
        }
        (Trigger::At(instants), _) => instants.iter().filter(|at| (from..to).contains(at)).collect(),
    }
}

fn offset_seconds(zone: Tz, at: DateTime<Utc>) -> i32 {
    zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
}

/// Whether a job's `start_at` and `end_at` let a firing be.
pub(crate) fn is_within(rules: &Rules, firing: DateTime<Utc>) -> bool {
    rules.start_at.is_none_or(|start_at| firing >= start_at)
        && rules.end_at.is_none_or(|end_at| firing < end_at)
}

/// By how much a job's launches come after their firings: one of the seconds of its window, both ends included, chosen by
/// FNV-1a over `jitter|<client>|<job>`, mixed by MurmurHash3's finaliser.
pub(crate) fn jitter(client: &ClientId, job: &JobId, width_seconds: u32) -> Duration {
    let mut hash: u64 = 14_695_981_039_346_656_037;
    for byte in format!("jitter|{client}|{job}").into_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(18_397_679_294_719_823_053);
    hash = (hash ^ (hash >> 33)).wrapping_mul(14_181_476_777_654_086_739);
    hash ^= hash >> 33;
    Duration::seconds((hash % (u64::from(width_seconds) + 1)).cast_signed())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use tidegate_domain::time::{CronSpec, Rate, parse_zone};

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_795_262_400 + second, 0).unwrap()
    }

    fn found(trigger: &Trigger, cron: Option<&Cron>, from: i64, to: i64) -> Vec<i64> {
        let firings = firings(trigger, cron, at(from), at(to) + Duration::milliseconds(1));
        firings.into_iter().map(|firing| (firing - at(0)).num_seconds()).collect()
    }

    #[test]
    fn a_cron_expression_fires_by_the_clock_of_its_zone() {
        // Noon UTC is a quarter to six in Kathmandu.
        let zone = parse_zone("Asia/Kathmandu").unwrap();
        let trigger = Trigger::Cron { spec: CronSpec::parse("*/30 17 * * *").unwrap(), zone };
        let cron = Cron::from_str("*/30 17 * * *").unwrap();
        assert_eq!(found(&trigger, Some(&cron), -3_600, 3_600), [-2_700, -900]);
    }

    #[test]
    fn a_rate_fires_from_its_anchor_on() {
        let trigger = Trigger::Rate { rate: Rate::new(50, at(30)).unwrap(), anchored: true };
        assert_eq!(found(&trigger, None, 0, 130), [30, 80, 130]);
        assert!(found(&trigger, None, 81, 129).is_empty());
    }

    #[test]
    fn the_offset_of_a_job_is_that_of_the_formula() {
        let offset = |client: &str, job: &str, width_seconds| {
            jitter(&client.parse().unwrap(), &job.parse().unwrap(), width_seconds).num_seconds()
        };
        let offsets =
            (offset("acme", "job1", 120), offset("zeta", "nightly", 3_600), offset("acme", "job1", 0));
        assert_eq!(offsets, (98, 966, 0));
    }
}
