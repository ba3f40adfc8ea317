//! How a job's terms, rules and trigger are stored and travel: JSON with short names, since every byte is paid for.
//!
//! Version 1. A new version gets a new type beside this one; readers take both.

mod flow;
mod rules;
mod terms;
mod trigger;

pub use rules::RulesDoc;
pub use terms::TermsDoc;
pub(crate) use trigger::TriggerDoc;
