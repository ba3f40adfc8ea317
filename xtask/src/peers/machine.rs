//! The machine and the day of a run.

use std::process::Command;
use std::{fs, thread};

use anyhow::Result;

use crate::command::capture;

/// What a reader needs to know of the machine.
pub struct Machine {
    /// The day, in UTC.
    pub date: String,
    cores: usize,
    memory_gb: Option<f64>,
    /// How many processes wanted a core in the minute before the run.
    load: Option<f64>,
}

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
        })
    }

    /// In a sentence. A load of more than next to nothing says that the machine was not idle.
    pub fn sentence(&self) -> String {
        let memory = self.memory_gb.map(|gb| format!(", {gb:.0} GB")).unwrap_or_default();
        let load = self.load.map(|load| format!("; load before the run {load:.1}")).unwrap_or_default();
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        format!("{} cores ({processor}, {system}{memory}){load}", self.cores)
    }
}

fn total_kib(meminfo: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}
