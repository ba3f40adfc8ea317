//! Clients.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A client as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Client))]
pub struct ClientView {
    /// Its name.
    pub client_id: String,
    /// The addresses that its jobs may name.
    pub allowed_targets: Vec<String>,
    /// When it was registered.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created_at: String,
}

/// A client that was just registered, with its secrets. They are shown here and never again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisteredClient {
    /// The client.
    #[serde(flatten)]
    pub client: ClientView,
    /// What the client sends as `Authorization: Bearer <key>`. Stored hashed: it cannot be shown again.
    #[cfg_attr(feature = "openapi", schema(example = "tg_acme_Jx0l4YqH3m0dT2mC8s1v5b7n9k2p4r6t8w0y1z3A5c7"))]
    pub api_key: String,
    /// What HTTP deliveries are signed with (Standard Webhooks).
    #[cfg_attr(feature = "openapi", schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="))]
    pub webhook_secret: String,
}

/// A webhook secret that takes the place of another one. It is shown here and never again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WebhookSecret {
    /// What HTTP deliveries are signed with from now on (Standard Webhooks).
    #[cfg_attr(feature = "openapi", schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="))]
    pub webhook_secret: String,
    /// Until when they are signed with the former one as well, RFC 3339; null when they are not.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub former_until: Option<String>,
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSecret").field("former_until", &self.former_until).finish_non_exhaustive()
    }
}

impl fmt::Debug for RegisteredClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredClient").field("client", &self.client).finish_non_exhaustive()
    }
}
