//! How an HTTP endpoint is called: what a job may say beside its URL.
//!
//! All of it has a default, under which a call is a signed POST of the event. The client's signature and trace are not here:
//! no job changes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::str::FromStr;

use thiserror::Error;

use crate::bounded::bounded;
use crate::ids::{EventId, IdError, SecretId};
use crate::limits::{DELIVERY_SECONDS, HTTP_HEADERS, HTTP_HEADERS_BYTES, HTTP_STATUSES, SECRETS_PER_CALL};
use crate::secret::{NoSuchSecret, SecretValues, is_header_text};
use crate::template::{Template, TemplateError, known};
use crate::unknown::Unknown;

/// The status codes that an answer may end a call with.
const CODES: std::ops::RangeInclusive<u16> = 200..=599;
/// What Tidegate or the connection says itself.
const KEPT_NAMES: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "traceparent",
];
/// What the names of headers begin with that only Tidegate says.
const KEPT_PREFIXES: [&str; 2] = ["webhook-", "tidegate-"];

/// How an endpoint is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HttpCall {
    /// Its method.
    pub method: Method,
    /// Headers beside those of Tidegate.
    pub headers: Headers,
    /// What its body is. A method without a body carries neither.
    pub body: Body,
    /// How long it may take.
    pub timeout: HttpTimeout,
    /// The answers that mean that the endpoint took the event; 2xx when nobody says.
    pub expected: Option<Statuses>,
    /// The answers after which it is called again; 408, 425, 429 and 5xx when nobody says.
    pub retried: Option<Statuses>,
    /// What a newer version stored beside that, kept as it is.
    pub unknown: Unknown,
}

/// The method of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Method {
    /// With a body.
    #[default]
    Post,
    /// With a body.
    Put,
    /// With a body.
    Patch,
    /// Without a body.
    Get,
    /// Without a body.
    Delete,
}

/// What the body of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Body {
    /// The event, with its payload in it.
    #[default]
    Event,
    /// The payload alone. What the event says beside it is in headers.
    Payload,
}

/// Headers that a job names, by their names as it wrote them. Values may have the placeholders of payload templates, and those of
/// secrets, such as `Bearer {{secret:shop-token}}`.
///
/// Invariant: no name is one that Tidegate or the connection uses, and none is there twice, whatever its case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Headers(BTreeMap<String, String>);

/// Some statuses of answers, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Statuses(Vec<Pattern>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Pattern {
    /// All from this hundred: `2xx`.
    Class(u16),
    Code(u16),
}

bounded! {
    /// How long a call may take, in seconds.
    HttpTimeout(u32), "timeout_seconds", 1..=DELIVERY_SECONDS, default DELIVERY_SECONDS
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The endpoint has the event.
    Taken,
    /// It may take it later.
    Retried,
    /// It never will.
    Final,
}

/// Why what a job says of a call is refused. Values of headers are never repeated: some are secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpCallError {
    /// More than [`HTTP_HEADERS`].
    #[error("headers has {count} of them; {HTTP_HEADERS} is the most")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// More than [`HTTP_HEADERS_BYTES`], as long as the placeholders may become.
    #[error(
        "headers may come to {bytes} bytes with their placeholders filled in; {HTTP_HEADERS_BYTES} is the most: shorten them, \
         or send what is long in the payload"
    )]
    TooLarge {
        /// The longest that names and values may become, in bytes.
        bytes: usize,
    },
    /// A name that is no token of HTTP.
    #[error("headers has the name '{name}', which is none; write it with letters, digits and '-'")]
    Name {
        /// The name, or its beginning.
        name: String,
    },
    /// A name that differs from another by its case only.
    #[error("headers has '{name}' twice, in different cases, which HTTP does not tell apart; give it once")]
    Twice {
        /// The name.
        name: String,
    },
    /// A name that only Tidegate or the connection uses.
    #[error("headers has '{name}', which Tidegate or the connection sets itself; leave it out")]
    Kept {
        /// The name.
        name: String,
    },
    /// A value with other characters than visible ASCII and blanks between them.
    #[error(
        "headers has a value for '{name}' that is not visible ASCII with blanks between; encode it, or send it in the payload"
    )]
    Value {
        /// The name.
        name: String,
    },
    /// A value with a placeholder that stands for nothing.
    #[error(
        "headers has the placeholder '{{{{{placeholder}}}}}' in the value of '{name}', which is not known; there are {} and \
         {{{{secret:<secret_id>}}}}",
        known()
    )]
    Placeholder {
        /// The name of the header.
        name: String,
        /// The name of the placeholder.
        placeholder: String,
    },
    /// A value that names a secret by a name that none has.
    #[error("headers names a secret in the value of '{name}' by what is no name of one: {error}")]
    SecretName {
        /// The name of the header.
        name: String,
        /// What is wrong with that of the secret.
        error: IdError,
    },
    /// More secrets than [`SECRETS_PER_CALL`].
    #[error(
        "headers names {count} secrets; {SECRETS_PER_CALL} is the most: put what belongs together into one"
    )]
    TooManySecrets {
        /// How many there are.
        count: usize,
    },
    /// A placeholder that differs from event to event, where there is none.
    #[error(
        "headers has the placeholder '{{{{{placeholder}}}}}' in the value of '{name}', which an event has and the end of a run \
         has not; there are {{{{run_id}}}}, {{{{job_id}}}}, {{{{launch_at}}}} and {{{{secret:<secret_id>}}}}"
    )]
    OfEvents {
        /// The name of the header.
        name: String,
        /// The name of the placeholder.
        placeholder: &'static str,
    },
    /// A value with braces that are opened and not closed.
    #[error("headers has '{{{{' without '}}}}' in the value of '{name}'; close it")]
    Open {
        /// The name.
        name: String,
    },
    /// More statuses than [`HTTP_STATUSES`], or none where some are needed.
    #[error("holds {count}; it must be 1 to {HTTP_STATUSES} statuses such as \"2xx\" and \"404\"")]
    Number {
        /// How many there are.
        count: usize,
    },
    /// No status.
    #[error("'{given}' is no status; give a code from 200 to 599, or a class from \"2xx\" to \"5xx\"")]
    Status {
        /// What was given, or its beginning.
        given: String,
    },
    /// An answer that would be both taken and tried again.
    #[error(
        "retry_statuses has {retried}, which expected_statuses covers with {expected}; an answer is either taken or tried again: \
         take it out of one"
    )]
    Both {
        /// What covers it in the one list.
        retried: String,
        /// What covers it in the other.
        expected: String,
    },
    /// A body for a method that has none.
    #[error(
        "body goes with POST, PUT and PATCH only, and method is {method}; leave it out: what the event says is in headers"
    )]
    NoBody {
        /// The method.
        method: &'static str,
    },
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Post, Self::Put, Self::Patch, Self::Get, Self::Delete];

    /// As HTTP writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Get => "GET",
            Self::Delete => "DELETE",
        }
    }

    /// Whether calls of it have a body.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl Headers {
    /// Takes headers by their names.
    ///
    /// # Errors
    /// The variants of [`HttpCallError`] that say `headers`.
    pub fn new(headers: BTreeMap<String, String>) -> Result<Self, HttpCallError> {
        if headers.len() > HTTP_HEADERS {
            return Err(HttpCallError::TooMany { count: headers.len() });
        }
        let mut bytes = 0_usize;
        let mut seen = Vec::with_capacity(headers.len());
        for (name, value) in &headers {
            let lower = check_name(name)?;
            if seen.contains(&lower) {
                return Err(HttpCallError::Twice { name: name.clone() });
            }
            seen.push(lower);
            bytes = bytes.saturating_add(name.len()).saturating_add(check_value(name, value)?);
        }
        if bytes > HTTP_HEADERS_BYTES {
            return Err(HttpCallError::TooLarge { bytes });
        }
        let headers = Self(headers);
        match headers.secrets().len() {
            count if count > SECRETS_PER_CALL => Err(HttpCallError::TooManySecrets { count }),
            _ => Ok(headers),
        }
    }

    /// The same, for calls that are about a run and no event of it.
    ///
    /// # Errors
    /// [`HttpCallError::OfEvents`].
    pub fn without_events(self) -> Result<Self, HttpCallError> {
        let found = self.templates().find_map(|(name, template)| Some((name, template?.of_events()?)));
        match found {
            Some((name, placeholder)) => Err(HttpCallError::OfEvents { name: name.to_owned(), placeholder }),
            None => Ok(self),
        }
    }

    /// The secrets that they name.
    pub fn secrets(&self) -> BTreeSet<SecretId> {
        let templates: Vec<_> = self.templates().filter_map(|(_, template)| template).collect();
        templates.iter().flat_map(Template::secrets).cloned().collect()
    }

    /// Names and values. What was checked when it was stored can be read.
    fn templates(&self) -> impl Iterator<Item = (&str, Option<Template>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), Template::header(value).ok()))
    }

    /// The names and values as they were written.
    pub fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// The names and values of the call for one event of a run of `count`, with the values of the secrets that they name.
    ///
    /// # Errors
    /// [`NoSuchSecret`] with the first whose value is not given.
    pub fn render(
        &self,
        event: &EventId,
        count: u32,
        secrets: &SecretValues,
    ) -> Result<Vec<(&str, String)>, NoSuchSecret> {
        let rendered = self.0.iter().map(|(name, value)| match Template::header(value) {
            Ok(template) => Ok((name.as_str(), template.render_with(event, count, secrets)?)),
            // What was checked when it was stored can be read.
            Err(_) => Ok((name.as_str(), value.clone())),
        });
        rendered.collect()
    }
}

/// The name in lower case, if it may be used.
fn check_name(name: &str) -> Result<String, HttpCallError> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HttpCallError::Name { name: name.chars().take(40).collect() });
    }
    let lower = name.to_ascii_lowercase();
    if KEPT_NAMES.contains(&&*lower) || KEPT_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
        return Err(HttpCallError::Kept { name: name.to_owned() });
    }
    Ok(lower)
}

/// The longest that a value may become, in bytes.
fn check_value(name: &str, value: &str) -> Result<usize, HttpCallError> {
    let name = || name.to_owned();
    if !is_header_text(value) {
        return Err(HttpCallError::Value { name: name() });
    }
    match Template::header(value) {
        Ok(template) => Ok(template.most_bytes()),
        Err(TemplateError::Unknown { name: placeholder }) => {
            Err(HttpCallError::Placeholder { name: name(), placeholder })
        }
        Err(TemplateError::Secret { error }) => Err(HttpCallError::SecretName { name: name(), error }),
        Err(_) => Err(HttpCallError::Open { name: name() }),
    }
}

impl FromStr for Pattern {
    type Err = HttpCallError;

    fn from_str(text: &str) -> Result<Self, HttpCallError> {
        let refused = || HttpCallError::Status { given: text.chars().take(20).collect() };
        let read = |digits: &str| {
            let is_number = digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| digits.parse::<u16>().ok()).flatten().ok_or_else(refused)
        };
        let pattern = match text.strip_suffix("xx") {
            Some(class) => Self::Class(read(class)?),
            None => Self::Code(read(text)?),
        };
        if pattern.to_string() == text && CODES.contains(&pattern.first()) {
            Ok(pattern)
        } else {
            Err(refused())
        }
    }
}

impl Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(f, "{class}xx"),
            Self::Code(code) => write!(f, "{code}"),
        }
    }
}

impl Pattern {
    /// The first code that it covers.
    fn first(self) -> u16 {
        match self {
            Self::Class(class) => class.saturating_mul(100),
            Self::Code(code) => code,
        }
    }

    fn covers(self, code: u16) -> bool {
        match self {
            Self::Class(class) => code / 100 == class,
            Self::Code(own) => code == own,
        }
    }

    fn meets(self, other: Self) -> bool {
        self.covers(other.first()) || other.covers(self.first())
    }
}

impl Statuses {
    /// Takes statuses as they are written, at least `least` of them.
    ///
    /// # Errors
    /// [`HttpCallError::Number`] and [`HttpCallError::Status`].
    pub fn new<S: AsRef<str>>(written: &[S], least: usize) -> Result<Self, HttpCallError> {
        if written.len() < least || written.len() > HTTP_STATUSES {
            return Err(HttpCallError::Number { count: written.len() });
        }
        written.iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>().map(Self)
    }

    /// As they were written.
    pub fn written(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    fn cover(&self, code: u16) -> bool {
        self.0.iter().any(|pattern| pattern.covers(code))
    }
}

impl HttpCall {
    /// Whether nothing is said: the call is a signed POST of the event.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether what the event says is in headers, because it is not in the body.
    pub fn tells_in_headers(&self) -> bool {
        self.body == Body::Payload || !self.method.has_body()
    }

    /// Checks what one field says against another.
    ///
    /// # Errors
    /// [`HttpCallError::NoBody`] and [`HttpCallError::Both`].
    pub fn checked(self) -> Result<Self, HttpCallError> {
        if self.body == Body::Payload && !self.method.has_body() {
            return Err(HttpCallError::NoBody { method: self.method.as_str() });
        }
        if let (Some(expected), Some(retried)) = (&self.expected, &self.retried) {
            for retry in &retried.0 {
                if let Some(taken) = expected.0.iter().find(|taken| taken.meets(*retry)) {
                    return Err(HttpCallError::Both {
                        retried: retry.to_string(),
                        expected: taken.to_string(),
                    });
                }
            }
        }
        Ok(self)
    }

    /// What an answer with this status means. What the job names goes before what holds when it names nothing.
    pub fn meaning(&self, code: u16) -> Answer {
        let named = |statuses: &Option<Statuses>| statuses.as_ref().map(|named| named.cover(code));
        match (named(&self.expected), named(&self.retried)) {
            (Some(true), _) => Answer::Taken,
            (_, Some(true)) => Answer::Retried,
            (None, _) if (200..300).contains(&code) => Answer::Taken,
            (_, None) if matches!(code, 408 | 425 | 429 | 500..=599) => Answer::Retried,
            _ => Answer::Final,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretValue;

    fn headers(pairs: &[(&str, &str)]) -> Result<Headers, HttpCallError> {
        Headers::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn statuses(written: &[&str]) -> Option<Statuses> {
        Some(Statuses::new(written, 0).unwrap())
    }

    #[test]
    fn headers_of_tidegate_and_of_the_connection_are_refused_whatever_their_case() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "keep-alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Proxy-Authorization",
            "webhook-id",
            "Webhook-Anything",
            "tidegate-token",
            "TraceParent",
        ] {
            let refused = headers(&[(name, "x")]).unwrap_err();
            assert_eq!(refused, HttpCallError::Kept { name: name.to_owned() });
            assert!(refused.to_string().contains("leave it out"), "{refused}");
        }
        for name in ["", "a b", "a:b", "é", "a\r\nb"] {
            assert!(matches!(headers(&[(name, "x")]), Err(HttpCallError::Name { .. })), "{name:?}");
        }
        assert!(
            headers(&[("Authorization", "Bearer x"), ("X-Api-Key", ""), ("content-type", "text/plain")])
                .is_ok()
        );
        assert_eq!(
            headers(&[("X-a", "1"), ("x-A", "2")]).unwrap_err().to_string(),
            "headers has 'x-A' twice, in different cases, which HTTP does not tell apart; give it once"
        );
    }

    #[test]
    fn values_are_visible_ascii_and_are_not_repeated_when_they_are_refused() {
        for value in ["sécret", "secret\n", " secret", "secret\t2", "secret\u{7f}"] {
            let refused = headers(&[("X-Key", value)]).unwrap_err().to_string();
            assert!(refused.contains("'X-Key'") && !refused.contains("ecret"), "{refused}");
        }
    }

    #[test]
    fn headers_are_bounded_by_number_and_by_what_they_may_become() {
        let named = |count: usize| {
            Headers::new((0..count).map(|n| (format!("x-{n}"), String::new())).collect::<BTreeMap<_, _>>())
        };
        assert!(named(20).is_ok());
        assert_eq!(named(21).unwrap_err(), HttpCallError::TooMany { count: 21 });
        assert!(headers(&[("x", &"v".repeat(2_047))]).is_ok());
        assert_eq!(
            headers(&[("x", &"v".repeat(2_048))]).unwrap_err(),
            HttpCallError::TooLarge { bytes: 2_049 }
        );
        let ids = "{{event_id}}".repeat(9);
        assert!(matches!(headers(&[("x", &ids)]), Err(HttpCallError::TooLarge { bytes }) if bytes > 2_048));
    }

    #[test]
    fn placeholders_of_values_are_filled_in() {
        let event: EventId = "nightly.3.1790000000.17".parse().unwrap();
        let both = headers(&[("X-Page", "{{index1}} of {{count}}"), ("Idempotency-Key", "\"{{event_id}}\"")]);
        let rendered = both.as_ref().unwrap().render(&event, 20, &SecretValues::new());
        assert_eq!(
            rendered.unwrap(),
            [
                ("Idempotency-Key", "\"nightly.3.1790000000.17\"".to_owned()),
                ("X-Page", "18 of 20".to_owned())
            ]
        );
        assert_eq!(
            headers(&[("X", "{{page}}")]).unwrap_err().to_string(),
            "headers has the placeholder '{{page}}' in the value of 'X', which is not known; there are {{index}}, {{index1}}, \
             {{count}}, {{event_id}}, {{run_id}}, {{job_id}}, {{launch_at}} and {{secret:<secret_id>}}"
        );
        assert!(
            headers(&[("X", "{{index")]).unwrap_err().to_string().ends_with("in the value of 'X'; close it")
        );
    }

    #[test]
    fn values_name_secrets_which_are_filled_in_once_and_never_sent_as_nothing() {
        let event: EventId = "nightly.3.1790000000.17".parse().unwrap();
        let named =
            headers(&[("Authorization", "Bearer {{secret:shop}}"), ("X-Key", "{{ secret:x }}:{{index}}")]);
        let named = named.unwrap();
        let ids: Vec<_> = named.secrets().iter().map(ToString::to_string).collect();
        assert_eq!(ids, ["shop", "x"]);
        let value = |id: &str, text: &str| (id.parse().unwrap(), SecretValue::new(text).unwrap());
        let mut values = SecretValues::from([value("x", "{{index}}")]);
        assert_eq!(
            named.render(&event, 20, &values).unwrap_err().to_string(),
            "the secret 'shop' is not there"
        );
        values.extend([value("shop", "k-4711")]);
        assert_eq!(
            named.render(&event, 20, &values).unwrap(),
            [("Authorization", "Bearer k-4711".to_owned()), ("X-Key", "{{index}}:17".to_owned())]
        );
        let five =
            headers(&[("x", "{{secret:a}}{{secret:b}}{{secret:c}}{{secret:d}}"), ("y", "{{secret:e}}")]);
        assert_eq!(five.unwrap_err(), HttpCallError::TooManySecrets { count: 5 });
        assert!(
            headers(&[("x", "{{secret:a}}"), ("y", "{{secret:a}}")])
                .is_ok_and(|two| two.secrets().len() == 1)
        );
        for (value, says) in [
            (
                "{{secret:}}",
                "headers names a secret in the value of 'X' by what is no name of one: secret_id is empty",
            ),
            (
                "{{secret:a b}}",
                "headers names a secret in the value of 'X' by what is no name of one: secret_id 'a b'",
            ),
            (
                "{{secret}}",
                "headers has the placeholder '{{secret}}' in the value of 'X', which is not known",
            ),
        ] {
            let error = headers(&[("X", value)]).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }

    #[test]
    fn the_end_of_a_run_has_no_placeholders_of_events() {
        let named = |value: &str| headers(&[("X", value)]).unwrap().without_events();
        assert!(named("{{run_id}} {{job_id}} {{launch_at}} {{secret:a}}").is_ok());
        for placeholder in ["index", "index1", "count", "event_id"] {
            let refused = named(&format!("{{{{run_id}}}} {{{{{placeholder}}}}}")).unwrap_err();
            assert_eq!(refused, HttpCallError::OfEvents { name: "X".to_owned(), placeholder });
        }
    }

    #[test]
    fn only_statuses_that_end_a_call_are_statuses() {
        for good in ["2xx", "5xx", "200", "204", "599"] {
            assert_eq!(statuses(&[good]).unwrap().written(), [good]);
        }
        for bad in ["", "xx", "1xx", "6xx", "20x", "2XX", "199", "600", "0404", "+404", "99999", "2xxx"] {
            let refused = Statuses::new(&[bad], 0).unwrap_err();
            assert_eq!(refused, HttpCallError::Status { given: bad.to_owned() });
        }
        assert_eq!(Statuses::new::<&str>(&[], 1), Err(HttpCallError::Number { count: 0 }));
        assert_eq!(Statuses::new(&["404"; 21], 1), Err(HttpCallError::Number { count: 21 }));
    }

    #[test]
    fn an_answer_means_what_the_job_says_before_what_holds_without_it() {
        let call = |expected: Option<Statuses>, retried: Option<Statuses>| HttpCall {
            expected,
            retried,
            ..HttpCall::default()
        };
        let default = call(None, None);
        use Answer::{Final, Retried, Taken};
        for (call, code, means) in [
            (&default, 200, Taken),
            (&default, 204, Taken),
            (&default, 302, Final),
            (&default, 404, Final),
            (&default, 408, Retried),
            (&default, 425, Retried),
            (&default, 429, Retried),
            (&default, 503, Retried),
            (&call(statuses(&["204", "404"]), None), 404, Taken),
            (&call(statuses(&["204", "404"]), None), 200, Final),
            (&call(statuses(&["503"]), None), 503, Taken),
            (&call(statuses(&["503"]), None), 500, Retried),
            (&call(None, statuses(&["404"])), 404, Retried),
            (&call(None, statuses(&["404"])), 503, Final),
            (&call(None, statuses(&["202"])), 202, Retried),
            (&call(None, statuses(&[])), 503, Final),
            (&call(statuses(&["2xx"]), statuses(&["3xx"])), 302, Retried),
        ] {
            assert_eq!(call.meaning(code), means, "{call:?} {code}");
        }
    }

    #[test]
    fn one_field_is_held_against_another() {
        let both = HttpCall {
            expected: statuses(&["2xx", "404"]),
            retried: statuses(&["5xx", "4xx"]),
            ..HttpCall::default()
        };
        let refused = both.checked().unwrap_err().to_string();
        assert!(
            refused.starts_with("retry_statuses has 4xx, which expected_statuses covers with 404"),
            "{refused}"
        );
        let bodyless = HttpCall { method: Method::Get, body: Body::Payload, ..HttpCall::default() };
        assert_eq!(bodyless.checked(), Err(HttpCallError::NoBody { method: "GET" }));
        let plain = HttpCall { method: Method::Delete, ..HttpCall::default() }.checked().unwrap();
        assert!(plain.tells_in_headers() && !HttpCall::default().tells_in_headers());
    }
}
