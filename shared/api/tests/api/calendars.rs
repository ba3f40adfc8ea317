//! Exclusion calendars: put, read, listed and deleted.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Calendar, Client, EarlyClose, Interval, Weekday};
use tidegate_domain::limits::CALENDAR_FILE_BYTES;

use crate::world::{World, cron_job};

/// What an iCalendar file is declared as.
const ICALENDAR: (&str, &str) = ("content-type", "text/calendar; charset=utf-8");

#[tokio::test]
async fn a_calendar_is_put_read_listed_and_deleted_under_its_revision() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = json!({
        "dates": ["12-25", "2026-12-24", "2026-12-24"], "zone": "Europe/Berlin", "weekdays": ["sun", "sat", "sun"],
        "early_close": [{"date": "12-24", "from": "00:30"}, {"date": "2026-12-31", "from": "13:00"}],
        "intervals": [{"from": "2026-12-31T23:00:00+01:00", "to": "2027-01-01T12:00:00Z"}]
    });
    let put = world.put("/v1/calendars/holidays", &key, &body).await;
    assert_eq!((put.status, put.header("etag")), (StatusCode::CREATED, "\"1\""), "{}", put.text);
    let shown = json!({
        "calendar_id": "holidays", "revision": 1, "zone": "Europe/Berlin", "dates": ["2026-12-24", "12-25"],
        "weekdays": ["sat", "sun"],
        "early_close": [{"date": "2026-12-31", "from": "13:00"}, {"date": "12-24", "from": "00:30"}],
        "intervals": [{"from": "2026-12-31T22:00:00Z", "to": "2027-01-01T12:00:00Z"}]
    });
    assert_eq!(put.json, shown);
    assert_eq!(world.put("/v1/calendars/holidays", &key, &body).await.header("etag"), "\"1\"");
    let read = world.get("/v1/calendars/holidays", &key).await;
    assert_eq!((read.status, &read.json, read.header("etag")), (StatusCode::OK, &shown, "\"1\""));
    let list = world.get("/v1/calendars", &key).await;
    assert_eq!(list.json, json!({"calendars": [shown], "next_cursor": null}));
    let other = json!({"dates": ["02-29"]}).to_string();
    let put_at = |revision: &'static str| {
        let (world, key, text) = (&world, &key, other.clone());
        let headers = [("content-type", "application/json"), ("if-match", revision)];
        async move { world.send(Method::PUT, "/v1/calendars/holidays", Some(key), &headers, &text).await }
    };
    assert_eq!(put_at("\"9\"").await.status, StatusCode::PRECONDITION_FAILED);
    let replaced = put_at("\"1\"").await;
    assert_eq!((replaced.status, replaced.header("etag")), (StatusCode::OK, "\"2\""), "{}", replaced.text);
    assert_eq!((&replaced.json["dates"], &replaced.json["zone"]), (&json!(["02-29"]), &Value::Null));
    let stale =
        world.send(Method::DELETE, "/v1/calendars/holidays", Some(&key), &[("if-match", "\"1\"")], "").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(world.delete("/v1/calendars/holidays", &key).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get("/v1/calendars/holidays", &key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.delete("/v1/calendars/holidays", &key).await.status, StatusCode::NOT_FOUND);
    assert_eq!(put_at("\"2\"").await.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn a_calendar_that_a_job_names_stays() {
    let world = World::new().await;
    let key = world.register("acme").await;
    world.put("/v1/calendars/holidays", &key, &json!({"dates": ["12-25"]})).await;
    for field in ["calendars", "only_on"] {
        let mut job = cron_job();
        job[field] = json!(["holidays"]);
        assert_eq!(world.put("/v1/jobs/nightly", &key, &job).await.status, StatusCode::CREATED);
        let refused = world.delete("/v1/calendars/holidays", &key).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{field}");
        assert_eq!(
            refused.json["detail"],
            "calendar 'holidays' is named by the job 'nightly'; delete that, or leave the calendar out of it"
        );
        world.delete("/v1/jobs/nightly", &key).await;
    }
    assert_eq!(world.delete("/v1/calendars/holidays", &key).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_calendar_with_a_fault_is_refused_by_its_field_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
    let many: Vec<String> = first.iter_days().take(1_001).map(|day| day.to_string()).collect();
    let interval = |from: &str, to: &str| json!({"intervals": [{"from": from, "to": to}]});
    let early = |date: &str, from: &str| json!({"early_close": [{"date": date, "from": from}]});
    for (body, field, says) in [
        (json!({}), "dates", "calendar is empty: give 'dates', 'weekdays', 'early_close' or 'intervals'"),
        (
            json!({"weekdays": ["sat", "Sunday"]}),
            "weekdays[1]",
            "weekdays[1] must be \"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\" or \"sun\", not \"Sunday\"",
        ),
        (json!({"weekends": true}), "weekends", "write 'weekdays', such as [\"sat\", \"sun\"]"),
        (early("12-24", "1 pm"), "early_close[0].from", "from '1 pm' is no time of day; write 13:00"),
        (early("12-24", "9:00"), "early_close[0].from", "from '9:00' is no time of day; write 13:00"),
        (early("12-24", "24:00"), "early_close[0].from", "is no time of day"),
        (
            early("24.12.", "13:00"),
            "early_close[0].date",
            "is no day; write 2026-12-25, or 12-25 for every year",
        ),
        (early("1969-12-31", "13:00"), "early_close[0].date", "is out of range"),
        (
            json!({"early_close": [{"date": "12-24"}]}),
            "early_close[0].from",
            "early_close[0].from is missing",
        ),
        (
            json!({"early_close": [{"date": "12-24", "from": "13:00", "to": "14:00"}]}),
            "early_close[0].to",
            "has no field 'to'",
        ),
        (json!({"half_days": ["12-24"]}), "half_days", "write 'early_close', such as [{\"date\": \"12-24\""),
        (
            json!({"dates": ["2026-02-29"]}),
            "dates[0]",
            "date '2026-02-29' is no day; write 2026-12-25, or 12-25",
        ),
        (json!({"dates": ["12-25", "13-01"]}), "dates[1]", "date '13-01' is no day"),
        (json!({"dates": ["02-30"]}), "dates[0]", "is no day"),
        (json!({"dates": ["christmas"]}), "dates[0]", "is no day"),
        (json!({"dates": ["25.12.2026"]}), "dates[0]", "is no day"),
        (json!({"dates": ["12-25"], "zone": "Europe/Berln"}), "zone", "did you mean 'Europe/Berlin'?"),
        (json!({"dates": many}), "dates", "calendar has 1001 entries; 1000 is the most"),
        (
            interval("2026-12-01", "2026-12-02T00:00:00Z"),
            "intervals[0].from",
            "from '2026-12-01' has no time of day; write 2026-12-01T00:00:00Z",
        ),
        (interval("2026-12-01T00:00:00Z", "2026-12-02T00:00"), "intervals[0].to", "has no offset"),
        (interval("2026-12-02T00:00:00Z", "2026-12-02T00:00:00Z"), "intervals[0].to", "is not after from"),
        (json!({"days": ["12-25"]}), "days", "the body has no field 'days': write 'dates'"),
        (json!({"dates": ["12-25"], "calendar_id": "other"}), "calendar_id", "but the path says 'holidays'"),
    ] {
        let answer = world.put("/v1/calendars/holidays", &key, &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", answer.text);
        assert_eq!(answer.json["errors"][0]["field"], field, "{body}: {}", answer.text);
        let message = answer.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{body}: {message}");
    }
    let named = world.put("/v1/calendars/a%20b", &key, &json!({"dates": ["12-25"]})).await;
    assert_eq!(named.json["errors"][0]["field"], "calendar_id", "{}", named.text);
    assert_eq!(world.everything().await, before);
}

/// A client with jobs on, off and beside a calendar that has Christmas.
async fn with_calendar(world: &World) -> String {
    let key = world.register("acme").await;
    for (id, dates) in [("holidays", json!(["2026-12-25"])), ("closed", json!(["12-24"]))] {
        let put = world.put(&format!("/v1/calendars/{id}"), &key, &json!({"dates": dates})).await;
        assert_eq!(put.status, StatusCode::CREATED, "{}", put.text);
    }
    let minutely = json!({"cron": "* * * * *", "zone": "Europe/Berlin"});
    for (id, trigger, rules) in [
        ("a-daily", cron_job()["trigger"].clone(), json!({"calendars": ["holidays"]})),
        ("b-both", cron_job()["trigger"].clone(), json!({"calendars": ["closed", "holidays"]})),
        ("c-minutely", minutely.clone(), json!({"only_on": ["holidays"]})),
        ("d-often", json!({"rate": {"every_seconds": 10}}), json!({"only_on": ["holidays"]})),
        ("e-beside", minutely.clone(), json!({"calendars": ["closed"]})),
        ("f-paused", minutely, json!({"calendars": ["holidays"]})),
    ] {
        let mut job = cron_job();
        job["trigger"] = trigger;
        job.as_object_mut().unwrap().extend(rules.as_object().unwrap().clone());
        let put = world.put(&format!("/v1/jobs/{id}"), &key, &job).await;
        assert_eq!(put.status, StatusCode::CREATED, "{}", put.text);
    }
    world.send(Method::POST, "/v1/jobs/f-paused/pause", Some(&key), &[], "").await;
    key
}

#[tokio::test]
async fn a_change_of_a_calendar_shows_what_its_jobs_would_gain_and_lose() {
    let world = World::new().await;
    let key = with_calendar(&world).await;
    let before = world.everything().await;
    let moved = json!({"dates": ["2026-12-24"]});
    let preview = world.post("/v1/calendars/holidays/preview", &key, &moved).await;
    assert_eq!(preview.status, StatusCode::OK, "{}", preview.text);
    assert_eq!(world.everything().await, before);
    let jobs = preview.json["jobs"].as_array().unwrap();
    let (christmas, eve) = (json!(["2026-12-25T09:00:00Z"]), json!(["2026-12-24T09:00:00Z"]));
    let told = |job_id: &str, gained: &Value, lost: &Value| {
        json!({
            "job_id": job_id, "gained": gained.as_array().unwrap().len(), "first_gained": gained,
            "lost": lost.as_array().unwrap().len(), "first_lost": lost, "compared_to": null
        })
    };
    assert_eq!(jobs[0], told("a-daily", &christmas, &eve));
    // What another calendar leaves out anyway is not lost.
    assert_eq!(jobs[1], told("b-both", &christmas, &json!([])));
    let minutely = &jobs[2];
    assert_eq!((&minutely["gained"], &minutely["lost"]), (&json!(1_440), &json!(1_440)), "{minutely}");
    assert_eq!(minutely["first_gained"].as_array().unwrap().len(), 20);
    // The days of the job's zone, which begin an hour before those of UTC.
    assert_eq!(minutely["first_gained"][0], "2026-12-23T23:00:00Z");
    assert_eq!(minutely["first_lost"][0], "2026-12-24T23:00:00Z");
    assert_eq!(
        (&jobs[3]["job_id"], jobs[3]["compared_to"].is_string()),
        (&json!("d-often"), true),
        "{}",
        jobs[3]
    );
    assert_eq!(jobs[4], told("f-paused", &json!([]), &json!([])));
    assert_eq!(jobs.len(), 5, "{}", preview.text);

    // It tells the truth: what was lost is left out once the calendar is put so, and what was gained is made.
    world.put("/v1/calendars/holidays", &key, &moved).await;
    let upcoming = world.get("/v1/jobs/a-daily/upcoming?count=40", &key).await.json;
    let skipped = |at: &str| {
        let firings = upcoming["upcoming"].as_array().unwrap();
        firings.iter().find(|firing| firing["launch_at"] == at).unwrap()["skipped"].clone()
    };
    assert_eq!(
        (skipped("2026-12-24T09:00:00Z"), skipped("2026-12-25T09:00:00Z")),
        (json!("excluded"), Value::Null)
    );
    let same = world.post("/v1/calendars/holidays/preview", &key, &moved).await.json;
    let changes = |job: &Value| job["gained"] != 0 || job["lost"] != 0;
    assert!(!same["jobs"].as_array().unwrap().iter().any(changes), "{same}");
}

#[tokio::test]
async fn every_way_in_which_a_calendar_changes_is_previewed_page_by_page() {
    let world = World::new().await;
    let key = with_calendar(&world).await;
    let client = Client::new(world.serve().await, &*key).unwrap().with_pages_of(2);
    let eve = "2026-12-24T09:00:00Z".to_owned();
    let stretch = Interval { from: "2026-12-24T08:00:00Z".to_owned(), to: "2026-12-24T10:00:00Z".to_owned() };
    let christmas = || Calendar::of_dates(["2026-12-25"]);
    for (change, gained, lost) in [
        (Calendar { intervals: vec![stretch], ..christmas() }, vec![], vec![eve.clone()]),
        (Calendar::of_dates(["2026-12-25", "12-24"]), vec![], vec![eve, "2027-12-24T09:00:00Z".to_owned()]),
        (Calendar { zone: Some("Pacific/Auckland".to_owned()), ..christmas() }, vec![], vec![]),
        (Calendar::of_dates(["2020-01-01"]), vec!["2026-12-25T09:00:00Z".to_owned()], vec![]),
    ] {
        let first = client.preview_calendar("holidays", &change, None).await.unwrap();
        let daily = &first.rows[0];
        assert_eq!(
            (&*daily.job_id, &daily.first_gained, &daily.first_lost),
            ("a-daily", &gained, &lost),
            "{change:?}"
        );
        assert_eq!(first.rows.len(), 2);
        let second =
            client.preview_calendar("holidays", &change, first.next_cursor.as_deref()).await.unwrap();
        assert_eq!(second.rows[0].job_id, "c-minutely");
    }
    let nobody = client.preview_calendar("nobody", &christmas(), None).await.unwrap();
    assert!(nobody.rows.is_empty());
    let wrong =
        client.preview_calendar("holidays", &Calendar::of_dates(["tomorrow"]), None).await.unwrap_err();
    assert_eq!(wrong.problem().unwrap().errors[0].field, "dates[0]");
}

/// A job for nine o'clock, but for the holidays.
fn each_day() -> Value {
    let mut job = cron_job();
    job["trigger"] = json!({"cron": "0 9 * * *", "zone": "Europe/London"});
    job["calendars"] = json!(["holidays"]);
    job
}

#[tokio::test]
async fn a_change_of_the_days_of_every_week_is_previewed_and_tells_the_truth() {
    let world = World::new().await;
    let key = with_calendar(&world).await;
    let client = Client::new(world.serve().await, &*key).unwrap();
    world.put("/v1/jobs/a-daily", &key, &each_day()).await;
    let launches = async || {
        let upcoming = client.upcoming("a-daily", Some(400)).await.unwrap().upcoming;
        upcoming.into_iter().map(|firing| (firing.launch_at, firing.skipped)).collect::<Vec<_>>()
    };
    let weekends = vec![Weekday::Sat, Weekday::Sun];
    let christmas = || Calendar::of_dates(["2026-12-25"]);
    let early = |date: &str, from: &str| EarlyClose { date: date.to_owned(), from: from.to_owned() };
    for change in [
        Calendar { weekdays: weekends.clone(), ..christmas() },
        Calendar { weekdays: vec![Weekday::Sun, Weekday::Mon], ..Calendar::default() },
        // The same days in a zone in which nine o'clock is still the day before.
        Calendar {
            weekdays: vec![Weekday::Sun, Weekday::Mon],
            zone: Some("Pacific/Honolulu".to_owned()),
            ..Calendar::default()
        },
        Calendar {
            early_close: vec![early("12-24", "09:00"), early("2026-12-28", "09:01"), early("12-31", "08:59")],
            zone: Some("UTC".to_owned()),
            ..christmas()
        },
        Calendar { early_close: vec![early("12-31", "09:01")], ..Calendar::default() },
        Calendar {
            weekdays: weekends,
            early_close: vec![early("2026-12-25", "00:00")],
            ..Calendar::default()
        },
        christmas(),
    ] {
        let preview = client.preview_calendar("holidays", &change, None).await.unwrap();
        let told = &preview.rows[0];
        let before = launches().await;
        client.put_calendar("holidays", &change, None).await.unwrap();
        let pairs: Vec<_> = before.into_iter().zip(launches().await).collect();
        let made = |is: fn(&Option<String>, &Option<String>) -> bool| -> Vec<String> {
            let changed = pairs.iter().filter(|((_, was), (_, now))| is(was, now));
            changed.map(|((launch, _), _)| launch.clone()).collect()
        };
        let gained = made(|was, now| was.is_some() && now.is_none());
        let lost = made(|was, now| was.is_none() && now.is_some());
        assert_eq!((told.gained as usize, told.lost as usize), (gained.len(), lost.len()), "{change:?}");
        assert_eq!(told.first_gained, gained[..gained.len().min(20)], "{change:?}");
        assert_eq!(told.first_lost, lost[..lost.len().min(20)], "{change:?}");
        assert!(!gained.is_empty() || !lost.is_empty(), "{change:?}");
    }
}

#[tokio::test]
async fn business_days_are_what_a_calendar_of_weekends_and_holidays_leaves() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let calendar = json!({
        "dates": ["2026-11-26"], "weekdays": ["sat", "sun"],
        "early_close": [{"date": "2026-11-27", "from": "09:30"}], "zone": "UTC"
    });
    world.put("/v1/calendars/closed", &key, &calendar).await;
    for (id, cron) in [("early", "0 9 * * *"), ("late", "30 9 * * *")] {
        let mut job = cron_job();
        job["trigger"] = json!({"cron": cron, "zone": "UTC"});
        job["calendars"] = json!(["closed"]);
        assert_eq!(world.put(&format!("/v1/jobs/{id}"), &key, &job).await.status, StatusCode::CREATED);
    }
    let open = async |id: &str| -> Vec<String> {
        let upcoming = world.get(&format!("/v1/jobs/{id}/upcoming?count=10"), &key).await.json;
        let firings =
            upcoming["upcoming"].as_array().unwrap().iter().filter(|firing| firing["skipped"].is_null());
        firings.map(|firing| firing["launch_at"].as_str().unwrap()[..10].to_owned()).collect()
    };
    // From Sunday 22 to Tuesday 1: the 26th is a holiday, and the 27th closes at half past nine.
    let early = ["23", "24", "25", "27", "30"].map(|day| format!("2026-11-{day}"));
    assert_eq!(open("early").await, [&early[..], &["2026-12-01".to_owned()]].concat());
    let late = ["23", "24", "25", "30"].map(|day| format!("2026-11-{day}"));
    assert_eq!(open("late").await, [&late[..], &["2026-12-01".to_owned()]].concat());
}

const HOLIDAYS: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\r\nVERSION:2.0\r\n\
    X-WR-CALNAME:Feiertage\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261227\r\n\
    UID:1@google.com\r\nSUMMARY:Weihnachten\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20200101\r\n\
    RRULE:FREQ=YEARLY\r\nSUMMARY:Neujahr\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nDTSTART:20261231T130000\r\n\
    DTEND:20261231T180000\r\nSUMMARY:Silvester\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

#[tokio::test]
async fn an_icalendar_file_is_put_as_the_calendar_that_it_lists() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let client = Client::new(world.serve().await, &*key).unwrap();
    let made = client.import_calendar("holidays", HOLIDAYS, Some("Europe/Berlin"), None).await.unwrap();
    assert_eq!((made.revision, made.zone.as_deref()), (1, Some("Europe/Berlin")));
    assert_eq!(made.dates, ["2026-12-25", "2026-12-26", "01-01"]);
    let [interval] = &made.intervals[..] else { panic!("{made:?}") };
    assert_eq!((&*interval.from, &*interval.to), ("2026-12-31T12:00:00Z", "2026-12-31T17:00:00Z"));
    assert_eq!(client.calendar("holidays").await.unwrap(), made);
    // It is the calendar that it would be as a document, and takes the place of what was there.
    let shown = world.get("/v1/calendars/holidays", &key).await.json;
    assert_eq!(world.put("/v1/calendars/holidays", &key, &shown).await.json, shown);
    world.put("/v1/calendars/holidays", &key, &json!({"weekdays": ["sun"]})).await;
    world.put("/v1/jobs/daily", &key, &each_day()).await;
    let path = "/v1/calendars/holidays/preview?zone=UTC&limit=1";
    let preview = world.send(Method::POST, path, Some(&key), &[ICALENDAR], HOLIDAYS).await;
    assert_eq!(preview.status, StatusCode::OK, "{}", preview.text);
    assert_eq!(preview.json["jobs"][0]["first_lost"][0], "2026-12-25T09:00:00Z", "{}", preview.text);
    assert_eq!(preview.json["jobs"][0]["first_gained"][0], "2026-11-22T09:00:00Z", "{}", preview.text);
    let stale = client.import_calendar("holidays", HOLIDAYS, Some("UTC"), Some(1)).await.unwrap_err();
    assert_eq!(stale.problem().unwrap().status, 412);
    let replaced = client.import_calendar("holidays", HOLIDAYS, Some("UTC"), Some(2)).await.unwrap();
    assert_eq!((replaced.revision, replaced.weekdays), (3, vec![]));
}

#[tokio::test]
async fn an_icalendar_file_with_a_fault_is_refused_and_nothing_is_written() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let fourth = HOLIDAYS.replace("FREQ=YEARLY", "FREQ=YEARLY;BYDAY=4TH");
    for (path, file, field, says) in [
        (
            "holidays",
            HOLIDAYS,
            "VEVENT[2].DTSTART",
            "event 'Silvester': DTSTART '20261231T130000' has no zone; give",
        ),
        (
            "holidays?zone=UTC",
            &*fourth,
            "VEVENT[1].RRULE",
            "event 'Neujahr': RRULE 'FREQ=YEARLY;BYDAY=4TH' is not",
        ),
        ("holidays?zone=Europe/Berln", HOLIDAYS, "zone", "did you mean 'Europe/Berlin'?"),
        ("holidays", "{\"dates\": [\"12-25\"]}", "(body)", "which is none of iCalendar"),
        ("holidays", "", "(body)", "the file has no event"),
    ] {
        let path = format!("/v1/calendars/{path}");
        let answer = world.send(Method::PUT, &path, Some(&key), &[ICALENDAR], file).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
        assert_eq!(answer.json["errors"][0]["field"], field, "{}", answer.text);
        let message = answer.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
    }
    let put = async |query: &str, kind: &str, body: &str| {
        let path = format!("/v1/calendars/holidays{query}");
        world.send(Method::PUT, &path, Some(&key), &[("content-type", kind)], body).await
    };
    let document = put("?zone=UTC", "application/json", "{\"dates\": [\"12-25\"]}").await;
    assert_eq!(document.json["errors"][0]["field"], "zone", "{}", document.text);
    assert_eq!(put("?zoen=UTC", "text/calendar", HOLIDAYS).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(put("", "text/plain", HOLIDAYS).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let padded = |bytes: usize| format!("{HOLIDAYS}{}", " ".repeat(bytes - HOLIDAYS.len()));
    let large = put("?zone=UTC", "text/calendar", &padded(CALENDAR_FILE_BYTES + 1)).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", large.text);
    assert_eq!(world.everything().await, before);
    let most = put("?zone=UTC", "text/calendar", &padded(CALENDAR_FILE_BYTES)).await;
    assert_eq!(most.status, StatusCode::CREATED, "{}", most.text);
}
