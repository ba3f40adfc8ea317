//! Names that people choose and ids that follow from them. Each is checked once, when it is built.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use thiserror::Error;

use crate::limits::{AT_SHARDS, INSTANTS_S, JOB_ID_BYTES, NAME_BYTES};

/// Why a text is not an id. Reads as "failed to read the client id: ...".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("{what} is empty; use 1 to {limit} letters, digits, '-' or '_'")]
    Empty {
        /// Which id.
        what: &'static str,
        /// Its longest form, in bytes.
        limit: usize,
    },
    /// More bytes than allowed.
    #[error("{what} '{value}' is {} bytes long; {limit} is the most", value.len())]
    TooLong {
        /// Which id.
        what: &'static str,
        /// What was given.
        value: String,
        /// Its longest form, in bytes.
        limit: usize,
    },
    /// A character outside letters, digits, '-' and '_'.
    #[error("{what} '{value}' has the character '{character}'; use letters, digits, '-' or '_'")]
    Character {
        /// Which id.
        what: &'static str,
        /// What was given.
        value: String,
        /// The first character that does not fit.
        character: char,
    },
    /// The form is not that of such an id.
    #[error("{what} '{value}' has not the form {form}")]
    Form {
        /// Which id.
        what: &'static str,
        /// What was given.
        value: String,
        /// How it should look.
        form: &'static str,
    },
}

fn checked(what: &'static str, limit: usize, text: &str) -> Result<String, IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what, limit });
    }
    if text.len() > limit {
        return Err(IdError::TooLong { what, value: text.to_owned(), limit });
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '-' || *c == '_')) {
        Some(character) => Err(IdError::Character { what, value: text.to_owned(), character }),
        None => Ok(text.to_owned()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $limit:expr) => {
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
                checked($what, $limit, text).map(Self)
            }
        }
    };
}

name! {
    /// A tenant's name: 1 to 32 letters, digits, '-' or '_'.
    ClientId, "client_id", NAME_BYTES
}
name! {
    /// A policy's name, unique within its client.
    PolicyId, "policy_id", NAME_BYTES
}
name! {
    /// An exclusion calendar's name, unique within its client.
    CalendarId, "calendar_id", NAME_BYTES
}
name! {
    /// A job's name, unique within its client: chosen by the client, or generated.
    JobId, "job_id", JOB_ID_BYTES
}

/// What the generated id of a one-time job begins with. No client may choose an id that does.
pub const ONE_TIME_PREFIX: &str = "at_";

/// Where the only row of a one-time job lies in the time index: under its launch minute, in one of its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneTimePlace {
    /// Minutes since the Unix epoch.
    pub minute: i64,
    /// 0 to `AT_SHARDS`.
    pub shard: u32,
}

impl JobId {
    /// An id for a job that was sent without one. `random` makes it unique.
    pub fn generated(random: u128) -> Self {
        Self(format!("job_{}", base36(random)))
    }

    /// An id for a one-time job: it says where the job's only row lies, so that no second row is needed to find it.
    pub fn one_time(place: OneTimePlace, random: u64) -> Self {
        let minute = base36(place.minute.unsigned_abs().into());
        Self(format!("{ONE_TIME_PREFIX}{minute}-{}-{}", place.shard, base36(random.into())))
    }

    /// Where the id says that its row lies; `None` for every id that is not that of a one-time job.
    pub fn one_time_place(&self) -> Option<OneTimePlace> {
        let mut parts = self.0.strip_prefix(ONE_TIME_PREFIX)?.split('-');
        let minute = i64::from_str_radix(parts.next()?, 36).ok()?;
        let shard = parts.next()?.parse().ok().filter(|shard| *shard < AT_SHARDS)?;
        parts.next()?;
        Some(OneTimePlace { minute, shard })
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

/// A run's name within its client: job, revision and launch second, as `nightly.3.1790000000`.
///
/// Invariant: it is a function of the occurrence, so whoever materialises it names it the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    job: JobId,
    revision: u32,
    launch_s: i64,
}

impl RunId {
    /// The run of `job` at `revision` that is due at `launch_at`.
    pub fn new(job: JobId, revision: u32, launch_at: DateTime<Utc>) -> Self {
        Self { job, revision, launch_s: launch_at.timestamp() }
    }

    /// The job that it is a run of.
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The job's revision that it belongs to.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// When it is due.
    pub fn launch_at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.launch_s, 0).unwrap_or_default()
    }

    /// The id of its event number `index`.
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
        let mut parts = text.split('.');
        let (Some(job), Some(revision), Some(launch), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let launch_s: i64 = launch.parse().map_err(|_| bad())?;
        if !INSTANTS_S.contains(&launch_s) {
            return Err(bad());
        }
        Ok(Self { job: job.parse()?, revision: revision.parse().map_err(|_| bad())?, launch_s })
    }
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
        Ok(Self { run: run.parse()?, index: index.parse().map_err(|_| bad())? })
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
            "n.3.7258118401.1",
        ] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_one_time_id_says_where_its_row_lies() {
        let place = OneTimePlace { minute: 29_833_333, shard: 15 };
        let id = JobId::one_time(place, u64::MAX);
        assert_eq!(id.one_time_place(), Some(place), "{id}");
        assert_eq!(id.as_str().parse::<JobId>().unwrap(), id);
        for other in ["nightly", "at_x", "at_1-99-x", "job_1-2-3"] {
            assert_eq!(other.parse::<JobId>().unwrap().one_time_place(), None, "{other}");
        }
    }
}
