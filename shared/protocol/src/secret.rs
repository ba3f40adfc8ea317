//! Secrets of clients, which headers of HTTP targets name.

use serde::{Deserialize, Serialize};

use crate::policy::Unreadable;

/// A secret as it is answered: without its value, which nothing shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Secret))]
pub struct SecretView {
    /// Its name within the client.
    #[cfg_attr(feature = "openapi", schema(example = "shop-token"))]
    pub secret_id: String,
    /// Rises by one with each value. It is also the ETag, which `If-Match` takes.
    pub revision: u32,
    /// When it got this value.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub changed_at: String,
}

/// A page of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SecretList {
    /// The secrets, by name.
    pub secrets: Vec<SecretView>,
    /// What the list has beside that and cannot be read. Left out when there is none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<Unreadable>,
    /// What to ask the next page with; null on the last.
    pub next_cursor: Option<String>,
}
