//! What the functions that MiniStack runs took: memory at its peak and processor time, as the kernel counts them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Clock ticks of the kernel in a second, which Linux tells every program (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// What the processes of one function took together.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Taken {
    processes: u32,
    /// Of the largest of them.
    peak_kib: u64,
    processor_seconds: f64,
}

/// Prints a row for each function among the descendants of a process. Where there is no `/proc`, none.
pub fn print(ancestor: u32) {
    let mut taken: BTreeMap<String, Taken> = BTreeMap::new();
    for (pid, stat) in processes() {
        let Some(function) = function_of(pid).filter(|_| descends(&stat, ancestor)) else { continue };
        let of = taken.entry(function).or_default();
        of.processes += 1;
        of.peak_kib = of.peak_kib.max(peak_kib(pid).unwrap_or(0));
        of.processor_seconds += stat.processor_seconds;
    }
    eprintln!("{:<24} {:>10} {:>10} {:>14}", "function", "processes", "peak MB", "processor s");
    for (function, Taken { processes, peak_kib, processor_seconds }) in taken {
        let peak_mb = peak_kib as f64 * 1024.0 / 1e6;
        eprintln!("{function:<24} {processes:>10} {peak_mb:>10.1} {processor_seconds:>14.2}");
    }
}

/// What is used of a process's `stat`.
struct Stat {
    parent: u32,
    processor_seconds: f64,
}

fn processes() -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, stat_of(pid)?))
    })
}

fn stat_of(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    read_stat(&text)
}

/// The name of the program comes second, in brackets, and may hold anything.
fn read_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        processor_seconds: (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND,
    })
}

fn descends(stat: &Stat, ancestor: u32) -> bool {
    let mut parent = stat.parent;
    while parent > 1 {
        if parent == ancestor {
            return true;
        }
        match stat_of(parent) {
            Some(stat) => parent = stat.parent,
            None => return false,
        }
    }
    false
}

/// The name of the function that a process runs, as Lambda tells it.
fn function_of(pid: u32) -> Option<String> {
    let environment = fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).ok()?;
    let name = environment
        .split(|byte| *byte == 0)
        .find_map(|one| one.strip_prefix(b"AWS_LAMBDA_FUNCTION_NAME="))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_called_anything() {
        let stat = read_stat("7 (a) b (c)) S 3 7 7 0 -1 4194304 1 2 3 4 150 50 0 0 20 0 1 0 9").unwrap();
        assert_eq!((stat.parent, stat.processor_seconds), (3, 2.0));
        assert!(read_stat("7 (cut off").is_none());
    }
}
