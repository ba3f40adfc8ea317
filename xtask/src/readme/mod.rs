//! `cargo xtask readme`: types the blocks of the README and of the quick start, and looks whether they keep what the text
//! promises.
//!
//! Each document is typed from top to bottom in a fresh folder, in terminals that have `tidegate`, `python3` with the
//! packages of `infra/requirements-readme.txt`, and nothing of this machine's environment but its home. Ports are free
//! ones, by the variables that `tidegate local --help` documents. What the comments in the Markdown mean is told in
//! [`blocks`].
//!
//! Deliberately absent: blocks that need AWS. They are marked in the text, with the reason.

mod blocks;
mod promise;
mod terminal;

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::venv::Venv;
use crate::workspace::Workspace;
use blocks::{Block, Role};
use terminal::{Desk, Printed, Terminal};

/// What is typed.
const DOCUMENTS: [&str; 3] = ["README.md", "docs/quick-start.md", "docs/forecast.md"];
/// How long one document may take.
const DOCUMENT_WITHIN: Duration = Duration::from_secs(80);
/// How long one block may take, and how long what it promises may take after it.
const BLOCK_WITHIN: Duration = Duration::from_secs(40);
/// How long the typist rests before a block is typed again.
const REST: Duration = Duration::from_millis(500);
/// How every refusal of the API begins: curl ends well even so.
const PROBLEM: &str = "urn:tidegate:problem:";

/// Types every document. The binary must be there as the tests build it.
///
/// # Errors
/// When a block fails, or does not print what the text shows.
pub fn readme(workspace: &Workspace) -> Result<()> {
    let venv = Venv::readme(workspace)?;
    let binaries = workspace.target().join("debug");
    for document in DOCUMENTS {
        let started = Instant::now();
        let markdown = fs::read_to_string(workspace.root().join(document))
            .with_context(|| format!("failed to read {document}"))?;
        let folder = fresh_folder(&workspace.target().join("readme").join(document))?;
        let desk = Desk { folder, path: path(&binaries, &venv)?, variables: ports()? };
        let typed = type_document(&markdown, &desk, started + DOCUMENT_WITHIN);
        typed.with_context(|| format!("failed to type {document} as it is written"))?;
        eprintln!("{document} was typed in {:.1} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// What an earlier run left would be mistaken for this one's.
fn fresh_folder(folder: &Path) -> Result<std::path::PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    Ok(folder.to_owned())
}

fn path(binaries: &Path, venv: &Venv) -> Result<OsString> {
    let mut folders = vec![binaries.to_owned(), venv.bin()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").context("PATH is not set")?));
    Ok(std::env::join_paths(folders)?)
}

fn ports() -> Result<Vec<(String, String)>> {
    // Both are held until both are known: the second must be another one.
    let listeners =
        [TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?];
    let names = ["TIDEGATE_PORT", "TIDEGATE_SQS_PORT"].into_iter().zip(&listeners);
    names.map(|(name, listener)| Ok((name.to_owned(), listener.local_addr()?.port().to_string()))).collect()
}

/// Types the blocks of one document in order.
fn type_document(markdown: &str, desk: &Desk, until: Instant) -> Result<()> {
    let mut typist = Typist { desk, reader: Terminal::open(desk)?, own: Vec::new(), last: None, until };
    for block in blocks::read(markdown)? {
        typist
            .follow(&block)
            .with_context(|| format!("the block of line {}:\n{}", block.line, block.text.trim_end()))?;
    }
    for (line, terminal) in &mut typist.own {
        terminal.still_runs().with_context(|| format!("the block of line {line}"))?;
    }
    Ok(())
}

/// Who reads a document and does what it says.
struct Typist<'a> {
    desk: &'a Desk,
    reader: Terminal,
    /// Terminals whose program goes on, with the line of their block.
    own: Vec<(usize, Terminal)>,
    last: Option<(Block, Printed)>,
    until: Instant,
}

impl Typist<'_> {
    fn follow(&mut self, block: &Block) -> Result<()> {
        match &block.role {
            Role::Typed => {
                let printed = self.reader.type_in(&block.text, self.soon())?;
                self.refuse_problems(&printed)?;
                self.last = Some((block.clone(), printed));
            }
            Role::Own { ready } => {
                let mut terminal = Terminal::open(self.desk)?;
                terminal.leave_running(&block.text, ready, self.soon())?;
                self.own.push((block.line, terminal));
            }
            Role::Saved { file } => fs::write(self.desk.folder.join(file), &block.text)?,
            Role::Output { in_the_end } => self.expect(&block.text, *in_the_end)?,
        }
        Ok(())
    }

    /// A block may take so long, and the document must be done in time.
    fn soon(&self) -> Instant {
        self.until.min(Instant::now() + BLOCK_WITHIN)
    }

    fn refuse_problems(&self, printed: &Printed) -> Result<()> {
        let text = |text: &str| !text.contains(PROBLEM);
        self.reader
            .shows(printed, Instant::now(), text)
            .map_err(|text| anyhow::anyhow!("the API refuses it:\n{text}"))
    }

    fn expect(&mut self, promise: &str, in_the_end: bool) -> Result<()> {
        let until = self.soon();
        let Some((block, mut printed)) = self.last.take() else { bail!("no block was typed before") };
        loop {
            let wait_until = if in_the_end { Instant::now() } else { until };
            let shown =
                self.reader.shows(&printed, wait_until, |text| promise::missing(promise, text).is_none());
            let Err(text) = shown else { break };
            if !in_the_end || Instant::now() > until {
                let missing = promise::missing(promise, &text).unwrap_or_default();
                bail!("the block before printed nothing like\n{missing}\nIt printed:\n{text}");
            }
            thread::sleep(REST);
            printed = self.reader.type_in(&block.text, until)?;
        }
        self.last = Some((block, printed));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types a document in a folder of its own; what is wrong with it.
    fn fault(markdown: &str) -> Option<String> {
        let folder = fresh_folder(&std::env::temp_dir().join(format!(
            "xtask-readme-{}-{}",
            std::process::id(),
            fold(markdown)
        )));
        let desk = Desk {
            folder: folder.unwrap(),
            path: std::env::var_os("PATH").unwrap(),
            variables: vec![("SET".to_owned(), "by the desk".to_owned())],
        };
        let until = Instant::now() + Duration::from_secs(20);
        let typed = type_document(markdown, &desk, until);
        fs::remove_dir_all(&desk.folder).unwrap();
        typed.err().map(|error| format!("{error:#}"))
    }

    fn fold(text: &str) -> u64 {
        text.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
    }

    #[test]
    fn blocks_follow_each_other_in_one_terminal() {
        let markdown = "```sh\nexport A=1\necho '{\"a\": 1}' > made\n```\n<!-- typed: saved as x.py -->\n```python\nprint('saved', 7)\n```\n\
            ```sh\ncat made x.py; echo $A $SET $CARGO\n```\n<!-- output -->\n```\n{\"a\": 1}\n```\n<!-- output -->\n```\nprint('saved', 9)\n1 by the desk\n```\n";
        assert_eq!(fault(markdown), None);
    }

    #[test]
    fn a_block_that_fails_fails_the_recipe() {
        for (block, says) in [
            ("true\nfalse\ntrue", "a command of it failed"),
            ("no-such-program", "a command of it failed"),
            ("false | cat", "a command of it failed"),
            ("echo '{\"type\":\"urn:tidegate:problem:invalid-body\",\"status\":422}'", "the API refuses it"),
        ] {
            let fault = fault(&format!("# x\n\n```sh\n{block}\n```\n")).unwrap();
            assert!(fault.starts_with("the block of line 3:") && fault.contains(says), "{block}: {fault}");
        }
    }

    #[test]
    fn output_that_is_not_as_shown_fails_the_recipe() {
        let shown = |output: &str| {
            format!("```sh\necho 5 of 20 are done\n```\n<!-- output -->\n```\n{output}\n```\n")
        };
        assert_eq!(fault(&shown("7 of 20 are done")), None);
        let markdown = shown("7 of 20 are lost");
        let started = Instant::now();
        let desk_until = |markdown: &str| {
            let folder =
                fresh_folder(&std::env::temp_dir().join(format!("xtask-readme-late-{}", std::process::id())))
                    .unwrap();
            let desk = Desk { folder, path: std::env::var_os("PATH").unwrap(), variables: Vec::new() };
            type_document(markdown, &desk, Instant::now() + Duration::from_secs(1))
        };
        let fault = format!("{:#}", desk_until(&markdown).unwrap_err());
        assert!(
            fault.contains("nothing like\n7 of 20 are lost") && fault.contains("5 of 20 are done"),
            "{fault}"
        );
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_block_is_typed_again_until_it_prints_what_is_shown_in_the_end() {
        let markdown = "```sh\necho x >> made; wc -l < made\n```\n<!-- output in the end -->\n```json\n{\"n\": 3}\n```\n";
        let markdown = markdown.replace("wc -l < made", "echo \"{\\\"n\\\": $(wc -l < made)}\"");
        assert_eq!(fault(&markdown), None);
    }

    #[test]
    fn what_is_left_running_is_awaited_and_ends_with_the_document() {
        let mark = std::env::temp_dir().join(format!("xtask-readme-pid-{}", std::process::id()));
        let server = format!("echo $BASHPID > {}; echo ready; exec sleep 600", mark.display());
        let markdown = format!(
            "<!-- typed: in a terminal of its own until it prints ready -->\n```sh\n( {server} )\n```\n```sh\nkill -0 $(cat {})\n```\n",
            mark.display()
        );
        assert_eq!(fault(&markdown), None);
        let id = fs::read_to_string(&mark).unwrap();
        fs::remove_file(&mark).unwrap();
        assert!(has_ended(id.trim()), "process {id} outlived the document");
        let ended = "<!-- typed: in a terminal of its own until it prints ready -->\n```sh\necho rea\n```\n";
        assert!(fault(ended).unwrap().contains("did not print \"ready\""));
    }

    /// Whether a process ends within moments: it is gone, or nobody asked for its status yet.
    fn has_ended(id: &str) -> bool {
        (0..100).any(|_| {
            let state =
                std::process::Command::new("ps").args(["-o", "stat=", "-p", id]).output().unwrap().stdout;
            let ended = state.is_empty() || state.starts_with(b"Z");
            if !ended {
                thread::sleep(Duration::from_millis(20));
            }
            ended
        })
    }
}
