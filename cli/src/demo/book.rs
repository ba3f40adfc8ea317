//! The book: every entry in the order in which it was made, and the score that follows from them.
//!
//! With a data folder it is a file of JSON lines to which each entry is appended by one write: what was written survives
//! a killed process. A line that is not whole was never answered for, and is cut off at the next start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use tidegate_embedded::open_private;

use super::score::{Entry, Score};

/// The file in the data folder.
const FILE: &str = "demo-book.jsonl";

/// The book of a demonstration.
#[derive(Debug)]
pub(super) struct Book(Mutex<Pages>);

#[derive(Debug)]
struct Pages {
    /// `None` without a data folder.
    file: Option<File>,
    score: Score,
}

impl Book {
    /// The book in `folder`, or an empty one in memory.
    pub(super) fn open(folder: Option<&Path>) -> anyhow::Result<Self> {
        let (file, score) = match folder {
            Some(folder) => {
                let path = folder.join(FILE);
                let (file, score) = open(&path)
                    .with_context(|| format!("failed to open the demo's book {}", path.display()))?;
                (Some(file), score)
            }
            None => (None, Score::default()),
        };
        Ok(Self(Mutex::new(Pages { file, score })))
    }

    /// Makes an entry. Once this returns, it outlives the process.
    pub(super) fn note(&self, entry: &Entry) -> io::Result<()> {
        let mut pages = self.pages();
        if let Some(file) = &mut pages.file {
            let mut line = serde_json::to_vec(entry)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        pages.score.apply(entry);
        Ok(())
    }

    /// Looks at the score.
    pub(super) fn read<R>(&self, look: impl FnOnce(&Score) -> R) -> R {
        look(&self.pages().score)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> anyhow::Result<(File, Score)> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut score = Score::default();
    for (number, line) in text[..whole].lines().enumerate() {
        let entry = serde_json::from_str(line).with_context(|| format!("line {} is no entry", number + 1))?;
        score.apply(&entry);
    }
    let file = open_private(File::options().create(true).append(true), path)?;
    file.set_len(whole as u64)?;
    Ok((file, score))
}

#[cfg(test)]
mod tests {
    use super::super::score::tests::arrived;
    use super::*;

    #[test]
    fn a_book_goes_on_where_it_ended_even_in_the_middle_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let book = Book::open(Some(folder.path())).unwrap();
        book.note(&Entry::Batch { launch_ms: 5_000 }).unwrap();
        book.note(&arrived("b.1.5.0", "m0", true, 5_000, 5_003)).unwrap();
        drop(book);
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "{\"batch\":{\"launch_ms\":5000}}\n{\"arrived\":{\"at_ms\":5003,\"event\":\"b.1.5.0\",\"job\":\"b\",\
             \"index\":0,\"launch_ms\":5000,\"message\":\"m0\",\"throttled\":true}}\n"
        );
        fs::write(&path, format!("{text}{{\"finished\":{{\"at_")).unwrap();

        let book = Book::open(Some(folder.path())).unwrap();
        book.note(&Entry::Finished { at_ms: 6_000, event: "b.1.5.0".to_owned() }).unwrap();
        let book = Book::open(Some(folder.path())).unwrap();
        book.read(|score| {
            assert_eq!((score.batch_launch_ms, score.in_flight(), score.max_in_flight), (Some(5_000), 0, 1));
            assert!(score.events["b.1.5.0"].finished);
        });
    }

    #[test]
    fn a_file_that_is_no_book_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "something else\n").unwrap();
        let error = format!("{:#}", Book::open(Some(folder.path())).unwrap_err());
        assert!(error.contains("demo-book.jsonl: line 1 is no entry"), "{error}");
    }
}
