//! Events that did not succeed and that nothing sends again: finding them, sending them again, forgetting them.

use serde::Serialize;
use tidegate_protocol::{
    DeadLetter, DeadLetterCounts, DeadLetterDetail, DeadLetterList, DeadLetterResult, DeadLetterResults,
};

use crate::client::{Client, Page, Route};
use crate::error::Error;

/// Which dead letters are meant: those that fit all that is given.
///
/// ```
/// use tidegate_client::DeadLetterFilter;
///
/// let refused = DeadLetterFilter { job_id: Some("nightly".into()), status: Some("dead".into()), ..Default::default() };
/// # let _ = refused;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeadLetterFilter {
    /// Of this job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Of events that this policy throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<String>,
    /// That ended so: `dead`, `expired` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whose reason has this text in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// That ended at this instant or later, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// That ended before this instant, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Dead letters that a call is about, and from where on.
#[derive(Serialize)]
struct Chosen<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event_ids: Option<Vec<&'c str>>,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    filter: Option<&'c DeadLetterFilter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_at: Option<String>,
}

impl<'c> Chosen<'c> {
    fn named<E: AsRef<str>>(events: &'c [E]) -> Self {
        let event_ids = Some(events.iter().map(AsRef::as_ref).collect());
        Self { event_ids, filter: None, cursor: None, per_second: None, start_at: None }
    }

    fn fitting(filter: &'c DeadLetterFilter, per_second: Option<u32>) -> Self {
        Self { event_ids: None, filter: Some(filter), cursor: None, per_second, start_at: None }
    }
}

impl DeadLetterFilter {
    fn query(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("job_id", &self.job_id),
            ("policy_id", &self.policy_id),
            ("status", &self.status),
            ("reason", &self.reason),
            ("since", &self.since),
            ("until", &self.until),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }
}

impl Client {
    /// A page of dead letters; the first when `cursor` is `None`. It may have none and be followed by others.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when a part of the filter is wrong or the cursor is not one of this list. Otherwise as
    /// every call of [`Client`].
    pub async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        cursor: Option<&str>,
    ) -> Result<Page<DeadLetter>, Error> {
        let page: DeadLetterList = self.get_page(Route::DeadLetters, &filter.query(), cursor).await?;
        Ok(Page { rows: page.dead_letters, unreadable: page.unreadable, next_cursor: page.next_cursor })
    }

    /// How many dead letters there are, by job, policy, status and reason: 10,000 at the most.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 400 when a part of the filter is wrong. Otherwise as every call of [`Client`].
    pub async fn count_dead_letters(&self, filter: &DeadLetterFilter) -> Result<DeadLetterCounts, Error> {
        self.get_with(Route::CountDeadLetters, &filter.query()).await
    }

    /// The dead letter of an event, with what the event carries and where it goes.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 404 when there is none. Otherwise as every call of [`Client`].
    pub async fn dead_letter(&self, event_id: &str) -> Result<DeadLetterDetail, Error> {
        self.get(Route::DeadLetter(event_id)).await
    }

    /// Sends the events of dead letters again, under the limits of their policies: 1 to 100 ids. The answer has one entry for
    /// each, in the same order. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are none or too many. Otherwise as every call of [`Client`].
    pub async fn redrive<E: AsRef<str>>(&self, event_ids: &[E]) -> Result<Vec<DeadLetterResult>, Error> {
        let answer: DeadLetterResults = self.post(Route::Redrive, &Chosen::named(event_ids)).await?;
        Ok(answer.results)
    }

    /// The same with all that fit, `per_second` of them in a second, or all at once when it is `None`. Makes a call for each
    /// hundred.
    ///
    /// # Errors
    /// As [`Self::redrive`], of the filter. What was redriven before stays so; repeating it goes on with the rest.
    pub async fn redrive_where(
        &self,
        filter: &DeadLetterFilter,
        per_second: Option<u32>,
    ) -> Result<Vec<DeadLetterResult>, Error> {
        self.each_hundred(Route::Redrive, Chosen::fitting(filter, per_second)).await
    }

    /// Forgets dead letters: 1 to 100 ids. The records of their events stay. The answer has one entry for each, in the same
    /// order. Repeating it is safe.
    ///
    /// # Errors
    /// [`Error::Refused`] with status 422 when there are none or too many. Otherwise as every call of [`Client`].
    pub async fn discard<E: AsRef<str>>(&self, event_ids: &[E]) -> Result<Vec<DeadLetterResult>, Error> {
        let answer: DeadLetterResults = self.post(Route::Discard, &Chosen::named(event_ids)).await?;
        Ok(answer.results)
    }

    /// The same with all that fit. Makes a call for each hundred.
    ///
    /// # Errors
    /// As [`Self::discard`], of the filter. What was discarded before stays so.
    pub async fn discard_where(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetterResult>, Error> {
        self.each_hundred(Route::Discard, Chosen::fitting(filter, None)).await
    }

    async fn each_hundred(
        &self,
        route: Route<'_>,
        mut chosen: Chosen<'_>,
    ) -> Result<Vec<DeadLetterResult>, Error> {
        let mut all = Vec::new();
        loop {
            let answer: DeadLetterResults = self.post(route, &chosen).await?;
            all.extend(answer.results);
            chosen.cursor = answer.next_cursor;
            chosen.start_at = answer.next_start_at;
            if chosen.cursor.is_none() {
                return Ok(all);
            }
        }
    }
}
