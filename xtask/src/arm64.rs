//! `cargo xtask arm64`: the functions built as `sam build` builds them by the template's defaults, for arm64 and by zig, and
//! looked at: nothing here can run them.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command::{capture, run};
use crate::deployment::{Deployment, FUNCTIONS};
use crate::figures::{MOST_ZIPPED_MB, zipped_mb};
use crate::venv::Venv;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// What ELF calls the processor.
const AARCH64: u16 = 0xB7;
/// Where an ELF file says for which processor it is.
const MACHINE_AT: usize = 18;
/// The C library of Amazon Linux 2023, on which `provided.al2023` runs.
const GLIBC: (u32, u32) = (2, 34);

/// Builds the functions, and prints a row for each.
///
/// # Errors
/// When the target cannot be installed, a build fails, or a function would not start on Lambda or is over its budget.
pub fn build(workspace: &Workspace) -> Result<()> {
    install_target()?;
    let folder = workspace.target().join("arm64");
    let deployment = Deployment::new(workspace, &folder)?;
    deployment.build_as_template(&folder.join("target"))?;
    let python = Venv::sam(workspace)?;
    eprintln!("{:<10} {:>10} {:>12} {:>8}", "function", "zipped MB", "unzipped MB", "glibc");
    for (function, name) in FUNCTIONS {
        let binary = deployment.binary(function);
        let bytes = fs::read(&binary).with_context(|| format!("failed to read {}", binary.display()))?;
        let machine = machine(&bytes).with_context(|| format!("{name} is no ELF file"))?;
        ensure!(machine == AARCH64, "{name} is for the processor {machine:#x}, not for arm64");
        let (major, minor) = newest_glibc(&bytes).unwrap_or_default();
        let zipped_mb = zipped_mb(&python, &binary)?;
        eprintln!(
            "{name:<10} {zipped_mb:>10.2} {:>12.2} {:>8}",
            bytes.len() as f64 / 1e6,
            format!("{major}.{minor}")
        );
        ensure!((major, minor) <= GLIBC, "{name} needs glibc {major}.{minor}, Lambda has {GLIBC:?}");
        ensure!(zipped_mb <= MOST_ZIPPED_MB, "{name} is over {MOST_ZIPPED_MB} MB zipped");
    }
    Ok(())
}

/// Installs Rust's standard library for arm64 where it is missing.
fn install_target() -> Result<()> {
    let installed = capture(Command::new("rustup").args(["target", "list", "--installed"]))
        .context("rustup is needed to build for another processor: https://rustup.rs")?;
    if installed.lines().any(|target| target == TARGET) {
        return Ok(());
    }
    let added = run(Command::new("rustup").args(["target", "add", TARGET]));
    if let Err(error) = added {
        bail!(
            "Rust's standard library for arm64 is not installed and cannot be fetched from here: {error:#}"
        );
    }
    Ok(())
}

/// The processor that an ELF file is for; `None`: it is no such file of this byte order.
fn machine(elf: &[u8]) -> Option<u16> {
    const LITTLE_ENDIAN: u8 = 1;
    let is_elf = elf.starts_with(b"\x7fELF") && elf.get(5) == Some(&LITTLE_ENDIAN);
    let machine = elf.get(MACHINE_AT..MACHINE_AT + 2)?;
    is_elf.then(|| u16::from_le_bytes([machine[0], machine[1]]))
}

/// The newest version of glibc that a symbol of the file asks for, by the versions' names in its table of strings.
fn newest_glibc(elf: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"\0GLIBC_";
    let at = elf.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    at.filter_map(|(at, _)| {
        let rest = &elf[at + NAME.len()..];
        let text = rest.split(|byte| *byte == 0).next()?;
        let mut parts = std::str::from_utf8(text).ok()?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    })
    .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_read_from_the_header() {
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[MACHINE_AT] = 0xB7;
        assert_eq!(machine(&elf), Some(AARCH64));
        elf[MACHINE_AT] = 0x3E;
        assert_eq!(machine(&elf), Some(0x3E));
        assert_eq!(machine(b"#!/bin/sh"), None);
    }

    #[test]
    fn the_newest_glibc_counts_by_numbers() {
        let strings = b"x\0GLIBC_2.4\0read\0GLIBC_2.17\0GLIBC_2.2.5\0NOT_GLIBC_2.99\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(strings), Some((2, 17)));
        assert_eq!(newest_glibc(b"static"), None);
    }
}
