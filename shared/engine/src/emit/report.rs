//! What a tick did, in numbers.

use super::sink::Counts;
use crate::scan::ScanReport;

/// What a tick did, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Whether the tick won the watermark: otherwise another does, or did, its work.
    pub won: bool,
    /// Occurrences that were emitted.
    pub occurrences: u64,
    /// How many events those occurrences have.
    pub events: u64,
    /// Messages of the dispatch queue that were sent with these events.
    pub chunks: u64,
    /// Runs that were materialised.
    pub runs: u64,
    /// Occurrences that were skipped, each recorded with its reason.
    pub skipped: u64,
    /// Parts of the scan that were left to others.
    pub parts: u64,
    /// Rows of the index that were read.
    pub rows_read: u64,
    /// Rows of the index that could not be read; each is in the log, and in its job's runs.
    pub rows_corrupt: u64,
    /// Launches that were set aside, since they cannot be emitted; each is in the log, and in its job's runs.
    pub set_aside: u64,
    /// Active policies that were woken.
    pub policies_woken: u64,
}

impl TickReport {
    pub(crate) fn add(&mut self, counts: Counts) {
        self.occurrences += counts.occurrences;
        self.events += counts.events;
        self.chunks += counts.chunks;
        self.runs += counts.runs;
        self.skipped += counts.skipped;
        self.set_aside += counts.set_aside;
    }

    pub(super) fn add_scan(&mut self, scan: ScanReport) {
        self.rows_read += scan.rows_read;
        self.rows_corrupt += scan.rows_corrupt;
        self.set_aside += scan.set_aside;
        self.parts += scan.parts;
    }
}
