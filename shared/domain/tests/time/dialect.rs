//! What the dialect takes, refuses and warns about: the spellings of real life.

use proptest::prelude::*;
use tidegate_domain::time::{CronError, CronFields, CronSpec, Expression, Field, split_zone_prefix};

use crate::cron;
use crate::strategies::config;

#[test]
fn spellings_of_the_same_expression() {
    for (given, same) in [
        ("00 00 1 * *", "0 0 1 * *"),
        ("17 *\t* * *", "17 * * * *"),
        ("  17 *    * * * \n", "17 * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("5/15 * * * *", "5-59/15 * * * *"),
        ("5/90 3 * * *", "5 3 * * *"),
        ("0-30/45 3 * * *", "0 3 * * *"),
        ("0 9 * * Mon-FRI", "0 9 * * 1-5"),
        ("0 9 * * sun,0,7", "0 9 * * 0"),
        ("0 9 * * fri-sun", "0 9 * * 5,6,0"),
        ("0 9 * * 5-7", "0 9 * * 5,6,0"),
        ("0 9 * * sun-tue", "0 9 * * 0-2"),
        ("0 9 * * 5/1", "0 9 * * 5,6,0"),
        ("0 9 * * friL", "0 9 * * 5L"),
        ("0 9 * * 5#L", "0 9 * * 5L"),
        ("0 9 * * 7#2", "0 9 * * 0#2"),
        ("0 9 WL * *", "0 9 LW * *"),
        ("0 8-23,0-1 * * *", "0 0,1,8-23 * * *"),
        ("0 9 ? * ?", "0 9 * * *"),
        ("0 9 1 jan,JUL *", "0 9 1 1,7 *"),
        ("00 30 9 * * *", "30 9 * * *"),
        ("0 30 9 * * ? *", "30 9 * * *"),
        ("5/15 0 9 * * MON", "5,20,35,50 0 9 * * 1"),
        ("0 0 9 ? * MON#1 2027/1", "0 0 9 * * 1#1 2027-2199"),
        ("0 0 9 * * * 2026,2028-2029", "0 0 9 * * * 2026,2028,2029"),
        ("cron(0 9 * * ? *)", "0 9 * * *"),
        ("CRON( 0 9 ? * mon-fri * )", "0 9 * * 1-5"),
        ("cron(0 9 ? * 2-6 *)", "0 9 * * 1-5"),
        ("cron(0 9 ? * 1,7 *)", "0 9 * * 0,6"),
        ("cron(0 9 ? * 2#1 *)", "0 9 * * 1#1"),
        ("cron(0 9 ? * 6L *)", "0 9 * * 5L"),
        ("cron(0 9 ? * FRIL *)", "0 9 * * 5L"),
        ("cron(0 9 ? * L *)", "0 9 * * 6"),
        ("cron(0 9 ? * 2/2 *)", "0 9 * * 1,3,5"),
        ("cron(0 9 ? * 2-6/2 *)", "0 9 * * 1,3,5"),
        ("cron(0 9 ? * */2 *)", "0 9 * * 0,2,4,6"),
        ("cron(0 9 * * * *)", "0 9 * * *"),
        ("cron(0/15 9 LW jan ? *)", "0,15,30,45 9 LW 1 *"),
        ("cron(0 9 1 1 ? 2027)", "0 0 9 1 1 * 2027"),
        ("cron(0 9 ? * 1 2027-2030)", "0 0 9 * * SUN 2027-2030"),
        ("cron(0 9 1 1 ? 2026/2)", "0 0 9 1 1 * 2026-2199/2"),
        ("cron(0 9 1 1 ? */2)", "0 0 9 1 1 * 1970-2199/2"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
    ] {
        assert_eq!(cron(given), cron(same), "{given}");
    }
    // The same times, but by its letter the first is fixed-time.
    assert_ne!(cron("30 0-23/1 * * *"), cron("30 * * * *"));
    assert_eq!(cron("*/90 * * * *"), cron("*/60 * * * *"));
}

#[test]
fn the_canonical_text_keeps_the_fields_that_were_written() {
    for (given, canonical) in [
        (" 0  9 * * Mon-FRI", "0 9 * * MON-FRI"),
        ("@weekly", "0 0 * * 0"),
        ("5/15 * ? * *", "5/15 * ? * *"),
        ("0 0 9 ? * 2#1", "0 0 9 ? * 2#1"),
        ("0 0 9 ? * 2#1 *", "0 0 9 ? * 2#1 *"),
        ("cron(0 9 ? * 2#1 *)", "0 9 * * MON#1"),
        ("cron(0 9 1 1 ? 2027)", "0 0 9 1 1 * 2027"),
    ] {
        assert_eq!(CronSpec::parse(given).unwrap().canonical(), canonical);
    }
}

#[test]
fn what_is_refused_says_where_and_what_to_write() {
    for (given, parts) in [
        ("60 0 * * *", &["minute", "'60'", "0-59", "'0'"][..]),
        ("0 24 * * *", &["hour", "'24'", "0-23", "midnight"]),
        ("0 0 0 * *", &["day of month", "'0'", "1-31"]),
        ("0 0 * 13 *", &["month", "'13'", "1-12"]),
        ("0 0 * * 8", &["day of week", "'8'", "0 and 7 are Sunday"]),
        ("0 22-2 * * *", &["hour", "'22-2'", "backward", "'22-23,0-2'"]),
        ("0 0 * * fri-mon", &["day of week", "'FRI-MON'", "'5-6,0-1'"]),
        ("0 0 * * 6-0", &["day of week", "'6,0'"]),
        ("*0/10 * * * *", &["minute", "'*0/10'", "'*/n'"]),
        ("/10 * * * *", &["minute", "'*/10'"]),
        ("*/0 * * * *", &["minute", "step 0"]),
        ("*/x * * * *", &["minute", "step 'X'"]),
        ("1,,3 * * * *", &["minute", "extra comma"]),
        ("*,5 * * * *", &["minute", "'*,5'", "'*' alone"]),
        ("a * * * *", &["minute", "'A'", "0 to 59"]),
        ("-5 * * * *", &["minute", "'-5'", "lacks a value"]),
        ("0 R/5 * * *", &["hour", "'R/5'"]),
        ("0 0 * * Monday", &["day of week", "'MON'"]),
        ("0 0 1 sept *", &["month", "'SEP'"]),
        ("H H(0-2) * * *", &["minute", "'H'", "Jenkins"]),
        ("0 H(0-2) * * *", &["hour", "Jenkins"]),
        ("L * * * *", &["minute", "day of month"]),
        ("0 0 L-3 * *", &["day of month", "'L-3'"]),
        ("0 0 L,LW * *", &["day of month", "'L'", "'LW'"]),
        ("0 0 W * *", &["day of month", "'15W'"]),
        ("0 0 1-5W * *", &["day of month", "'1W,2W'"]),
        ("0 0 32W * *", &["day of month", "1-31"]),
        ("0 0 * * L", &["day of week", "'5L'"]),
        ("0 0 * * 5#6", &["day of week", "'#1' to '#5'"]),
        ("0 0 * * 1-5#2", &["day of week", "'1#2,3#2'"]),
        ("0 0 * * +", &["day of week", "empty item"]),
        ("? 0 * * *", &["minute", "'?'"]),
        ("", &["empty", "five fields"]),
        ("0 3 * *", &["4 fields", "day of week"]),
        ("0", &["1 fields", "hour, day of month, month, day of week"]),
        ("60 5 0 * * *", &["second", "'60'", "0-59", "'0'"]),
        ("H 0 0 * * *", &["second", "Jenkins"]),
        ("0 0,6,12,18 * * ? *", &["AWS", "the year", "'cron(0 0,6,12,18 * * ? *)'"]),
        ("0 12 ? * MON-FRI *", &["'cron(0 12 ? * MON-FRI *)'"]),
        ("0 12 * * MON-FRI *", &["'cron(0 12 * * MON-FRI *)'"]),
        ("0 12 1 1 ? 2027", &["'cron(0 12 1 1 ? 2027)'"]),
        ("0 12 1 1 * 2027", &["'2027'", "day of week", "'0 0 12 1 1 * 2027'"]),
        ("0 0 9 1 1 * 1969", &["year", "'1969'", "1970-2199"]),
        ("0 0 9 1 1 * 2200-2210", &["year", "1970-2199"]),
        ("0 0 9 1 1 * 2030-2027", &["year", "backward"]),
        ("0 0 9 1 1 ? SUN", &["'SUN'", "year's place"]),
        ("0 0 0 29 2 * 2027", &["never fires", "the year"]),
        ("0 0 0 1 1 * */3000", &["never fires"]),
        ("0 9, 10 * * * * * *", &["9 fields", "no blanks"]),
        ("cron(0 2 * * *)", &["5 fields", "AWS has 6", "'0 2 * * *'"]),
        ("cron(0 17 8-14 * ? SUN)", &["'SUN'", "year's place"]),
        ("cron(0 9 * * ? *", &["bracket"]),
        ("cron(0 9 1 * MON *)", &["'1'", "'MON'", "'?'", "two schedules"]),
        ("cron(0 9 ? * 0 *)", &["day of week", "'0'", "1 is Sunday"]),
        ("cron(0 9 ? * 8 *)", &["day of week", "'8'", "1-7"]),
        ("cron(0 9 ? * 6-2 *)", &["day of week", "'6-2'", "'FRI-SAT,SUN-MON'"]),
        ("cron(0 9 ? * 2#6 *)", &["day of week", "'#1' to '#5'"]),
        ("cron(0 9 L-3 * ? *)", &["day of month", "'L-3'"]),
        ("cron(0 25 * * ? *)", &["hour", "'25'"]),
        ("cron(0 9 1 1 ? 2200)", &["year", "'2200'", "1970-2199"]),
        ("cron()", &["0 fields"]),
        ("rate(5 minutes)", &["interval", "as a rate"]),
        ("@every 1h", &["interval", "as a rate"]),
        ("5 minutes", &["interval", "'rate(5 minutes)'"]),
        ("90s", &["interval", "'rate(90s)'"]),
        ("@reboot", &["boot"]),
        ("@once", &["'at'"]),
        ("@fortnightly", &["@weekly"]),
        ("CRON_TZ=Europe/Berlin 0 9 * * *", &["'Europe/Berlin'", "'0 9 * * *'"]),
        ("0 0 31 2 *", &["never fires"]),
        ("0 0 30 2 *", &["never fires"]),
        ("0 0 31 2,4,6 *", &["never fires"]),
        ("0 0 31W 2,4 *", &["never fires"]),
        ("0 0 8-31 * +MON#1", &["never fires"]),
        ("0 0 * 2 MON#5", &[]),
        ("0 0 29 2 +MON", &[]),
    ] {
        match (CronSpec::parse(given), parts) {
            (Ok(_), []) => {}
            (Ok(_), _) => panic!("{given} should be refused"),
            (Err(error), []) => panic!("{given} should be taken: {error}"),
            (Err(error), parts) => {
                let text = error.to_string();
                assert!(parts.iter().all(|part| text.contains(part)), "{given}: {text}");
                assert!(text.starts_with(|c: char| c.is_lowercase()), "{text}");
            }
        }
    }
}

#[test]
fn a_long_expression_is_refused_by_its_size() {
    let long = format!("{} * * * *", "1,".repeat(300));
    assert_eq!(CronSpec::parse(&long), Err(CronError::TooLong { bytes: long.len() }));
}

#[test]
fn what_is_probably_not_meant_gets_a_warning() {
    for (given, parts) in [
        ("0 0 1-7 * 1", &["'1-7'", "'1'", "either one"][..]),
        ("*/45 * * * *", &["'*/45'", "uneven"]),
        ("*/7 * * * *", &["'*/7'", "uneven"]),
        ("*/90 * * * *", &["step 90", "only 0"]),
        ("5/90 * * * *", &["step 90", "only 5"]),
        ("0 */5 * * *", &["hour", "uneven"]),
        ("0 0 */2 * *", &["day of month", "uneven"]),
        ("* 0/15 * * *", &["every minute of 2 hours", "'0'"]),
        ("* 3 * * *", &["every minute of 1 hour a day"]),
        ("* * 3 * * *", &["every second of 60 minutes a day", "second '0'"]),
        ("* 5 3 * * *", &["every second of 1 minute a day"]),
        ("*/7 0 3 * * *", &["second", "uneven"]),
        ("0 0 10 ? * 2#1 *", &["'2#1'", "1 is Monday here and Sunday in Quartz"]),
        ("0 0 10 ? * 2-6", &["Sunday in Quartz"]),
        ("0 0 10 1 1 * */2", &["year", "from year 1", "'2026-2199/2'"]),
        // Too many hours and days to be told apart: its minutes' rows are read in every hour of every day.
        (
            "1,3,8,20,31,45,50,59 1,4,7,11,15,18,20 1,4,9,13,17,22,26,29 * *",
            &["about 13 rows for each launch"],
        ),
    ] {
        let spec = CronSpec::parse(given).unwrap();
        let warnings = spec.warnings();
        let [warning] = &warnings[..] else { panic!("{given}: {warnings:?}") };
        assert!(parts.iter().all(|part| warning.contains(part)), "{given}: {warning}");
    }
    for given in [
        "* * * * *",
        "*/15 * * * *",
        "*/60 * * * *",
        "0 0 1 * *",
        "0 9-17/4 * * 1-5",
        "0 0 1-7 * +1",
        "0 */6 * */3 *",
        "* * * * * *",
        "0 0 10 ? * MON-FRI *",
        "0 0 10 * * 2#1",
        "cron(0 9 ? * 2#1 *)",
        "cron(0 9 1 1 ? 2027)",
        "0 3 13 * +5",
        "0 0 29 2 +MON",
    ] {
        let spec = CronSpec::parse(given).unwrap();
        let only_hourly = given == "*/60 * * * *";
        assert_eq!(spec.warnings().len(), usize::from(only_hourly), "{given}: {:?}", spec.warnings());
    }
}

#[test]
fn croner_describes_it() {
    let described = CronSpec::parse("30 9 * * MON-FRI").unwrap().describe();
    assert!(described.contains("09:30") && described.contains("Friday"), "{described}");
    let described = CronSpec::parse("*/90 * * * *").unwrap().describe();
    assert!(!described.contains("90"), "{described}");
    for (text, parts) in [
        ("30 15 9 * * *", &["09:15:30"][..]),
        ("*/10 * * * * *", &["every 10 seconds"]),
        ("* * * * * *", &["Every second"]),
        ("0 0 9 1 1 * 2027-2029", &["09:00", "January", "2027-2029"]),
        ("cron(0 9 ? * 2#1 *)", &["09:00", "the 1st Monday"]),
        ("cron(0 9 ? * 1 2027)", &["Sunday", "2027"]),
    ] {
        let described = CronSpec::parse(text).unwrap().describe();
        assert!(parts.iter().all(|part| described.contains(part)), "{text}: {described}");
    }
}

#[test]
fn a_zone_in_front_is_split_off() {
    for (given, zone, rest) in [
        ("CRON_TZ=Europe/Berlin 0 9 * * *", Some("Europe/Berlin"), "0 9 * * *"),
        (" TZ=America/New_York\t1 * * * *", Some("America/New_York"), "1 * * * *"),
        ("cron_tz=UTC @daily", Some("UTC"), "@daily"),
        ("TZ=UTC", Some("UTC"), ""),
        ("0 9 * * *", None, "0 9 * * *"),
        ("é", None, "é"),
    ] {
        assert_eq!(split_zone_prefix(given), (zone, rest), "{given}");
    }
}

#[test]
fn a_field_object_is_an_expression() {
    let druva = CronFields { hour: Some("3, 6,9"), minute: Some("0"), ..CronFields::default() };
    assert_eq!(CronSpec::from_fields(&druva).unwrap().canonical(), "0 3,6,9 * * *");
    let full = CronFields {
        month: Some("aug"),
        day_of_month: Some("*"),
        day_of_week: Some("Mon"),
        hour: Some("*"),
        minute: Some("*"),
    };
    assert_eq!(CronSpec::from_fields(&full).unwrap().canonical(), "* * * AUG MON");
}

#[test]
fn a_field_object_is_refused_by_its_field() {
    let missing = CronFields { hour: Some("3"), ..CronFields::default() };
    let error = CronSpec::from_fields(&missing).unwrap_err();
    assert_eq!(error, CronError::MissingField { field: Field::Minute });
    assert!(error.to_string().contains("write Minute"), "{error}");
    assert_eq!(
        CronSpec::from_fields(&CronFields { minute: Some("3"), ..CronFields::default() }),
        Err(CronError::MissingField { field: Field::Hour })
    );
    for (minute, part) in [("1 2", "blank"), ("", "empty"), ("60", "0-59"), ("0 * * * *", "blank")] {
        let fields = CronFields { hour: Some("3"), minute: Some(minute), ..CronFields::default() };
        let error = CronSpec::from_fields(&fields).unwrap_err();
        assert!(matches!(&error, CronError::Field { field: Field::Minute, .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

proptest! {
    #![proptest_config(config())]

    /// Whatever is given is an expression or a refusal in words.
    #[test]
    fn no_text_breaks_the_parser(text in "\\PC{0,40}|([0-9*,/LW#?+A-Za-z-]{1,6} ?){1,8}|cron\\(([0-9*,/LW#?A-Z-]{1,5} ?){5,7}\\)|(@|cron\\(|rate\\(|TZ=)[ -~]{0,20}") {
        if let Ok((_, Expression::Cron(spec))) = Expression::parse(&text) {
            prop_assert_eq!(CronSpec::parse(spec.canonical()), Ok(spec.clone()));
            prop_assert!(!spec.describe().is_empty() && spec.warnings().iter().all(|warning| !warning.is_empty()));
        }
        if let Err(error) = CronSpec::parse(&text) {
            prop_assert!(error.to_string().len() > 20, "{error}");
        }
    }
}
