//! A compiled expression as a short ASCII text: what a child row stores.
//!
//! The first character is the version. Version 1 is flags, minutes, hours, months, days, weekdays, last weekdays, nth
//! weekdays and nearest days, each in base 36, with `*` for a full mask and nothing for an empty one, joined by `.`
//! and cut behind the last that is not empty: `0 3 * * *` is `1c.1.8.*.*.*`. At most 54 characters. It stands for second
//! 0 in any year, and one flag says both what becomes of gaps and of overlaps.
//!
//! Version 2 is for what version 1 can not say: a flag for each of these two, seconds behind the flags, and the four
//! words of the years (full ones: any year) at the end.

use thiserror::Error;

use super::compiled::{CompiledCron, Flags};
use super::years::Years;

const VERSION_1: char = '1';
const VERSION_2: char = '2';
const FIELDS_1: usize = FULL_1.len();
const FIELDS_2: usize = FULL_2.len();
const SIXTY: u64 = (1 << 60) - 1;
/// The full mask of each field.
const FULL_1: [u64; 9] =
    [0x3f, SIXTY, (1 << 24) - 1, 0x1ffe, 0xffff_fffe, 0x7f, 0x7f, (1 << 35) - 1, 0xffff_fffe];
const FULL_2: [u64; 14] = [
    0x7f,
    SIXTY,
    SIXTY,
    (1 << 24) - 1,
    0x1ffe,
    0xffff_fffe,
    0x7f,
    0x7f,
    (1 << 35) - 1,
    0xffff_fffe,
    u64::MAX,
    u64::MAX,
    u64::MAX,
    u64::MAX,
];
const SECOND_0: u64 = 1;

/// A text that is no stored expression of a version that this program knows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not a stored cron expression")]
pub struct DecodeError {
    text: String,
}

impl CompiledCron {
    /// Its stored text: a letter for the version, then the masks in base 36 with dots between them and `*` for a full
    /// one. Rows have it, so each version reads those of earlier ones.
    pub fn encode(&self) -> String {
        let fields = [
            self.minutes,
            u64::from(self.hours),
            u64::from(self.months),
            u64::from(self.days),
            u64::from(self.weekdays),
            u64::from(self.last_weekdays),
            self.nth_weekdays,
            u64::from(self.nearest),
        ];
        let flags = self.flags;
        if self.seconds == SECOND_0 && self.years.is_any() && flags.skips_gaps == flags.repeats {
            return write(VERSION_1, [flags.to_bits() & 0x3f].into_iter().chain(fields).zip(FULL_1));
        }
        let values = [flags.to_bits(), self.seconds].into_iter().chain(fields).chain(self.years.words());
        write(VERSION_2, values.zip(FULL_2))
    }

    /// Reads a stored text.
    ///
    /// # Errors
    /// [`DecodeError`] when it is not one that [`Self::encode`] writes, in this version or an earlier one.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        decode(text).ok_or_else(|| DecodeError { text: text.to_owned() })
    }
}

/// Writes values beside their full masks; the first are the flags.
fn write(version: char, values: impl Iterator<Item = (u64, u64)>) -> String {
    let mut text = String::from(version);
    for (index, (value, full)) in values.enumerate() {
        if index > 0 {
            text.push('.');
        }
        match value {
            0 => {}
            value if value == full && index > 0 => text.push('*'),
            value => push_base36(&mut text, value),
        }
    }
    text.trim_end_matches('.').to_owned()
}

fn decode(text: &str) -> Option<CompiledCron> {
    let mut letters = text.chars();
    match letters.next()? {
        VERSION_1 => {
            let [flags, fields @ ..] = read::<FIELDS_1>(letters.as_str(), FULL_1)?;
            // One flag of version 1 says both.
            let flags = flags | (flags >> 5 & 1) << 6;
            compiled(flags, SECOND_0, fields, Years::ANY)
        }
        VERSION_2 => {
            let values = read::<FIELDS_2>(letters.as_str(), FULL_2)?;
            let [flags, seconds, fields @ .., y0, y1, y2, y3] = values;
            compiled(flags, seconds, fields, Years::from_words([y0, y1, y2, y3])?)
        }
        _ => None,
    }
}

/// Reads values, each within its full mask; those that are cut off are 0.
fn read<const N: usize>(text: &str, full: [u64; N]) -> Option<[u64; N]> {
    let mut values = [0u64; N];
    let mut places = values.iter_mut().zip(full);
    for field in text.split('.') {
        let (place, full) = places.next()?;
        let value = match field {
            "" => 0,
            "*" => full,
            digits if digits.starts_with('+') => return None,
            digits => u64::from_str_radix(digits, 36).ok()?,
        };
        if value & !full != 0 {
            return None;
        }
        *place = value;
    }
    Some(values)
}

fn compiled(flags: u64, seconds: u64, fields: [u64; 8], years: Years) -> Option<CompiledCron> {
    let [minutes, hours, months, days, weekdays, last_weekdays, nth_weekdays, nearest] = fields;
    let fires = seconds != 0 && minutes != 0 && hours != 0 && months != 0;
    fires.then(|| CompiledCron {
        seconds,
        minutes,
        hours: hours as u32,
        months: months as u16,
        days: days as u32,
        nearest: nearest as u32,
        weekdays: weekdays as u8,
        last_weekdays: last_weekdays as u8,
        nth_weekdays,
        years,
        flags: Flags::from_bits(flags),
    })
}

fn push_base36(text: &mut String, value: u64) {
    if value >= 36 {
        push_base36(text, value / 36);
    }
    let digit = (value % 36) as u8;
    text.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
}

impl Flags {
    fn to_bits(self) -> u64 {
        let flags = [
            self.last_day,
            self.last_workday,
            self.any_day,
            self.any_weekday,
            self.both_days,
            self.skips_gaps,
            self.repeats,
        ];
        flags.into_iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(flag))
    }

    fn from_bits(bits: u64) -> Self {
        let flag = |bit: u32| bits >> bit & 1 == 1;
        Self {
            last_day: flag(0),
            last_workday: flag(1),
            any_day: flag(2),
            any_weekday: flag(3),
            both_days: flag(4),
            skips_gaps: flag(5),
            repeats: flag(6),
        }
    }
}
