//! Names that people choose and ids that follow from them. Each is checked once, when it is built.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use thiserror::Error;

use crate::limits::{AT_SHARDS, INSTANTS_S, JOB_ID_BYTES, NAME_BYTES};

/// Why a text is not an id. Reads as "failed to read the client id: ...".
///
/// ```
/// use tidegate_domain::ids::{ClientId, JobId};
///
/// let reminder: JobId = "reminder:user@example.com".parse()?;
/// assert_eq!(reminder.as_str(), "reminder:user@example.com");
/// let refused = "a b".parse::<ClientId>().unwrap_err().to_string();
/// assert_eq!(refused, "client_id 'a b' has the character ' '; use letters, digits, '-' or '_'");
/// # Ok::<(), tidegate_domain::ids::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("{what} is empty; use 1 to {limit} {allowed}")]
    Empty {
        /// Which id, by its field: `client_id`, `job_id`.
        what: &'static str,
        /// Its longest form, in bytes.
        limit: usize,
        /// The characters that it may have.
        allowed: &'static str,
    },
    /// More bytes than such an id may have.
    #[error("{what} '{value}' is {} bytes long; {limit} is the most", value.len())]
    TooLong {
        /// Which id, by its field: `client_id`, `job_id`.
        what: &'static str,
        /// What was given.
        value: String,
        /// Its longest form, in bytes.
        limit: usize,
    },
    /// A character that the id may not have.
    #[error("{what} '{value}' has the character {character:?}; use {allowed}")]
    Character {
        /// Which id, by its field: `client_id`, `job_id`.
        what: &'static str,
        /// What was given.
        value: String,
        /// The first character that does not fit.
        character: char,
        /// The characters that it may have.
        allowed: &'static str,
    },
    /// A character that the id may have, but not in front.
    #[error("{what} '{value}' begins with {character:?}; begin with a letter, a digit, '-' or '_'")]
    First {
        /// Which id, by its field: `job_id`.
        what: &'static str,
        /// What was given.
        value: String,
        /// Its first character.
        character: char,
    },
    /// The form is not that of such an id.
    #[error("{what} '{value}' has not the form {form}")]
    Form {
        /// Which id, by its field: `run_id`, `event_id`.
        what: &'static str,
        /// What was given.
        value: String,
        /// How it should look, such as `<job>.<revision>.<launch second>`.
        form: &'static str,
    },
}

/// What an id may look like. Letters and digits are those of ASCII.
struct Rule {
    what: &'static str,
    /// Its longest form, in bytes.
    limit: usize,
    /// The characters that it may have beside letters, digits, '-' and '_', though not in front.
    more: &'static str,
    /// All that it may have, in words.
    allowed: &'static str,
}

impl Rule {
    const fn name(what: &'static str) -> Self {
        Self { what, limit: NAME_BYTES, more: "", allowed: "letters, digits, '-' or '_'" }
    }

    /// Keys of the caller's own systems. `|` separates the parts of the store's keys, so it is never among them, and
    /// neither is what must be escaped in JSON or cannot be shown.
    const fn key(what: &'static str) -> Self {
        let allowed = "letters, digits and - _ . : @ / + ~ = ,";
        Self { what, limit: JOB_ID_BYTES, more: ".:@/+~=,", allowed }
    }

    fn check(&self, text: &str) -> Result<String, IdError> {
        let Self { what, limit, more, allowed } = *self;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let value = || text.to_owned();
        let Some(first) = text.chars().next() else { return Err(IdError::Empty { what, limit, allowed }) };
        if text.len() > limit {
            return Err(IdError::TooLong { what, value: value(), limit });
        }
        if let Some(character) = text.chars().find(|c| !plain(*c) && !more.contains(*c)) {
            return Err(IdError::Character { what, value: value(), character, allowed });
        }
        if !plain(first) {
            return Err(IdError::First { what, value: value(), character: first });
        }
        Ok(value())
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                $rule.check(text).map(Self)
            }
        }
    };
}

name! {
    /// A tenant's name: 1 to 32 letters, digits, '-' or '_'.
    ClientId, Rule::name("client_id")
}
name! {
    /// A policy's name, unique within its client.
    PolicyId, Rule::name("policy_id")
}
name! {
    /// An exclusion calendar's name, unique within its client.
    CalendarId, Rule::name("calendar_id")
}
name! {
    /// The name of a client's secret, unique within its client.
    SecretId, Rule::name("secret_id")
}
name! {
    /// A job's name, unique within its client: chosen by the client, or generated. 1 to 200 letters, digits and
    /// `- _ . : @ / + ~ = ,`, such as `reminder:user@example.com`; the first is a letter, a digit, '-' or '_'.
    JobId, Rule::key("job_id")
}

/// What the generated id of a one-time job begins with. No client may choose an id that does.
pub const ONE_TIME_PREFIX: &str = "at_";

/// Where the only row of a one-time job lies in the time index: under its launch minute, in one of its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneTimeShard {
    /// Minutes since the Unix epoch.
    pub minute: i64,
    /// 0 up to, not including, `AT_SHARDS`.
    pub shard: u32,
}

impl JobId {
    /// An id for a job that was sent without one: `job_` and a number in base 36. `random` makes it unique.
    pub fn generated(random: u128) -> Self {
        Self(format!("job_{}", base36(random)))
    }

    /// An id for a one-time job, `at_<minute>-<shard>-<random>`, with minute and random in base 36: it says where the
    /// job's only row lies, so that no second row is needed to find it.
    pub fn one_time(place: OneTimeShard, random: u64) -> Self {
        let minute = base36(place.minute.unsigned_abs().into());
        Self(format!("{ONE_TIME_PREFIX}{minute}-{}-{}", place.shard, base36(random.into())))
    }

    /// Where the id says that its row lies; `None` for every id that is not that of a one-time job.
    pub fn one_time_shard(&self) -> Option<OneTimeShard> {
        let mut parts = self.0.strip_prefix(ONE_TIME_PREFIX)?.split('-');
        let minute = i64::from_str_radix(parts.next()?, 36).ok()?;
        let shard = parts.next()?.parse().ok().filter(|shard| *shard < AT_SHARDS)?;
        parts.next()?;
        Some(OneTimeShard { minute, shard })
    }
}

fn base36(mut value: u128) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((value % 36) as u32, 36).unwrap_or('0'));
        value /= 36;
        if value == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

/// A run's name within its client: job, revision and launch second, as `nightly.3.1790000000`. It is read from the right,
/// since the names of jobs may have dots.
///
/// Invariant: it is a function of the occurrence, so whoever materialises it names it the same.
///
/// An id says what it is of, so nobody looks it up:
///
/// ```
/// use tidegate_domain::ids::{EventId, RunId};
///
/// let run: RunId = "nightly.3.1790000000".parse()?;
/// assert_eq!((run.job().as_str(), run.revision()), ("nightly", 3));
/// let last: EventId = run.event(19);
/// assert_eq!(last.to_string(), "nightly.3.1790000000.19");
/// # Ok::<(), tidegate_domain::ids::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    job: JobId,
    revision: u32,
    launch_s: i64,
}

impl RunId {
    /// The run of `job` at `revision` that is due at `launch_at`, of which whole seconds count.
    pub fn new(job: JobId, revision: u32, launch_at: DateTime<Utc>) -> Self {
        Self { job, revision, launch_s: launch_at.timestamp() }
    }

    /// The job that it is a run of.
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The job's revision that it belongs to, from 1; 0 where that could not be read.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// When it is due, in whole seconds.
    pub fn launch_at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.launch_s, 0).unwrap_or_default()
    }

    /// The id of its event number `index`, from 0. Whether the run has so many is not looked at.
    pub fn event(&self, index: u32) -> EventId {
        EventId { run: self.clone(), index }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.job, self.revision, self.launch_s)
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let bad = || IdError::Form {
            what: "run_id",
            value: text.to_owned(),
            form: "<job>.<revision>.<launch second>",
        };
        let mut parts = text.rsplitn(3, '.');
        let (Some(launch), Some(revision), Some(job)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad());
        };
        let launch_s: i64 = whole(launch).ok_or_else(bad)?;
        if !INSTANTS_S.contains(&launch_s) {
            return Err(bad());
        }
        Ok(Self { job: job.parse()?, revision: whole(revision).ok_or_else(bad)?, launch_s })
    }
}

/// A number as ids have it: its only spelling, so that no two texts name the same thing.
pub(crate) fn whole<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number: &T| number.to_string() == text)
}

/// An event's name within its client: run and index, as `nightly.3.1790000000.17`. The consumer's idempotency key.
///
/// Invariant (I3): a run of *n* events has exactly the ids 0 to n-1, whoever emits it and however often.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    run: RunId,
    index: u32,
}

impl EventId {
    /// The run that it belongs to.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Its number in the run, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.index)
    }
}

impl FromStr for EventId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let form = "<job>.<revision>.<launch second>.<index>";
        let bad = || IdError::Form { what: "event_id", value: text.to_owned(), form };
        let (run, index) = text.rsplit_once('.').ok_or_else(bad)?;
        Ok(Self { run: run.parse()?, index: whole(index).ok_or_else(bad)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_say_what_is_wrong() {
        assert_eq!("acme-1_X".parse::<ClientId>().unwrap().as_str(), "acme-1_X");
        for (text, says) in [
            ("", "client_id is empty; use 1 to 32 letters, digits, '-' or '_'"),
            ("a b", "client_id 'a b' has the character ' '; use letters, digits, '-' or '_'"),
            ("a.b", "client_id 'a.b' has the character '.'; use letters, digits, '-' or '_'"),
        ] {
            assert_eq!(text.parse::<ClientId>().unwrap_err().to_string(), says);
        }
        let long = "x".repeat(33);
        assert!(
            long.parse::<ClientId>().unwrap_err().to_string().ends_with("is 33 bytes long; 32 is the most")
        );
    }

    #[test]
    fn run_and_event_ids_read_back() {
        let launch_at = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        let event = RunId::new("nightly".parse().unwrap(), 3, launch_at).event(17);
        assert_eq!(event.to_string(), "nightly.3.1790000000.17");
        assert_eq!(event.to_string().parse::<EventId>().unwrap(), event);
        assert_eq!(event.run().launch_at(), launch_at);
        for bad in [
            "nightly",
            "nightly.3",
            "nightly.x.1.1",
            "nightly.3.1790000000",
            "a b.3.1.1",
            "n.3.99999999999999.1",
            "n.3.-1.1",
            "n.3.1790000000.+1",
            "n.03.1790000000.1",
            ".3.1790000000.1",
            "n.3.7258118401.1",
        ] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_jobs_take_the_keys_of_other_systems() {
        let longest = "x".repeat(200);
        for good in ["reminder:user@example.com", "a/b+c~d=e,f.g", "nightly.3", "-x", "_x", "0", &longest] {
            assert_eq!(good.parse::<JobId>().map(|id| id.to_string()).as_deref(), Ok(good));
        }
        let allowed = "use letters, digits and - _ . : @ / + ~ = ,";
        let begin = "begin with a letter, a digit, '-' or '_'";
        for (bad, says) in [
            ("", "job_id is empty; use 1 to 200 letters, digits and - _ . : @ / + ~ = ,".to_owned()),
            ("a|b", format!("job_id 'a|b' has the character '|'; {allowed}")),
            ("a b", format!("job_id 'a b' has the character ' '; {allowed}")),
            ("a\u{7}", format!("job_id 'a\u{7}' has the character '\\u{{7}}'; {allowed}")),
            ("über", format!("job_id 'über' has the character 'ü'; {allowed}")),
            (".hidden", format!("job_id '.hidden' begins with '.'; {begin}")),
            ("/a", format!("job_id '/a' begins with '/'; {begin}")),
        ] {
            assert_eq!(bad.parse::<JobId>().unwrap_err().to_string(), says);
        }
        let long = "x".repeat(201).parse::<JobId>().unwrap_err().to_string();
        assert!(long.ends_with("is 201 bytes long; 200 is the most"), "{long}");
        assert!("a.b".parse::<ClientId>().is_err() && "a:b".parse::<PolicyId>().is_err());
    }

    /// A job may be called like a run of another: their runs and events are told apart all the same.
    #[test]
    fn ids_of_jobs_with_dots_read_back_from_the_right() {
        let launch_at = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        for job in ["a.b", "nightly.3.1790000000", "nightly.3.1790000000.17", "v1.2.3", "a@b.c:d/e+f"] {
            let run = RunId::new(job.parse().unwrap(), 4, launch_at);
            assert_eq!(run.to_string().parse::<RunId>().as_ref(), Ok(&run), "{job}");
            let event = run.event(0);
            assert_eq!(event.to_string().parse::<EventId>().as_ref(), Ok(&event), "{job}");
            assert_eq!(event.run().job().as_str(), job);
        }
    }

    #[test]
    fn a_one_time_id_says_where_its_row_lies() {
        let place = OneTimeShard { minute: 29_833_333, shard: 15 };
        let id = JobId::one_time(place, u64::MAX);
        assert_eq!(id.one_time_shard(), Some(place), "{id}");
        assert_eq!(id.as_str().parse::<JobId>().unwrap(), id);
        for other in ["nightly", "at_x", "at_1-99-x", "job_1-2-3"] {
            assert_eq!(other.parse::<JobId>().unwrap().one_time_shard(), None, "{other}");
        }
    }
}
