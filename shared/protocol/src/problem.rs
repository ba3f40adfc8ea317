//! Answers that are not what was asked for.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of every answer that is not a 2xx.
///
/// Something else than the API may have answered: what it lacks is then empty, and the detail is what it said, cut short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(description = "The body of every answer that is not a 2xx.")
)]
pub struct Problem {
    /// A stable name of the kind of problem, for programs.
    #[serde(rename = "type", default)]
    #[cfg_attr(feature = "openapi", schema(required = true, example = "urn:tidegate:problem:invalid-body"))]
    pub kind: String,
    /// The kind of problem, for people.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong and what to do about it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub detail: String,
    /// Each field that is wrong, up to 50. Left out when the problem is not about fields.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<FieldError>,
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldError {
    /// The path of the field in the body.
    #[cfg_attr(feature = "openapi", schema(example = "trigger.zone"))]
    pub field: String,
    /// What was given; left out when nothing was, and cut when it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What is wrong with it and how to put it right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.status)
    }
}
