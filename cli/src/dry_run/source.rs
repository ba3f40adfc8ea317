//! The lines of a file of jobs, or of standard input. A line is bounded: a file that is no text must not fill the memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;
use tidegate_domain::limits::REQUEST_BODY_BYTES;

/// What some editors begin a file with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Lines, counted from 1.
pub(crate) struct Source {
    lines: Box<dyn BufRead>,
    name: String,
    number: u64,
    line: Vec<u8>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::new(Box::new(io::stdin().lock()), "standard input".to_owned()));
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("failed to open {name}"))?;
        Ok(Self::new(Box::new(BufReader::new(file)), name))
    }

    fn new(lines: Box<dyn BufRead>, name: String) -> Self {
        Self { lines, name, number: 0, line: Vec::new() }
    }

    /// The next line that is not blank, with its number.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<(u64, &[u8])>> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut bounded = self.lines.by_ref().take(REQUEST_BODY_BYTES as u64 + 1);
            let read = bounded.read_until(b'\n', &mut self.line);
            let read = read.with_context(|| format!("failed to read {}", self.name))?;
            if read == 0 {
                return Ok(None);
            }
            anyhow::ensure!(
                read <= REQUEST_BODY_BYTES,
                "failed to read {}: line {} is over {REQUEST_BODY_BYTES} bytes; give one JSON object to a line",
                self.name,
                self.number
            );
            let marked = self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK);
            if marked {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((self.number, self.line.trim_ascii_end())));
            }
        }
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &[u8]) -> Source {
        Source::new(Box::new(io::Cursor::new(text.to_vec())), "jobs.jsonl".to_owned())
    }

    #[test]
    fn blank_lines_are_passed_over_and_counted() {
        let mut source = source(b"\xef\xbb\xbfone\r\n\n  \ntwo");
        assert_eq!(source.next().unwrap(), Some((1, b"one".as_slice())));
        assert_eq!(source.next().unwrap(), Some((4, b"two".as_slice())));
        assert_eq!(source.next().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let error = source(&vec![b'x'; REQUEST_BODY_BYTES * 3]).next().unwrap_err().to_string();
        assert!(error.starts_with("failed to read jobs.jsonl: line 1 is over 262144 bytes"), "{error}");
    }
}
