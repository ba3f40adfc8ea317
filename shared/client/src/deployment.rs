//! What an admin sees of a deployment and of all its clients, and does for them; and whether launches are made in time.

use serde_json::json;
use tidegate_protocol::{ClientList, ClientView, Health, IndexView, KeyList, KeyView, NewKey, Sidelines};

use crate::client::{Client, Page, Route};
use crate::error::Error;
use crate::keys::ApiKey;
use crate::sideline::{Because, PerSecond};

impl Client {
    /// Whether the API answers, and launches are emitted in time: also when they are late, which is status 503. Needs no key.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn health(&self) -> Result<Health, Error> {
        self.get_whether_or_not(Route::Health).await
    }

    /// A page of all clients, by name, by the admin key; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when the cursor is not one of this list. Otherwise as every call of [`Client`].
    pub async fn clients(&self, cursor: Option<&str>) -> Result<Page<ClientView>, Error> {
        let page: ClientList = self.get_page(Route::Clients, &[], cursor).await?;
        Ok(Page { rows: page.clients, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// Makes another key for a client, by the admin key: 1 to 255 printable characters without spaces as `idempotency_key`, such as a
    /// UUID, make it safe to repeat, as [`Self::create_key_once`] is.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name, 409 when it has 20 keys already, or the idempotency key
    /// came with another call, 422 when a field is wrong. Otherwise as every call of [`Client`].
    pub async fn create_key_for(
        &self,
        client_id: &str,
        key: &ApiKey,
        idempotency_key: &str,
    ) -> Result<NewKey, Error> {
        self.post_once(Route::KeysOf(client_id), key, idempotency_key).await
    }

    /// The keys of a client, by the admin key.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name. Otherwise as every call of [`Client`].
    pub async fn keys_of(&self, client_id: &str) -> Result<Vec<KeyView>, Error> {
        let list: KeyList = self.get(Route::KeysOf(client_id)).await?;
        Ok(list.keys)
    }

    /// Revokes a key of a client, by the admin key. It opens nothing any more, everywhere within 10 seconds.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such client or key. Otherwise as every call of [`Client`].
    pub async fn revoke_key_of(&self, client_id: &str, key_id: &str) -> Result<(), Error> {
        self.delete(Route::KeyOf(client_id, key_id), None).await
    }

    /// What of a client is sidelined, or drains, by the admin key.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when none is registered under the name. Otherwise as every call of [`Client`].
    pub async fn sidelines_of(&self, client_id: &str) -> Result<Sidelines, Error> {
        self.get(Route::SidelineClient(client_id)).await
    }

    /// Sidelines a client, by the admin key, as it could do itself. Repeating it is safe.
    ///
    /// # Errors
    /// As [`Self::sidelines_of`]; [`Error::Refused`] with status 422 when the reason is too long.
    pub async fn sideline_client(&self, client_id: &str, because: Option<&str>) -> Result<Sidelines, Error> {
        self.act_with(Route::SidelineClient(client_id), &Because { because }, None).await
    }

    /// Drains a client, by the admin key, as it could do itself. Repeating it sets the pace.
    ///
    /// # Errors
    /// As [`Self::sidelines_of`]; [`Error::Refused`] with status 422 when the pace is none.
    pub async fn drain_client(&self, client_id: &str, per_second: u32) -> Result<Sidelines, Error> {
        self.act_with(Route::DrainClient(client_id), &PerSecond { per_second }, None).await
    }

    /// Which zones scans look at, and which LaunchExpressions are split into shards, by the admin key.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn index(&self) -> Result<IndexView, Error> {
        self.get(Route::Index).await
    }

    /// Splits a LaunchExpression of a zone into more shards, by the admin key. The number never falls. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when a part of it is wrong. Otherwise as every call of [`Client`].
    pub async fn raise_shards(
        &self,
        zone: &str,
        launch_expression: &str,
        shards: u32,
    ) -> Result<IndexView, Error> {
        let body = json!({"zone": zone, "launch_expression": launch_expression, "shards": shards});
        self.put(Route::Shards, &body, None).await
    }
}
