//! What is taken of quotas: what a write asks for, what a client's row says, and what of it fits.
//!
//! Nothing is counted down when something is removed. What lies in tables is counted anew when it seems to be full; what waits for
//! an instant is given back by time.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::Quotas;
use crate::limits::{COUNT_AGAIN_SECONDS, COUNT_KEPT_SECONDS, COUNT_SETTLED_SECONDS, MINUTE_SECONDS};

/// What lies in tables and is counted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Jobs, but for one-time jobs with a generated id.
    Jobs,
    /// Policies.
    Policies,
    /// Calendars.
    Calendars,
    /// Zones of the cron triggers of jobs, each once.
    Zones,
}

impl Counted {
    /// All there is.
    pub const ALL: [Self; 4] = [Self::Jobs, Self::Policies, Self::Calendars, Self::Zones];

    /// Its name: that of its quota, and the beginning of the names of its attributes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Policies => "policies",
            Self::Calendars => "calendars",
            Self::Zones => "zones",
        }
    }
}

/// A quota of which writes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quota {
    /// Jobs that are written in a minute.
    CreatesPerMinute,
    /// One-time jobs that wait.
    OneTimeJobs,
    /// What is counted.
    Of(Counted),
}

impl Quota {
    /// All there is.
    pub const ALL: [Self; 6] = [
        Self::CreatesPerMinute,
        Self::Of(Counted::Jobs),
        Self::OneTimeJobs,
        Self::Of(Counted::Policies),
        Self::Of(Counted::Calendars),
        Self::Of(Counted::Zones),
    ];

    /// What is counted for it, if it is.
    pub fn counted(self) -> Option<Counted> {
        match self {
            Self::Of(of) => Some(of),
            Self::CreatesPerMinute | Self::OneTimeJobs => None,
        }
    }
}

/// What one write takes of the quotas of its client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// It is a job that is posted or put.
    pub is_create: bool,
    /// It adds one of these, which was not there.
    pub adds: Option<Counted>,
    /// It is a one-time job that waits until then.
    pub waits_until: Option<DateTime<Utc>>,
    /// The zone of its trigger.
    pub zone: Option<Tz>,
}

impl Ask {
    /// What of it some quotas bound, in the order in which they are looked at.
    fn bounded_by(&self, quotas: &Quotas) -> impl Iterator<Item = Quota> {
        let all = [
            self.is_create.then_some(Quota::CreatesPerMinute),
            self.adds.map(Quota::Of),
            self.waits_until.and(Some(Quota::OneTimeJobs)),
            self.zone.and(Some(Quota::Of(Counted::Zones))),
        ];
        let quotas = *quotas;
        all.into_iter().flatten().filter(move |quota| quotas.most(*quota).is_some())
    }

    /// Whether it takes of any of these quotas.
    pub fn is_bounded_by(&self, quotas: &Quotas) -> bool {
        self.bounded_by(quotas).next().is_some()
    }
}

/// How many there are of something that is counted.
///
/// Invariant: `at_most` is never below what is stored and what was taken and is still being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// At most so many there are.
    pub at_most: u64,
    /// Taken in the minute of the row.
    pub now: u64,
    /// Taken in the minute before.
    pub before: u64,
    /// Taken since the minute before the one in which the last count was claimed.
    pub since: u64,
    /// When the count began that `at_most` goes by, in milliseconds since the epoch; `None`: there was none.
    pub counted_ms: Option<i64>,
    /// Nobody counts anew before, in milliseconds since the epoch. It also names who counts.
    pub next_ms: i64,
}

/// What a client has taken of its quotas, as its row says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// The minute since the epoch that it counts in; `None`: there is no row yet.
    pub minute: Option<i64>,
    /// Jobs that were written in it.
    pub creates: u32,
    /// What is counted.
    pub counts: BTreeMap<Counted, Count>,
    /// One-time jobs that wait, with those in `launches` that do not any more.
    pub waiting: u64,
    /// How many of them are given back at the beginning of each minute since the epoch.
    pub launches: BTreeMap<i64, u64>,
    /// Zones, with the minute since the epoch in which each was last taken.
    pub zones: BTreeMap<String, i64>,
}

/// Why a write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverQuota {
    /// What it would have too much of.
    pub quota: Quota,
    /// How much there may be.
    pub most: u32,
    /// How much there is at the most; `None`: somebody is counting that for the first time.
    pub used: Option<u64>,
    /// When there may be less, in seconds from now.
    pub again_in: u32,
}

impl Taken {
    /// The minute in which something is taken at an instant: that of the row where the clock that began it is ahead.
    pub fn minute_at(&self, now: DateTime<Utc>) -> i64 {
        minute_of(now).max(self.minute.unwrap_or(i64::MIN))
    }

    /// What is given back by a minute: the minutes from which it no longer waits, with how many each.
    pub fn passed_by(&self, minute: i64) -> impl Iterator<Item = (i64, u64)> {
        self.launches.range(..=minute).map(|(of, number)| (*of, *number))
    }

    /// Whether what is said of something is good: it was counted since it must be.
    pub fn is_counted(&self, of: Counted, quotas: &Quotas) -> bool {
        let counted_ms = self.counts.get(&of).and_then(|count| count.counted_ms);
        counted_ms.is_some_and(|counted| counted >= must_be_counted_since(quotas))
    }

    /// Whether something is to be counted anew though what is said of it may be taken of: since calls knew nothing of its quota when it
    /// was counted, or after a day, whatever happened meanwhile.
    pub fn is_due(&self, of: Counted, quotas: &Quotas, now_ms: i64) -> bool {
        let settled_ms =
            must_be_counted_since(quotas).saturating_add(COUNT_SETTLED_SECONDS.saturating_mul(1_000));
        let kept_ms = now_ms.saturating_sub(COUNT_KEPT_SECONDS.saturating_mul(1_000));
        let counted_ms = self.counts.get(&of).and_then(|count| count.counted_ms).unwrap_or(i64::MIN);
        counted_ms < kept_ms || (counted_ms < settled_ms && settled_ms <= now_ms)
    }

    /// When something was last counted, or rather when that began.
    pub fn counted_at(&self, of: Counted) -> Option<DateTime<Utc>> {
        self.counts.get(&of)?.counted_ms.and_then(DateTime::from_timestamp_millis)
    }

    /// How much of a quota is used at the most; `None` where that is not known.
    pub fn used(&self, quota: Quota, quotas: &Quotas, now: DateTime<Utc>) -> Option<u64> {
        let minute = minute_of(now);
        match quota {
            Quota::CreatesPerMinute if self.minute < Some(minute) => Some(0),
            Quota::CreatesPerMinute => Some(self.creates.into()),
            Quota::OneTimeJobs => {
                let passed: u64 = self.passed_by(minute).map(|(_, number)| number).sum();
                Some(self.waiting.saturating_sub(passed))
            }
            Quota::Of(of) => {
                self.counts.get(&of).filter(|_| self.is_counted(of, quotas)).map(|count| count.at_most)
            }
        }
    }

    /// Why a quota refuses.
    pub fn refusal(&self, quota: Quota, quotas: &Quotas, now: DateTime<Utc>) -> OverQuota {
        let most = quotas.most(quota).unwrap_or_default();
        let minute_begins =
            |minute: i64| minute.saturating_mul(MINUTE_SECONDS).saturating_sub(now.timestamp());
        let again_in = match quota {
            Quota::CreatesPerMinute => minute_begins(minute_of(now).saturating_add(1)),
            Quota::OneTimeJobs => {
                let next = self.launches.keys().find(|minute| **minute > minute_of(now));
                minute_begins(next.copied().unwrap_or_else(|| minute_of(now).saturating_add(1)))
            }
            Quota::Of(of) => {
                let next_ms = self.counts.get(&of).map_or(0, |count| count.next_ms);
                // Rounded up: a call that comes then may count.
                let left_ms = next_ms.saturating_sub(now.timestamp_millis()).saturating_add(999);
                left_ms.div_euclid(1_000).min(COUNT_AGAIN_SECONDS)
            }
        };
        let again_in = u32::try_from(again_in.max(1)).unwrap_or(u32::MAX);
        OverQuota { quota, most, used: self.used(quota, quotas, now), again_in }
    }
}

/// The minute since the epoch that an instant is in.
fn minute_of(instant: DateTime<Utc>) -> i64 {
    instant.timestamp().div_euclid(MINUTE_SECONDS)
}

/// A count that began before does not count, in milliseconds since the epoch.
pub(crate) fn must_be_counted_since(quotas: &Quotas) -> i64 {
    quotas.counted_since.map_or(i64::MIN, |since| since.timestamp_millis())
}

/// At the beginning of which minute since the epoch a one-time job is given back that is taken in `minute`: after its launch, by a
/// quarter of what it waits at the most. So a row has few of such minutes, whatever lies ahead.
pub fn given_back_in(launch_at: DateTime<Utc>, minute: i64) -> i64 {
    let over = minute_of(launch_at).max(minute).saturating_add(1);
    let waits = over.saturating_sub(minute).unsigned_abs();
    // The greatest power of two that is no more than a quarter.
    let width = (waits / 4).max(1).checked_ilog2().map_or(1, |bits| 1_i64.checked_shl(bits).unwrap_or(1));
    let parts = over.div_euclid(width).saturating_add(i64::from(over.rem_euclid(width) > 0));
    parts.saturating_mul(width)
}

/// What some writes take together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Portion {
    /// Jobs that are written.
    pub creates: u32,
    /// What is added.
    pub added: BTreeMap<Counted, u32>,
    /// One-time jobs, by the minutes in which they are given back.
    pub launches: BTreeMap<i64, u32>,
    /// Zones of triggers.
    pub zones: BTreeSet<String>,
}

impl Portion {
    /// What some writes take of the quotas that there are, in a minute.
    pub fn of<'a>(asks: impl IntoIterator<Item = &'a Ask>, quotas: &Quotas, minute: i64) -> Self {
        let mut portion = Self::default();
        let one_more = |number: &mut u32| *number = number.saturating_add(1);
        for ask in asks {
            for quota in ask.bounded_by(quotas) {
                match (quota, ask.waits_until, ask.zone) {
                    (Quota::CreatesPerMinute, ..) => one_more(&mut portion.creates),
                    (Quota::Of(Counted::Zones), _, Some(zone)) => {
                        portion.zones.insert(zone.name().to_owned());
                    }
                    (Quota::Of(of), ..) => one_more(portion.added.entry(of).or_default()),
                    (Quota::OneTimeJobs, Some(at), _) => {
                        one_more(portion.launches.entry(given_back_in(at, minute)).or_default());
                    }
                    (Quota::OneTimeJobs, None, _) => {}
                }
            }
        }
        portion
    }
}

/// What of the writes fits, the first of them: for each the quota that refuses it, or `None`. Where nothing is known of what was taken
/// yet, as much fits as there may be.
pub fn fit(asks: &[&Ask], quotas: &Quotas, taken: Option<&Taken>, now: DateTime<Utc>) -> Vec<Option<Quota>> {
    let room = |quota: Quota| {
        let used = match taken {
            None => Some(0),
            Some(taken) => taken.used(quota, quotas, now),
        };
        // What is not counted yet has no room.
        let most = u64::from(quotas.most(quota).unwrap_or(u32::MAX));
        most.saturating_sub(used.unwrap_or(u64::MAX))
    };
    let mut left: BTreeMap<Quota, u64> = Quota::ALL.into_iter().map(|quota| (quota, room(quota))).collect();
    let mut new_zones = BTreeSet::new();
    let is_known = |zone: Tz| taken.is_none_or(|taken| taken.zones.contains_key(zone.name()));
    let zones_are_counted = taken.is_none_or(|taken| taken.is_counted(Counted::Zones, quotas));
    let mut answers = Vec::with_capacity(asks.len());
    for ask in asks {
        let new_zone = ask.zone.filter(|zone| !is_known(*zone) && !new_zones.contains(zone.name()));
        let needs_none =
            |quota: &Quota| *quota == Quota::Of(Counted::Zones) && zones_are_counted && new_zone.is_none();
        let needs: Vec<Quota> = ask.bounded_by(quotas).filter(|quota| !needs_none(quota)).collect();
        let refused = needs.iter().copied().find(|quota| left.get(quota).is_none_or(|left| *left == 0));
        if refused.is_none() {
            for quota in needs {
                left.entry(quota).and_modify(|left| *left = left.saturating_sub(1));
            }
            new_zones.extend(new_zone.map(Tz::name));
        }
        answers.push(refused);
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::{CreatesPerMinute, MostJobs, MostOneTimeJobs, MostZones};

    const NOW: i64 = 1_795_262_640;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(NOW + second, 0).unwrap()
    }

    fn counted(at_most: u64) -> Count {
        Count { at_most, counted_ms: Some(at(0).timestamp_millis()), ..Count::default() }
    }

    fn job(zone: Tz) -> Ask {
        Ask { is_create: true, adds: Some(Counted::Jobs), waits_until: None, zone: Some(zone) }
    }

    #[test]
    fn a_one_time_job_is_given_back_after_its_launch_by_a_quarter_of_its_wait_at_the_most() {
        let minute = NOW / 60;
        let mut ends = BTreeSet::new();
        for ahead in (-3..600).chain((600..6_000_000).step_by(997)) {
            let launch_at = at(60 * ahead + 59);
            let back = given_back_in(launch_at, minute);
            assert!(back > minute && back * 60 > launch_at.timestamp());
            let waits = (ahead + 1).max(1);
            assert!(back - minute <= waits + waits / 4, "{ahead}: {}", back - minute);
            ends.insert(back);
        }
        // Eleven years of them.
        assert!(ends.len() < 180, "{}", ends.len());
        given_back_in(DateTime::<Utc>::MAX_UTC, i64::MIN);
        given_back_in(DateTime::<Utc>::MIN_UTC, i64::MAX);
    }

    #[test]
    fn the_first_that_fit_are_granted_and_each_other_says_which_quota_refuses_it() {
        let quotas = Quotas {
            creates_per_minute: CreatesPerMinute::new(4).ok(),
            jobs: MostJobs::new(7).ok(),
            one_time_jobs: MostOneTimeJobs::new(2).ok(),
            zones: MostZones::new(2).ok(),
            counted_since: Some(at(0)),
            ..Quotas::default()
        };
        let taken = Taken {
            minute: Some(NOW / 60),
            creates: 1,
            counts: BTreeMap::from([(Counted::Jobs, counted(5)), (Counted::Zones, counted(1))]),
            waiting: 2,
            launches: BTreeMap::from([(NOW / 60, 1), (NOW / 60 + 9, 1)]),
            zones: BTreeMap::from([("UTC".to_owned(), 0)]),
        };
        let once = Ask { is_create: true, waits_until: Some(at(300)), ..Ask::default() };
        let (berlin, paris) = (Tz::Europe__Berlin, Tz::Europe__Paris);
        let asks = [job(berlin), job(paris), once.clone(), once, job(berlin), job(Tz::UTC)];
        let asks: Vec<&Ask> = asks.iter().collect();
        let refused = fit(&asks, &quotas, Some(&taken), at(0));
        let zones = Some(Quota::Of(Counted::Zones));
        let (once, creates) = (Some(Quota::OneTimeJobs), Some(Quota::CreatesPerMinute));
        assert_eq!(refused, [None, zones, None, once, None, creates]);
        assert_eq!(taken.refusal(Quota::OneTimeJobs, &quotas, at(0)).again_in, 540);
        // Of what is not counted there is no room; where nothing is known, there is what there may be.
        let never = Taken { counts: BTreeMap::new(), ..taken.clone() };
        assert_eq!(fit(&asks[..1], &quotas, Some(&never), at(0)), [Some(Quota::Of(Counted::Jobs))]);
        let later = Quotas { counted_since: Some(at(1)), ..quotas };
        assert_eq!(fit(&asks[..1], &later, Some(&taken), at(0)), [Some(Quota::Of(Counted::Jobs))]);
        let unknown = fit(&asks, &quotas, None, at(0));
        assert_eq!(unknown, [None, None, None, None, creates, creates]);
        // Without a quota nothing is asked for.
        assert_eq!(fit(&asks, &Quotas::default(), Some(&never), at(0)), [None; 6]);
        assert_eq!(Portion::of(asks.iter().copied(), &Quotas::default(), 0), Portion::default());
        let portion = Portion::of(asks[..2].iter().copied(), &quotas, NOW / 60);
        assert_eq!((portion.creates, portion.added[&Counted::Jobs], portion.zones.len()), (2, 2, 2));
    }
}
