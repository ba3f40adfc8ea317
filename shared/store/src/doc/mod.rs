//! How a job's terms, rules and trigger are stored and travel: JSON with short names, since every byte is paid for.
//!
//! Members that this version does not know are kept. What a trigger is made of has no names, so whatever is added to one
//! is a new version of its row.

mod backpressure;
mod defaults;
mod flow;
mod http_call;
mod quotas;
mod rest;
mod retry;
mod rules;
mod sideline;
mod tags;
mod target;
mod terms;
mod trigger;

pub(crate) use backpressure::BackpressureDoc;
pub(crate) use defaults::DefaultsDoc;
pub(crate) use flow::{read_told, told_json};
pub(crate) use quotas::QuotasDoc;
pub use rest::Rest;
pub use rules::RulesDoc;
pub(crate) use sideline::{SidelineDoc, SidelinesDoc};
pub(crate) use tags::{read_tags, tags_attribute};
pub use terms::TermsDoc;
pub(crate) use trigger::TriggerDoc;
