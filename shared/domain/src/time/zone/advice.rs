//! What to write in the place of a name that is no zone.
//!
//! A name is suggested only when it is what the text was meant to be: a slip of the pen, another case, a city without
//! its area. A guess that is hours away would be taken without a thought, so in doubt no name is suggested.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use crate::spelling::edits;

/// Abbreviations, and the zones whose clocks they name. `EST`, `MST`, `CET` and a few more are zones of the database too.
const ABBREVIATIONS: [(&[&str], &str); 36] = [
    (&["PST", "PDT", "PT"], "'America/Los_Angeles'"),
    (&["MST", "MDT", "MT"], "'America/Denver', or 'America/Phoenix' where the clocks do not change"),
    (&["CST"], "'America/Chicago', 'Asia/Shanghai' or 'America/Havana'"),
    (&["CDT", "CT"], "'America/Chicago'"),
    (&["EST", "EDT", "ET"], "'America/New_York'"),
    (&["AKST", "AKDT"], "'America/Anchorage'"),
    (&["HST", "HDT"], "'Pacific/Honolulu'"),
    (&["AST"], "'America/Halifax' or 'Asia/Riyadh'"),
    (&["ADT"], "'America/Halifax'"),
    (&["NST", "NDT"], "'America/St_Johns'"),
    (&["BRT"], "'America/Sao_Paulo'"),
    (&["ART"], "'America/Argentina/Buenos_Aires'"),
    (&["BST"], "'Europe/London' or 'Asia/Dhaka'"),
    (&["WEST"], "'Europe/Lisbon'"),
    (&["CEST"], "'Europe/Berlin' or another city of Central Europe"),
    (&["EEST"], "'Europe/Athens' or another city of Eastern Europe"),
    (&["MSK"], "'Europe/Moscow'"),
    (&["TRT"], "'Europe/Istanbul'"),
    (&["IST"], "'Asia/Kolkata', 'Europe/Dublin' or 'Asia/Jerusalem'"),
    (&["IDT"], "'Asia/Jerusalem'"),
    (&["GST"], "'Asia/Dubai'"),
    (&["PKT"], "'Asia/Karachi'"),
    (&["ICT"], "'Asia/Bangkok'"),
    (&["WIB"], "'Asia/Jakarta'"),
    (&["SGT"], "'Asia/Singapore'"),
    (&["HKT"], "'Asia/Hong_Kong'"),
    (&["JST"], "'Asia/Tokyo'"),
    (&["KST"], "'Asia/Seoul'"),
    (&["AWST"], "'Australia/Perth'"),
    (&["ACST", "ACDT"], "'Australia/Adelaide', or 'Australia/Darwin' where the clocks do not change"),
    (&["AEST", "AEDT"], "'Australia/Sydney', or 'Australia/Brisbane' where the clocks do not change"),
    (&["NZST", "NZDT"], "'Pacific/Auckland'"),
    (&["SAST"], "'Africa/Johannesburg'"),
    (&["EAT"], "'Africa/Nairobi'"),
    (&["WAT"], "'Africa/Lagos'"),
    (&["CAT"], "'Africa/Maputo'"),
];

/// Words that stand for the zone of some machine.
const OF_THE_MACHINE: [&str; 6] = ["local", "localtime", "system", "default", "server", "host"];

const NAME_ONE: &str = "name an IANA zone, such as 'Europe/Berlin', or 'UTC'";

/// What a text is that names no zone, and what to write: the end of a sentence that begins with it.
pub(super) fn advice(given: &str) -> String {
    let lower = given.to_ascii_lowercase();
    if matches!(&*lower, "z" | "ut" | "zulu time") {
        return "is not a name of the database: write 'UTC'".to_owned();
    }
    if OF_THE_MACHINE.contains(&&*lower) {
        return format!("is the zone of a machine, and jobs run on many: {NAME_ONE}");
    }
    if lower.ends_with("standard time") || lower.ends_with("daylight time") {
        return format!("is not an IANA zone: {NAME_ONE}");
    }
    let upper = given.to_ascii_uppercase();
    if let Some((_, zones)) = ABBREVIATIONS.iter().find(|(names, _)| names.contains(&&*upper)) {
        return format!("is an abbreviation, and those are ambiguous: name the zone itself, {zones}");
    }
    match nearest(given) {
        Some(name) => format!("is unknown: did you mean '{name}'?"),
        None => format!("is unknown: {NAME_ONE}"),
    }
}

/// The name in the database that is next to a text, when it is near and no zone with other clocks is as near.
fn nearest(given: &str) -> Option<&'static str> {
    let plain = |c| match c {
        '\\' => '/',
        ' ' => '_',
        c => c,
    };
    let wanted: String = given.chars().take(64).map(plain).collect();
    let most = match wanted.chars().count() {
        0..=5 => 0,
        6..=9 => 1,
        _ => 2,
    };
    // A city without its area is compared with the last part of each name; a whole name comes first.
    let distance = |name: &str| {
        let whole = (edits(&wanted, name), 0);
        let city = name.rsplit('/').next().filter(|_| !wanted.contains('/'));
        city.map_or(whole, |city| whole.min((edits(&wanted, city), 1)))
    };
    let near = TZ_VARIANTS.iter().map(|zone| (distance(zone.name()), *zone));
    let near: Vec<_> = near.filter(|((edits, _), _)| *edits <= most).collect();
    let (least, zone) = near.iter().min_by_key(|(distance, _)| *distance)?;
    let rivals = near.iter().filter(|(distance, _)| distance == least);
    let same_clocks = rivals.map(|(_, rival)| offsets(*rival)).all(|of_rival| of_rival == offsets(*zone));
    same_clocks.then(|| zone.name())
}

/// What a zone's clocks differ from UTC by, in winter and in summer, in seconds.
fn offsets(zone: Tz) -> [i32; 2] {
    // 15 January and 15 July 2026.
    [1_768_435_200, 1_784_073_600].map(|second| {
        let at = DateTime::from_timestamp(second, 0).unwrap_or_default();
        zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
    })
}
