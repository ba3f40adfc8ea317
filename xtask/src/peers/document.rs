//! The section of `docs/benchmarks.md` that a run writes: between two comments, which stay.

use std::fs;

use anyhow::{Context, Result};

use crate::peers::install::Packages;
use crate::peers::machine::Machine;
use crate::peers::options::Options;
use crate::peers::servers::Servers;
use crate::workspace::Workspace;

const FILE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- written by: cargo xtask bench peers --write -->";
const END: &str = "<!-- until here -->";

/// What the run was, and its tables.
pub fn page(
    options: &Options,
    machine: &Machine,
    servers: &Servers,
    packages: &Packages,
    tables: &str,
) -> String {
    let systems: Vec<String> = servers
        .systems
        .iter()
        .map(|&system| {
            let package =
                system.package().map(|name| format!(" {} on", packages.version(name))).unwrap_or_default();
            format!("- {}{package} {}", system.title(), servers.backend(system).unwrap_or_default())
        })
        .collect();
    let rounds = match options.rounds {
        1 => "one round".to_owned(),
        rounds => format!("medians of {rounds} rounds"),
    };
    let skipped: String = servers.skipped.iter().map(|sentence| format!("\n{sentence}\n")).collect();
    let (date, machine) = (&machine.date, machine.sentence());
    format!("{date}, {machine}; {rounds}.\n\n{}\n{skipped}\n{tables}", systems.join("\n"))
}

/// Puts `page` into the document.
///
/// # Errors
/// When the document has no place for it.
pub fn write(workspace: &Workspace, page: &str) -> Result<()> {
    let file = workspace.root().join(FILE);
    let text = fs::read_to_string(&file).with_context(|| format!("failed to read {FILE}"))?;
    let written =
        replaced(&text, page).with_context(|| format!("{FILE} has no {BEGIN} with {END} after it"))?;
    fs::write(&file, written).with_context(|| format!("failed to write {FILE}"))
}

fn replaced(text: &str, page: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", page.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_comments_is_replaced() {
        let text = format!("# Figures\n\n{BEGIN}\nold\n{END}\n\n## More\n");
        let once = replaced(&text, "new\n").unwrap();
        assert_eq!(once, format!("# Figures\n\n{BEGIN}\n\nnew\n\n{END}\n\n## More\n"));
        assert_eq!(replaced(&once, "new\n").unwrap(), once);
        assert_eq!(replaced("# Figures\n", "new"), None);
    }
}
