//! What each table is asked for in a second: which limit of a table is met first.

use crate::minute::{SECONDS, Seconds};
use crate::peak::Peak;
use crate::steps::{Step, Steps};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Clients, with their marks.
    Clients,
    /// Jobs under their clients.
    Jobs,
    /// The time index, with the rows of one-time jobs.
    Launch,
    /// Policies: their lines and slot groups.
    Policies,
    /// Runs, records of events, packs.
    Runs,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Clients, Self::Jobs, Self::Launch, Self::Policies, Self::Runs];

    /// How it is named.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clients => "table clients",
            Self::Jobs => "table jobs",
            Self::Launch => "table launch",
            Self::Policies => "table policies",
            Self::Runs => "table runs",
        }
    }
}

/// The most that a table is asked for in one second, in units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TablePeak {
    /// Write units.
    pub writes: Peak,
    /// Read units.
    pub reads: Peak,
}

/// The most that each table is asked for in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TablePeaks([TablePeak; Table::ALL.len()]);

impl TablePeaks {
    /// That of a table.
    pub fn of(&self, table: Table) -> TablePeak {
        self.0.get(table as usize).copied().unwrap_or_default()
    }

    /// Adds what a table is asked for beside its peak, in any second.
    pub(crate) fn add(&mut self, table: Table, writes: Peak, reads: Peak) {
        let Some(peak) = self.0.get_mut(table as usize) else { return };
        for (peak, more) in [(&mut peak.writes, writes), (&mut peak.reads, reads)] {
            let at_s = if peak.value >= more.value { peak.at_s } else { more.at_s };
            *peak = Peak { value: peak.value + more.value, at_s };
        }
    }
}

/// What each table is asked for in the minute that is under way, by second.
#[derive(Debug, Clone)]
pub(crate) struct TableSeconds([(Seconds, Seconds); Table::ALL.len()]);

impl Default for TableSeconds {
    fn default() -> Self {
        Self([([0.0; SECONDS], [0.0; SECONDS]); Table::ALL.len()])
    }
}

impl TableSeconds {
    /// A table is asked for more, in write units and read units.
    pub(crate) fn add(&mut self, table: Table, second: usize, (writes, reads): (f64, f64)) {
        let Some((of_writes, of_reads)) = self.0.get_mut(table as usize) else { return };
        for (seconds, more) in [(of_writes, writes), (of_reads, reads)] {
            if let Some(units) = seconds.get_mut(second) {
                *units += more;
            }
        }
    }

    /// Only a part of what a second asks for comes in it.
    pub(crate) fn scale(&mut self, second: usize, part: f64) {
        for (writes, reads) in &mut self.0 {
            for seconds in [writes, reads] {
                if let Some(units) = seconds.get_mut(second) {
                    *units *= part;
                }
            }
        }
    }

    /// What steps under a policy ask the tables for: [`runs_part`] of it the runs, the rest the policies.
    pub(crate) fn add_steps(&mut self, second: usize, steps: &Steps) {
        for (step, count) in steps.counted() {
            let (cost, (writes, reads)) = (step.cost() * count, runs_part(step));
            let of_runs = (cost.write_units * writes, cost.read_units * reads);
            self.add(Table::Runs, second, of_runs);
            self.add(Table::Policies, second, (cost.write_units - of_runs.0, cost.read_units - of_runs.1));
        }
    }

    /// Looks whether any second of a minute has more than those before.
    pub(crate) fn see(&self, minute: i64, peaks: &mut TablePeaks) {
        for ((writes, reads), peak) in self.0.iter().zip(&mut peaks.0) {
            for (at_s, (writes, reads)) in (minute * 60..).zip(writes.iter().zip(reads)) {
                peak.writes.see(*writes, at_s);
                peak.reads.see(*reads, at_s);
            }
        }
    }
}

/// Which part of the write units and of the read units of a step under a policy is the runs': packs, runs and their history.
/// *Assumed* from what each writes.
pub(crate) const fn runs_part(step: Step) -> (f64, f64) {
    match step {
        Step::Arrival => (0.36, 0.85),
        Step::ArrivedEvent | Step::Compaction => (0.5, 0.5),
        Step::Pack => (0.2, 0.2),
        Step::PackedEvent => (1.0, 1.0),
        Step::ThrottledRun => (0.3, 0.3),
        _ => (0.0, 0.0),
    }
}
