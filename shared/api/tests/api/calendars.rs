//! Exclusion calendars: put, read, listed and deleted.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Calendar, Client, Interval};

use crate::world::{World, cron_job};

#[tokio::test]
async fn a_calendar_is_put_read_listed_and_deleted_under_its_revision() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let body = json!({
        "dates": ["12-25", "2026-12-24", "2026-12-24"], "zone": "Europe/Berlin",
        "intervals": [{"from": "2026-12-31T23:00:00+01:00", "to": "2027-01-01T12:00:00Z"}]
    });
    let put = world.put("/v1/calendars/holidays", &key, &body).await;
    assert_eq!((put.status, put.header("etag")), (StatusCode::CREATED, "\"1\""), "{}", put.text);
    let shown = json!({
        "calendar_id": "holidays", "revision": 1, "zone": "Europe/Berlin", "dates": ["2026-12-24", "12-25"],
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
    for (body, field, says) in [
        (json!({}), "dates", "calendar is empty: give 'dates', 'intervals' or both"),
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
        (json!({"dates": many}), "dates", "calendar has 1001 dates and intervals; 1000 is the most"),
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
