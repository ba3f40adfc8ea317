//! Instants as text, at the price of a few bytes each: what does not change from one to the next is kept.

use chrono::{DateTime, Offset as _};
use chrono_tz::Tz;
use tidegate_domain::time::WallClock;

const DAY_SECONDS: i64 = 86_400;
/// A stretch in which the clocks change once at the most: when they show the same at both its ends, they do within.
const SLOT_SECONDS: i64 = 3_600;

/// The text of a date and time of day: `2026-03-29T01:00:00`.
#[derive(Debug, Clone)]
struct DateTimeText {
    day: i64,
    text: [u8; 19],
}

impl DateTimeText {
    fn new() -> Self {
        Self { day: i64::MIN, text: *b"0000-00-00T00:00:00" }
    }

    /// The text of a second since the epoch, by a clock that has no zone.
    fn of(&mut self, second: i64) -> &[u8; 19] {
        let day = second.div_euclid(DAY_SECONDS);
        if day != self.day {
            self.day = day;
            let date = DateTime::from_timestamp(day * DAY_SECONDS, 0).unwrap_or_default().date_naive();
            // The window lies in years of four digits.
            if let Some((to, from)) =
                self.text.first_chunk_mut::<10>().zip(date.to_string().as_bytes().first_chunk())
            {
                *to = *from;
            }
        }
        let second = second.rem_euclid(DAY_SECONDS);
        for (place, number) in [(11, second / 3_600), (14, second / 60 % 60), (17, second % 60)] {
            [self.text[place], self.text[place + 1]] = two_digits(number);
        }
        &self.text
    }
}

fn two_digits(number: i64) -> [u8; 2] {
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// Instants in UTC, as `2026-03-29T01:00:00Z`.
pub(super) struct UtcText {
    second: i64,
    plain: DateTimeText,
    text: [u8; 20],
}

impl UtcText {
    pub(super) fn new() -> Self {
        Self { second: i64::MIN, plain: DateTimeText::new(), text: [b'Z'; 20] }
    }

    pub(super) fn of(&mut self, second: i64) -> &[u8; 20] {
        if second != self.second {
            self.second = second;
            self.text[..19].copy_from_slice(self.plain.of(second));
        }
        &self.text
    }
}

/// Instants by the wall clock of a zone, as `2026-03-29T03:00:00+02:00`.
pub(super) struct LocalText {
    zone: Tz,
    /// The slot that the offset was asked for last, and the offset if it is the same at both its ends.
    slot: (i64, Option<i64>),
    offset_s: i64,
    second: i64,
    plain: DateTimeText,
    text: [u8; 25],
}

impl LocalText {
    pub(super) fn new(zone: Tz) -> Self {
        let (slot, plain) = ((i64::MIN, None), DateTimeText::new());
        Self { zone, slot, offset_s: i64::MIN, second: i64::MIN, plain, text: [b':'; 25] }
    }

    pub(super) fn of(&mut self, second: i64) -> &[u8; 25] {
        if second != self.second {
            self.second = second;
            let offset_s = self.offset_at(second);
            self.text[..19].copy_from_slice(self.plain.of(second + offset_s));
            if offset_s != self.offset_s {
                self.offset_s = offset_s;
                self.text[19] = if offset_s < 0 { b'-' } else { b'+' };
                [self.text[20], self.text[21]] = two_digits(offset_s.abs() / 3_600);
                [self.text[23], self.text[24]] = two_digits(offset_s.abs() / 60 % 60);
            }
        }
        &self.text
    }

    /// By how much the clocks are ahead of UTC, in seconds.
    fn offset_at(&mut self, second: i64) -> i64 {
        let slot = second.div_euclid(SLOT_SECONDS);
        if slot != self.slot.0 {
            let first = offset(self.zone, slot * SLOT_SECONDS);
            let last = offset(self.zone, (slot + 1) * SLOT_SECONDS - 1);
            self.slot = (slot, (first == last).then_some(first));
        }
        self.slot.1.unwrap_or_else(|| offset(self.zone, second))
    }
}

fn offset(zone: Tz, second: i64) -> i64 {
    let at = DateTime::from_timestamp(second, 0).unwrap_or_default().with_timezone(&WallClock::of(zone));
    at.offset().fix().local_minus_utc().into()
}

#[cfg(test)]
mod tests {
    use chrono::SecondsFormat;

    use super::*;

    #[test]
    fn every_text_is_that_of_chrono() {
        let zones = [
            Tz::UTC,
            Tz::Europe__Berlin,
            Tz::America__St_Johns,
            Tz::Australia__Lord_Howe,
            Tz::Asia__Kathmandu,
        ];
        for zone in zones {
            let (mut utc, mut local) = (UtcText::new(), LocalText::new(zone));
            let first: DateTime<WallClock> = zone_time(zone, 1_767_225_600);
            for step in 0..30_000 {
                // Every 17 minutes and a bit for a year, each instant twice.
                let at = first + chrono::TimeDelta::seconds(step / 2 * 2_071);
                let second = at.timestamp();
                assert_eq!(text(local.of(second)), at.to_rfc3339_opts(SecondsFormat::Secs, false));
                assert_eq!(text(utc.of(second)), at.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true));
            }
        }
    }

    #[test]
    fn clocks_that_change_within_the_hour_are_followed() {
        // Lord Howe goes back half an hour at 15:00Z; Monrovia changed at an odd second in 1972.
        for (zone, near) in [(Tz::Australia__Lord_Howe, 1_775_314_800), (Tz::Africa__Monrovia, 63_593_070)] {
            let mut local = LocalText::new(zone);
            for second in near - 40..near + 40 {
                let at = zone_time(zone, second);
                let want = at.format("%Y-%m-%dT%H:%M:%S").to_string();
                assert_eq!(&text(local.of(second))[..19], want);
            }
        }
    }

    fn zone_time(zone: Tz, second: i64) -> DateTime<WallClock> {
        DateTime::from_timestamp(second, 0).unwrap().with_timezone(&WallClock::of(zone))
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }
}
