//! Reading the documents: their sections, tables and blocks of code.

use std::collections::BTreeSet;

/// A document, or a section of one.
#[derive(Debug, Clone, Copy)]
pub struct Page(pub &'static str);

impl Page {
    /// The text under a heading, up to the next one of the same or a higher level.
    pub fn section(self, heading: &str) -> Self {
        let level = heading.split(' ').next().unwrap().len();
        let (_, rest) =
            self.0.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
        let ends = (1..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level)))).min();
        Self(ends.map_or(rest, |end| &rest[..end]))
    }

    /// The blocks of code of a language.
    pub fn blocks(self, language: &str) -> Vec<&'static str> {
        let opening = format!("```{language}\n");
        self.0.split(opening.as_str()).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
    }

    /// The rows of its tables whose first cell is a name in code: the name, and the other cells.
    pub fn rows(self) -> Vec<(&'static str, Vec<&'static str>)> {
        let rows = self.0.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
        rows.map(|(name, cells)| (name, cells.split('|').map(str::trim).collect())).collect()
    }

    /// The names in the rows of its tables of whose second cell something holds.
    pub fn names(self, holds: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let rows = self.rows().into_iter().filter(|(_, cells)| holds(cells[0]));
        rows.map(|(name, _)| name.to_owned()).collect()
    }
}
