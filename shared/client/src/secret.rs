//! Secrets that headers of HTTP targets name as `{{secret:<secret_id>}}`. The server stores them encrypted and shows none.

use std::fmt;

use serde::Serialize;
use tidegate_protocol::{SecretList, SecretView};

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// The value of a secret, kept out of `Debug`.
#[derive(Clone, Copy, Serialize)]
struct Value<'a> {
    value: &'a str,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value")
    }
}

impl Client {
    /// Creates a secret or gives it another value; with `expected`, only at that revision. Jobs that name it send the new value
    /// within seconds. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 409 when the client has as many secrets as it may have, 412 when it is at another
    /// revision, 422 when the value is none that a header can carry. Otherwise as every call of [`Client`].
    pub async fn put_secret(
        &self,
        secret_id: &str,
        value: &str,
        expected: Option<u32>,
    ) -> Result<SecretView, Error> {
        self.put(Route::Secret(secret_id), &Value { value }, expected).await
    }

    /// A page of the client's secrets, by name and without their values; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when the cursor is not one of this list. Otherwise as every call of
    /// [`Client`].
    pub async fn secrets(&self, cursor: Option<&str>) -> Result<Page<SecretView>, Error> {
        let page: SecretList = self.get_page(Route::Secrets, &[], cursor).await?;
        Ok(Page { rows: page.secrets, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// Deletes a secret, though jobs may name it; with `expected`, only at that revision.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is none of this name, 412 when it is at another revision. Otherwise as
    /// every call of [`Client`].
    pub async fn delete_secret(&self, secret_id: &str, expected: Option<u32>) -> Result<(), Error> {
        self.delete(Route::Secret(secret_id), expected).await
    }
}
