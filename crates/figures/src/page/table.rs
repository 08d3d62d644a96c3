//! Tables.

use super::{Text, markdown};

/// A table: a caption, columns, rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) rows: Vec<Vec<Text>>,
}

/// A column: its name, and the alignment of its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) align: Align,
}

/// The alignment of the cells of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Align {
    /// At the left, for words.
    Left,
    /// At the right, in digits of equal width, for numbers.
    Right,
}

impl Table {
    /// A table without rows. The caption may be empty.
    pub fn new(caption: impl Into<String>, columns: impl IntoIterator<Item = TableColumn>) -> Self {
        let columns = columns.into_iter().collect();
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// Adds a row. Cells that are missing are empty.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table as GitHub-flavoured Markdown: its caption as a strong line, an empty line, and the
    /// rows. A common head of several columns is repeated in the head of each of them.
    pub fn to_markdown(&self) -> String {
        markdown::table(self)
    }
}

impl TableColumn {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), group: String::new(), align: Align::Left }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self { align: Align::Right, ..Self::text(name) }
    }

    /// Puts the column under a common head with its neighbours of the same group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }
}
