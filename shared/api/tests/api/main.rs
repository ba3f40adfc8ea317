//! The API as its callers see it: requests in, answers out, over the embedded stores.
#![cfg(test)]

mod auth;
mod bad_input;
mod consumer;
mod document;
mod jobs;
mod log;
mod policies;
mod tokens;
mod world;
