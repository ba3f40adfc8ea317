//! Schedules that are refused: by their field, with what was given and what would do; nothing is half written.

use http::StatusCode;
use serde_json::{Value, json};

use crate::bad_input::{Case, assert_refused, invalid, with};
use crate::world::{World, at_job, cron_job};

/// A cron text that is refused, and a part of what is said.
fn cron(text: &'static str, says: &'static str) -> Case {
    invalid(text, with(cron_job(), "/trigger/cron", json!(text)), "trigger.cron", json!(text), says)
}

fn trigger(
    what: &'static str,
    trigger: Value,
    field: &'static str,
    value: Value,
    says: &'static str,
) -> Case {
    invalid(what, with(cron_job(), "/trigger", trigger), field, value, says)
}

fn job(what: &'static str, name: &str, value: Value, field: &'static str, says: &'static str) -> Case {
    let given = if value.is_object() || value.is_array() { Value::Null } else { value.clone() };
    invalid(what, with(cron_job(), &format!("/{name}"), value), field, given, says)
}

fn spellings_from_real_life() -> Vec<Case> {
    vec![
        cron(
            "cron(0 6 * * *)",
            "has 5 fields in cron(...), where AWS has 6: write '0 6 * * *' without the brackets",
        ),
        cron("cron(0 9 ? * * MON)", "has 'MON' in the year's place"),
        cron("0 22-2 * * *", "hour: '22-2'"),
        cron("60 * * * *", "minute: '60' is outside 0-59"),
        cron("0 24 * * *", "hour: '24' is outside 0-23"),
        cron("*0/10 * * * *", "minute: '*0/10'"),
        cron("rate(5 minute)", "AWS takes the singular with 1 only: write 'rate(5 minutes)'"),
        cron("H 4 * * *", "minute: 'H'"),
        cron("@reboot", "'@reboot'"),
        cron("@once", "give a job that fires once an 'at' instant"),
        cron("", "cron expression is empty"),
        cron("0 0 31 2 *", "never fires: none of its years has such a day"),
        cron("0 0 0 1 1 ? 2020", "trigger never fires after 2026-11-21T12:00:00Z; change its years or days"),
    ]
}

fn triggers() -> Vec<Case> {
    vec![
        trigger(
            "every kind of trigger",
            json!({"cron": "@daily", "rate": "1h", "at": "2026-12-01T00:00:00Z"}),
            "trigger",
            Value::Null,
            "trigger has all of 'cron' and 'rate' and 'at'; give one, or make several jobs",
        ),
        trigger(
            "a rate that is no text",
            json!({"rate": 300}),
            "trigger.rate",
            json!(300),
            "trigger.rate must be a string such as \"5 minutes\", or a JSON object such as {\"every_seconds\": 300}, not 300",
        ),
        trigger(
            "a rate without a unit",
            json!({"rate": "5"}),
            "trigger.rate",
            json!("5"),
            "has no unit behind 5",
        ),
        trigger(
            "a rate of months",
            json!({"rate": "1 month"}),
            "trigger.rate",
            json!("1 month"),
            "which has no fixed length: write a cron expression",
        ),
        trigger(
            "a rate of nothing",
            json!({"rate": "0s"}),
            "trigger.rate",
            json!("0s"),
            "a rate of 0 seconds is not possible; it must lie between 1 second and 366 days",
        ),
        trigger(
            "a rate that is too slow",
            json!({"rate": {"every_seconds": 31_622_401}}),
            "trigger.rate.every_seconds",
            json!(31_622_401),
            "it must lie between 1 and 31622400",
        ),
        trigger(
            "a negative rate",
            json!({"rate": {"every_seconds": -1}}),
            "trigger.rate.every_seconds",
            json!(-1),
            "it must lie between 1 and 31622400",
        ),
        trigger(
            "a rate in a zone",
            json!({"rate": "1h", "zone": "Asia/Tokyo"}),
            "trigger.zone",
            json!("Asia/Tokyo"),
            "zone goes with 'cron' and with local times in 'at'; a rate counts real time; leave it out",
        ),
        trigger(
            "a rate in cron in a zone that there is not",
            json!({"cron": "rate(1 hour)", "zone": "Mars/Olympus"}),
            "trigger.zone",
            json!("Mars/Olympus"),
            "zone 'Mars/Olympus' is unknown",
        ),
        trigger(
            "an anchor without its offset",
            json!({"rate": "1h", "anchor": "2026-11-21T12:00:00"}),
            "trigger.anchor",
            json!("2026-11-21T12:00:00"),
            "anchor '2026-11-21T12:00:00' has no offset",
        ),
        trigger(
            "an anchor beyond the horizon",
            json!({"rate": "1h", "anchor": "2040-01-01T00:00:00Z"}),
            "trigger.anchor",
            json!("2040-01-01T00:00:00Z"),
            "ahead; 3660 days is the most",
        ),
        trigger(
            "an anchor of an expression",
            json!({"cron": "@daily", "anchor": "2026-11-21T12:00:00Z"}),
            "trigger.anchor",
            json!("2026-11-21T12:00:00Z"),
            "anchor goes with 'rate': it says where the beat begins; leave it out",
        ),
        trigger(
            "rules for the clocks of a rate",
            json!({"rate": "1h", "dst": {"gap": "skip"}}),
            "trigger.dst",
            Value::Null,
            "dst goes with 'cron': nothing else follows a wall clock; leave it out",
        ),
        trigger(
            "a rule for the clocks that there is not",
            json!({"cron": "@daily", "dst": {"gap": "later"}}),
            "trigger.dst.gap",
            json!("later"),
            "trigger.dst.gap must be \"next_valid\" or \"skip\", not \"later\"",
        ),
        trigger(
            "what becomes of past times of an expression",
            json!({"cron": "@daily", "past": "fire"}),
            "trigger.past",
            Value::Null,
            "past goes with 'at': nothing else names single instants; leave it out",
        ),
        trigger(
            "no instants",
            json!({"at": []}),
            "trigger.at",
            Value::Null,
            "'at' is an empty list: give one instant or more",
        ),
        trigger(
            "more instants than a job may have",
            json!({"at": (1..50).map(|day| format!("2027-01-01T{:02}:{:02}:00Z", day / 60, day)).collect::<Vec<_>>()}),
            "trigger.at",
            Value::Null,
            "'at' has 49 different instants; 48 is the most: spread them over several jobs",
        ),
        trigger(
            "one bad instant among good ones",
            json!({"at": ["2026-12-01T00:00:00Z", "soon"]}),
            "trigger.at[1]",
            json!("soon"),
            "at 'soon' is no instant in ISO 8601",
        ),
        trigger(
            "one past instant among good ones",
            json!({"at": ["2026-12-01T00:00:00Z", "2026-11-21T11:58:59Z"]}),
            "trigger.at[1]",
            json!("2026-11-21T11:58:59Z"),
            "is 61 seconds ago (it is 2026-11-21T12:00:00Z now); give an instant that is to come, or \"past\": \"fire\" to fire it at once",
        ),
        trigger(
            "an instant that is a number",
            json!({"at": 1_790_000_000}),
            "trigger.at",
            json!(1_790_000_000),
            "trigger.at must be a string such as \"2026-11-21T12:00:00Z\", or an array such as",
        ),
        trigger(
            "a local time in a zone that there is not",
            json!({"at": "2026-12-01T12:00", "zone": "GMT+3"}),
            "trigger.zone",
            json!("GMT+3"),
            "zone 'GMT+3' is a fixed offset, not a zone",
        ),
    ]
}

fn rules() -> Vec<Case> {
    let backward = with(cron_job(), "/start_at", json!("2026-12-02T00:00:00Z"));
    let outside = with(at_job("2026-12-01T00:00:00Z"), "/end_at", json!("2026-11-30T00:00:00Z"));
    let before = with(at_job("2026-12-01T00:00:00Z"), "/start_at", json!("2026-12-02T00:00:00Z"));
    vec![
        invalid(
            "an end before the start",
            with(backward, "/end_at", json!("2026-12-01T00:00:00Z")),
            "end_at",
            json!("2026-12-01T00:00:00Z"),
            "end_at 2026-12-01T00:00:00Z is not after start_at 2026-12-02T00:00:00Z; give a later end",
        ),
        job(
            "an end that is past",
            "end_at",
            json!("2026-11-20T00:00:00Z"),
            "end_at",
            "trigger never fires before end_at 2026-11-20T00:00:00Z: its next firing would be at 2026-11-23T09:00:00Z",
        ),
        job(
            "an end before the first firing",
            "end_at",
            json!("2026-11-23T09:00:00Z"),
            "end_at",
            "its next firing would be at 2026-11-23T09:00:00Z; give a later end",
        ),
        invalid(
            "an end before the instant",
            outside,
            "end_at",
            json!("2026-11-30T00:00:00Z"),
            "trigger never fires: no instant of 'at' lies before end_at 2026-11-30T00:00:00Z",
        ),
        invalid(
            "a start after the instant",
            before,
            "start_at",
            json!("2026-12-02T00:00:00Z"),
            "trigger never fires: no instant of 'at' lies from start_at 2026-12-02T00:00:00Z on",
        ),
        job("a start without an offset", "start_at", json!("2026-12-01T00:00"), "start_at", "has no offset"),
        job(
            "a start that is no instant",
            "start_at",
            json!("monday"),
            "start_at",
            "start_at 'monday' is no instant",
        ),
        job(
            "too wide a window",
            "jitter_seconds",
            json!(3_601),
            "jitter_seconds",
            "jitter_seconds is 3601; it must lie between 0 and 3600",
        ),
        job(
            "no relevancy",
            "relevancy_seconds",
            json!(0),
            "relevancy_seconds",
            "it must lie between 1 and 2592000",
        ),
        invalid(
            "no launches made up for",
            with(cron_job(), "/misfire", json!({"rule": "all", "max": 0})),
            "misfire.max",
            json!(0),
            "misfire.max is 0; it must lie between 1 and 10000",
        ),
        job(
            "a number of none",
            "misfire",
            json!({"rule": "skip", "max": 3}),
            "misfire.max",
            "goes with the rule 'all' only",
        ),
        job(
            "no rule",
            "misfire",
            json!({"max": 3}),
            "misfire.rule",
            "misfire.rule is missing; give \"skip\", \"latest\" or \"all\"",
        ),
        invalid(
            "a rule that there is not",
            with(cron_job(), "/misfire", json!({"rule": "fire"})),
            "misfire.rule",
            json!("fire"),
            "misfire.rule must be \"skip\", \"latest\" or \"all\", not \"fire\"",
        ),
        invalid(
            "a calendar that there is not",
            with(cron_job(), "/calendars", json!(["holidays"])),
            "calendars",
            json!("holidays"),
            "client 'acme' has no calendar 'holidays'; put it first, or leave it out",
        ),
        invalid(
            "a calendar's name",
            with(cron_job(), "/calendars", json!(["a b"])),
            "calendars[0]",
            json!("a b"),
            "calendar_id",
        ),
        job(
            "too many calendars",
            "calendars",
            json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            "calendars",
            "calendars has 9 names; 8 is the most",
        ),
        invalid(
            "a calendar to launch on that there is not",
            with(cron_job(), "/only_on", json!(["open"])),
            "only_on",
            json!("open"),
            "client 'acme' has no calendar 'open'; put it first, or leave it out",
        ),
        invalid(
            "the name of a calendar to launch on",
            with(cron_job(), "/only_on", json!(["a b"])),
            "only_on[0]",
            json!("a b"),
            "calendar_id",
        ),
        job(
            "too many calendars of both kinds",
            "only_on",
            json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            "only_on",
            "calendars and only_on have 9 names together; 8 is the most",
        ),
        invalid(
            "a calendar that is named both ways",
            with(with(cron_job(), "/calendars", json!(["days"])), "/only_on", json!(["days"])),
            "only_on",
            json!("days"),
            "calendar 'days' is named in 'calendars' and in 'only_on'; leave it out of one of them",
        ),
        job(
            "a job's name that is a call's",
            "job_id",
            json!("bulk"),
            "job_id",
            "job_id 'bulk' is the name of a call",
        ),
    ]
}

#[tokio::test]
async fn a_schedule_with_one_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    for case in spellings_from_real_life().into_iter().chain(triggers()).chain(rules()) {
        assert_refused(&world.post("/v1/jobs", &key, &case.body).await, &case);
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_long_list_of_faults_is_told_in_part() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = with(cron_job(), "/trigger", json!({"at": vec!["soon"; 5_000]}));
    let answer = world.post("/v1/jobs", &key, &body).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer.json["detail"]
            .as_str()
            .unwrap()
            .ends_with("(and 4999 more, the first 50 of all are in errors)")
    );
    assert_eq!(answer.json["errors"].as_array().unwrap().len(), 50, "{}", answer.text);
}

#[tokio::test]
async fn what_real_life_spells_oddly_is_taken_with_a_warning() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (text, says) in [
        ("0 0 1-7 * 1", "it fires on days that match either one"),
        ("*/45 * * * *", "uneven"),
        ("*/7 * * * *", "uneven"),
        ("*/90 * * * *", "passes the end of the field: only 0 matches"),
        ("* 0/15 * * *", "fires in every minute of 2 hours a day"),
    ] {
        let body = with(cron_job(), "/trigger/cron", json!(text));
        let answer = world.post("/v1/jobs", &key, &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{text}: {}", answer.text);
        assert!(answer.json["warnings"].to_string().contains(says), "{text}: {}", answer.text);
    }
}
