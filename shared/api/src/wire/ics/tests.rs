use chrono::NaiveDate;
use chrono_tz::Tz;
use proptest::prelude::*;

use super::*;
use crate::problem::{Kind, Problem};

fn file(events: &[&str]) -> String {
    let events: String =
        events.iter().map(|event| format!("BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n")).collect();
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{events}END:VCALENDAR\r\n")
}

fn read_of(file: &str, zone: Option<&str>) -> Result<Exclusions, Vec<String>> {
    let mut errors = FieldErrors::default();
    let read = read(file.as_bytes(), zone, &mut errors);
    assert_eq!(read.is_some(), errors.is_empty());
    read.ok_or_else(|| errors.into_messages())
}

fn dates(read: &Exclusions) -> Vec<String> {
    read.dates.iter().map(ToString::to_string).collect()
}

/// Lines as Google (all-day, folded, CRLF), gov.uk (no `VALUE`, LF) and Apple (`DURATION`, alarms) write them.
#[test]
fn all_day_events_are_dates() {
    let google = "DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261227\r\nDTSTAMP:20261101T000000Z\r\n\
                  UID:20261225_1@google.com\r\nCLASS:PUBLIC\r\nDESCRIPTION:To hide observances\\, go to Goo\r\n gle \
                  Calendar Settings\r\nSTATUS:CONFIRMED\r\nSUMMARY:Weihnachten\r\nTRANSP:TRANSPARENT";
    let apple = "DTSTART;VALUE=DATE:20270101\r\nDURATION:P1D\r\nBEGIN:VALARM\r\nTRIGGER:-PT1H\r\nDURATION:PT5M\r\nEND:VALARM";
    let same_day = "dtstart;value=date:20270106\r\ndtend;value=date:20270106";
    let cancelled = "STATUS:CANCELLED\r\nDTSTART;VALUE=DATE:20270201\r\nRDATE:20270202";
    let text = file(&[google, apple, same_day, cancelled]);
    for text in [text.clone(), text.replace("\r\n", "\n"), format!("\u{feff}{text}\r\n\r\n")] {
        let read = read_of(&text, None).unwrap();
        assert_eq!(dates(&read), ["2026-12-25", "2026-12-26", "2027-01-01", "2027-01-06"], "{text}");
        assert_eq!((read.zone, read.yearly.len(), read.intervals.len()), (None, 0, 0));
    }
    let of_berlin = read_of(&text, Some("Europe/Berlin")).unwrap();
    assert_eq!(of_berlin.zone, Some(Tz::Europe__Berlin));
}

#[test]
fn what_comes_every_year_is_a_day_of_every_year() {
    let read = read_of(
        &file(&[
            "DTSTART;VALUE=DATE:20201225\r\nDTEND;VALUE=DATE:20201227\r\nRRULE:FREQ=YEARLY",
            "DTSTART;VALUE=DATE:20240229\r\nRRULE:FREQ=YEARLY;INTERVAL=1;BYMONTH=2;BYMONTHDAY=29;WKST=MO",
            "DTSTART;VALUE=DATE:20240301\r\nRRULE:FREQ=YEARLY;BYMONTH=3",
        ]),
        None,
    );
    assert_eq!(read.unwrap().yearly, [(2, 29), (3, 1), (12, 25), (12, 26)]);
}

#[test]
fn timed_events_are_intervals_of_their_zone() {
    let of = |event: &str, zone| {
        let read = read_of(&file(&[event]), zone).unwrap();
        let [window] = &read.intervals[..] else { panic!("{read:?}") };
        (window.from().to_string(), window.to().to_string())
    };
    let shown = |from: &str, to: &str| (format!("{from} UTC"), format!("{to} UTC"));
    let (from, to) = ("2026-12-24 12:00:00", "2026-12-24 22:00:00");
    for (event, zone) in [
        ("DTSTART:20261224T120000Z\r\nDTEND:20261224T220000Z", None),
        ("DTSTART;TZID=Europe/Berlin:20261224T130000\r\nDTEND;TZID=Europe/Berlin:20261224T230000", None),
        ("DTSTART;TZID=\"America/New_York\":20261224T070000\r\nDURATION:PT10H", Some("Asia/Tokyo")),
        ("DTSTART:20261224T130000\r\nDTEND:20261224T230000", Some("Europe/Berlin")),
    ] {
        assert_eq!(of(event, zone), shown(from, to), "{event}");
    }
    // 02:30 does not happen on the first of these nights, and happens twice on the second.
    let spring = "DTSTART;TZID=Europe/Berlin:20270328T023000\r\nDTEND;TZID=Europe/Berlin:20270328T040000";
    assert_eq!(of(spring, None), shown("2027-03-28 01:00:00", "2027-03-28 02:00:00"));
    let autumn = "DTSTART;TZID=Europe/Berlin:20271031T023000\r\nDURATION:PT90M";
    assert_eq!(of(autumn, None), shown("2027-10-31 00:30:00", "2027-10-31 02:00:00"));
}

#[test]
fn what_is_not_read_is_refused_by_the_name_of_its_event() {
    let day = "SUMMARY:Thanks\\, giving\r\nDTSTART;VALUE=DATE:20261126";
    for (event, says) in [
        (
            format!("{day}\r\nRRULE:FREQ=YEARLY;BYDAY=4TH;BYMONTH=11"),
            "RRULE 'FREQ=YEARLY;BYDAY=4TH;BYMONTH=11' is not read",
        ),
        (format!("{day}\r\nRRULE:FREQ=YEARLY;COUNT=5"), "is not read"),
        (format!("{day}\r\nRRULE:FREQ=YEARLY;UNTIL=20300101"), "is not read"),
        (format!("{day}\r\nRRULE:FREQ=YEARLY;BYMONTHDAY=26"), "is not read"),
        (format!("{day}\r\nRRULE:FREQ=YEARLY;BYMONTH=12"), "is not read"),
        (format!("{day}\r\nRRULE:FREQ=YEARLY;INTERVAL=2"), "is not read"),
        (format!("{day}\r\nRRULE:FREQ=MONTHLY"), "is not read"),
        (format!("{day}\r\nRRULE:"), "is not read"),
        (
            format!("{day}\r\nRRULE:FREQ=YEARLY\r\nEXDATE;VALUE=DATE:20271126"),
            "EXDATE is not read; make each of the days",
        ),
        (format!("{day}\r\nRDATE;VALUE=DATE:20271126"), "RDATE is not read; make each of its days"),
        (format!("{day}\r\nRECURRENCE-ID;VALUE=DATE:20271126"), "RECURRENCE-ID is not read"),
        (format!("{day}\r\nDTSTART;VALUE=DATE:20271126"), "DTSTART is given twice"),
        (format!("{day}\r\nDTEND;VALUE=DATE:20261125"), "DTEND lies before DTSTART"),
        (format!("{day}\r\nDTEND:20261127T000000Z"), "is a day and the other a time"),
        (format!("{day}\r\nDTEND;VALUE=DATE:20300101"), "it lasts 1132 days; 1000 is the most"),
        (format!("{day}\r\nDTEND;VALUE=DATE:20261127\r\nDURATION:P1D"), "give one of them"),
        (format!("{day}\r\nDURATION:P1DT2H"), "DURATION 'P1DT2H' is not read; give DTEND"),
        (format!("{day}\r\nDURATION:P0D"), "is not read"),
        (format!("{day}\r\nDURATION:P4294967295W"), "is not read"),
    ] {
        let messages = read_of(&file(&[&event]), None).unwrap_err();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].starts_with("event 'Thanks, giving': "), "{}", messages[0]);
        assert!(messages[0].contains(says), "{event}: {}", messages[0]);
    }
    for (event, says) in [
        (
            "UID:7\r\nDTSTART:20261224T130000",
            "event with the UID '7': DTSTART '20261224T130000' has no zone; give",
        ),
        ("DTSTART:20261224T130000Z", "event 1: it begins at a time of day and has no end"),
        ("DTSTART:20261224T130000Z\r\nDTEND:20261224T130000Z", "event 1: it does not end after it begins"),
        ("DTSTART:20261224T130000Z\r\nDURATION:-PT1H", "event 1: DURATION '-PT1H' is not read"),
        (
            "DTSTART:20261224T130000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=YEARLY",
            "is not read, only FREQ=YEARLY of an all-day event; make",
        ),
        ("SUMMARY:x", "event 'x': DTSTART is missing"),
        ("DTSTART:soon", "event 1: DTSTART 'soon' is neither a day such as"),
        ("DTSTART;VALUE=DATE:20261301", "is neither a day"),
        ("DTSTART;VALUE=DATE:22000102", "is out of range; it must lie between"),
        ("DTSTART;VALUE=DATE:22000101\r\nDURATION:P2D", "is out of range"),
        (
            "DTSTART;TZID=W. Europe Standard Time:20261224T130000\r\nDURATION:PT1H",
            "the TZID of DTSTART: zone 'W. Europe Standard Time' is not an IANA zone",
        ),
        (
            "DTSTART;VALUE=DATE:20240228\r\nDTEND;VALUE=DATE:20240302\r\nRRULE:FREQ=YEARLY",
            "lasts beyond February 28",
        ),
    ] {
        let messages = read_of(&file(&[event]), None).unwrap_err();
        assert!(messages[0].contains(says), "{event}: {messages:?}");
    }
    let several = file(&["DTSTART:soon", "STATUS:CANCELLED\r\nDTSTART:soon", "SUMMARY:x"]);
    let mut errors = FieldErrors::default();
    assert!(read(several.as_bytes(), None, &mut errors).is_none());
    assert_eq!(errors.fields().collect::<Vec<_>>(), ["VEVENT[0].DTSTART", "VEVENT[2].DTSTART"]);
}

#[test]
fn what_is_no_file_of_events_is_refused_as_a_whole() {
    let begin = "BEGIN:VCALENDAR\n";
    for (text, says) in [
        (String::new(), "the file has no event that is not cancelled"),
        (file(&[]), "the file has no event that is not cancelled"),
        (file(&["STATUS:cancelled"]), "the file has no event that is not cancelled"),
        ("{\"dates\": []}".to_owned(), "the line '{\"dates\": []}', which is none of iCalendar"),
        ("VERSION:2.0\n".to_owned(), "it must begin with BEGIN:VCALENDAR"),
        ("BEGIN:VEVENT\nEND:VEVENT\n".to_owned(), "it must begin with BEGIN:VCALENDAR"),
        (format!("{begin}BEGIN:VTODO\nEND:VTODO\nEND:VCALENDAR\n"), "has a 'VTODO', which is no event"),
        (format!("{begin}BEGIN:VEVENT\nEND:VCALENDAR\n"), "END:VCALENDAR where nothing of that name is open"),
        (format!("{begin}BEGIN:VEVENT\nDTSTART:2026"), "the file ends within a 'VEVENT'"),
        (format!("{begin}BEGIN:VTIMEZONE\n{}", "BEGIN:A\n".repeat(120_000)), "the file ends within a 'A'"),
    ] {
        let messages = read_of(&text, None).unwrap_err();
        assert!(messages[0].contains(says), "{messages:?}");
    }
    let mut errors = FieldErrors::default();
    assert!(read(b"BEGIN:VCALENDAR\nSUMMARY:\xe4\n", None, &mut errors).is_none());
    assert_eq!(errors.into_messages(), ["the file is not UTF-8; save it as such"]);
    let zone = read_of(&file(&["DTSTART:20261225"]), Some("Europe/Berln")).unwrap_err();
    assert!(zone[0].contains("did you mean 'Europe/Berlin'?"), "{zone:?}");
}

/// No file makes work that its length does not bound.
#[test]
fn a_file_has_as_many_days_as_a_calendar() {
    let year = "DTSTART;VALUE=DATE:20260101\r\nDTEND;VALUE=DATE:20280101";
    let twice = read_of(&file(&[year, year]), None).unwrap();
    assert_eq!(twice.dates.len(), 730);
    let next = "DTSTART;VALUE=DATE:20280101\r\nDTEND;VALUE=DATE:20290101";
    let many = read_of(&file(&[year, next]), None).unwrap_err();
    assert_eq!(many, ["calendar has 1096 entries; 1000 is the most: make two calendars of it"]);
    let endless = read_of(&file(&vec![year; 10_000]), None).unwrap_err();
    assert!(endless[0].contains("the file has more than 10220 days"), "{endless:?}");
    let wrong = read_of(&file(&vec!["DTSTART:soon"; 1_000]), None).unwrap_err();
    assert_eq!((wrong.len(), &*wrong[50]), (51, "and 950 more"));
    let mut errors = FieldErrors::default();
    read(file(&["DTSTART:soon"]).as_bytes(), None, &mut errors);
    assert!(matches!(errors.into_result(Kind::InvalidBody), Err(Problem { .. })));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut errors = FieldErrors::default();
        prop_assert_eq!(read(&bytes, None, &mut errors).is_none(), !errors.is_empty());
    }

    /// Lines that are nearly right reach what random bytes do not.
    #[test]
    fn no_lines_make_it_panic(
        lines in proptest::collection::vec(
            (
                prop::sample::select(vec![
                    "BEGIN", "END", "DTSTART", "DTEND", "DURATION", "RRULE", "STATUS", "SUMMARY", "RDATE", "X.UID", "",
                ]),
                prop::sample::select(vec!["", ";VALUE=DATE", ";TZID=Europe/Berlin", ";TZID=\"\u{e9}^n", ";TZID=,", ";X"]),
                prop_oneof![
                    prop::sample::select(vec![
                        "VEVENT", "VCALENDAR", "20261225", "20270328T023000", "99991231T235960Z", "-262143", "00000000",
                        "P1D", "P9W", "PT1H", "PT4294967295H4294967295M", "P", "FREQ=YEARLY", "FREQ=YEARLY;BYMONTH=12",
                    ]).prop_map(str::to_owned),
                    "\\PC{0,12}",
                    "[0-9TZPDW+-]{0,17}",
                ],
                prop::sample::select(vec!["\r\n", "\n", "\r", "\n ", "\r\n\t"]),
            ),
            0..24,
        ),
        zone in prop::option::of(prop::sample::select(vec!["Europe/Berlin", "Pacific/Apia", "soon"])),
    ) {
        let lines: String = lines.iter().map(|(name, params, value, end)| format!("{name}{params}:{value}{end}")).collect();
        for text in [lines.clone(), file(&[&lines])] {
            let mut errors = FieldErrors::default();
            prop_assert_eq!(read(text.as_bytes(), zone, &mut errors).is_none(), !errors.is_empty(), "{}", text);
        }
    }

    /// Any all-day events that are written come back as their days.
    #[test]
    fn all_day_events_come_back(events in proptest::collection::btree_map(0_u64..20_000, 1_u64..4, 1..20)) {
        let day = |number: u64| NaiveDate::from_ymd_opt(1990, 1, 1).unwrap() + chrono::Days::new(number);
        let written: Vec<String> = events.iter().map(|(first, number)| {
            format!(
                "DTSTART;VALUE=DATE:{}\r\nDTEND;VALUE=DATE:{}", day(*first).format("%Y%m%d"),
                day(first + number).format("%Y%m%d")
            )
        }).collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let expected: std::collections::BTreeSet<NaiveDate> =
            events.iter().flat_map(|(first, number)| (0..*number).map(move |further| day(first + further))).collect();
        let read = read_of(&file(&written), None).unwrap();
        prop_assert_eq!(read.dates, expected.into_iter().collect::<Vec<_>>());
    }
}
