//! No client sees, changes or even notices what is another's (I7, I9): each operation of the OpenAPI document is tried with
//! another client's key and ids. An operation that is new has no body here, and fails until it has one.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_api::openapi_json;

use crate::world::{Answer, QUEUE, World, batch};

/// What all that is acme's is named with, and nothing else is.
const OWN: &str = "acme";
/// The same names as nobody has them: of as many letters, so that answers are as long.
const NOBODY: &str = "none";

/// An operation of the document.
struct Operation {
    method: Method,
    path: String,
    described: Value,
}

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether the document says that only this key may call it.
    fn wants(&self, key: &str) -> bool {
        self.described["security"] == json!([{key: []}])
    }

    /// Whether the document says that no key is asked for.
    fn is_open(&self) -> bool {
        self.described["security"] == json!([{}])
    }

    fn takes_a_body(&self) -> bool {
        !self.described["requestBody"].is_null()
    }
}

fn operations() -> Vec<Operation> {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let of = |(path, methods): (&String, &Value)| {
        let each = methods.as_object().unwrap().iter().map(|(method, described)| Operation {
            method: method.to_uppercase().parse().unwrap(),
            path: path.clone(),
            described: described.clone(),
        });
        each.collect::<Vec<_>>()
    };
    paths.flat_map(of).collect()
}

/// Something of every kind, all of one client, and another client that has nothing.
struct Two {
    world: World,
    acme: String,
    rival: String,
    run: String,
    /// Delivered, and not released yet.
    event: String,
    token: String,
    /// Released as failed, and a dead letter since.
    letter: String,
    key_id: String,
}

impl Two {
    async fn new() -> Self {
        let world = World::new().await;
        let (acme, rival) = (world.register(OWN).await, world.register("rival").await);
        for (path, body) in [
            ("/v1/policies/acme-policy", json!({"max_in_flight": 2})),
            ("/v1/calendars/acme-days", json!({"dates": ["12-25"]})),
            ("/v1/secrets/acme-secret", json!({"value": "what acme keeps to itself"})),
            ("/v1/jobs/acme-held", job("acme")),
            ("/v1/jobs/acme-job", batch_of("acme")),
        ] {
            let put = world.put(path, &acme, &body).await;
            assert!(put.status.is_success(), "{path}: {}", put.text);
        }
        let held =
            world.post("/v1/jobs/acme-held/sideline", &acme, &json!({"because": "acme repairs"})).await;
        assert!(held.status.is_success(), "{}", held.text);
        let events = world.receive().await;
        let [first, second] = &events[..] else { panic!("{events:?}") };
        let failed = json!({"tokens": [{"token": first["token"], "outcome": "failed"}]});
        let released = world.post("/v1/tokens/release", &acme, &failed).await;
        assert_eq!(released.json["results"][0]["status"], "released", "{}", released.text);
        world.minutes(1).await;
        let letters = world.get("/v1/dead-letters", &acme).await;
        let keys = world.get("/v1/keys", &acme).await;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned();
        Self {
            run: text(&second["run_id"]),
            event: text(&second["event_id"]),
            token: text(&second["token"]),
            letter: text(&letters.json["dead_letters"][0]["event_id"]),
            key_id: text(&keys.json["keys"][0]["key_id"]),
            world,
            acme,
            rival,
        }
    }

    /// The path of an operation with what is acme's, or would be if its names were others.
    fn path(&self, operation: &Operation, owner: &str) -> String {
        let event = if operation.path.starts_with("/v1/dead-letters") { &self.letter } else { &self.event };
        let key_id = if owner == OWN { self.key_id.clone() } else { "0".repeat(self.key_id.len()) };
        let ids = [
            ("{job_id}", "acme-job"),
            ("{run_id}", &self.run),
            ("{event_id}", event),
            ("{policy_id}", "acme-policy"),
            ("{calendar_id}", "acme-days"),
            ("{secret_id}", "acme-secret"),
            ("{client_id}", OWN),
            ("{revision}", "1"),
        ];
        let path = ids.iter().fold(operation.path.clone(), |path, (name, id)| path.replace(name, id));
        let path = path.replace(OWN, owner).replace("{key_id}", &key_id);
        assert!(!path.contains('{'), "{path}: say what this part is");
        path
    }

    /// A body that says something of all that an operation may name.
    fn body(&self, operation: &Operation, owner: &str) -> Value {
        let body = match &*operation.name() {
            "POST /v1/jobs" | "PUT /v1/jobs/{job_id}" => job(owner),
            "PATCH /v1/jobs/{job_id}" => {
                json!({"policy_id": format!("{owner}-policy"), "calendars": [format!("{owner}-days")]})
            }
            "POST /v1/jobs/bulk" => json!({"jobs": [job(owner), batch_of(owner)]}),
            "POST /v1/policies" => json!({"policy_id": format!("{owner}-policy"), "max_in_flight": 7}),
            "PUT /v1/policies/{policy_id}" | "PATCH /v1/policies/{policy_id}" => json!({"max_in_flight": 7}),
            "POST /v1/policies/{policy_id}/close" => json!({"until": "2026-11-21T13:00:00Z"}),
            "PUT /v1/calendars/{calendar_id}" | "POST /v1/calendars/{calendar_id}/preview" => {
                json!({"dates": ["01-01"]})
            }
            "PUT /v1/secrets/{secret_id}" => json!({"value": "another"}),
            "POST /v1/schedules/preview" => json!({"trigger": {"cron": "0 9 * * *"}}),
            "POST /v1/tokens/release" | "POST /v1/tokens/extend" | "POST /v1/tokens/free" => {
                json!({"tokens": [self.token]})
            }
            "POST /v1/dead-letters/redrive" | "POST /v1/dead-letters/discard" => {
                json!({"event_ids": [self.letter.replace(OWN, owner)]})
            }
            "POST /v1/runs/cancel" => {
                json!({"prefix": owner, "since": "2026-11-20T00:00:00Z", "until": "2026-11-22T00:00:00Z"})
            }
            "POST /v1/jobs/{job_id}/skip" => json!({}),
            "POST /v1/jobs/{job_id}/pause" => json!({"because": "curiosity"}),
            "POST /v1/jobs/{job_id}/rollback" => json!({"revision": 1}),
            "POST /v1/jobs/{job_id}/reschedule" => json!({"trigger": {"rate": "1 hour"}}),
            "POST /v1/jobs/{job_id}/backfill" => {
                json!({"since": "2026-11-20T00:00:00Z", "until": "2026-11-21T00:00:00Z"})
            }
            "POST /v1/jobs/bulk/pause" | "POST /v1/jobs/bulk/resume" | "POST /v1/jobs/bulk/delete" => {
                json!({"prefix": owner, "policy_id": format!("{owner}-policy")})
            }
            "POST /v1/sideline"
            | "POST /v1/jobs/{job_id}/sideline"
            | "POST /v1/clients/{client_id}/sideline"
            | "POST /v1/clients/{client_id}/suspend" => json!({"because": "curiosity"}),
            "POST /v1/drain"
            | "POST /v1/jobs/{job_id}/drain"
            | "POST /v1/clients/{client_id}/drain"
            | "POST /v1/clients/{client_id}/resume" => json!({"per_second": 1}),
            "POST /v1/keys" | "POST /v1/clients/{client_id}/keys" => json!({"note": "mine"}),
            "POST /v1/webhook-secret/rotate" => json!({}),
            "POST /v1/clients" => json!({"client_id": "rivals-friend"}),
            "PATCH /v1/clients/{client_id}" => json!({"allowed_targets": ["https://example.com/*"]}),
            "PUT /v1/index/shards" => json!({"zone": "UTC", "launch_expression": "H:03", "shards": 2}),
            _ if operation.takes_a_body() => {
                panic!("{}: say what a client could send here", operation.name())
            }
            _ => Value::Null,
        };
        assert_eq!(!body.is_null(), operation.takes_a_body(), "{}", operation.name());
        body
    }

    async fn call(&self, operation: &Operation, owner: &str, key: Option<&str>) -> Answer {
        let (mut path, body) = (self.path(operation, owner), self.body(operation, owner));
        if operation.path == "/v1/events" {
            path.push_str(&format!("?status=in_flight&policy_id={owner}-policy"));
        }
        let json = [("content-type", "application/json")];
        let (headers, body) = match body {
            Value::Null => (&[][..], String::new()),
            body => (&json[..], body.to_string()),
        };
        self.world.send(operation.method.clone(), &path, key, headers, &body).await
    }

    /// What is stored of acme. The other may name what it makes as it likes.
    async fn of_acme(&self) -> Vec<String> {
        let mut rows = self.world.everything().await;
        rows.retain(|row| row.contains(OWN) && !row.contains("rival"));
        rows
    }
}

/// A job that names what `owner` has.
fn job(owner: &str) -> Value {
    let named = |what: &str| format!("{owner}-{what}");
    json!({
        "trigger": {"cron": "0 9 * * *", "zone": "Europe/London"},
        "target": {"http": {
            "url": "https://example.com/hook", "headers": {"x-key": format!("{{{{secret:{}}}}}", named("secret"))},
        }},
        "policy_id": named("policy"), "calendars": [named("days")], "payload": {"of": owner}
    })
}

fn batch_of(owner: &str) -> Value {
    let mut job = batch(3);
    job["policy_id"] = json!(format!("{owner}-policy"));
    job["target"] = json!({"sqs": {"queue_url": QUEUE}});
    job["payload"] = json!({"of": owner});
    job
}

#[tokio::test]
async fn what_is_anothers_is_neither_seen_nor_changed_nor_noticed() {
    let mut tried = 0;
    for operation in operations() {
        let two = Two::new().await;
        let before = two.of_acme().await;
        let theirs = two.call(&operation, OWN, Some(&two.rival)).await;
        let nobodys = two.call(&operation, NOBODY, Some(&two.rival)).await;
        let name = operation.name();
        let after = two.of_acme().await;
        let changed: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
        assert!(
            changed.is_empty() && after.len() == before.len(),
            "{name} changed {changed:?}: {}",
            theirs.text
        );
        if operation.is_open() {
            continue;
        }
        if operation.wants("admin_key") {
            assert_eq!(theirs.status, StatusCode::UNAUTHORIZED, "{name}: {}", theirs.text);
            continue;
        }
        tried += 1;
        // What the call itself named comes back in its answer; nothing else of acme does.
        for kept in ["acme keeps", "acme repairs", "\"of\":\"acme\"", &*two.acme] {
            assert!(!theirs.text.contains(kept), "{name}: {}", theirs.text);
        }
        let told = |answer: &Answer| (answer.status, answer.text.replace(OWN, NOBODY));
        let is_named = operation.path.contains('{') && !operation.path.contains("{key_id}");
        if is_named {
            assert_eq!(told(&theirs), told(&nobodys), "{name} tells whether another client has it");
        } else {
            assert_eq!(theirs.status, nobodys.status, "{name}: {} {}", theirs.text, nobodys.text);
        }
    }
    assert!(tried > 40, "{tried}");
}

#[tokio::test]
async fn without_a_key_nothing_is_answered_but_what_the_document_leaves_open() {
    let two = Two::new().await;
    let before = two.world.everything().await;
    for operation in operations() {
        let answer = two.call(&operation, OWN, None).await;
        let is_refused = answer.status == StatusCode::UNAUTHORIZED;
        assert_eq!(is_refused, !operation.is_open(), "{}: {}", operation.name(), answer.text);
    }
    assert_eq!(two.world.everything().await, before);
}

/// Otherwise the test above would hold whatever the API does.
#[tokio::test]
async fn acme_itself_finds_all_that_the_others_are_refused() {
    let mut refused = Vec::new();
    for operation in operations().into_iter().filter(|operation| !operation.is_open()) {
        let two = Two::new().await;
        let key = if operation.wants("admin_key") { &two.world.admin_key } else { &two.acme };
        let answer = two.call(&operation, OWN, Some(key)).await;
        if !answer.status.is_success() && answer.status != StatusCode::CONFLICT {
            refused.push(format!("{}: {} {}", operation.name(), answer.status, answer.text));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
