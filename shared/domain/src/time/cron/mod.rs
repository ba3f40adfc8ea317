//! Cron expressions: five to seven fields, AWS's `cron(...)`, or Druva's field object, checked and compiled.
//!
//! croner parses and validates; this module says what is wrong in words that help, keeps the masks that a scan matches
//! with, and refuses what never fires. Day of month and day of week combine as in croner: either one counts when both
//! are restricted, both when the day of week begins with `+`; only a lone `*` or `?` is unrestricted.

mod aws;
mod compiled;
mod dialect;
mod encoding;
mod error;
mod field;
mod foreign;
mod split;
mod surprises;
mod years;

use croner::Cron;
use croner::parser::CronParser;

pub use compiled::CompiledCron;
pub use dialect::split_zone_prefix;
pub use encoding::DecodeError;
pub use error::{CronError, Field};

use self::split::Split;
use super::dst::{DstRules, Gap, Overlap};

/// A cron expression that parses and fires.
///
/// ```
/// use tidegate_domain::time::CronSpec;
///
/// let spec = CronSpec::parse("0  9 * * Mon-FRI")?;
/// assert_eq!(spec.canonical(), "0 9 * * MON-FRI");
/// assert!(CronSpec::parse("0 22-2 * * *").is_err());
/// # Ok::<(), tidegate_domain::time::CronError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronSpec {
    canonical: String,
    compiled: CompiledCron,
    interval: bool,
    dst: DstRules,
}

/// Druva's field object: `{"Month":"*","DayOfMonth":"*","DayOfWeek":"*","Hour":"3,6,9","Minute":"0"}`.
///
/// Each field is taken literally, so `"Minute":"*"` is every minute (Druva's article writes it for on the hour).
/// Absent days and months are `*`; hour and minute have no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CronFields<'a> {
    /// `Month`; `None`: every one.
    pub month: Option<&'a str>,
    /// `DayOfMonth`; `None`: every one.
    pub day_of_month: Option<&'a str>,
    /// `DayOfWeek`; `None`: every one.
    pub day_of_week: Option<&'a str>,
    /// `Hour`; `None` is refused.
    pub hour: Option<&'a str>,
    /// `Minute`; `None` is refused.
    pub minute: Option<&'a str>,
}

impl CronSpec {
    /// Parses five fields, six (second first), seven (and the year last), AWS's `cron(...)` or a nickname such as
    /// `@daily`. Names may be in any case, and blanks and tabs of any length.
    /// [`Expression::parse`](super::Expression::parse) takes intervals and zones too.
    ///
    /// # Errors
    /// A [`CronError`] when the text is not such an expression, or never fires ([`CronError::NeverFires`]); it names
    /// the field, the value and the fix.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let read = dialect::split(text).and_then(|split| Self::from_split(&split));
        // Only what is no expression is looked at again: a text that is one means what it says.
        read.map_err(|error| match error {
            CronError::TooLong { .. } | CronError::NeverFires { .. } => error,
            error => foreign::refusal(text.trim()).unwrap_or(error),
        })
    }

    /// Takes a field object.
    ///
    /// # Errors
    /// [`CronError::MissingField`] when hour or minute is missing; otherwise as [`CronSpec::parse`], and the error
    /// names the field.
    pub fn from_fields(fields: &CronFields<'_>) -> Result<Self, CronError> {
        let given = |field: Field, value: Option<&str>, default: Option<&str>| match value.or(default) {
            Some(value) => one_field(field, value),
            None => Err(CronError::MissingField { field }),
        };
        Self::from_split(&Split::five([
            given(Field::Minute, fields.minute, None)?,
            given(Field::Hour, fields.hour, None)?,
            given(Field::DayOfMonth, fields.day_of_month, Some("*"))?,
            given(Field::Month, fields.month, Some("*"))?,
            given(Field::DayOfWeek, fields.day_of_week, Some("*"))?,
        ]))
    }

    fn from_split(split: &Split) -> Result<Self, CronError> {
        let canonical = split.canonical();
        let cron = parse_fields(split, &canonical)?;
        // How a field begins is not among what croner keeps.
        let times = [Field::Second, Field::Minute, Field::Hour];
        let interval = times.iter().any(|field| split.field(*field).starts_with('*'));
        let any_year = matches!(split.field(Field::Year), "*" | "*/1");
        let compiled = CompiledCron::of(&cron, any_year, interval);
        if !compiled.ever_fires() {
            return Err(CronError::NeverFires { given: canonical });
        }
        Ok(Self { canonical, compiled, interval, dst: DstRules::default() })
    }

    /// The same with rules of its own for changes of the clocks. What they leave open follows from the expression again;
    /// a rule that follows from it anyway is none of its own.
    pub fn with_dst(mut self, rules: DstRules) -> Self {
        let follows = self.interval;
        self.dst = DstRules {
            gap: rules.gap.filter(|gap| (*gap == Gap::Skip) != follows),
            overlap: rules.overlap.filter(|overlap| (*overlap == Overlap::Both) != follows),
        };
        self.compiled.flags.skips_gaps = rules.gap.map_or(self.interval, |gap| gap == Gap::Skip);
        self.compiled.flags.repeats = rules.overlap.map_or(self.interval, |overlap| overlap == Overlap::Both);
        self
    }

    /// Its own rules for changes of the clocks; [`CompiledCron::gap`] and [`CompiledCron::overlap`] say what holds.
    pub fn dst(&self) -> DstRules {
        self.dst
    }

    /// Whether it is interval-like (`*/15 * * * *`): the second, the minute or the hour begins with `*`. Such a one follows
    /// the real instants of the wall clock, any other (`30 2 * * *`) fixed local times, unless the rules say otherwise.
    pub fn is_interval(&self) -> bool {
        self.interval
    }

    /// Its fields in upper case, one blank apart, those of AWS translated; parsing them gives this expression again, with
    /// the rules that follow from it.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Its masks, which launches are computed from.
    pub fn compiled(&self) -> &CompiledCron {
        &self.compiled
    }

    /// What child rows store of it: [`CompiledCron::encode`].
    pub fn encode(&self) -> String {
        self.compiled.encode()
    }

    /// A sentence for each thing in its fields that often surprises.
    pub(super) fn surprises(&self) -> Vec<String> {
        let split = dialect::split(&self.canonical);
        split.map_or_else(|_| Vec::new(), |split| surprises::surprises(&split, &self.compiled))
    }

    /// It in words, as croner puts them. Parses anew: for people, not for scans.
    pub fn describe(&self) -> String {
        dialect::split(&self.canonical)
            .and_then(|split| parse_fields(&split, &self.canonical))
            .map_or_else(|_| self.canonical.clone(), |cron| cron.describe())
    }
}

/// Lets croner parse the fields in the form that it takes.
fn parse_fields(split: &Split, given: &str) -> Result<Cron, CronError> {
    let mut normal = Vec::with_capacity(split.fields.len());
    for (field, text) in Field::ALL.into_iter().zip(&split.fields) {
        normal.push(field::normalise(field, text)?);
    }
    CronParser::new().parse(&normal.join(" ")).map_err(|error| CronError::Parser {
        given: given.to_owned(),
        reason: error.to_string().to_lowercase(),
    })
}

/// A field of an object in upper case, without the blanks that people put behind commas.
fn one_field(field: Field, value: &str) -> Result<String, CronError> {
    let text = value.split(',').map(str::trim).collect::<Vec<_>>().join(",").to_uppercase();
    if text.len() > error::EXPRESSION_BYTES {
        return Err(CronError::TooLong { bytes: text.len() });
    }
    if text.is_empty() {
        return Err(field.error(value, "is empty: write '*' for every one"));
    }
    if text.contains(char::is_whitespace) {
        return Err(field.error(value, "has a blank in it: one field takes values, lists, ranges and steps"));
    }
    Ok(text)
}
