//! One call of the API: address, key, body, and what the answer means.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, IF_MATCH, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidegate_protocol::{Problem, RegisteredClient, Unreadable, WebhookSecret};

use crate::error::Error;

/// How long a call may take.
const CALL_SECONDS: u64 = 30;

/// The API of a Tidegate, as one caller. Cheap to clone; clones share their connections.
///
/// # Errors of every call
/// [`Error::Transport`] when no answer comes within 30 seconds; [`Error::Refused`] with status 401 when the key is not
/// valid, 503 when it cannot be done right now, and 500 when something is wrong there; [`Error::Unreadable`] when the
/// answer is not what this version expects. What else a call is refused for stands with it.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: String,
    api_key: String,
    /// In whose place the admin calls.
    in_place_of: Option<String>,
    /// How many rows the pages of lists have; `None`: as many as there may be.
    page_rows: Option<u32>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// A page of a list, of up to 100 rows ([`Client::with_pages_of`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its rows, in the order of the list.
    pub rows: Vec<T>,
    /// What the list has beside them and the server cannot read; empty when there is none.
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with, as `cursor`; `None` on the last.
    pub next_cursor: Option<String>,
}

/// The header that names a call, so that it does nothing twice.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A route of the API, with the names that are parts of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route<'a> {
    Clients,
    ClientOf(&'a str),
    OwnClient,
    OwnUsage,
    UsageOf(&'a str),
    OwnLateness,
    LatenessOf(&'a str),
    SuspendClient(&'a str),
    ResumeClient(&'a str),
    Keys,
    Key(&'a str),
    KeysOf(&'a str),
    KeyOf(&'a str, &'a str),
    SidelineClient(&'a str),
    DrainClient(&'a str),
    Index,
    Shards,
    Health,
    Policies,
    Policy(&'a str),
    WebhookSecret,
    PolicySamples(&'a str),
    PausePolicy(&'a str),
    ResumePolicy(&'a str),
    ClosePolicy(&'a str),
    OpenPolicy(&'a str),
    Sideline,
    Drain,
    SidelineJob(&'a str),
    DrainJob(&'a str),
    Targets,
    Holders(&'a str),
    Calendars,
    Calendar(&'a str),
    PreviewCalendar(&'a str),
    Secrets,
    Secret(&'a str),
    Jobs,
    OneTimeJobs,
    Bulk,
    PauseJobs,
    ResumeJobs,
    DeleteJobs,
    Job(&'a str),
    PauseJob(&'a str),
    ResumeJob(&'a str),
    TriggerJob(&'a str),
    Changes,
    Versions(&'a str),
    Version(&'a str, &'a str),
    RollBack(&'a str),
    Reschedule(&'a str),
    SkipLaunch(&'a str),
    Backfill(&'a str),
    AllRuns,
    CountRuns,
    Overdue,
    CancelRuns,
    Ahead,
    Upcoming(&'a str),
    Preview,
    Runs(&'a str),
    Run(&'a str, &'a str),
    CancelRun(&'a str, &'a str),
    Events(&'a str, &'a str),
    AllEvents,
    Explain(&'a str),
    Failures(&'a str),
    DeadLetters,
    CountDeadLetters,
    DeadLetter(&'a str),
    Redrive,
    Discard,
    Release,
    Extend,
    Free,
}

impl Route<'_> {
    fn path(self) -> String {
        let (collection, names, what): (&str, &[&str], &str) = match &self {
            Self::Clients => ("clients", &[], ""),
            Self::ClientOf(id) => ("clients", &[id], ""),
            Self::SuspendClient(id) => ("clients", &[id], "/suspend"),
            Self::ResumeClient(id) => ("clients", &[id], "/resume"),
            Self::OwnClient => ("client", &[], ""),
            Self::OwnUsage => ("usage", &[], ""),
            Self::UsageOf(id) => ("clients", &[id], "/usage"),
            Self::OwnLateness => ("lateness", &[], ""),
            Self::LatenessOf(id) => ("clients", &[id], "/lateness"),
            Self::Keys => ("keys", &[], ""),
            Self::Key(id) => ("keys", &[id], ""),
            Self::KeysOf(client) => ("clients", &[client], "/keys"),
            Self::KeyOf(client, key) => ("clients", &[client, "keys", key], ""),
            Self::SidelineClient(id) => ("clients", &[id], "/sideline"),
            Self::DrainClient(id) => ("clients", &[id], "/drain"),
            Self::Index => ("index", &[], ""),
            Self::Shards => ("index", &[], "/shards"),
            Self::Health => ("health", &[], ""),
            Self::Policies => ("policies", &[], ""),
            Self::Policy(id) => ("policies", &[id], ""),
            Self::PolicySamples(id) => ("policies", &[id], "/samples"),
            Self::PausePolicy(id) => ("policies", &[id], "/pause"),
            Self::ResumePolicy(id) => ("policies", &[id], "/resume"),
            Self::ClosePolicy(id) => ("policies", &[id], "/close"),
            Self::OpenPolicy(id) => ("policies", &[id], "/open"),
            Self::Sideline => ("sideline", &[], ""),
            Self::Drain => ("drain", &[], ""),
            Self::SidelineJob(id) => ("jobs", &[id], "/sideline"),
            Self::DrainJob(id) => ("jobs", &[id], "/drain"),
            Self::Targets => ("targets", &[], ""),
            Self::WebhookSecret => ("webhook-secret", &[], "/rotate"),
            Self::Holders(id) => ("policies", &[id], "/holders"),
            Self::Calendars => ("calendars", &[], ""),
            Self::Calendar(id) => ("calendars", &[id], ""),
            Self::PreviewCalendar(id) => ("calendars", &[id], "/preview"),
            Self::Secrets => ("secrets", &[], ""),
            Self::Secret(id) => ("secrets", &[id], ""),
            Self::Jobs => ("jobs", &[], ""),
            Self::OneTimeJobs => ("one-time-jobs", &[], ""),
            Self::Bulk => ("jobs", &[], "/bulk"),
            Self::PauseJobs => ("jobs", &[], "/bulk/pause"),
            Self::ResumeJobs => ("jobs", &[], "/bulk/resume"),
            Self::DeleteJobs => ("jobs", &[], "/bulk/delete"),
            Self::Job(id) => ("jobs", &[id], ""),
            Self::PauseJob(id) => ("jobs", &[id], "/pause"),
            Self::ResumeJob(id) => ("jobs", &[id], "/resume"),
            Self::TriggerJob(id) => ("jobs", &[id], "/trigger"),
            Self::Changes => ("changes", &[], ""),
            Self::Versions(id) => ("jobs", &[id], "/versions"),
            Self::Version(id, revision) => ("jobs", &[id, "versions", revision], ""),
            Self::RollBack(id) => ("jobs", &[id], "/rollback"),
            Self::Reschedule(id) => ("jobs", &[id], "/reschedule"),
            Self::SkipLaunch(id) => ("jobs", &[id], "/skip"),
            Self::AllRuns => ("runs", &[], ""),
            Self::CountRuns => ("runs", &[], "/count"),
            Self::Overdue => ("overdue", &[], ""),
            Self::CancelRuns => ("runs", &[], "/cancel"),
            Self::Ahead => ("upcoming", &[], ""),
            Self::Backfill(id) => ("jobs", &[id], "/backfill"),
            Self::Upcoming(id) => ("jobs", &[id], "/upcoming"),
            Self::Preview => ("schedules", &[], "/preview"),
            Self::Runs(job) => ("jobs", &[job], "/runs"),
            Self::Run(job, run) => ("jobs", &[job, "runs", run], ""),
            Self::CancelRun(job, run) => ("jobs", &[job, "runs", run], "/cancel"),
            Self::Events(job, run) => ("jobs", &[job, "runs", run], "/events"),
            Self::AllEvents => ("events", &[], ""),
            Self::Explain(event) => ("events", &[event], "/explain"),
            Self::Failures(event) => ("events", &[event], "/failures"),
            Self::DeadLetters => ("dead-letters", &[], ""),
            Self::CountDeadLetters => ("dead-letters", &[], "/count"),
            Self::DeadLetter(event) => ("dead-letters", &[event], ""),
            Self::Redrive => ("dead-letters", &[], "/redrive"),
            Self::Discard => ("dead-letters", &[], "/discard"),
            Self::Release => ("tokens", &[], "/release"),
            Self::Extend => ("tokens", &[], "/extend"),
            Self::Free => ("tokens", &[], "/free"),
        };
        let names: String = names.iter().map(|name| format!("/{}", escaped(name))).collect();
        format!("/v1/{collection}{names}{what}")
    }
}

fn registration(client_id: &str, allowed_targets: &[&str]) -> Value {
    let allowed_targets = Some(allowed_targets).filter(|targets| !targets.is_empty());
    json!({"client_id": client_id, "allowed_targets": allowed_targets})
}

fn rotation(keep_seconds: Option<u32>) -> Value {
    match keep_seconds {
        Some(seconds) => json!({"keep_seconds": seconds}),
        None => json!({}),
    }
}

/// A route with parameters.
fn asked(route: Route<'_>, query: &[(&str, &str)]) -> String {
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{mark}{}", route.path(), query.join("&"))
}

/// A name as a part of a path: whatever is no plain character is escaped, so that no name reaches another route.
fn escaped(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => path.push(char::from(byte)),
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    path
}

impl Client {
    /// A caller of the API at `base_url` (without `/v1`), by a client's key or the admin key. Makes no call.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connections cannot be set up.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<String>) -> Result<Self, Error> {
        // Someone else may have installed a provider first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timeout = Duration::from_secs(CALL_SECONDS);
        let http = reqwest::Client::builder().timeout(timeout).build()?;
        let base_url = base_url.into().trim_end_matches('/').to_owned();
        Ok(Self { http, base_url, api_key: api_key.into(), in_place_of: None, page_rows: None })
    }

    /// A caller by the admin key in the place of a client: it may do all that the client's keys may.
    #[must_use]
    pub fn in_place_of(&self, client_id: impl Into<String>) -> Self {
        Self { in_place_of: Some(client_id.into()), ..self.clone() }
    }

    /// The same caller, whose lists come in pages of up to so many rows: 1 to 100.
    #[must_use]
    pub fn with_pages_of(&self, rows: u32) -> Self {
        Self { page_rows: Some(rows), ..self.clone() }
    }

    /// Registers a client, by the admin key. `allowed_targets` are URLs and ARNs, each with at most one `*`; when there are none, the
    /// client may name no address on AWS, and every one in local mode.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 401 when the key is not the admin's, 409 when the name is taken, 422 when the
    /// name or a pattern is wrong. Otherwise as every call of [`Client`].
    pub async fn register_client(
        &self,
        client_id: &str,
        allowed_targets: &[&str],
    ) -> Result<RegisteredClient, Error> {
        self.post(Route::Clients, &registration(client_id, allowed_targets)).await
    }

    /// The same, by an idempotency key: 1 to 255 printable characters without spaces, such as a UUID. A call that is made again with it
    /// and the same admin key within 24 hours gets the same API key, which is shown to nobody else.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 also when the idempotency key came with another call. Otherwise as [`Self::register_client`].
    pub async fn register_client_once(
        &self,
        idempotency_key: &str,
        client_id: &str,
        allowed_targets: &[&str],
    ) -> Result<RegisteredClient, Error> {
        self.post_once(Route::Clients, &registration(client_id, allowed_targets), idempotency_key).await
    }

    /// Replaces the webhook secret of this client. Calls are signed with the former one as well for `keep_seconds`, a day when
    /// `None`; 0 ends all former ones at once. The answer shows the new one, once. Not to be repeated lightly: each call makes
    /// another one.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 when two former secrets live already, 422 when the time is too long. Otherwise as every
    /// call of [`Client`].
    pub async fn rotate_webhook_secret(&self, keep_seconds: Option<u32>) -> Result<WebhookSecret, Error> {
        self.post(Route::WebhookSecret, &rotation(keep_seconds)).await
    }

    /// The same, by an idempotency key: 1 to 255 printable characters without spaces, such as a UUID. A call that is made again with it
    /// within 24 hours gets the same secret, unless another call replaced it.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 also when the idempotency key came with another call, or the secret was replaced since.
    /// Otherwise as [`Self::rotate_webhook_secret`].
    pub async fn rotate_webhook_secret_once(
        &self,
        idempotency_key: &str,
        keep_seconds: Option<u32>,
    ) -> Result<WebhookSecret, Error> {
        self.post_once(Route::WebhookSecret, &rotation(keep_seconds), idempotency_key).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, route: Route<'_>) -> Result<T, Error> {
        answer(self.call(Method::GET, &route.path())).await
    }

    /// The same where an answer with status 503 may say what is asked for, and be no refusal.
    pub(crate) async fn get_whether_or_not<T: DeserializeOwned>(&self, route: Route<'_>) -> Result<T, Error> {
        let answer = exchange(self.call(Method::GET, &route.path())).await?;
        match (answer.status, read(&answer.body)) {
            (StatusCode::SERVICE_UNAVAILABLE, Ok(seen)) => Ok(seen),
            _ => read(&answer.accepted()?),
        }
    }

    /// A page of a list of which only some is asked for.
    pub(crate) async fn get_page<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        some: &[(&str, &str)],
        cursor: Option<&str>,
    ) -> Result<T, Error> {
        answer(self.call(Method::GET, &self.page_of(route, some, cursor))).await
    }

    /// The same of what is asked with a body.
    pub(crate) async fn post_for_page<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        body: &impl Serialize,
        cursor: Option<&str>,
    ) -> Result<T, Error> {
        answer(self.call(Method::POST, &self.page_of(route, &[], cursor)).json(body)).await
    }

    fn page_of(&self, route: Route<'_>, some: &[(&str, &str)], cursor: Option<&str>) -> String {
        let rows = self.page_rows.map(|rows| rows.to_string());
        let mut query = some.to_vec();
        query.extend(cursor.map(|cursor| ("cursor", cursor)));
        query.extend(rows.as_deref().map(|rows| ("limit", rows)));
        asked(route, &query)
    }

    /// What is asked with parameters.
    pub(crate) async fn get_with<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        query: &[(&str, &str)],
    ) -> Result<T, Error> {
        answer(self.call(Method::GET, &asked(route, query))).await
    }

    /// What asks for `count` firings.
    pub(crate) async fn get_count<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        count: Option<u32>,
    ) -> Result<T, Error> {
        let count = count.map(|count| count.to_string());
        let query: Vec<_> = count.iter().map(|count| ("count", &**count)).collect();
        self.get_with(route, &query).await
    }

    /// A POST whose path says all.
    pub(crate) async fn act<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        expected: Option<u32>,
    ) -> Result<T, Error> {
        answer(matching(self.call(Method::POST, &route.path()), expected)).await
    }

    /// The same, by a key that makes it safe to repeat.
    pub(crate) async fn act_once<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        idempotency_key: Option<&str>,
    ) -> Result<T, Error> {
        let call = self.call(Method::POST, &route.path());
        answer(match idempotency_key {
            Some(key) => call.header(IDEMPOTENCY_KEY, key),
            None => call,
        })
        .await
    }

    /// The same as [`Self::post`], by a key that makes it safe to repeat.
    pub(crate) async fn post_once<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        body: &impl Serialize,
        idempotency_key: &str,
    ) -> Result<T, Error> {
        let call = self.call(Method::POST, &route.path()).header(IDEMPOTENCY_KEY, idempotency_key);
        answer(call.json(body)).await
    }

    /// The same as [`Self::act`] with a body.
    pub(crate) async fn act_with<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        body: &impl Serialize,
        expected: Option<u32>,
    ) -> Result<T, Error> {
        answer(matching(self.call(Method::POST, &route.path()).json(body), expected)).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        answer(self.call(Method::POST, &route.path()).json(body)).await
    }

    /// One attempt of a POST, with what the headers of its answer say.
    pub(crate) async fn attempt<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        body: &impl Serialize,
    ) -> Attempt<T> {
        match exchange(self.call(Method::POST, &route.path()).json(body)).await {
            Err(error) => Attempt { outcome: Err(error), server_time: None, retry_after: None },
            Ok(answer) => Attempt {
                server_time: server_time(&answer.headers),
                retry_after: retry_after(&answer.headers),
                outcome: answer.accepted().and_then(|body| read(&body)),
            },
        }
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        body: &impl Serialize,
        expected: Option<u32>,
    ) -> Result<T, Error> {
        answer(matching(self.call(Method::PUT, &route.path()).json(body), expected)).await
    }

    /// The same of a text that is no JSON, with what it is declared as.
    pub(crate) async fn put_file<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        query: &[(&str, &str)],
        (media_type, text): (&str, String),
        expected: Option<u32>,
    ) -> Result<T, Error> {
        let call = self.call(Method::PUT, &asked(route, query)).header(CONTENT_TYPE, media_type);
        answer(matching(call.body(text), expected)).await
    }

    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        route: Route<'_>,
        changes: &impl Serialize,
        expected: Option<u32>,
    ) -> Result<T, Error> {
        answer(matching(self.call(Method::PATCH, &route.path()).json(changes), expected)).await
    }

    pub(crate) async fn delete(&self, route: Route<'_>, expected: Option<u32>) -> Result<(), Error> {
        accepted(matching(self.call(Method::DELETE, &route.path()), expected)).await.map(drop)
    }

    fn call(&self, method: Method, path: &str) -> RequestBuilder {
        let call = self.http.request(method, format!("{}{path}", self.base_url)).bearer_auth(&self.api_key);
        match &self.in_place_of {
            Some(client_id) => call.header("tidegate-client", client_id),
            None => call,
        }
    }
}

fn matching(call: RequestBuilder, expected: Option<u32>) -> RequestBuilder {
    match expected {
        Some(revision) => call.header(IF_MATCH, format!("\"{revision}\"")),
        None => call,
    }
}

async fn answer<T: DeserializeOwned>(call: RequestBuilder) -> Result<T, Error> {
    read(&accepted(call).await?)
}

/// The body of a 2xx; any other answer is an error.
async fn accepted(call: RequestBuilder) -> Result<Vec<u8>, Error> {
    exchange(call).await?.accepted()
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|e| Error::Unreadable { what: "the answer of the API", reason: e.to_string() })
}

/// What came of one attempt of a call.
#[derive(Debug)]
pub(crate) struct Attempt<T> {
    pub(crate) outcome: Result<T, Error>,
    /// The server's time of day when it answered; `None` when it did not say.
    pub(crate) server_time: Option<DateTime<Utc>>,
    /// How long the API wants the next attempt to wait; `None` when it did not say.
    pub(crate) retry_after: Option<Duration>,
}

impl<T> Attempt<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Attempt<U> {
        let Self { outcome, server_time, retry_after } = self;
        Attempt { outcome: outcome.map(change), server_time, retry_after }
    }
}

/// An answer, whatever its status.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn accepted(self) -> Result<Vec<u8>, Error> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        Err(Error::Refused(Box::new(problem(self.status, &self.body))))
    }
}

async fn exchange(call: RequestBuilder) -> Result<Answer, Error> {
    let response = call.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Answer { status, headers, body: response.bytes().await?.to_vec() })
}

fn server_time(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc2822(text(headers, &DATE)?).ok()?.to_utc())
}

/// `Retry-After` in seconds: the API does not send it as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    text(headers, &RETRY_AFTER)?.parse().ok().map(|seconds: u32| Duration::from_secs(seconds.into()))
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Whatever stands between may answer too, and not with a problem.
fn problem(status: StatusCode, body: &[u8]) -> Problem {
    serde_json::from_slice(body).unwrap_or_else(|_| Problem {
        kind: String::new(),
        title: String::new(),
        status: status.as_u16(),
        detail: String::from_utf8_lossy(body).chars().take(200).collect(),
        errors: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_reach_another_route() {
        assert_eq!(Route::Job("nightly-1_X").path(), "/v1/jobs/nightly-1_X");
        assert_eq!(Route::Job("a/../../clients?x#y").path(), "/v1/jobs/a%2F..%2F..%2Fclients%3Fx%23y");
        let mail = Route::Job("reminder:user@example.com").path();
        assert_eq!(mail, "/v1/jobs/reminder%3Auser%40example.com");
        let run = Route::Events("nightly", "nightly.3.1790000000").path();
        assert_eq!(run, "/v1/jobs/nightly/runs/nightly.3.1790000000/events");
        assert_eq!(Route::Free.path(), "/v1/tokens/free");
    }

    #[test]
    fn an_answer_that_is_no_problem_is_kept_as_its_detail() {
        let text = problem(StatusCode::BAD_GATEWAY, b"<html>no backend</html>");
        assert_eq!((text.status, text.detail.as_str()), (502, "<html>no backend</html>"));
        let body = br#"{"type":"urn:tidegate:problem:not-found","title":"x","status":404,"detail":"no job"}"#;
        let read = problem(StatusCode::NOT_FOUND, body);
        assert_eq!((read.status, read.detail.as_str(), read.errors.len()), (404, "no job", 0));
        assert_eq!(Error::Refused(Box::new(read)).to_string(), "the API refused the call: no job (404)");
    }

    #[test]
    fn secrets_are_not_shown_by_accident() {
        let client = Client::new("http://127.0.0.1:1/", "tg_acme_secret").unwrap();
        assert_eq!(format!("{client:?}"), "Client { base_url: \"http://127.0.0.1:1\", .. }");
    }
    /// Answers one call on loopback with this text, and gives what was asked.
    async fn one_call(answer: &'static str) -> (Client, tokio::task::JoinHandle<String>) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client =
            Client::new(format!("http://{}", listener.local_addr().unwrap()), "tg_acme_key").unwrap();
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let (mut asked, mut part) = (String::new(), [0; 4_096]);
            while !asked.ends_with("}") {
                let read = socket.read(&mut part).await.unwrap();
                asked.push_str(str::from_utf8(&part[..read]).unwrap());
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
            asked
        });
        (client, serving)
    }

    #[tokio::test]
    async fn an_attempt_tells_what_the_headers_of_its_answer_say() {
        let refused = "HTTP/1.1 429 Too Many Requests\r\ndate: Sun, 22 Nov 2026 00:00:07 GMT\r\nretry-after: 7\r\n\
            content-length: 2\r\nconnection: close\r\n\r\n{}";
        let (client, serving) = one_call(refused).await;
        let body = json!({"tokens": ["tok.0"]});
        let attempt: Attempt<serde_json::Value> = client.attempt(Route::Release, &body).await;
        assert_eq!(attempt.outcome.unwrap_err().problem().unwrap().status, 429);
        assert_eq!(attempt.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(attempt.server_time.unwrap().to_rfc3339(), "2026-11-22T00:00:07+00:00");
        let asked = serving.await.unwrap();
        assert!(asked.starts_with("POST /v1/tokens/release HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("authorization: Bearer tg_acme_key\r\n"), "{asked}");
        assert!(asked.ends_with("\r\n\r\n{\"tokens\":[\"tok.0\"]}"), "{asked}");
    }

    #[tokio::test]
    async fn an_attempt_does_without_headers_that_say_nothing() {
        let accepted = "HTTP/1.1 200 OK\r\nretry-after: Sun, 22 Nov 2026 00:00:07 GMT\r\ncontent-length: 7\r\n\
            connection: close\r\n\r\n[1,2,3]";
        let (client, _serving) = one_call(accepted).await;
        let attempt: Attempt<Vec<u8>> = client.attempt(Route::Extend, &json!({})).await;
        assert_eq!((attempt.server_time, attempt.retry_after), (None, None));
        assert_eq!(attempt.outcome.unwrap(), [1, 2, 3]);
    }
}
