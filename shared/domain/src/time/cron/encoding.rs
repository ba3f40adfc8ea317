//! A compiled expression as a short ASCII text: what a child row stores.
//!
//! The first character is the version. Version 1 is flags, minutes, hours, months, days, weekdays, last weekdays, nth
//! weekdays and nearest days, each in base 36, with `*` for a full mask and nothing for an empty one, joined by `.`
//! and cut behind the last that is not empty: `0 3 * * *` is `1c.1.8.*.*.*`. At most 54 characters.

use thiserror::Error;

use super::compiled::{CompiledCron, Flags};

const VERSION: char = '1';
const FIELDS: usize = 9;
/// The full mask of each field.
const FULL: [u64; FIELDS] =
    [0x3f, (1 << 60) - 1, (1 << 24) - 1, 0x1ffe, 0xffff_fffe, 0x7f, 0x7f, (1 << 35) - 1, 0xffff_fffe];

/// A text that is no stored expression of a version that this program knows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not a stored cron expression")]
pub struct DecodeError {
    text: String,
}

impl CompiledCron {
    /// Its stored text.
    pub fn encode(&self) -> String {
        let values = [
            self.flags.to_bits(),
            self.minutes,
            u64::from(self.hours),
            u64::from(self.months),
            u64::from(self.days),
            u64::from(self.weekdays),
            u64::from(self.last_weekdays),
            self.nth_weekdays,
            u64::from(self.nearest),
        ];
        let mut text = String::from(VERSION);
        for (index, (value, full)) in values.into_iter().zip(FULL).enumerate() {
            if index > 0 {
                text.push('.');
            }
            match value {
                0 => {}
                value if value == full && index > 0 => text.push('*'),
                value => push_base36(&mut text, value),
            }
        }
        text.truncate(text.trim_end_matches('.').len());
        text
    }

    /// Reads a stored text.
    ///
    /// # Errors
    /// When it is not one that [`Self::encode`] writes.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        decode(text).ok_or_else(|| DecodeError { text: text.to_owned() })
    }
}

fn decode(text: &str) -> Option<CompiledCron> {
    let mut values = [0u64; FIELDS];
    for (index, field) in text.strip_prefix(VERSION)?.split('.').enumerate() {
        let full = *FULL.get(index)?;
        let value = match field {
            "" => 0,
            "*" => full,
            digits if digits.starts_with('+') => return None,
            digits => u64::from_str_radix(digits, 36).ok()?,
        };
        if value & !full != 0 {
            return None;
        }
        values[index] = value;
    }
    let [flags, minutes, hours, months, days, weekdays, last_weekdays, nth_weekdays, nearest] = values;
    if minutes == 0 || hours == 0 || months == 0 {
        return None;
    }
    Some(CompiledCron {
        minutes,
        hours: hours as u32,
        months: months as u16,
        days: days as u32,
        nearest: nearest as u32,
        weekdays: weekdays as u8,
        last_weekdays: last_weekdays as u8,
        nth_weekdays,
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
        let flags =
            [self.last_day, self.last_workday, self.any_day, self.any_weekday, self.both_days, self.interval];
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
            interval: flag(5),
        }
    }
}
