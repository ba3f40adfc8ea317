//! Sentences and lines of a crontab in the place of an expression: refused with what to write.

use proptest::prelude::*;
use tidegate_domain::time::{CronSpec, Expression};

use crate::strategies::config;

fn refusal(text: &str) -> String {
    match Expression::parse(text) {
        Ok(read) => panic!("{text} is taken: {read:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_sentence_is_translated_where_that_is_exact() {
    for (text, write) in [
        ("every minute", "write '* * * * *', or {\"rate\": \"1 minute\"} in the place of 'cron'"),
        ("every 5 minutes", "write '*/5 * * * *', or {\"rate\": \"5 minutes\"} in the place of 'cron'"),
        ("Every 30 mins", "write '*/30 * * * *', or {\"rate\": \"30 minutes\"}"),
        ("every 7 minutes", "write {\"rate\": \"7 minutes\"} in the place of 'cron'"),
        ("every 90 minutes", "write {\"rate\": \"90 minutes\"} in the place of 'cron'"),
        ("every hour", "write '0 * * * *', or {\"rate\": \"1 hour\"}"),
        ("every 6 hours", "write '0 */6 * * *', or {\"rate\": \"6 hours\"}"),
        ("every 5 hours", "write {\"rate\": \"5 hours\"} in the place of 'cron'"),
        ("every 10 seconds", "write '*/10 * * * * *', or {\"rate\": \"10 seconds\"}"),
        ("every day", "write '0 0 * * *' for each midnight, or {\"rate\": \"1 day\"}"),
        ("every 2 days", "write {\"rate\": \"2 days\"} in the place of 'cron'"),
        ("at 3am", "write '0 3 * * *'"),
        ("3am", "write '0 3 * * *'"),
        ("every day at 3am", "write '0 3 * * *'"),
        ("every day, at 3 AM", "write '0 3 * * *'"),
        ("at 12am", "write '0 0 * * *'"),
        ("at 12:30pm", "write '30 12 * * *'"),
        ("daily at 15:30", "write '30 15 * * *'"),
        ("every day at noon", "write '0 12 * * *'"),
        ("weekdays at 9:05 p.m.", "write '5 21 * * MON-FRI'"),
        ("every weekend at midnight", "write '0 0 * * SAT,SUN'"),
        ("every monday at 9:00", "write '0 9 * * MON'"),
        ("on Fridays at 17:00", "write '0 17 * * FRI'"),
        ("daily", "write '@daily'"),
        ("Hourly", "write '@hourly'"),
        ("TZ=Europe/Berlin every minute", "write '* * * * *'"),
    ] {
        let told = refusal(text);
        let expected = format!("is not a cron expression: {write}");
        assert!(told.contains(&expected), "{text}: {told}");
        let Some((_, quoted)) = told.split_once("write '") else { continue };
        let expression = quoted.split('\'').next().unwrap();
        assert!(CronSpec::parse(expression).is_ok(), "{text}: {expression}");
    }
}

#[test]
fn a_sentence_that_may_mean_several_things_is_not_translated() {
    for text in [
        "at 3",
        "every day at 25:00",
        "at 13pm",
        "every day at 3am UTC",
        "every other day",
        "every month",
        "every 0 minutes",
        "every -5 minutes",
        "twice a day",
        "tomorrow at 3am",
        "on the first of the month",
    ] {
        let told = refusal(text);
        assert!(told.contains("is not a cron expression: write five fields"), "{text}: {told}");
        assert!(told.contains("such as '0 3 * * *' for 03:00 of each day"), "{text}: {told}");
    }
}

#[test]
fn a_line_of_a_crontab_is_told_what_to_leave_out() {
    for (text, says) in [
        (
            "0 3 * * * /usr/bin/backup.sh",
            "is a line of a crontab: leave the command, from '/usr/bin/backup.sh' on, out, write '0 3 * * *'",
        ),
        (
            "0 3 * * * root /bin/x",
            "is a line of a crontab: leave the user 'root' and the command out, write '0 3 * * *'",
        ),
        (
            "0 3 * * mon-fri root /bin/x -v",
            "leave the user 'root' and the command out, write '0 3 * * mon-fri'",
        ),
        ("*/5 * * * * echo hello > /dev/null", "from 'echo' on, out, write '*/5 * * * *'"),
        ("0 3 * * * backup.sh", "from 'backup.sh' on, out, write '0 3 * * *'"),
        ("0 3 * * * monitor.sh --all", "from 'monitor.sh' on, out, write '0 3 * * *'"),
        ("61 3 * * * /bin/x", "from '/bin/x' on, out, keep its five fields"),
        ("@daily /bin/x", "is a line of a crontab: leave the command out, write '@daily'"),
        ("MAILTO=me", "is a line of a crontab that sets the variable 'MAILTO': leave it out"),
        ("PATH=/usr/bin:/bin", "sets the variable 'PATH'"),
        ("SHELL = /bin/sh", "sets the variable 'SHELL'"),
        ("# nightly", "is a comment of a crontab"),
    ] {
        let told = refusal(text);
        assert!(told.contains(says), "{text}: {told}");
    }
}

#[test]
fn what_only_looks_like_a_crontab_or_a_sentence_is_judged_by_its_fields() {
    for text in [
        "0 0 9 * * MON-FRI/2",
        "0 0 9 ? * MON-FRI 2027",
        "0 0 9 ? * mon-fri *",
        "0 0 9 ? * MON 2027",
        "0 0 9 * * MON 2027/2",
        "0 0 9 * * sun,mon#1",
        "0 0 9 LW * ?",
    ] {
        assert!(CronSpec::parse(text).is_ok(), "{text}");
    }
    for (text, says) in [
        ("0 0 9 * * Monday", "day of week: 'MONDAY' is not a name of this field: write 'MON'"),
        ("0 0 9 * * MON#9", "day of week"),
        ("0 0 9 * * MON-FRY 2027", "day of week"),
        ("TZ=UTC TZ=UTC 0 9 * * *", "has a zone in front of it"),
        ("0 0 9 1 1 ? SUN", "stands in the year's place"),
        ("5 minutes", "it is an interval: write 'rate(5 minutes)'"),
        ("0 9, 10 * * * * * *", "has 9 fields"),
        ("nonsense", "has 1 fields instead of 5 to 7"),
    ] {
        let told = refusal(text);
        assert!(told.contains(says), "{text}: {told}");
    }
}

proptest! {
    #![proptest_config(config())]

    /// Words of all kinds break nothing, and what is suggested as an expression is one.
    #[test]
    fn what_is_suggested_is_taken(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "every", "each", "at", "on", "daily", "weekdays", "monday", "5", "0", "60", "18446744073709551615", "minutes",
                "hours", "day", "3am", "12:30", "noon", "pm", "*", "*/5", "MON", "/bin/x", "root", "@daily", "A=b", "#", "é",
            ]),
            0..8,
        )
    ) {
        let text = words.join(" ");
        if let Err(error) = Expression::parse(&text) {
            let told = error.to_string();
            if let Some((_, quoted)) = told.rsplit_once("crontab: ").or(told.rsplit_once("expression: "))
                && let Some((_, quoted)) = quoted.split_once("write '")
            {
                let suggested = quoted.split('\'').next().unwrap_or_default();
                prop_assert!(CronSpec::parse(suggested).is_ok(), "{}: {}", text, told);
            }
        }
    }
}
