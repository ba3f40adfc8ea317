//! A world with a client whom inputs come from, two neighbours, an endpoint, and a clock that moves a minute at a time.

use std::panic::AssertUnwindSafe;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use futures::FutureExt as _;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidegate_api::{ApiState, router};
use tidegate_domain::clock::Clock as _;
use tidegate_embedded::ClientOptions;
use tidegate_simulation::World;
use tidegate_simulation::world::Received;
use tidegate_store::KeyHash;
use tidegate_testkit::queue;
use tower::ServiceExt as _;

use crate::fault::Fault;
use crate::input::Input;
use crate::json::Json;
use crate::known::Known;
use crate::messages::chunk_to;
use crate::neighbours::Neighbours;
use crate::panics;
use crate::schema::{Key, Request, Spoil};
use crate::targets::{Answer, Endpoint, QueueAnswer};
use crate::verdict;

/// The client whom inputs come from.
const CLIENT: &str = "acme";
/// Its queue.
const QUEUE: &str = "acme";
const ADMIN_KEY: &str = "an-admin-key-of-some-length-0123456789";
/// Half a minute: inputs arrive between two ticks.
const HALF_MINUTE: i64 = 30;
/// Receive calls that the client makes in a minute: it leaves the rest.
const RECEIVES: u32 = 6;

/// How requests were answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// With 2xx.
    pub accepted: u64,
    /// With anything else.
    pub refused: u64,
}

/// A round's world.
pub struct Stage {
    /// How requests were answered in it.
    pub tally: Tally,
    /// What exists in it.
    pub known: Known,
    world: World,
    router: Router,
    neighbours: Neighbours,
    endpoint: Endpoint,
    sqs: aws_sdk_sqs::Client,
    key: String,
    /// Deliveries that answers were drawn for: each is of a job of its own.
    deliveries: u64,
    is_shut_out: bool,
}

/// What came of an input or of a minute.
pub type Outcome = Result<Option<Fault>>;

impl Stage {
    /// A world at 30 seconds past noon, in which the client has a policy, a calendar and some jobs.
    ///
    /// # Errors
    /// When the machinery fails.
    pub async fn new() -> Result<Self> {
        panics::count();
        panics::taken();
        let world = World::with_loopback_targets().await?;
        let endpoint = Endpoint::open().await?;
        let queue_url = world.queue(QUEUE).await?;
        let origin_bytes = queue_url.find("/000000000000").context("a queue's URL names no account")?;
        let queue_origin = queue_url[..origin_bytes].to_owned();
        let state = ApiState::new(world.engine.clone(), Some(KeyHash::of(ADMIN_KEY).as_str()));
        let mut stage = Self {
            tally: Tally::default(),
            known: Known {
                queue_url,
                queue_origin,
                endpoint: format!("{}/", endpoint.url),
                ..Known::default()
            },
            neighbours: Neighbours::settle(&world).await?,
            sqs: world.embedded.sqs_with(&ClientOptions::without_retries()),
            router: router(state),
            world,
            endpoint,
            key: String::new(),
            deliveries: 0,
            is_shut_out: false,
        };
        stage.furnish().await?;
        stage.world.engine.tick().await?;
        stage.world.advance(HALF_MINUTE);
        Ok(stage)
    }

    /// Another world in its place. What was counted stays.
    ///
    /// # Errors
    /// When the machinery fails.
    pub async fn afresh(self) -> Result<Self> {
        let tally = self.tally;
        drop(self);
        Ok(Self { tally, ..Self::new().await? })
    }

    /// What time it is in the round, in seconds since the epoch.
    pub fn now_s(&self) -> i64 {
        self.world.clock.now().timestamp()
    }

    /// Sends an input to its entry.
    ///
    /// # Errors
    /// When the machinery itself fails.
    pub async fn feed(&mut self, input: &Input) -> Outcome {
        let fed = match input {
            Input::Request(request) => self.request(request).await,
            Input::Message(body, received) => {
                let body = body.to_string();
                Ok(caught(self.world.engine.handle(&body, *received)).await.err())
            }
            Input::Releases(bodies) => {
                let bodies: Vec<String> = bodies.iter().map(ToString::to_string).collect();
                let messages: Vec<(&str, u32)> = bodies.iter().map(|body| (&**body, 1)).collect();
                Ok(caught(self.world.engine.handle_releases(&messages)).await.err())
            }
            Input::Answer(answer) => self.answer(answer).await,
            Input::QueueAnswer(answer) => self.queue_answer(*answer).await,
        };
        Ok(a_panic().or(fed?))
    }

    /// Moves on to the next minute: ticks, handles what our queues have, looks at the neighbours, and half a minute later
    /// handles what has come since.
    ///
    /// # Errors
    /// When the machinery itself fails.
    pub async fn minute(&mut self) -> Outcome {
        self.world.advance(HALF_MINUTE);
        let ticked = match caught(self.world.engine.tick()).await {
            Err(panic) => Some(panic),
            Ok(Err(error)) => Some(Fault::Tick(error.to_string())),
            Ok(Ok(_)) => None,
        };
        if let Some(fault) = ticked.or(self.pump().await?).or(self.neighbours.check(&self.world).await?) {
            return Ok(Some(fault));
        }
        self.consume().await?;
        self.learn_runs().await?;
        self.world.advance(HALF_MINUTE);
        self.pump().await
    }

    async fn pump(&self) -> Outcome {
        let pumped = match caught(self.world.pump()).await {
            Err(panic) => Some(panic),
            Ok(pumped) => pumped.map(|_| None)?,
        };
        Ok(a_panic().or(pumped))
    }

    async fn request(&mut self, request: &Request) -> Outcome {
        let Some(http) = request.build(&self.key, ADMIN_KEY) else { return Ok(None) };
        let answered = async {
            let (parts, body) = self.router.clone().oneshot(http).await?.into_parts();
            anyhow::Ok((parts, body.collect().await?.to_bytes()))
        };
        let (parts, body) = match caught(answered).await {
            Err(panic) => return Ok(Some(panic)),
            Ok(answered) => answered?,
        };
        match parts.status.is_success() {
            true => self.tally.accepted += 1,
            false => self.tally.refused += 1,
        }
        if parts.status.is_success()
            && let Ok(answer) = serde_json::from_slice(&body)
        {
            self.learn(&answer);
        }
        Ok(verdict::of(request, &parts, &body))
    }

    /// Remembers the ids and the cursors that an answer names.
    fn learn(&mut self, answer: &Value) {
        let known = &mut self.known;
        let of_list = ["jobs", "policies", "calendars", "runs", "results"].into_iter();
        let items = of_list.filter_map(|name| answer[name].as_array()).flatten();
        for item in items.chain([answer]) {
            for (field, names) in [
                ("job_id", &mut known.jobs),
                ("policy_id", &mut known.policies),
                ("calendar_id", &mut known.calendars),
                ("run_id", &mut known.runs),
                ("next_cursor", &mut known.cursors),
            ] {
                if let Some(name) = item[field].as_str() {
                    names.learn(name);
                }
            }
        }
    }

    /// Has an event delivered to an address that answers so, and every later delivery of this world as well.
    async fn answer(&mut self, answer: &Answer) -> Outcome {
        self.deliveries += 1;
        let path = format!("/{}", self.deliveries);
        self.endpoint.answer(&path, answer);
        let target = json!({"u": format!("{}{path}", self.endpoint.url)});
        let chunk = chunk_to(target, &format!("answered-{}", self.deliveries), self.now_s(), 1)?;
        Ok(caught(self.world.engine.handle(&chunk.encode(), 1)).await.err())
    }

    /// Has events delivered to a queue that fails so.
    async fn queue_answer(&mut self, answer: QueueAnswer) -> Outcome {
        self.deliveries += 1;
        let job = format!("refused-{}", self.deliveries);
        let chunk = chunk_to(json!({"q": self.known.queue_url}), &job, self.now_s(), answer.events)?;
        self.world.embedded.inject(answer.plan(QUEUE));
        let handled = caught(self.world.engine.handle(&chunk.encode(), 1)).await;
        self.world.embedded.inject_nothing();
        Ok(handled.err())
    }

    /// Takes some of the client's events, and remembers their ids and tokens.
    async fn consume(&mut self) -> Result<()> {
        for _ in 0..RECEIVES {
            let messages = queue::receive(&self.sqs, &self.known.queue_url).await?;
            for message in &messages {
                let Ok(event) = Received::read(message.body().unwrap_or_default()) else { continue };
                self.known.events.learn(&event.body.event_id);
                self.known.runs.learn(&event.body.run_id);
                if let Some(token) = &event.body.token {
                    self.known.tokens.learn(token);
                }
            }
            queue::delete(&self.sqs, &self.known.queue_url, &messages).await?;
        }
        Ok(())
    }

    /// Remembers the runs of a job. An input of the admin's may have suspended or deleted the client: then there is nothing more to learn.
    async fn learn_runs(&mut self) -> Result<()> {
        let (request, status, body) = self.call("GET", "/v1/jobs/hook/runs", None).await?;
        self.is_shut_out = status == StatusCode::FORBIDDEN;
        if !self.is_shut_out {
            self.learn_of(&request, status, &body)?;
        }
        Ok(())
    }

    /// Whether the client's key was refused at the end of the last minute, for good or until an admin resumes it.
    pub fn is_shut_out(&self) -> bool {
        self.is_shut_out
    }

    /// What the client has before anything arrives: its key, a policy whose events go to its queue, one whose events go to
    /// an endpoint that releases by its answer, a calendar.
    async fn furnish(&mut self) -> Result<()> {
        let (queue_url, endpoint) = (self.known.queue_url.clone(), self.endpoint.url.clone());
        let queue_host = queue_url.strip_suffix(QUEUE).context("a queue's URL does not end in its name")?;
        // Nothing that a delivery calls may lie on another machine.
        let allowed = json!([
            format!("{endpoint}/*"),
            "http://127.0.0.1:1/*",
            "http://[::1]:1/*",
            format!("{queue_host}*"),
        ]);
        let client = json!({"client_id": CLIENT, "allowed_targets": allowed});
        let registered = self.ask("POST", "/v1/clients", Some(client)).await?;
        registered["api_key"].as_str().context("a registration shows no key")?.clone_into(&mut self.key);
        let sqs = json!({"sqs": {"queue_url": queue_url}});
        let http = json!({"http": {"url": format!("{endpoint}/hook"), "release": "on_response"}});
        let done = json!({"http": {"url": format!("{endpoint}/done")}});
        let soon = self.world.clock.now() + chrono::Duration::minutes(1);
        for (method, path, body) in [
            ("PUT", "/v1/policies/small", json!({"max_in_flight": 3, "lease_seconds": 30})),
            ("PUT", "/v1/policies/hooks", json!({"max_in_flight": 2, "lease_seconds": 10})),
            ("PUT", "/v1/calendars/holidays", json!({"dates": ["2026-12-25"], "zone": "UTC"})),
            (
                "PUT",
                "/v1/jobs/nightly",
                json!({"trigger": {"cron": "* * * * *", "zone": "UTC"}, "target": sqs, "count": 3, "policy_id": "small"}),
            ),
            (
                "PUT",
                "/v1/jobs/hook",
                json!({"trigger": {"rate": "1 minute"}, "target": http, "policy_id": "hooks", "max_attempts": 2,
                    "on_completion": done}),
            ),
            ("POST", "/v1/jobs", json!({"trigger": {"at": rfc3339(soon)}, "target": sqs, "count": 2})),
        ] {
            self.ask(method, path, Some(body)).await?;
        }
        Ok(())
    }

    /// A request that must succeed.
    async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let (request, status, body) = self.call(method, path, body).await?;
        self.learn_of(&request, status, &body)
    }

    fn learn_of(&mut self, request: &Request, status: StatusCode, body: &Bytes) -> Result<Value> {
        ensure!(status.is_success(), "{request}\nis answered {status}: {body:?}");
        let answer = serde_json::from_slice(body)?;
        self.learn(&answer);
        Ok(answer)
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<(Request, StatusCode, Bytes)> {
        let headers =
            body.iter().map(|_| ("content-type".to_owned(), "application/json".to_owned())).collect();
        let key = if path == "/v1/clients" { Key::Admin } else { Key::Client };
        let body = body.as_ref().map(Json::from);
        let request = Request {
            method: method.to_owned(),
            target: path.to_owned(),
            key,
            headers,
            body,
            spoil: Spoil::None,
        };
        let http = request.build(&self.key, ADMIN_KEY).context("failed to build a request")?;
        let (parts, body) = self.router.clone().oneshot(http).await?.into_parts();
        Ok((request, parts.status, body.collect().await?.to_bytes()))
    }
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// What a future gives, or the panic that ended it.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Fault> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|_| {
        let unseen =
            panics::Panic { place: "unknown".to_owned(), message: "a panic that no hook saw".to_owned() };
        a_panic().unwrap_or(Fault::Panic(unseen))
    })
}

/// The first panic since the last look.
fn a_panic() -> Option<Fault> {
    panics::taken().into_iter().next().map(Fault::Panic)
}
