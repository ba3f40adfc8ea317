//! Cron expressions: five fields, or Druva's field object, checked and compiled.
//!
//! croner parses and validates; this module says what is wrong in words that help, keeps the masks that a scan matches
//! with, and refuses what never fires. Day of month and day of week combine as in croner: either one counts when both
//! are restricted, both when the day of week begins with `+`; only a lone `*` or `?` is unrestricted.

mod compiled;
mod dialect;
mod encoding;
mod error;
mod field;
mod warnings;

use croner::Cron;
use croner::parser::CronParser;

pub use compiled::CompiledCron;
pub use dialect::split_zone_prefix;
pub use encoding::DecodeError;
pub use error::{CronError, Field};

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
    warnings: Vec<String>,
}

/// Druva's field object: `{"Month":"*","DayOfMonth":"*","DayOfWeek":"*","Hour":"3,6,9","Minute":"0"}`.
///
/// Each field is taken literally, so `"Minute":"*"` is every minute (Druva's article writes it for on the hour).
/// Absent days and months are `*`; hour and minute have no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CronFields<'a> {
    /// `Month`
    pub month: Option<&'a str>,
    /// `DayOfMonth`
    pub day_of_month: Option<&'a str>,
    /// `DayOfWeek`
    pub day_of_week: Option<&'a str>,
    /// `Hour`
    pub hour: Option<&'a str>,
    /// `Minute`
    pub minute: Option<&'a str>,
}

impl CronSpec {
    /// Parses five fields or a nickname such as `@daily`. Names may be in any case, and blanks and tabs of any length.
    ///
    /// # Errors
    /// When the text is not such an expression, or never fires; the error names the field, the value and the fix.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        Self::from_split(dialect::split_fields(text)?)
    }

    /// Takes a field object.
    ///
    /// # Errors
    /// When hour or minute is missing, or a field is wrong; the error names it.
    pub fn from_fields(fields: &CronFields<'_>) -> Result<Self, CronError> {
        let given = |field: Field, value: Option<&str>, default: Option<&str>| match value.or(default) {
            Some(value) => one_field(field, value),
            None => Err(CronError::MissingField { field }),
        };
        Self::from_split([
            given(Field::Minute, fields.minute, None)?,
            given(Field::Hour, fields.hour, None)?,
            given(Field::DayOfMonth, fields.day_of_month, Some("*"))?,
            given(Field::Month, fields.month, Some("*"))?,
            given(Field::DayOfWeek, fields.day_of_week, Some("*"))?,
        ])
    }

    fn from_split(fields: [String; 5]) -> Result<Self, CronError> {
        let canonical = fields.join(" ");
        let cron = parse_fields(&fields, &canonical)?;
        // How a field begins is not among what croner keeps.
        let interval = fields[0].starts_with('*') || fields[1].starts_with('*');
        let compiled = CompiledCron::of(&cron, interval);
        if !compiled.ever_fires() {
            return Err(CronError::NeverFires { given: canonical });
        }
        let warnings = warnings::warnings(&fields, &compiled);
        Ok(Self { canonical, compiled, warnings })
    }

    /// Its five fields in upper case, one blank apart; parsing them gives this expression again.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Its masks.
    pub fn compiled(&self) -> &CompiledCron {
        &self.compiled
    }

    /// What child rows store: [`CompiledCron::encode`].
    pub fn encode(&self) -> String {
        self.compiled.encode()
    }

    /// A sentence for each thing in it that often surprises.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// It in words, as croner puts them. Parses anew: for people, not for scans.
    pub fn describe(&self) -> String {
        dialect::split_fields(&self.canonical)
            .and_then(|fields| parse_fields(&fields, &self.canonical))
            .map_or_else(|_| self.canonical.clone(), |cron| cron.describe())
    }
}

/// Lets croner parse the fields in the form that it takes.
fn parse_fields(fields: &[String; 5], given: &str) -> Result<Cron, CronError> {
    let mut normal = Vec::with_capacity(fields.len());
    for (field, text) in Field::ALL.into_iter().zip(fields) {
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
