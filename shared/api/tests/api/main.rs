//! The API as its callers see it: requests in, answers out, over the embedded stores.
#![cfg(test)]

mod attempts;
mod auth;
mod bad_input;
mod bad_schedules;
mod bad_throttling;
mod bulk;
mod calendars;
mod client_library;
mod consumer;
mod create_only;
mod document;
mod far_instants;
mod flow;
mod forms;
mod guide;
mod hook;
mod how_to;
mod instants;
mod job_keys;
mod jobs;
mod links;
mod log;
mod messages;
mod page;
mod patch;
mod policies;
mod preview;
mod rules;
mod runs;
mod script;
mod sent_back;
mod throttling;
mod tokens;
mod upcoming;
mod world;
