//! What each function costs to start: zipped size, time to the first poll, resident memory.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::command::capture;
use crate::deployment::{Deployment, FUNCTIONS};
use crate::runtime_api::{self, Start};
use crate::venv::Venv;

/// The median of this many starts is reported.
const STARTS: usize = 7;

/// The budgets of a function, in megabytes. Its time to the first poll (40 ms) depends on the machine, so it is
/// printed and not held.
pub const MOST_ZIPPED_MB: f64 = 8.0;
const MOST_RESIDENT_MB: f64 = 40.0;

/// Prints a row for each built function.
///
/// # Errors
/// When a function cannot be packed or started, or is larger than its budget.
pub fn print(deployment: &Deployment<'_>, python: &Venv) -> Result<()> {
    eprintln!("{:<10} {:>12} {:>16} {:>14}", "function", "zipped MB", "first poll ms", "resident MB");
    for (function, name) in FUNCTIONS {
        let binary = deployment.binary(function);
        let zipped_mb = zipped_mb(python, &binary)?;

        let mut starts = (0..STARTS).map(|_| runtime_api::start(&binary)).collect::<Result<Vec<Start>>>()?;
        starts.sort_by_key(|start| start.first_poll_after);
        let median = &starts[STARTS / 2];
        let resident_mb = median.resident_kib as f64 * 1024.0 / 1e6;
        let poll_ms = median.first_poll_after.as_secs_f64() * 1e3;
        eprintln!("{name:<10} {zipped_mb:>12.2} {poll_ms:>16.1} {resident_mb:>14.1}");
        ensure!(zipped_mb <= MOST_ZIPPED_MB, "{name} is over {MOST_ZIPPED_MB} MB zipped");
        ensure!(resident_mb <= MOST_RESIDENT_MB, "{name} is over {MOST_RESIDENT_MB} MB resident");
    }
    Ok(())
}

/// How large a binary is in the archive that is deployed.
///
/// # Errors
/// When it cannot be packed.
pub fn zipped_mb(python: &Venv, binary: &Path) -> Result<f64> {
    let zip = binary.with_extension("zip");
    capture(python.program("python").args(["-m", "zipfile", "-c"]).arg(&zip).arg(binary))?;
    let zipped_bytes = fs::metadata(&zip)?.len();
    // The build folder is what gets deployed.
    fs::remove_file(&zip)?;
    Ok(zipped_bytes as f64 / 1e6)
}
