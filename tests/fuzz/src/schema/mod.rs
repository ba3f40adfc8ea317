//! Requests from the OpenAPI document: each route with parameters and a body that it takes, most of them then spoilt.
//!
//! The document says which fields there are and of what type. What it cannot say, such as what a zone is or which fields
//! exclude each other, is in `sound.rs`. A route or a field that is new in the document is sent without a change here.

mod document;
mod mutate;
mod request;
pub(crate) mod sound;

pub use document::{Document, Operation};
pub(crate) use mutate::mutate;
pub use request::{Key, Request, Spoil};
