//! What the dialect takes, refuses and warns about: the spellings of real life.

use proptest::prelude::*;
use tidegate_domain::time::{CronError, CronFields, CronSpec, Field, split_zone_prefix};

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
fn the_canonical_text_is_five_fields() {
    for (given, canonical) in
        [(" 0  9 * * Mon-FRI", "0 9 * * MON-FRI"), ("@weekly", "0 0 * * 0"), ("5/15 * ? * *", "5/15 * ? * *")]
    {
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
        ("0 5 0 * * *", &["6 fields", "seconds", "'5 0 * * *'"]),
        ("0/10 * * * * ?", &["6 fields", "seconds", "second 0"]),
        ("0 0,6,12,18 * * ? *", &["6 fields", "year", "'0 0,6,12,18 * * ?'"]),
        ("0 0 10 ? * 2#1 *", &["7 fields", "Quartz"]),
        ("0 9, 10 * * * * * *", &["9 fields", "no blanks"]),
        ("cron(0 2 * * *)", &["5 fields", "AWS has 6", "'0 2 * * *'"]),
        ("cron(0 20 ? * MON-FRI *)", &["AWS", "'0 20 ? * MON-FRI'"]),
        ("cron(0 9 ? * 2#1 *)", &["AWS", "'2#1'", "0 is Sunday"]),
        ("cron(0 9 1 1 ? 2027)", &["AWS", "years"]),
        ("cron(0 17 8-14 * ? SUN)", &["'SUN'", "year's place"]),
        ("rate(5 minute)", &["interval", "singular", "'*/5 * * * *'"]),
        ("rate(1 hour)", &["interval", "'0 * * * *'"]),
        ("rate(7 days)", &["interval", "calendar time"]),
        ("@every 1h", &["interval", "'*/5 * * * *'"]),
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
    ] {
        let spec = CronSpec::parse(given).unwrap();
        let [warning] = spec.warnings() else { panic!("{given}: {:?}", spec.warnings()) };
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
    fn no_text_breaks_the_parser(text in "\\PC{0,40}|([0-9*,/LW#?+A-Za-z-]{1,6} ?){1,7}|(@|cron\\(|rate\\(|TZ=)[ -~]{0,20}") {
        if let Err(error) = CronSpec::parse(&text) {
            prop_assert!(error.to_string().len() > 20, "{error}");
        }
    }
}
