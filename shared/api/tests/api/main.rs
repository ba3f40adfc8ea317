//! The API as its callers see it: requests in, answers out, over the embedded stores.
#![cfg(test)]

mod auth;
mod bad_input;
mod bad_schedules;
mod bulk;
mod calendars;
mod consumer;
mod document;
mod instants;
mod jobs;
mod log;
mod policies;
mod preview;
mod rules;
mod tokens;
mod upcoming;
mod world;
