//! Clients and their keys: what the admin, or a key of scope `admin`, may do.

use serde::Serialize;
use tidegate_protocol::{
    ClientLateness, ClientUsage, ClientView, JobDefaults, KeyList, KeyView, NewKey, Quotas, Scope, Target,
};

use crate::client::{Client, Route};
use crate::error::Error;
use crate::sideline::PerSecond;

/// A key that is to be made.
///
/// ```
/// use tidegate_client::{ApiKey, Scope};
///
/// let workers = ApiKey { note: Some("the workers of the shop".to_owned()), ..ApiKey::for_scopes([Scope::Release]) };
/// assert_eq!(workers.scopes, Some(vec![Scope::Release]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ApiKey {
    /// What it is for; everything when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    /// What is to be remembered of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// From when on it opens nothing, RFC 3339; it does not end when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

impl ApiKey {
    /// A key for some scopes that does not end.
    pub fn for_scopes(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self { scopes: Some(scopes.into_iter().collect()), ..Self::default() }
    }
}

#[derive(Serialize)]
struct Because<'b> {
    because: &'b str,
}

/// What is to change of a client; what is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ClientChange {
    /// The addresses that its jobs may name from now on, in the place of all before; `*` for every address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_targets: Option<Vec<String>>,
    /// What its jobs have that say nothing of it, in the place of all before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defaults: Option<JobDefaults>,
    /// What it may take at the most, in the place of all before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<Quotas>,
    /// Who is told from now on of launches that were not over in time; `Some(None)` for nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Option<Target>>,
}

impl Client {
    /// The client whose key this is.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn own_client(&self) -> Result<ClientView, Error> {
        self.get(Route::OwnClient).await
    }

    /// A client by its name, by the admin key.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under it. Otherwise as every call of [`Client`].
    pub async fn registered_client(&self, client_id: &str) -> Result<ClientView, Error> {
        self.get(Route::ClientOf(client_id)).await
    }

    /// How much the client whose key this is has of what its quotas bound.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn own_usage(&self) -> Result<ClientUsage, Error> {
        self.get(Route::OwnUsage).await
    }

    /// How much a client has of what its quotas bound, by the admin key.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name. Otherwise as every call of [`Client`].
    pub async fn usage_of(&self, client_id: &str) -> Result<ClientUsage, Error> {
        self.get(Route::UsageOf(client_id)).await
    }

    /// How late the events of the client whose key this is came, by hour, from `since` up to, not including, `until`: two RFC 3339
    /// instants at most 7 days apart. Their hours count whole.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when an instant is wrong. Otherwise as every call of [`Client`].
    pub async fn own_lateness(&self, since: &str, until: &str) -> Result<ClientLateness, Error> {
        self.get_with(Route::OwnLateness, &[("since", since), ("until", until)]).await
    }

    /// The same of a client, by the admin key.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name, 400 when an instant is wrong. Otherwise as every call
    /// of [`Client`].
    pub async fn lateness_of(
        &self,
        client_id: &str,
        since: &str,
        until: &str,
    ) -> Result<ClientLateness, Error> {
        self.get_with(Route::LatenessOf(client_id), &[("since", since), ("until", until)]).await
    }

    /// Changes what a client may name, its defaults and its quotas, by the admin key; with `expected`, only at that revision.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name, 412 when it is at another revision, 422 when a
    /// field is wrong. Otherwise as every call of [`Client`].
    pub async fn change_client(
        &self,
        client_id: &str,
        change: &ClientChange,
        expected: Option<u32>,
    ) -> Result<ClientView, Error> {
        self.patch(Route::ClientOf(client_id), change, expected).await
    }

    /// Suspends a client, by the admin key: its keys are refused with the reason, but for releases and extensions, and nothing of it
    /// is delivered. Repeating it changes the reason.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name, 422 when the reason is empty or too long.
    /// Otherwise as every call of [`Client`].
    pub async fn suspend_client(&self, client_id: &str, because: &str) -> Result<ClientView, Error> {
        self.act_with(Route::SuspendClient(client_id), &Because { because }, None).await
    }

    /// Lets a client go on that was suspended, by the admin key: what waited is delivered, so many events a second at the most.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name. Otherwise as every call of [`Client`].
    pub async fn resume_client(&self, client_id: &str, per_second: u32) -> Result<ClientView, Error> {
        self.act_with(Route::ResumeClient(client_id), &PerSecond { per_second }, None).await
    }

    /// Deletes a client with all that is its own, by the admin key. It goes on in the background: [`Self::registered_client`] says how
    /// far it is, and is refused with status 404 once the name is free. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name. Otherwise as every call of [`Client`].
    pub async fn delete_client(&self, client_id: &str) -> Result<(), Error> {
        self.delete(Route::ClientOf(client_id), None).await
    }

    /// Makes another key for this client, by a key of scope `admin`. The answer shows it, once. Not to be repeated lightly: each
    /// call makes another one.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 403 when the key is not for that, 409 when there are 20 already, 422 when a field is wrong.
    /// Otherwise as every call of [`Client`].
    pub async fn create_key(&self, key: &ApiKey) -> Result<NewKey, Error> {
        self.post(Route::Keys, key).await
    }

    /// The same, by an idempotency key: 1 to 255 printable characters without spaces, such as a UUID. A call that is made again with it
    /// and with the same key of scope `admin` within 24 hours gets the same key, which is shown to nobody else.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 also when the idempotency key came with another call, or the key was revoked since. Otherwise
    /// as [`Self::create_key`].
    pub async fn create_key_once(&self, idempotency_key: &str, key: &ApiKey) -> Result<NewKey, Error> {
        self.post_once(Route::Keys, key, idempotency_key).await
    }

    /// The keys of this client, by a key of scope `admin`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 403 when the key is not for that. Otherwise as every call of [`Client`].
    pub async fn keys(&self) -> Result<Vec<KeyView>, Error> {
        let list: KeyList = self.get(Route::Keys).await?;
        Ok(list.keys)
    }

    /// Revokes a key of this client, by a key of scope `admin`. It opens nothing any more, everywhere within 10 seconds.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 403 when the key is not for that, 404 when there is no such key. Otherwise as every call of
    /// [`Client`].
    pub async fn revoke_key(&self, key_id: &str) -> Result<(), Error> {
        self.delete(Route::Key(key_id), None).await
    }
}
