//! What came of tokens that were released, extended or freed.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What a release did.
    ReleaseStatus {
        /// The token is free; the next event of its policy may go.
        Released = "released",
        /// It was free already: released before.
        AlreadyReleased = "already_released",
        /// Its lease had run out and it was taken back. The event may be with another consumer. Nothing changed.
        Reclaimed = "reclaimed",
        /// Taken down, and done within moments.
        Accepted = "accepted",
        /// Another client's token. Nothing changed.
        NotYours = "not_yours",
        /// No such lease. Nothing changed.
        Unknown = "unknown",
        /// The entry cannot be read: `detail` says why. Nothing changed.
        Malformed = "malformed",
    }
}

/// What a release did to one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReleaseResult))]
pub struct Released {
    /// The token as it was sent; empty when the entry names none.
    pub token: String,
    /// What came of it.
    pub status: ReleaseStatus,
    /// What is wrong with the entry and what to do about it; only when it is malformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

words! {
    /// What an extension did.
    ExtendStatus {
        /// The lease lasts until `lease_expires_at`.
        Extended = "extended",
        /// The lease had ended. The event may be with another consumer: stop.
        Expired = "expired",
        /// Another client's token. Nothing changed.
        NotYours = "not_yours",
        /// No such lease. Nothing changed.
        Unknown = "unknown",
        /// Not the text of a token. Nothing changed.
        Malformed = "malformed",
    }
}

/// What an extension did to one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ExtendResult))]
pub struct Extended {
    /// The token as it was sent.
    pub token: String,
    /// What came of it.
    pub status: ExtendStatus,
    /// Until when the token is held, RFC 3339; only when it was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub lease_expires_at: Option<String>,
}

words! {
    /// What came of a token that was to be freed.
    FreeStatus {
        /// The token is free.
        Freed = "freed",
        /// It was released before.
        AlreadyReleased = "already_released",
        /// Its lease had run out and it was taken back before.
        Reclaimed = "reclaimed",
        /// Another client's token. Nothing changed.
        NotYours = "not_yours",
        /// No such lease. Nothing changed.
        Unknown = "unknown",
        /// Not the text of a token. Nothing changed.
        Malformed = "malformed",
    }
}

/// What came of one token that was to be freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = FreeResult))]
pub struct Freed {
    /// The token as it was sent.
    pub token: String,
    /// What came of it.
    pub status: FreeStatus,
}

/// What a release did, in the order of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseResults {
    /// One for each token of the call.
    pub results: Vec<Released>,
}

/// What an extension did, in the order of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExtendResults {
    /// One for each token of the call.
    pub results: Vec<Extended>,
}

/// What came of tokens that were to be freed, in the order of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FreeResults {
    /// One for each token of the call.
    pub results: Vec<Freed>,
}
