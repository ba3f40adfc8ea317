//! The machine and the day of a run.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::Result;

use crate::command::capture;
use crate::peers::results::median;

/// Lines of memory that are read to learn what one costs: 128 KB, which the cache of any core holds.
const LINES: usize = 2048;
/// How long the machine rests before they are read once more: as long as an event of the comparison is worked on.
const REST: Duration = Duration::from_millis(20);
/// How often they are read: the median counts.
const READS: usize = 21;

/// What a reader needs to know of the machine.
pub struct Machine {
    /// The day, in UTC.
    pub date: String,
    cores: usize,
    memory_gb: Option<f64>,
    /// How many processes wanted a core in the minute before the run.
    load: Option<f64>,
    /// What a line of memory costs in nanoseconds: at once, and after a rest. Where others on the same hardware use the caches as
    /// well, nothing is left in them after one, and what is done from time to time takes several times as long.
    line_ns: [f64; 2],
}

/// A line of memory, which says where the next one to be read is.
#[repr(align(64))]
struct Line(usize);

impl Machine {
    /// # Errors
    /// When there is no `date`.
    pub fn look() -> Result<Self> {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Ok(Self {
            date: capture(Command::new("date").args(["-u", "+%Y-%m-%d"]))?.trim().to_owned(),
            cores: thread::available_parallelism()?.get(),
            memory_gb: total_kib(&memory).map(|kib| kib * 1024.0 / 1e9),
            load: load.split_whitespace().next().and_then(|load| load.parse().ok()),
            line_ns: [Duration::ZERO, REST].map(line_ns),
        })
    }

    /// In a sentence. A load of more than next to nothing says that the machine was not idle.
    pub fn sentence(&self) -> String {
        let memory = self.memory_gb.map(|gb| format!(", {gb:.0} GB")).unwrap_or_default();
        let load = self.load.map(|load| format!("; load before the run {load:.1}")).unwrap_or_default();
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        let [at_once, rested] = self.line_ns;
        let rest = REST.as_millis();
        let line =
            format!("; a line of memory takes {at_once:.0} ns, after {rest} ms of rest {rested:.0} ns");
        format!("{} cores ({processor}, {system}{memory}){load}{line}", self.cores)
    }
}

/// What a line of memory costs after a rest.
fn line_ns(rest: Duration) -> f64 {
    let lines = lines();
    let took = |_| {
        thread::sleep(rest);
        let began = Instant::now();
        black_box(read(black_box(&lines), LINES));
        began.elapsed().as_nanos() as f64 / LINES as f64
    };
    median((0..READS).map(took).collect()).unwrap_or_default()
}

/// Lines in an order in which no processor reads ahead: a generator of the full period, so that each leads on to all others.
fn lines() -> Vec<Line> {
    (0..LINES).map(|line| Line((line * 1029 + 1021) % LINES)).collect()
}

/// Reads `count` lines from the first on, one after the other, and says where that leads.
fn read(lines: &[Line], count: usize) -> usize {
    (0..count).fold(0, |at, _| lines[at].0)
}

fn total_kib(meminfo: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_line_is_read_once_and_the_last_leads_to_the_first() {
        let lines = lines();
        let read_at: BTreeSet<usize> = (0..LINES).map(|count| read(&lines, count)).collect();
        assert_eq!((read_at.len(), read(&lines, LINES)), (LINES, 0));
    }
}
