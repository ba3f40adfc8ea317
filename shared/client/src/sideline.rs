//! Holding what a client or a job would deliver, and draining it later.

use serde::Serialize;
use tidegate_protocol::Sidelines;

use crate::client::{Client, Route};
use crate::error::Error;

#[derive(Serialize)]
pub(crate) struct Because<'b> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) because: Option<&'b str>,
}

#[derive(Serialize)]
pub(crate) struct PerSecond {
    pub(crate) per_second: u32,
}

impl Client {
    /// What of this client is sidelined, or drains.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn sidelines(&self) -> Result<Sidelines, Error> {
        self.get(Route::Sideline).await
    }

    /// Sidelines this client: nothing of it is delivered until it is drained. Repeating it is safe.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn sideline(&self, because: Option<&str>) -> Result<Sidelines, Error> {
        self.act_with(Route::Sideline, &Because { because }, None).await
    }

    /// Delivers what was sidelined, so many events a second at the most: of all that nothing throttles, and of each policy.
    /// Repeating it sets the pace.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn drain(&self, per_second: u32) -> Result<Sidelines, Error> {
        self.act_with(Route::Drain, &PerSecond { per_second }, None).await
    }

    /// Sidelines a job; others under its policy go on. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 409 when a policy throttles it. Otherwise as every call of
    /// [`Client`].
    pub async fn sideline_job(&self, job_id: &str, because: Option<&str>) -> Result<Sidelines, Error> {
        self.act_with(Route::SidelineJob(job_id), &Because { because }, None).await
    }

    /// Drains a job. Repeating it sets the pace.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn drain_job(&self, job_id: &str, per_second: u32) -> Result<Sidelines, Error> {
        self.act_with(Route::DrainJob(job_id), &PerSecond { per_second }, None).await
    }
}
