//! Bodies that are JSON and not of the form that is asked for: every fault is named, with what would do.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::bad_input::with;
use crate::world::{Answer, QUEUE, World, at_job, cron_job};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// The fields that an answer names, each with what it says.
fn faults(answer: &Answer) -> Vec<(String, String)> {
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
    assert_eq!(answer.json["type"], "urn:tidegate:problem:invalid-body", "{}", answer.text);
    let errors = answer.json["errors"].as_array().unwrap_or_else(|| panic!("{}", answer.text));
    let text = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
    errors.iter().map(|error| (text(error, "field"), text(error, "message"))).collect()
}

fn fields(answer: &Answer) -> Vec<String> {
    faults(answer).into_iter().map(|(field, _)| field).collect()
}

#[tokio::test]
async fn null_and_values_of_another_type_name_their_field_and_what_is_accepted() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let policy = |name: &str, value: Value| json!({"policy_id": "p", "max_in_flight": 3, name: value});
    let job = |pointer: &str, value: Value| with(cron_job(), pointer, value);
    for (path, body, field, says) in [
        (
            "/v1/policies",
            policy("on_expiry", Value::Null),
            "on_expiry",
            "on_expiry must be \"reclaim\" or \"hold\", not null; leave it out if nothing is meant",
        ),
        (
            "/v1/policies",
            policy("rate", json!(2)),
            "rate",
            "rate must be a JSON object such as {\"burst\": 20, \"events\": 100, \"per\": \"second\"}, not 2",
        ),
        ("/v1/policies", policy("rate", json!({"events": 5, "per": null})), "rate.per", "not null"),
        (
            "/v1/jobs",
            job("/overlap", Value::Null),
            "overlap",
            "overlap must be \"allow\", \"skip\" or \"buffer_one\", not null; leave it out if nothing is meant",
        ),
        (
            "/v1/jobs",
            job("/history", json!(true)),
            "history",
            "history must be \"all\", \"failures\" or \"none\", not true",
        ),
        (
            "/v1/jobs",
            job("/trigger", json!({"cron": "@daily", "dst": {"gap": 1}})),
            "trigger.dst.gap",
            "trigger.dst.gap must be \"next_valid\" or \"skip\", not 1",
        ),
        (
            "/v1/jobs",
            job("/trigger", json!("0 3 * * *")),
            "trigger",
            "trigger must be a JSON object such as {\"cron\": \"0 9 * * MON-FRI\", \"zone\": \"Europe/London\"}, not \"0 3 * * *\"",
        ),
        (
            "/v1/jobs",
            job("/target", json!("https://acme.example/")),
            "target",
            "target must be a JSON object such as {\"sqs\": {\"queue_url\": \"https://sqs.",
        ),
        (
            "/v1/jobs",
            job("/misfire", json!("skip")),
            "misfire",
            "misfire must be a JSON object such as {\"max\": 100, \"rule\": \"all\"}, not \"skip\"",
        ),
        (
            "/v1/jobs",
            job("/trigger", json!({"rate": 2})),
            "trigger.rate",
            "trigger.rate must be a string such as \"5 minutes\", or a JSON object such as {\"every_seconds\": 300}, not 2",
        ),
        ("/v1/jobs", job("/count", json!(1.5)), "count", "count must be a whole number, not 1.5"),
        (
            "/v1/jobs",
            job("/calendars", Value::Null),
            "calendars",
            "calendars must be an array such as [\"holidays\"], not null",
        ),
        (
            "/v1/jobs",
            job("/calendars", json!([{}])),
            "calendars[0]",
            "calendars[0] must be a string, not an object",
        ),
        (
            "/v1/jobs",
            json!([cron_job(), cron_job()]),
            "(body)",
            "the body must be a JSON object, not an array; many jobs go to POST /v1/jobs/bulk, as {\"jobs\": [...]}",
        ),
        ("/v1/jobs", json!("x".repeat(500)), "(body)", "the body must be a JSON object, not \"xxx"),
        (
            "/v1/tokens/free",
            json!({"tokens": ["x"], "redeliver": "yes"}),
            "redeliver",
            "redeliver must be true or false, not \"yes\"",
        ),
        ("/v1/schedules/preview", json!({"trigger": []}), "trigger", "trigger must be a JSON object such as"),
    ] {
        let answer = world.post(path, &key, &body).await;
        let told = faults(&answer);
        assert_eq!(told.len(), 1, "{body}: {}", answer.text);
        assert_eq!(told[0].0, field, "{body}");
        assert!(told[0].1.contains(says), "{body}: {}", told[0].1);
        assert!(told[0].1.len() < 400, "{body}: {}", told[0].1);
    }
    let answer =
        world.post("/v1/tokens/release", &key, &json!({"tokens": [{"token": "t", "outcome": null}]})).await;
    let detail = answer.json["results"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("outcome must be \"succeeded\" or \"failed\", not null"), "{detail}");
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn an_array_in_the_place_of_an_object_is_refused_at_every_route_and_depth() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let job = |pointer: &str, value: Value| with(cron_job(), pointer, value);
    let positional = json!([null, 3, 30, "hold", null, null]);
    for (method, path, body, field) in [
        (Method::POST, "/v1/policies", positional.clone(), "(body)"),
        (Method::PUT, "/v1/policies/p", positional, "(body)"),
        (Method::PUT, "/v1/policies/p", json!({"max_in_flight": 3, "rate": [5, "second", null]}), "rate"),
        (Method::POST, "/v1/jobs", json!([null, ["@daily"], 1]), "(body)"),
        (
            Method::PUT,
            "/v1/jobs/j",
            job("/trigger", json!(["@daily", null, null, null, null, null, null])),
            "trigger",
        ),
        (Method::POST, "/v1/jobs", job("/trigger", json!({"cron": ["1", "2"]})), "trigger.cron"),
        (Method::POST, "/v1/jobs", job("/trigger", json!({"rate": [300]})), "trigger.rate"),
        (
            Method::POST,
            "/v1/jobs",
            job("/trigger", json!({"cron": "@daily", "dst": ["skip", "first"]})),
            "trigger.dst",
        ),
        (Method::POST, "/v1/jobs", job("/target", json!([{"queue_url": QUEUE}, null])), "target"),
        (Method::POST, "/v1/jobs", job("/target", json!({"sqs": [QUEUE, null]})), "target.sqs"),
        (
            Method::POST,
            "/v1/jobs",
            job("/target", json!({"http": ["https://a.example/", null]})),
            "target.http",
        ),
        (Method::POST, "/v1/jobs", job("/misfire", json!(["skip", null])), "misfire"),
        (Method::POST, "/v1/jobs", job("/window", json!([5, null, "expire", "none"])), "window"),
        (Method::POST, "/v1/jobs", job("/on_completion", json!([null, null])), "on_completion"),
        (Method::POST, "/v1/jobs/bulk", json!([[cron_job()]]), "(body)"),
        (
            Method::POST,
            "/v1/schedules/preview",
            json!([null, "@daily", null, 3, null, null, null, null]),
            "(body)",
        ),
        (Method::PUT, "/v1/calendars/c", json!([null, ["12-25"], [], null]), "(body)"),
        (
            Method::PUT,
            "/v1/calendars/c",
            json!({"intervals": [["2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"]]}),
            "intervals[0]",
        ),
        (Method::POST, "/v1/tokens/release", json!([["x"]]), "(body)"),
        (Method::POST, "/v1/tokens/extend", json!([["x"], 60]), "(body)"),
        (Method::POST, "/v1/tokens/free", json!([["x"], true]), "(body)"),
    ] {
        let answer = world.send(method, path, Some(&key), &JSON, &body.to_string()).await;
        let told = faults(&answer);
        assert_eq!(told.len(), 1, "{path} {body}: {}", answer.text);
        assert_eq!(told[0].0, field, "{path} {body}");
        assert!(told[0].1.contains("a JSON object"), "{path} {body}: {}", told[0].1);
        assert!(told[0].1.contains(", not an array"), "{path} {body}: {}", told[0].1);
    }
    for (method, path, body) in [
        (Method::POST, "/v1/clients", json!(["mallory", null])),
        (Method::PUT, "/v1/index/shards", json!(["UTC", "H:03", 4])),
    ] {
        let answer = world.send(method, path, Some(&world.admin_key), &JSON, &body.to_string()).await;
        assert_eq!(fields(&answer), ["(body)"], "{path}");
    }
    let answer =
        world.post("/v1/jobs/bulk", &key, &json!({"jobs": [["@daily"], {"trigger": ["@daily"]}]})).await;
    let results = &answer.json["results"];
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(422), &json!(422)), "{}", answer.text);
    let answer =
        world.post("/v1/tokens/release", &key, &json!({"tokens": [["x", "failed", null, null]]})).await;
    assert_eq!(answer.json["results"][0]["status"], "malformed", "{}", answer.text);
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn faults_of_form_and_of_meaning_are_told_in_one_answer() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let body = json!({
        "job_id": "a b", "trigger": {"cron": 5, "timezone": "UTC", "dst": "skip"}, "target": {"sqs": {"url": QUEUE}},
        "count": "ten", "cost": 99, "overlap": null, "colour": "red", "max_attempts": 0, "start_at": "monday",
        "policy_id": 7, "misfire": {}, "payloads": "one"
    });
    let answer = world.post("/v1/jobs", &key, &body).await;
    let mut found = fields(&answer);
    found.sort();
    let expected = [
        "colour",
        "cost",
        "count",
        "job_id",
        "max_attempts",
        "misfire.rule",
        "overlap",
        "payloads",
        "policy_id",
        "start_at",
        "target.sqs.queue_url",
        "target.sqs.url",
        "trigger.cron",
        "trigger.dst",
        "trigger.timezone",
    ];
    assert_eq!(found, expected, "{}", answer.text);
    assert!(answer.json["detail"].as_str().unwrap().ends_with("(and 14 more, see errors)"));
    let rest = world.post("/v1/jobs/bulk", &key, &json!({"jobs": [body]})).await;
    assert_eq!(rest.json["results"][0]["errors"].as_array().unwrap().len(), 15, "{}", rest.text);
    let body = json!({"lease_seconds": 1, "on_expiry": null, "rate": {"events": 0}, "max_waiting_runs": 0});
    let found = fields(&world.put("/v1/policies/p", &key, &body).await);
    assert_eq!(found, ["on_expiry", "rate.per", "max_in_flight", "lease_seconds", "max_waiting_runs"]);
    let body = json!({"client_id": "a b", "allowed_targets": 5, "name": "x"});
    let found = fields(&world.post("/v1/clients", &world.admin_key, &body).await);
    assert_eq!(found, ["allowed_targets", "name", "client_id"]);
    let body = json!({"dates": ["soon"], "intervals": [{"from": 1}], "zone": "Mars/Olympus"});
    let found = fields(&world.put("/v1/calendars/c", &key, &body).await);
    assert_eq!(found, ["intervals[0].from", "intervals[0].to", "zone", "dates[0]"]);
    let body = json!({"expression": "61 * * * *", "count": 0, "after": 5});
    let found = fields(&world.post("/v1/schedules/preview", &key, &body).await);
    assert_eq!(found, ["after", "expression", "count"]);
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn of_what_is_put_in_the_place_of_a_fault_nothing_is_told() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (pointer, value, field) in [
        // Without its policy, the job's cost would be refused too.
        ("/policy_id", json!(5), "policy_id"),
        ("/trigger", json!(5), "trigger"),
        ("/target", json!(5), "target"),
        ("/window", json!(5), "window"),
        ("/count", json!("5"), "count"),
        ("/payloads", json!(5), "payloads"),
        ("/start_at", json!(5), "start_at"),
        ("/on_completion", json!(5), "on_completion"),
        ("/misfire", json!({"max": 5}), "misfire.rule"),
    ] {
        let throttled =
            with(with(at_job("2026-12-01T00:00:00Z"), "/policy_id", json!("small")), "/cost", json!(2));
        let answer = world.post("/v1/jobs", &key, &with(throttled, pointer, value)).await;
        assert_eq!(fields(&answer), [field], "{pointer}: {}", answer.text);
    }
}

#[tokio::test]
async fn of_many_faults_the_first_are_told_and_the_others_counted() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let mut body = cron_job();
    for number in 0..120 {
        body[format!("field{number}")] = json!(number);
    }
    let answer = world.post("/v1/jobs", &key, &body).await;
    assert_eq!(fields(&answer).len(), 50, "{}", answer.text);
    let detail = answer.json["detail"].as_str().unwrap();
    assert!(detail.ends_with("(and 119 more, the first 50 of all are in errors)"), "{detail}");
}

#[tokio::test]
async fn a_field_that_is_given_twice_is_refused() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let text = cron_job().to_string().replacen('{', "{\"count\": 1, \"count\": 2, ", 1);
    let answer = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &text).await;
    assert_eq!(faults(&answer), [("count".to_owned(), "count is given twice; give it once".to_owned())]);
}

#[tokio::test]
async fn json_that_no_field_can_hold_is_not_called_no_json() {
    let world = World::new().await;
    let key = world.register("acme").await;
    for (value, says) in [("1e400", "number out of range"), ("\"\\ud800\"", "surrogate")] {
        let text = cron_job().to_string().replacen('{', &format!("{{\"count\": {value}, "), 1);
        let answer = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &text).await;
        let told = faults(&answer);
        assert_eq!(told[0].0, "(body)", "{value}");
        assert!(
            told[0].1.starts_with("the body cannot be read") || told[0].1.contains(says),
            "{value}: {told:?}"
        );
    }
    let odd = cron_job().to_string().replace("{\"report\":\"daily\"}", "[1e400, \"\\ud800\"]");
    assert!(odd.contains("1e400"));
    let taken = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &odd).await;
    assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text);
}

#[tokio::test]
async fn a_payload_is_nested_64_levels_deep_at_the_most() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let job = |name: &str, json: &str| {
        let mut text = at_job("2026-12-01T00:00:00Z").to_string();
        text.insert_str(1, &format!("\"{name}\": {json}, "));
        text
    };
    for levels in [64, 65, 127, 128, 129, 30_000] {
        for (name, json, field) in [
            ("payload", deep(levels), "payload"),
            ("payload_template", deep(levels), "payload_template"),
            ("payloads", format!("[1, {}]", deep(levels)), "payloads[1]"),
        ] {
            let answer = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &job(name, &json)).await;
            if levels <= 64 {
                assert_eq!(answer.status, StatusCode::CREATED, "{name}: {}", answer.text);
                continue;
            }
            let says = format!(
                "{field} is {levels} levels deep; 64 is the most: make it flatter, or send it as a string"
            );
            assert_eq!(faults(&answer), [(field.to_owned(), says)]);
            let text = job(name, &json);
            let bulk = format!("{{\"jobs\": [{text}]}}");
            let answer = world.send(Method::POST, "/v1/jobs/bulk", Some(&key), &JSON, &bulk).await;
            assert_eq!(answer.json["results"][0]["errors"][0]["field"], field, "{}", answer.text);
        }
    }
    for (name, field) in [("trigger", "trigger"), ("count", "count"), ("nothing", "nothing")] {
        let text = job(name, &deep(100_000));
        let answer = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &text).await;
        assert!(fields(&answer).iter().any(|found| found == field), "{name}: {}", answer.text);
    }
    let answer = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &deep(100_000)).await;
    assert_eq!(fields(&answer), ["(body)"]);
    let faulty = format!("{{\"cost\": 99, {}", &job("payload", &deep(30_000))[1..]);
    let answer = world.send(Method::POST, "/v1/jobs", Some(&key), &JSON, &faulty).await;
    assert_eq!(fields(&answer), ["payload", "cost"], "{}", answer.text);
}

/// What is said of one field that there is not.
async fn said_of_unknown(world: &World, key: &str, path: &str, body: Value, field: &str) -> String {
    let answer = world.post(path, key, &body).await;
    let told = faults(&answer).into_iter().find(|(found, _)| found == field);
    told.unwrap_or_else(|| panic!("{body}: {}", answer.text)).1
}

#[tokio::test]
async fn names_that_other_systems_use_are_told_what_they_are_called_here() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let job = |pointer: &str| with(cron_job(), pointer, json!("x"));
    let policy = |name: &str| json!({"policy_id": "p", "max_in_flight": 1, name: "x"});
    for (path, body, field, says) in [
        ("/v1/jobs", job("/timezone"), "timezone", "write 'trigger.zone', beside 'trigger.cron'"),
        ("/v1/jobs", job("/tz"), "tz", "write 'trigger.zone'"),
        ("/v1/jobs", job("/zone"), "zone", "it belongs elsewhere, write 'trigger.zone'"),
        ("/v1/jobs", job("/cron"), "cron", "it belongs elsewhere, write 'trigger.cron'"),
        ("/v1/jobs", job("/cron_expression"), "cron_expression", "write 'trigger.cron', such as"),
        ("/v1/jobs", job("/cronExpression"), "cronExpression", "write 'trigger.cron', such as"),
        ("/v1/jobs", job("/schedule"), "schedule", "write 'trigger.cron', such as"),
        ("/v1/jobs", job("/expression"), "expression", "write 'trigger.cron', such as"),
        ("/v1/jobs", job("/enabled"), "enabled", "pause a job with POST /v1/jobs/{job_id}/pause"),
        ("/v1/jobs", job("/labels"), "labels", "write 'tags', such as"),
        ("/v1/jobs", job("/url"), "url", "write 'target.http.url', such as"),
        ("/v1/jobs", job("/queue"), "queue", "write 'target.sqs.queue_url'"),
        (
            "/v1/jobs",
            job("/max_concurrency"),
            "max_concurrency",
            "a limit is a policy's: PUT /v1/policies/{policy_id}",
        ),
        ("/v1/jobs", job("/max_in_flight"), "max_in_flight", "a limit is a policy's"),
        ("/v1/jobs", job("/retries"), "retries", "write 'max_attempts', which counts the first delivery too"),
        ("/v1/jobs", job("/maxRetries"), "maxRetries", "write 'max_attempts'"),
        ("/v1/jobs", job("/body"), "body", "write 'payload'"),
        ("/v1/jobs", job("/data"), "data", "write 'payload'"),
        ("/v1/jobs", job("/jobId"), "jobId", "did you mean 'job_id'?"),
        ("/v1/jobs", job("/pirority"), "pirority", "did you mean 'priority'?"),
        ("/v1/jobs", job("/pace"), "pace", "it belongs elsewhere, write 'window.pace'"),
        ("/v1/jobs", job("/release"), "release", "it belongs elsewhere, write 'target.http.release'"),
        ("/v1/jobs", job("/colour"), "colour", "its fields are 'calendars', 'cost', 'count'"),
        ("/v1/jobs", job("/trigger/timezone"), "trigger.timezone", "write 'zone'"),
        ("/v1/jobs", job("/trigger/start_at"), "trigger.start_at", "it belongs elsewhere, write 'start_at'"),
        ("/v1/jobs", job("/target/url"), "target.url", "write {\"http\": {\"url\": \"...\"}}"),
        (
            "/v1/jobs",
            job("/target/sqs/url"),
            "target.sqs.url",
            "target.sqs has no field 'url': write 'queue_url' for the URL of a queue; the URL of an endpoint goes into {\"http\":",
        ),
        ("/v1/policies", policy("concurrency"), "concurrency", "write 'max_in_flight'"),
        ("/v1/policies", policy("limit"), "limit", "write 'max_in_flight'"),
        ("/v1/policies", policy("rps"), "rps", "write 'rate', such as"),
        ("/v1/policies", policy("burst"), "burst", "it belongs elsewhere, write 'rate.burst'"),
        (
            "/v1/policies",
            policy("enabled"),
            "enabled",
            "pause a policy with POST /v1/policies/{policy_id}/pause",
        ),
        ("/v1/schedules/preview", json!({"expresion": "@daily"}), "expresion", "did you mean 'expression'?"),
        ("/v1/schedules/preview", json!({"cron": "@daily"}), "cron", "write 'expression'"),
        ("/v1/jobs/bulk", cron_job(), "trigger", "it belongs elsewhere, write 'jobs[].trigger'"),
    ] {
        let said = said_of_unknown(&world, &key, path, body, field).await;
        assert!(said.contains(says), "{field}: {said}");
        assert!(field != "target.sqs.url" || !said.contains("release"), "{said}");
    }
    let long = "x".repeat(100_000);
    let answer = world.post("/v1/jobs", &key, &with(cron_job(), &format!("/{long}"), json!(1))).await;
    assert!(answer.text.len() < 2_000, "{}", answer.text.len());
}

#[tokio::test]
async fn what_people_write_first_gets_the_sentence_that_helps() {
    let world = World::new().await;
    let key = world.register("acme").await;
    let cron = |text: &str| with(cron_job(), "/trigger/cron", json!(text));
    let zone = |text: &str| with(cron_job(), "/trigger/zone", json!(text));
    for (body, field, says) in [
        (cron("every 5 minutes"), "trigger.cron", "write '*/5 * * * *', or {\"rate\": \"5 minutes\"}"),
        (cron("at 3am"), "trigger.cron", "write '0 3 * * *'"),
        (cron("0 3 * * * /usr/bin/backup.sh"), "trigger.cron", "is a line of a crontab: leave the command"),
        (
            cron("0 3 * * * root /bin/x"),
            "trigger.cron",
            "leave the user 'root' and the command out, write '0 3 * * *'",
        ),
        (cron("MAILTO=me"), "trigger.cron", "is a line of a crontab that sets the variable 'MAILTO'"),
        (zone("PST"), "trigger.zone", "name the zone itself, 'America/Los_Angeles'"),
        (zone("Local"), "trigger.zone", "name an IANA zone, such as 'Europe/Berlin', or 'UTC'"),
        (zone("Mars/Olympus"), "trigger.zone", "is unknown: name an IANA zone"),
        (zone("Europe/Berln"), "trigger.zone", "did you mean 'Europe/Berlin'?"),
        (at_job("2027-01-01"), "trigger.at", "has no time of day; write 2027-01-01T00:00:00Z"),
        (at_job("2027-02-30T09:00:00Z"), "trigger.at", "there is no 30 February 2027"),
        (at_job("2027-01-01T25:00:00Z"), "trigger.at", "has the hour 25, and hours are 00 to 23"),
        (at_job("1790000000"), "trigger.at", "write 2026-09-21T14:13:20Z"),
    ] {
        let told = faults(&world.post("/v1/jobs", &key, &body).await);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, field, "{told:?}");
        assert!(told[0].1.contains(says), "{told:?}");
    }
}
