//! Lists: pages of the size that is asked for hold what whole pages do, and cost what they show.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_client::{Client, DeadLetterFilter};

use crate::hook::Hook;
use crate::world::{World, at_job, cron_job};

/// All rows of a list in pages of up to so many, none of which may have more.
async fn walk(world: &World, key: &str, (path, field): (&str, &str), most: usize) -> Vec<Value> {
    let joint = if path.contains('?') { "&" } else { "?" };
    let (mut rows, mut next) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page = world.get(&format!("{path}{joint}limit={most}{next}"), key).await;
        let listed = page.json[field].as_array().unwrap_or_else(|| panic!("{path}: {}", page.text));
        assert!(listed.len() <= most, "{path} shows {} of {most}", listed.len());
        rows.extend(listed.iter().cloned());
        match page.json["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return rows,
        }
    }
    panic!("{path} does not end");
}

/// A client with several of everything that is listed; its key, and the path of a run with five events, of which three are dead.
async fn stocked(world: &World) -> (String, String) {
    let key = world.register("acme").await;
    world.register("beta").await;
    for number in 0..5 {
        let policy = json!({"max_in_flight": 100});
        let written = [
            world.put(&format!("/v1/policies/p-{number}"), &key, &policy).await,
            world.put(&format!("/v1/jobs/j-{number}"), &key, &cron_job()).await,
            world.put(&format!("/v1/calendars/c-{number}"), &key, &json!({"dates": ["2026-12-25"]})).await,
            world.put(&format!("/v1/secrets/s-{number}"), &key, &json!({"value": "v"})).await,
        ];
        for made in written {
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
    }
    let hook = Hook::answering(&[410, 200, 410, 200, 410]).await;
    let mut minutely = cron_job();
    minutely["trigger"] = json!({"cron": "* * * * *", "zone": "UTC"});
    let mut packed = minutely.clone();
    packed["policy_id"] = json!("p-0");
    for (name, job) in [("batch", hook.job(5)), ("minutely", minutely), ("packed", packed)] {
        let made = world.put(&format!("/v1/jobs/{name}"), &key, &job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    world.minutes(6).await;
    let runs = world.get("/v1/jobs/batch/runs", &key).await.json;
    let run = format!("/v1/jobs/batch/runs/{}", runs["runs"][0]["run_id"].as_str().unwrap());
    (key, run)
}

#[tokio::test]
async fn pages_of_any_size_hold_what_whole_pages_do() {
    let world = World::new().await;
    let (key, run) = stocked(&world).await;
    let (events, dead) = (format!("{run}/events"), format!("{run}/events?status=dead,waiting"));
    for (list, rows) in [
        (("/v1/jobs", "jobs"), 8),
        (("/v1/jobs?prefix=j-", "jobs"), 5),
        (("/v1/policies", "policies"), 5),
        (("/v1/calendars", "calendars"), 5),
        (("/v1/secrets", "secrets"), 5),
        (("/v1/jobs/minutely/runs", "runs"), 7),
        (("/v1/jobs/packed/runs", "runs"), 8),
        ((&*events, "events"), 5),
        ((&*dead, "events"), 3),
        (("/v1/dead-letters", "dead_letters"), 5),
        (("/v1/targets", "targets"), 0),
        // Jobs for one instant are not recorded.
        (("/v1/changes", "changes"), 23),
        (("/v1/changes?kind=calendar", "changes"), 5),
        (("/v1/jobs/j-0/versions", "versions"), 1),
    ] {
        let whole = walk(&world, &key, list, 100).await;
        assert_eq!(whole.len(), rows, "{list:?}: {whole:?}");
        for most in [1, 2, 3] {
            assert_eq!(walk(&world, &key, list, most).await, whole, "{list:?} by {most}");
        }
    }
    let clients = walk(&world, &world.admin_key, ("/v1/clients", "clients"), 1).await;
    assert_eq!(clients.len(), 2);
}

#[tokio::test]
async fn a_size_that_no_page_has_is_refused() {
    let world = World::new().await;
    let (key, run) = stocked(&world).await;
    let events = format!("{run}/events");
    let lists =
        ["/v1/jobs", "/v1/policies", "/v1/jobs/batch/runs", &events, "/v1/dead-letters", "/v1/targets"];
    for (list, given) in lists.iter().flat_map(|list| ["0", "101", "-1", "1.5", "all", ""].map(|g| (list, g)))
    {
        let refused = world.get(&format!("{list}?limit={given}"), &key).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{list} {given}: {}", refused.text);
        assert_eq!(refused.json["errors"][0]["field"], "limit", "{}", refused.text);
        let says = format!("limit is {given}; it must lie between 1 and 100; leave it out for a whole page");
        assert_eq!(refused.json["detail"], says, "{}", refused.text);
    }
}

#[tokio::test]
async fn a_short_page_costs_what_it_shows() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for number in 0..60 {
        let made = world.put(&format!("/v1/jobs/j-{number:02}"), &key, &cron_job()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    let units = async |path: &str| -> f64 {
        let before = world.embedded.meter().snapshot();
        assert_eq!(world.get(path, &key).await.status, StatusCode::OK);
        world.embedded.meter().snapshot().since(&before).capacity.values().map(|units| units.read).sum()
    };
    // The key and its client are known by then.
    let whole = units("/v1/jobs").await;
    let short = units("/v1/jobs?limit=2").await;
    assert!(short <= 0.5 && whole >= 2.0, "2 jobs cost {short}, all of them {whole} read units");
}

/// Read units of a page of ten rows of each list, where a client has `stored` of everything.
async fn units_of_pages(stored: usize) -> Vec<(&'static str, f64)> {
    let world = World::new().await;
    let key = world.register("acme").await;
    let hook = Hook::answering(&vec![410; stored]).await;
    for number in 0..stored {
        let policy = json!({"max_in_flight": 2});
        let written = [
            world.put(&format!("/v1/policies/p-{number:03}"), &key, &policy).await,
            world.put(&format!("/v1/jobs/j-{number:03}"), &key, &cron_job()).await,
            world.put(&format!("/v1/calendars/c-{number:03}"), &key, &json!({"dates": ["2026-12-25"]})).await,
            world.put(&format!("/v1/secrets/s-{number:03}"), &key, &json!({"value": "v"})).await,
        ];
        for made in written {
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
    }
    let mut minutely = cron_job();
    minutely["trigger"] = json!({"cron": "* * * * *", "zone": "UTC"});
    let mut overdue = minutely.clone();
    (overdue["policy_id"], overdue["expect"]) = (json!("p-000"), json!({"within_seconds": 1}));
    let jobs = [("a-batch", hook.job(stored as u32)), ("a-minutely", minutely), ("z-overdue", overdue)];
    for (name, job) in jobs {
        let made = world.put(&format!("/v1/jobs/{name}"), &key, &job).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }
    let one_times: Vec<Value> = (0..stored).map(|_| at_job("2026-11-24T12:00:00Z")).collect();
    let made = world.post("/v1/jobs/bulk", &key, &json!({ "jobs": one_times })).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    world.minutes(stored).await;
    let runs = world.get("/v1/jobs/a-batch/runs", &key).await.json;
    let events = format!("/v1/jobs/a-batch/runs/{}/events", runs["runs"][0]["run_id"].as_str().unwrap());
    let units = async |path: &str| -> f64 {
        let before = world.embedded.meter().snapshot();
        let page = world.get(path, &key).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
        world.embedded.meter().snapshot().since(&before).read_units()
    };
    // The key and its client are known by then.
    units("/v1/jobs").await;
    let mut all = Vec::new();
    for (path, _) in BUDGETS {
        all.push((path, units(&path.replace("RUN", &events)).await));
    }
    all
}

/// Pages of ten rows, and what has no pages; and the read units that each may take.
const BUDGETS: [(&str, f64); 21] = [
    ("/v1/jobs?limit=10", 0.5),
    ("/v1/jobs?limit=10&prefix=j-", 0.5),
    ("/v1/policies?limit=10", 0.5),
    ("/v1/calendars?limit=10", 0.5),
    ("/v1/secrets?limit=10", 0.5),
    ("/v1/dead-letters?limit=10", 4.0),
    ("/v1/targets?limit=10", 0.5),
    ("/v1/changes?limit=10", 2.0),
    ("/v1/jobs/a-minutely/runs?limit=10", 1.5),
    ("/v1/runs?limit=10&prefix=a-m", 2.0),
    // Ten pages, of one run each.
    ("/v1/runs/count?limit=1&prefix=a-m", 16.0),
    ("/v1/upcoming?limit=10&prefix=j-&until=2026-11-24T00:00:00Z", 1.0),
    // Those of an instant lie in a shard for each 16 of them, which is asked for the other minutes beside it as well.
    ("/v1/upcoming?limit=10&prefix=at_&since=2026-11-24T00:00:00Z&until=2026-11-25T00:00:00Z", 25.0),
    ("/v1/one-time-jobs?limit=10&since=2026-11-24T00:00:00Z", 25.0),
    ("/v1/overdue?limit=10", 0.5),
    ("/v1/lateness", 0.5),
    ("/v1/events?limit=10&status=dead", 4.0),
    ("/v1/events?limit=10&status=in_flight&policy_id=p-000", 4.0),
    ("/v1/events?limit=10&status=waiting&policy_id=p-000", 15.0),
    ("RUN?limit=10", 3.0),
    ("RUN?limit=10&status=dead", 5.0),
];

/// Lists cost what they show, not what is stored.
#[tokio::test]
async fn a_page_of_ten_costs_the_same_whatever_is_stored() {
    let (few, many) = (units_of_pages(12).await, units_of_pages(80).await);
    for ((path, most), ((_, few), (_, many))) in BUDGETS.into_iter().zip(few.into_iter().zip(many)) {
        assert!(few <= most && many <= most, "{path}: {few} of 12, {many} of 80, {most} is the budget");
    }
}

#[tokio::test]
async fn every_list_with_a_cursor_takes_a_limit() {
    let world = World::new().await;
    let document = world.send(Method::GET, "/v1/openapi.json", None, &[], "").await.json;
    let mut lists = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let parameters = operations["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let of = |name: &str| parameters.iter().find(|parameter| parameter["name"] == name);
        let Some(_) = of("cursor") else { continue };
        let limit = of("limit").unwrap_or_else(|| panic!("{path} takes no limit"));
        assert_eq!(
            (&limit["schema"]["minimum"], &limit["schema"]["maximum"]),
            (&json!(1), &json!(100)),
            "{path}"
        );
        lists += 1;
    }
    assert!(lists >= 9, "{lists} lists");
}

#[tokio::test]
async fn the_client_library_asks_for_pages_of_a_size() {
    let world = World::new().await;
    let (key, run) = stocked(&world).await;
    let run = run.rsplit('/').next().unwrap();
    let client = Client::new(world.serve().await, key).unwrap().with_pages_of(2);
    let jobs = client.jobs(None).await.unwrap();
    assert_eq!(jobs.rows.len(), 2);
    let second = client.jobs(jobs.next_cursor.as_deref()).await.unwrap();
    assert_eq!((second.rows.len(), second.rows[0] == jobs.rows[0]), (2, false));
    assert_eq!(client.policies(None).await.unwrap().rows.len(), 2);
    assert_eq!(client.runs("minutely", None).await.unwrap().rows.len(), 2);
    assert_eq!(client.events("batch", run, None).await.unwrap().rows.len(), 2);
    assert_eq!(client.dead_letters(&DeadLetterFilter::default(), None).await.unwrap().rows.len(), 2);
    let refused = client.with_pages_of(101).jobs(None).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().errors[0].field, "limit");
}
