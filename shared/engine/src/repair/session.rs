//! A repair that is under way: what it goes by, and what it found so far.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tidegate_domain::slots::Epoch;
use tidegate_store::{Page, Store, Write};

use super::RepairError;
use super::report::{Finding, FindingKind, RepairReport};

/// Rows that are written at once.
const WRITES_AT_ONCE: usize = 16;
/// Rows that are looked at side by side, each with what it takes to bring it in order.
const ROWS_AT_ONCE: usize = 16;

/// A repair under way.
pub(super) struct Session<'s> {
    pub(super) store: &'s Store,
    pub(super) now: DateTime<Utc>,
    pub(super) apply: bool,
    pub(super) epoch: Epoch,
    /// No table is of an earlier instant.
    pub(super) first_cut: DateTime<Utc>,
    /// Launches from then on are emitted again.
    pub(super) back_to: DateTime<Utc>,
    pub(super) report: Mutex<RepairReport>,
}

impl Session<'_> {
    /// What was found so far.
    pub(super) fn report(&self) -> MutexGuard<'_, RepairReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at rows side by side. The answers are in their order.
    pub(super) async fn look_at_each<F, T>(
        &self,
        looks: impl IntoIterator<Item = F>,
    ) -> Result<Vec<T>, RepairError>
    where
        F: Future<Output = Result<T, RepairError>>,
    {
        let looks: Vec<F> = looks.into_iter().collect();
        stream::iter(looks).buffered(ROWS_AT_ONCE).try_collect().await
    }

    /// Takes note of how long leases of a policy last.
    pub(super) fn saw_lease(&self, seconds: u32) {
        let mut report = self.report();
        report.longest_lease_seconds = report.longest_lease_seconds.max(seconds);
    }

    pub(super) fn found(
        &self,
        kind: FindingKind,
        client: impl ToString,
        subject: impl ToString,
        detail: impl Into<String>,
    ) {
        let (client, subject, detail) = (client.to_string(), subject.to_string(), detail.into());
        self.report().add(Finding { kind, client, subject, detail });
    }

    /// Makes writes, some at once, unless this only says what it would do.
    pub(super) async fn write_all<F, T, E>(
        &self,
        writes: impl IntoIterator<Item = F>,
    ) -> Result<(), RepairError>
    where
        F: Future<Output = Result<T, E>>,
        RepairError: From<E>,
    {
        let writes: Vec<F> = writes.into_iter().filter(|_| self.apply).collect();
        let mut written = stream::iter(writes).buffer_unordered(WRITES_AT_ONCE);
        while let Some(written) = written.next().await {
            written?;
        }
        Ok(())
    }

    /// Lists what of a page cannot be read, and answers the rest.
    pub(super) fn readable<T>(&self, page: Page<T>) -> (Vec<T>, Option<String>) {
        for row in page.unreadable {
            self.found(FindingKind::Unreadable, "", row.sort_key, row.reason);
        }
        (page.rows, page.next)
    }
}

/// What was to be written is written, or somebody else is at work.
pub(super) fn done(written: Write, what: impl FnOnce() -> String) -> Result<(), RepairError> {
    match written {
        Write::Done => Ok(()),
        Write::Refused => Err(RepairError::Moved { what: what() }),
    }
}
