//! The fenced blocks of a Markdown file, with what the comments before them say.
//!
//! | comment before a block | means |
//! | --- | --- |
//! | none, or `<!-- typed -->` | `sh` is typed in the reader's terminal, which goes on from block to block |
//! | `<!-- typed: in a terminal of its own until it prints TEXT -->` | it runs on until the end, as a server does |
//! | `<!-- typed: saved as FILE -->` | `python` is written to a file |
//! | `<!-- not typed: REASON -->` | skipped |
//! | `<!-- output -->` | what the last block must print, in a while |
//! | `<!-- output in the end -->` | the same, and the last block is typed again until it does |
//!
//! Blocks of other languages without a comment are for reading. A `sh` or `python` block cannot be left out silently, and
//! a comment that is none of these is an error.

use anyhow::{Context, Result, bail, ensure};

/// A block, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of the file that the fence opens on, from 1.
    pub line: usize,
    /// What is between the fences.
    pub text: String,
    /// What is done with it.
    pub role: Role,
}

/// What is done with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Typed where the last one was.
    Typed,
    /// Typed in a terminal of its own, which goes on; the text tells that it is ready.
    Own {
        /// What it prints when it is ready.
        ready: String,
    },
    /// Written to a file of this name.
    Saved {
        /// The file.
        file: String,
    },
    /// What the last typed block prints.
    Output {
        /// The last block may have to be typed again.
        in_the_end: bool,
    },
}

/// All blocks that are typed, saved or promised.
///
/// # Errors
/// When a comment is not understood, or a fence does not end.
pub fn read(markdown: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut comment: Option<&str> = None;
    let mut lines = markdown.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line_number = index + 1;
        let Some(language) = line.strip_prefix("```") else {
            if let Some(text) = line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")) {
                comment = Some(text.trim());
            } else if !line.trim().is_empty() {
                comment = None;
            }
            continue;
        };
        let mut text = String::new();
        loop {
            let (_, line) =
                lines.next().with_context(|| format!("the block of line {line_number} does not end"))?;
            if line.starts_with("```") {
                break;
            }
            text += line;
            text.push('\n');
        }
        let role = role(language.trim(), comment.take())
            .with_context(|| format!("the block of line {line_number}"))?;
        blocks.extend(role.map(|role| Block { line: line_number, text, role }));
    }
    Ok(blocks)
}

/// `None`: skipped, or only for reading.
fn role(language: &str, comment: Option<&str>) -> Result<Option<Role>> {
    let Some(comment) = comment else {
        return match language {
            "sh" => Ok(Some(Role::Typed)),
            "python" => {
                bail!("needs a comment: <!-- typed: saved as FILE -->, or <!-- not typed: REASON -->")
            }
            _ => Ok(None),
        };
    };
    if let Some(reason) = comment.strip_prefix("not typed") {
        ensure!(
            reason.trim_start_matches(':').trim().len() > 3,
            "'not typed' needs a reason: <!-- not typed: REASON -->"
        );
        return Ok(None);
    }
    let own = "typed: in a terminal of its own until it prints ";
    let role = match (language, comment) {
        ("sh", "typed") => Role::Typed,
        ("sh", text) if text.starts_with(own) => Role::Own { ready: text[own.len()..].to_owned() },
        ("python", text) if text.starts_with("typed: saved as ") => {
            Role::Saved { file: text["typed: saved as ".len()..].to_owned() }
        }
        (_, "output") => Role::Output { in_the_end: false },
        (_, "output in the end") => Role::Output { in_the_end: true },
        _ => bail!("the comment '<!-- {comment} -->' before a block of {language:?} is not known"),
    };
    Ok(Some(role))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(markdown: &str) -> Vec<Role> {
        read(markdown).unwrap().into_iter().map(|block| block.role).collect()
    }

    #[test]
    fn blocks_are_found_with_their_roles_and_lines() {
        let markdown = "# Title\n\n```sh\na\nb\n```\n\n<!-- typed: in a terminal of its own until it prints API -->\n```sh\nserver\n```\n\
            <!-- typed: saved as x.py -->\n\n```python\nprint(1)\n```\n<!-- not typed: needs AWS -->\n```sh\ndeploy\n```\n\
            <!-- output -->\n```\nx\n```\n<!-- output in the end -->\n```json\n{}\n```\n\n```json\n{}\n```\n";
        let blocks = read(markdown).unwrap();
        assert_eq!(blocks[0], Block { line: 3, text: "a\nb\n".to_owned(), role: Role::Typed });
        let expected = [
            Role::Typed,
            Role::Own { ready: "API".to_owned() },
            Role::Saved { file: "x.py".to_owned() },
            Role::Output { in_the_end: false },
            Role::Output { in_the_end: true },
        ];
        assert_eq!(roles(markdown), expected);
    }

    #[test]
    fn a_comment_belongs_to_the_next_block_only() {
        assert_eq!(roles("<!-- not typed: needs AWS -->\nwords\n```sh\na\n```\n"), [Role::Typed]);
        assert_eq!(roles("<!-- not typed: needs AWS -->\n```sh\na\n```\n```sh\nb\n```\n"), [Role::Typed]);
    }

    #[test]
    fn nothing_is_left_out_silently() {
        for bad in [
            "```sh\na\n",
            "<!-- not typed -->\n```sh\na\n```\n",
            "<!-- not typd: needs AWS -->\n```sh\na\n```\n",
            "```python\nprint(1)\n```\n",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
