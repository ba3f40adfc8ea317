//! Reading what came of a job, and stopping what is left of a run.

use tidegate_protocol::{
    EventList, EventRecord, Explanation, FailedDelivery, FailedDeliveryList, Run, RunDetail, RunList,
};

use crate::client::{Client, Page, Route};
use crate::error::Error;

impl Client {
    /// A page of a job's runs, the latest first; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such job, 400 when the cursor is not one of this list.
    /// Otherwise as every call of [`Client`].
    pub async fn runs(&self, job_id: &str, cursor: Option<&str>) -> Result<Page<Run>, Error> {
        let page: RunList = self.get_page(Route::Runs(job_id), &[], cursor).await?;
        Ok(Page { rows: page.runs, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// A page of a run's events, by index; the first page when `cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such run, 400 when the cursor is not one of this list.
    /// Otherwise as every call of [`Client`].
    pub async fn events(
        &self,
        job_id: &str,
        run_id: &str,
        cursor: Option<&str>,
    ) -> Result<Page<EventRecord>, Error> {
        let page: EventList = self.get_page(Route::Events(job_id, run_id), &[], cursor).await?;
        Ok(Page { rows: page.events, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// A page of those events of a run that are of one of some statuses, by index; the first page when `cursor` is `None`. A
    /// status is a word of [`EventRecord::status`].
    ///
    /// What is `failed`, `expired`, `dead` or `in_flight` is found without reading what succeeded; for other statuses up to 4,096
    /// events are looked at for each page. A page may have few rows, or none: the list ends where `next_cursor` is `None`.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such run, 400 when a status is none, there is none, or the cursor is
    /// not one of this list. Otherwise as every call of [`Client`].
    pub async fn events_that_are(
        &self,
        job_id: &str,
        run_id: &str,
        statuses: &[&str],
        cursor: Option<&str>,
    ) -> Result<Page<EventRecord>, Error> {
        let route = Route::Events(job_id, run_id);
        let statuses = statuses.join(",");
        let page: EventList = self.get_page(route, &[("status", &statuses)], cursor).await?;
        Ok(Page { rows: page.events, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// A run, with how fast it goes and when it is expected to end.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such run. Otherwise as every call of [`Client`].
    pub async fn run(&self, job_id: &str, run_id: &str) -> Result<RunDetail, Error> {
        self.get(Route::Run(job_id, run_id)).await
    }

    /// Cancels what is left of a run: no further event of it is admitted, those that are with their consumers end as
    /// they would. Repeating the call is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such run, 409 when it is over already. Otherwise as every
    /// call of [`Client`].
    pub async fn cancel_run(&self, job_id: &str, run_id: &str) -> Result<RunDetail, Error> {
        self.act(Route::CancelRun(job_id, run_id), None).await
    }

    /// The deliveries of an event that its target did not take, in their order.
    ///
    /// # Errors
    /// As every call of [`Client`].
    pub async fn failed_deliveries(&self, event_id: &str) -> Result<Vec<FailedDelivery>, Error> {
        let list: FailedDeliveryList = self.get(Route::Failures(event_id)).await?;
        Ok(list.failures)
    }

    /// Why an event is where it is: who holds the tokens, its place in line, when its turn is expected.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is no such event. Otherwise as every call of [`Client`].
    pub async fn explain(&self, event_id: &str) -> Result<Explanation, Error> {
        self.get(Route::Explain(event_id)).await
    }
}
