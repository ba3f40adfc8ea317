//! A request: drawn from the document, sent through the router, and written out when it fails.

use std::fmt;

use axum::body::Body;
use http::{HeaderName, HeaderValue, Uri};
use serde_json::Value;
use tidegate_simulation::sim::Dice;

use super::{Document, Operation, mutate};
use crate::extremes::{addresses, any_of, numbers, texts};
use crate::json::Json;
use crate::known::Known;

/// Bodies that are good, in thousandths.
const UNSPOILT: u64 = 150;
/// Those, and bodies that are good but for one field, in thousandths. In the others several things are wrong.
const FOCUSED: u64 = 650;
/// Most changes to one body.
const CHANGES: u64 = 8;
/// Events of a job at the most that are fanned out in a minute of a round: more cost time and show nothing new.
const EVENTS: i64 = 120;
/// Tokens of a policy at the most, for the same reason.
const TOKENS: i64 = 60;

/// Whose key a request carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// That of the client whose requests are drawn.
    Client,
    /// That of the deployment.
    Admin,
    /// None.
    None,
    /// This header, as it stands.
    Header(String),
}

/// What happens to the bytes of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoil {
    /// Nothing.
    None,
    /// They end early, by so many bytes.
    Cut(usize),
    /// Something follows.
    More(String),
    /// One of them is this; no UTF-8, most often.
    Byte(usize, u8),
    /// A byte-order mark precedes them.
    Mark,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Its key.
    pub key: Key,
    /// Its other headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Option<Json>,
    /// What is wrong with the bytes of its body.
    pub spoil: Spoil,
}

impl Request {
    /// Draws one.
    pub fn draw(dice: &Dice, document: &Document, known: &Known) -> Option<Self> {
        let operation = document.any_operation(dice)?;
        let body = operation.body.as_ref().map(|schema| body(dice, document, schema, known));
        let method = match dice.chance(15) {
            true => {
                any_of(dice, &["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"])
            }
            false => operation.method.clone(),
        };
        Some(Self {
            method,
            target: format!("{}{}", path(dice, operation, known), query(dice, operation, known)),
            key: key(dice, operation),
            headers: headers(dice, operation, body.is_some()),
            spoil: body.as_ref().map_or(Spoil::None, |body| spoil(dice, body)),
            body,
        })
    }

    /// The bytes of its body.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.body.as_ref().map(Json::to_string).unwrap_or_default().into_bytes();
        match &self.spoil {
            Spoil::None => {}
            Spoil::Cut(by) => bytes.truncate(bytes.len().saturating_sub(*by)),
            Spoil::More(text) => bytes.extend_from_slice(text.as_bytes()),
            Spoil::Byte(at, byte) => {
                if let Some(place) = bytes.get_mut(*at) {
                    *place = *byte;
                }
            }
            Spoil::Mark => drop(bytes.splice(0..0, "\u{feff}".bytes())),
        }
        bytes
    }

    /// The request as the router takes it; `None` when no HTTP server would let it through.
    pub fn build(&self, client_key: &str, admin_key: &str) -> Option<http::Request<Body>> {
        let uri: Uri = self.target.parse().ok()?;
        let mut request = http::Request::builder().method(self.method.as_str()).uri(uri);
        let authorization = match &self.key {
            Key::Client => Some(format!("Bearer {client_key}")),
            Key::Admin => Some(format!("Bearer {admin_key}")),
            Key::None => None,
            Key::Header(value) => Some(value.clone()),
        };
        let named = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in authorization.iter().map(|value| ("authorization", value.as_str())).chain(named)
        {
            let name = HeaderName::try_from(name).ok()?;
            request = request.header(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
        }
        request.body(Body::from(self.bytes())).ok()
    }
}

/// A body: good, good but for one field, or changed in several ways.
fn body(dice: &Dice, document: &Document, schema: &Value, known: &Known) -> Json {
    let mut body = match dice.below(1_000) {
        0..UNSPOILT => document.value(dice, schema, "", known),
        UNSPOILT..FOCUSED => document.focused(dice, schema, "", known),
        _ => {
            let mut body = document.value(dice, schema, "", known);
            for _ in 0..dice.within(1..=CHANGES) {
                mutate(dice, &mut body, known);
            }
            body
        }
    };
    tame(&mut body);
    body
}

/// Bounds what one request can make others do: a million events are the same work a million times.
fn tame(body: &mut Json) {
    let mut bound = |name: &str, value: &mut Json| {
        let most = match name {
            "count" => EVENTS,
            "max_in_flight" => TOKENS,
            _ => return,
        };
        if let Json::Raw(text) = value
            && let Ok(number) = text.parse::<i64>()
            && (most..=1_000_000).contains(&number)
        {
            *value = Json::raw(most);
        }
    };
    body.each_member(&mut bound);
}

fn path(dice: &Dice, operation: &Operation, known: &Known) -> String {
    if dice.chance(5) {
        return any_of(
            dice,
            &[
                "/",
                "/v1",
                "/v1/",
                "/v2/jobs",
                "//v1/jobs",
                "/v1/jobs/",
                "/v1/%6aobs",
                "/%ff",
                "*",
                "/v1/jobs/.",
            ],
        );
    }
    let segments = operation.path.split('/').map(|segment| {
        let name = segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}'));
        name.map_or_else(|| segment.to_owned(), |name| parameter(dice, name, known))
    });
    segments.collect::<Vec<_>>().join("/")
}

fn parameter(dice: &Dice, name: &str, known: &Known) -> String {
    let id = match name {
        _ if dice.chance(200) => addresses::id(dice, known),
        "job_id" if dice.chance(300) => any_of(dice, &["a", "b-1", "c_2", "d", "e"]),
        "job_id" => known.jobs.any(dice),
        "policy_id" => known.policies.any(dice),
        "calendar_id" => known.calendars.any(dice),
        "run_id" => known.runs.any(dice),
        "event_id" => known.events.any(dice),
        // The admin may change whom it likes; what is tried here is what clients do to each other.
        "client_id" => any_of(dice, &["nobody", "b-1"]),
        _ => known.any_id(dice),
    };
    if dice.chance(20) {
        any_of(dice, &["%", "%0", "%ff", "%c3%28", "%2F", "%2e%2e", "%00", ";a=b"])
    } else {
        encoded(&id)
    }
}

/// A text as it may stand in a path or a query.
fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn query(dice: &Dice, operation: &Operation, known: &Known) -> String {
    let mut parts = Vec::new();
    for name in operation.query.iter().filter(|_| dice.chance(400)) {
        let value = match name.as_str() {
            "cursor" if dice.chance(500) => known.cursors.any(dice),
            "cursor" => texts::text(dice),
            _ if dice.chance(500) => dice.within(1..=20).to_string(),
            _ => numbers::number(dice),
        };
        parts.push(format!("{name}={}", encoded(&value)));
    }
    if dice.chance(30) {
        parts.push(any_of(
            dice,
            &["", "&", "=", "a=b", "cursor", "cursor=&cursor=", "count=1&count=2", "%ff=%ff", "a%5b%5d=1"],
        ));
    }
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

fn key(dice: &Dice, operation: &Operation) -> Key {
    match dice.below(100) {
        0 => Key::None,
        1 => Key::Header(any_of(
            dice,
            &["", "Bearer", "Bearer ", "Basic x", "bearer  x y", "Bearer \u{e4}", "Bearer tg_acme_"],
        )),
        2 if operation.admin => Key::Client,
        2 => Key::Admin,
        _ if operation.admin => Key::Admin,
        _ => Key::Client,
    }
}

fn headers(dice: &Dice, operation: &Operation, has_body: bool) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    if has_body {
        let json = "application/json".to_owned();
        add("content-type", if dice.chance(980) { json } else { any_of(dice, CONTENT_TYPES) });
    }
    for name in operation.headers.iter().filter(|_| dice.chance(250)) {
        add(name, any_of(dice, REVISIONS));
    }
    if dice.chance(20) {
        add(
            &any_of(dice, STRAY),
            any_of(dice, &["*", "\"1\"", "", "0", "127.0.0.1", "null", "\u{1f680}", "a, b;q=0"]),
        );
    }
    headers
}

fn spoil(dice: &Dice, body: &Json) -> Spoil {
    let length = body.to_string().len() as u64;
    match dice.below(100) {
        0 => Spoil::Cut(dice.within(1..=length.max(1)) as usize),
        1 => Spoil::More(any_of(dice, &["x", "{}", " ", "\n", ",", "]", "}", "\u{0}"])),
        2 => Spoil::Byte(dice.below(length) as usize, dice.below(256) as u8),
        3 if dice.chance(300) => Spoil::Mark,
        _ => Spoil::None,
    }
}

const CONTENT_TYPES: &[&str] = &[
    "",
    "text/plain",
    "application/json; charset=utf-16",
    "APPLICATION/JSON",
    "application/problem+json",
    "+json",
    ";",
    "json",
    "application/json, text/plain",
    "multipart/form-data",
    "\u{e4}/json",
];
const REVISIONS: &[&str] = &[
    "\"1\"",
    "\"2\"",
    "\"3\"",
    "\"0\"",
    "*",
    "1",
    "W/\"1\"",
    "\"\"",
    "\"-1\"",
    "\"4294967295\"",
    "\"4294967296\"",
    "\"1\", \"2\"",
    "\"\u{e4}\"",
    "",
    "\"",
    "\" 1\"",
];
const STRAY: &[&str] = &[
    "if-none-match",
    "if-match",
    "host",
    "origin",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "expect",
    "range",
    "x-request-id",
    "x-forwarded-for",
    "x-http-method-override",
    "accept",
    "accept-encoding",
    "cookie",
    "authorization",
];

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.method, self.target)?;
        match &self.key {
            Key::Client => writeln!(f, "authorization: Bearer <the client's key>")?,
            Key::Admin => writeln!(f, "authorization: Bearer <the admin key>")?,
            Key::None => {}
            Key::Header(value) => writeln!(f, "authorization: {value:?}")?,
        }
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value:?}")?;
        }
        if let Some(body) = &self.body {
            write!(f, "\n{body}")?;
        }
        if self.spoil != Spoil::None { write!(f, "\nits bytes are spoilt: {:?}", self.spoil) } else { Ok(()) }
    }
}
