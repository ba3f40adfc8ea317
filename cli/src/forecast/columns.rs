//! Tables of text: each column is as wide as its widest cell.

/// How the cells of a column lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Rows under a head.
pub(super) struct Columns {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Names of columns, each with where its cells lie.
    pub(super) fn new<'n>(head: impl IntoIterator<Item = (&'n str, Side)>) -> Self {
        let (names, sides) = head.into_iter().map(|(name, side)| (name.to_owned(), side)).unzip();
        Self { sides, rows: vec![names] }
    }

    /// Adds a row: a cell for each column.
    pub(super) fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// A line for each row, with nothing behind its last cell.
    pub(super) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(widths.iter().copied()).zip(&self.sides).map(
                |((cell, width), side)| match side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                },
            );
            let line = cells.collect::<Vec<_>>().join("  ");
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut columns = Columns::new([("name", Side::Left), ("n", Side::Right), ("why", Side::Left)]);
        columns.add(["a".to_owned(), "1,000".to_owned(), "none".to_owned()]);
        columns.add(["a-long-name".to_owned(), "1".to_owned(), String::new()]);
        assert_eq!(
            columns.render(),
            "name             n  why\na            1,000  none\na-long-name      1\n"
        );
    }
}
