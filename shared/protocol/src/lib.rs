//! What travels between Tidegate and those who use it, each type once: the engine writes it, the API answers with it, the
//! client library reads it.
//!
//! | who sends it | types |
//! | --- | --- |
//! | a target receives | [`Event`], [`Completion`] |
//! | a consumer sends, by a call or a message | [`Release`], [`ReleaseMessage`] |
//! | the API answers | [`Run`], [`RunDetail`], [`EventRecord`], [`Explanation`], [`Holder`], [`PolicyStatus`], and what came of tokens |
//!
//! Fields are only ever added: whoever reads an answer or a message of ours ignores what it does not know, and a word of a
//! later version is read as `Other`. What clients send us is read strictly: a member that is not known is a typo.
//!
//! Deliberately absent: checks, rules and clocks. Instants are texts as RFC 3339 has them.

mod completion;
mod event;
mod explanation;
mod policy;
mod release;
mod run;
mod tokens;
mod words;

pub use completion::Completion;
pub use event::{Event, EventError};
pub use explanation::{ExpectationCode, Explanation, ReasonCode};
pub use policy::{Holder, OnExpiry, Per, PolicyStatus, PolicyView, Rate, Unreadable};
pub use release::{Outcome, Release, ReleaseEntry, ReleaseMessage};
pub use run::{EventRecord, ForecastCode, Run, RunDetail};
pub use tokens::{ExtendStatus, Extended, FreeStatus, Freed, ReleaseStatus, Released};
