//! What the server's process takes: read from `/proc`, so there are no figures on other systems.

use std::fs;

/// Clock ticks a second: the same on every Linux that Rust runs on by default.
const TICKS: f64 = 100.0;
/// Where `/proc/PID/stat` has the time in the program and in the kernel, counted from after the program's name.
const USER: usize = 11;
const SYSTEM: usize = 12;

/// What a process takes. Tidegate has no others beneath it.
pub struct Usage {
    pub memory_mb: f64,
    pub processor_ms: f64,
}

/// Of process `pid`; nothing where that cannot be read.
pub fn usage(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(Usage { memory_mb: proportional_kb(&memory)? / 1e3, processor_ms: ticks(&stat)? * 1e3 / TICKS })
}

fn ticks(stat: &str) -> Option<f64> {
    // The name is in parentheses and may hold anything, spaces too.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(field(USER)? + field(SYSTEM)?)
}

fn proportional_kb(memory: &str) -> Option<f64> {
    let line = memory.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_the_programs_and_the_kernels() {
        let stat = "42 (a (strange) name) S 1 42 42 0 -1 4194304 1 2 3 4 250 50 7 8 20 0 9 0 100";
        assert_eq!(ticks(stat), Some(300.0));
        assert_eq!(ticks("42 (short) S 1"), None);
    }

    #[test]
    fn memory_is_the_proportional_size() {
        let memory = "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss:  70000 kB\nPss:               68123 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(proportional_kb(memory), Some(68_123.0));
    }
}
