//! Payload templates: JSON in whose texts `{{index}}` and its like stand for what differs from event to event.
//!
//! Placeholders are found in the JSON strings of the text, keys included. A value that is nothing but the placeholder of
//! a number becomes that number. Braces that are to stay as they are can be written as `\u007b`.

use chrono::SecondsFormat;
use thiserror::Error;

use crate::ids::{EventId, IdError, SecretId};
use crate::limits::{JOB_ID_BYTES, PAYLOAD_BYTES};
use crate::secret::{NoSuchSecret, SecretValues};

/// The longest number of an event: a run has at most a million.
const NUMBER_BYTES: usize = 7;
/// The longest id of a run: job, revision and launch second, with the dots between them.
const RUN_ID_BYTES: usize = JOB_ID_BYTES + 10 + 12 + 2;

/// A template, read: JSON text with placeholders in its strings.
///
/// ```
/// use tidegate_domain::{ids::RunId, template::Template};
///
/// let run: RunId = "nightly.3.1790000000".parse()?;
/// let template = Template::parse(r#"{"page": "{{index1}} of {{count}}"}"#)?;
/// assert_eq!(template.render(&run.event(0), 20), r#"{"page": "1 of 20"}"#);
/// assert!(Template::check(r#""{{page}}""#).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// JSON text that is the same for every event.
    Fixed(String),
    /// In a string, or the place of a whole value that is a number.
    Value(Placeholder),
    /// The value of a secret. In headers only: payloads are kept and shown.
    Secret(SecretId),
}

/// What stands before the name of a secret in its placeholder.
const SECRET: &str = "secret:";

/// What differs from event to event, or from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placeholder {
    Index,
    Index1,
    Count,
    EventId,
    RunId,
    JobId,
    LaunchAt,
}

const KNOWN: [(&str, Placeholder); 7] = [
    ("index", Placeholder::Index),
    ("index1", Placeholder::Index1),
    ("count", Placeholder::Count),
    ("event_id", Placeholder::EventId),
    ("run_id", Placeholder::RunId),
    ("job_id", Placeholder::JobId),
    ("launch_at", Placeholder::LaunchAt),
];

/// Why a template is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A name between braces that stands for nothing.
    #[error(
        "payload_template has the placeholder '{{{{{name}}}}}', which is not known; there are {}",
        known()
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// Braces that are opened and not closed within their string.
    #[error(
        "payload_template has '{{{{' without '}}}}' in the string '{text}'; write \\u007b for a brace that stays"
    )]
    Open {
        /// The string, or its beginning.
        text: String,
    },
    /// The placeholder of a secret with a name that none has.
    #[error("{error}")]
    Secret {
        /// What is wrong with the name.
        error: IdError,
    },
    /// It would be larger than [`PAYLOAD_BYTES`] when its placeholders are filled in.
    #[error(
        "payload_template may come to {bytes} bytes when it is filled in; {PAYLOAD_BYTES} is the most: use fewer \
         placeholders, event_id, run_id and job_id above all"
    )]
    Expands {
        /// Its size with the longest text of each placeholder, in bytes.
        bytes: usize,
    },
}

/// The placeholders that there are, in words.
pub(crate) fn known() -> String {
    KNOWN.map(|(name, _)| format!("{{{{{name}}}}}")).join(", ")
}

impl Placeholder {
    fn named(name: &str) -> Result<Self, TemplateError> {
        let found = KNOWN.into_iter().find(|(known, _)| *known == name.trim());
        let unknown = || TemplateError::Unknown { name: name.trim().chars().take(40).collect() };
        found.map(|(_, placeholder)| placeholder).ok_or_else(unknown)
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Index | Self::Index1 | Self::Count)
    }

    /// Whether it is the same for all events of a run, and known where its end is told.
    fn is_of_runs(self) -> bool {
        matches!(self, Self::RunId | Self::JobId | Self::LaunchAt)
    }

    /// The longest text that it may have, in bytes.
    const fn most_bytes(self) -> usize {
        match self {
            Self::Index | Self::Index1 | Self::Count => NUMBER_BYTES,
            Self::EventId => RUN_ID_BYTES + 1 + NUMBER_BYTES,
            Self::RunId => RUN_ID_BYTES,
            Self::JobId => JOB_ID_BYTES,
            Self::LaunchAt => 20,
        }
    }

    /// Its text for one event: letters, digits and signs that JSON strings take as they are.
    fn text(self, event: &EventId, count: u32) -> String {
        let run = event.run();
        match self {
            Self::Index => event.index().to_string(),
            Self::Index1 => (u64::from(event.index()) + 1).to_string(),
            Self::Count => count.to_string(),
            Self::EventId => event.to_string(),
            Self::RunId => run.to_string(),
            Self::JobId => run.job().to_string(),
            Self::LaunchAt => run.launch_at().to_rfc3339_opts(SecondsFormat::AutoSi, true),
        }
    }
}

impl Template {
    /// Looks whether a JSON text is a template that fills in to no more than a payload may have ([`PAYLOAD_BYTES`]).
    ///
    /// # Errors
    /// [`TemplateError::Unknown`] with a name between braces that stands for nothing, [`TemplateError::Open`] when
    /// braces are not closed, [`TemplateError::Expands`] when it may become too large.
    pub fn check(json: &str) -> Result<(), TemplateError> {
        match Self::parse(json)?.most_bytes() {
            bytes if bytes > PAYLOAD_BYTES => Err(TemplateError::Expands { bytes }),
            _ => Ok(()),
        }
    }

    /// Reads the value of a header as a template: its placeholders stand anywhere in it, and may name secrets.
    ///
    /// # Errors
    /// As [`Template::parse`], and [`TemplateError::Secret`].
    pub fn header(text: &str) -> Result<Self, TemplateError> {
        let mut template = Self { parts: Vec::new() };
        template.string(text, true)?;
        Ok(template)
    }

    /// The secrets that it names.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretId> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(id) => Some(id),
            Part::Fixed(_) | Part::Value(_) => None,
        })
    }

    /// The first of its placeholders that differs between the events of a run.
    pub fn of_events(&self) -> Option<&'static str> {
        let of_events = |part: &Part| match part {
            Part::Value(value) => (!value.is_of_runs()).then_some(*value),
            Part::Fixed(_) | Part::Secret(_) => None,
        };
        let found = self.parts.iter().find_map(of_events)?;
        KNOWN.into_iter().find(|(_, placeholder)| *placeholder == found).map(|(name, _)| name)
    }

    /// The longest that it may become, in bytes, with secrets as they are written.
    pub fn most_bytes(&self) -> usize {
        let size = |part: &Part| match part {
            Part::Fixed(text) => text.len(),
            Part::Value(placeholder) => placeholder.most_bytes(),
            // As it is written: the value has a bound of its own.
            Part::Secret(id) => "{{}}".len() + SECRET.len() + id.as_str().len(),
        };
        self.parts.iter().map(size).fold(0, usize::saturating_add)
    }

    /// Reads a JSON text as a template. What is no JSON is read too, and rendered as what is no JSON.
    ///
    /// # Errors
    /// [`TemplateError::Unknown`] with a name between braces that stands for nothing, [`TemplateError::Open`] when
    /// braces are not closed.
    pub fn parse(json: &str) -> Result<Self, TemplateError> {
        let mut template = Self { parts: Vec::new() };
        let mut rest = json;
        while let Some((before, string)) = rest.split_once('"') {
            let (inside, after) = string.split_at_checked(closing_quote(string)).unwrap_or((string, ""));
            let is_key = after.get(1..).is_some_and(|next| next.trim_start().starts_with(':'));
            match whole(inside).filter(|placeholder| placeholder.is_number() && !is_key) {
                Some(number) => {
                    template.fixed(before);
                    template.parts.push(Part::Value(number));
                }
                None => {
                    template.fixed(before);
                    template.fixed("\"");
                    template.string(inside, false)?;
                    template.fixed(after.get(..1).unwrap_or_default());
                }
            }
            rest = after.get(1..).unwrap_or_default();
        }
        template.fixed(rest);
        Ok(template)
    }

    /// The text for one event of a run of `count`. Texts that are filled in are escaped as JSON strings are.
    pub fn render(&self, event: &EventId, count: u32) -> String {
        // A payload names no secret.
        self.render_with(event, count, &SecretValues::new()).unwrap_or_default()
    }

    /// The same with the values of the secrets that it names.
    ///
    /// # Errors
    /// [`NoSuchSecret`] with the first whose value is not given.
    pub fn render_with(
        &self,
        event: &EventId,
        count: u32,
        secrets: &SecretValues,
    ) -> Result<String, NoSuchSecret> {
        let mut rendered = String::new();
        for part in &self.parts {
            match part {
                Part::Fixed(text) => rendered.push_str(text),
                Part::Value(placeholder) => rendered.push_str(&placeholder.text(event, count)),
                Part::Secret(id) => {
                    let value = secrets.get(id).ok_or_else(|| NoSuchSecret(id.clone()))?;
                    rendered.push_str(value.expose());
                }
            }
        }
        Ok(rendered)
    }

    /// The inside of a string: text and placeholders.
    fn string(&mut self, inside: &str, may_name_secrets: bool) -> Result<(), TemplateError> {
        let mut rest = inside;
        while let Some((before, opened)) = rest.split_once("{{") {
            let open = || TemplateError::Open { text: inside.chars().take(80).collect() };
            let (name, after) = opened.split_once("}}").ok_or_else(open)?;
            self.fixed(before);
            self.parts.push(match name.trim().strip_prefix(SECRET) {
                Some(id) if may_name_secrets => {
                    Part::Secret(id.parse().map_err(|error| TemplateError::Secret { error })?)
                }
                _ => Part::Value(Placeholder::named(name)?),
            });
            rest = after;
        }
        self.fixed(rest);
        Ok(())
    }

    fn fixed(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Fixed(last)) => last.push_str(text),
            _ => self.parts.push(Part::Fixed(text.to_owned())),
        }
    }
}

/// Where the string ends whose opening quote was just read: at its closing quote, or the end of the text.
fn closing_quote(string: &str) -> usize {
    let mut escaped = false;
    for (at, character) in string.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    string.len()
}

/// The placeholder that a string consists of.
fn whole(inside: &str) -> Option<Placeholder> {
    let name = inside.strip_prefix("{{")?.strip_suffix("}}")?;
    Placeholder::named(name).ok()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::RunId;

    fn event() -> EventId {
        let launch_at = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        RunId::new("nightly".parse().unwrap(), 3, launch_at).event(17)
    }

    fn rendered(json: &str) -> String {
        Template::parse(json).unwrap().render(&event(), 100)
    }

    #[test]
    fn placeholders_become_what_they_stand_for() {
        for (template, expected) in [
            (r#""{{index}}""#, "17"),
            (r#"["{{ index1 }}","{{count}}"]"#, "[18,100]"),
            (r#"{"page":"{{index}} of {{count}}"}"#, r#"{"page":"17 of 100"}"#),
            (r#"{"{{index}}" : "{{index}}"}"#, r#"{"17" : 17}"#),
            (r#""\"{{index}}\"""#, r#""\"17\"""#),
            (r#"["{{event_id}}","{{run_id}}"]"#, r#"["nightly.3.1790000000.17","nightly.3.1790000000"]"#),
            (r#"["{{job_id}}","{{launch_at}}"]"#, r#"["nightly","2026-09-21T14:13:20Z"]"#),
            (r#"{"a":{"b":{}},"c":"\u007b{index}}"}"#, r#"{"a":{"b":{}},"c":"\u007b{index}}"}"#),
            (r#"{"a" : [1, true, null, "\\"] }"#, r#"{"a" : [1, true, null, "\\"] }"#),
        ] {
            assert_eq!(rendered(template), expected, "{template}");
            assert!(serde_json::from_str::<Value>(expected).is_ok(), "{expected}");
        }
    }

    #[test]
    fn what_becomes_too_large_is_refused_before_anybody_fills_it_in() {
        let many = |count: usize| format!("\"{}\"", "{{run_id}}".repeat(count));
        assert_eq!(Template::check(&many(100)), Ok(()));
        let refused = Template::check(&many(6_500)).unwrap_err();
        assert!(matches!(refused, TemplateError::Expands { bytes } if bytes > 400_000), "{refused}");
        assert!(refused.to_string().contains("65536 is the most"), "{refused}");
    }

    #[test]
    fn what_stands_for_nothing_is_named_beside_what_is_known() {
        assert_eq!(
            Template::check(r#"{"a":"{{indx}}"}"#).unwrap_err().to_string(),
            "payload_template has the placeholder '{{indx}}', which is not known; there are {{index}}, {{index1}}, \
             {{count}}, {{event_id}}, {{run_id}}, {{job_id}}, {{launch_at}}"
        );
        assert_eq!(
            Template::check(r#"{"a":"{{index"}"#).unwrap_err().to_string(),
            "payload_template has '{{' without '}}' in the string '{{index'; write \\u007b for a brace that stays"
        );
        assert!(Template::check(r#"{"a":"{{secret:shop}}"}"#).is_err(), "payloads are kept and shown");
        assert!(Template::check(r#"{"{{x}}":1}"#).is_err());
        assert!(Template::check(r#"{"a":"{{}}"}"#).is_err());
    }

    fn string() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "{{index}}",
            "{{index1}}",
            "{{count}}",
            "{{event_id}}",
            "{{run_id}}",
            "{{job_id}}",
            "{{launch_at}}",
            "{",
            "} ",
            "\"",
            "\\",
            "\n",
            "é",
            "plain ",
            ":",
            "\u{1}",
        ]);
        prop::collection::vec(pieces, 0..5).prop_map(|pieces| pieces.concat())
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            string().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            Just(Value::Null),
            Just(json!(true)),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((string(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    /// What a value comes to when its strings are replaced one by one.
    fn expected(value: &Value) -> Value {
        let text = |text: &str| {
            KNOWN.into_iter().fold(text.to_owned(), |text, (name, placeholder)| {
                text.replace(&format!("{{{{{name}}}}}"), &placeholder.text(&event(), 100))
            })
        };
        match value {
            Value::String(whole) => match &**whole {
                "{{index}}" => json!(17),
                "{{index1}}" => json!(18),
                "{{count}}" => json!(100),
                other => Value::from(text(other)),
            },
            Value::Array(items) => items.iter().map(expected).collect(),
            Value::Object(pairs) => {
                Value::Object(pairs.iter().map(|(key, value)| (text(key), expected(value))).collect())
            }
            other => other.clone(),
        }
    }

    proptest! {
        /// Whatever a valid template is: valid JSON comes of it, and in it what its strings come to.
        #[test]
        fn a_valid_template_renders_as_valid_json(document in document(), pretty in any::<bool>()) {
            let json = match pretty {
                true => serde_json::to_string_pretty(&document).unwrap(),
                false => document.to_string(),
            };
            if let Ok(template) = Template::parse(&json) {
                let rendered = template.render(&event(), 100);
                let value: Value = serde_json::from_str(&rendered).unwrap();
                prop_assert_eq!(value, expected(&document), "{}", json);
            }
        }

        /// Without placeholders, not a byte changes.
        #[test]
        fn what_has_no_placeholder_stays_byte_for_byte(text in "[^{]*") {
            prop_assert_eq!(Template::parse(&text).unwrap().render(&event(), 100), text);
        }
    }
}
