/// How packets are parted into rows and columns.
///
/// A packet's position counts from the first packet of its direction and never wraps. A line is
/// `cols` packets in a row, whether rows are protected or not. A column's group takes one packet of
/// each of `rows` lines. All of it is arithmetic on positions, so that nothing is kept for a group
/// that is not needed, and no packet can be put into a wrong one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    cols: u64,
    rows: u64,
    protects_rows: bool,
    staircase: bool,
}

/// The packets that one parity packet covers: `count` positions from `first`, `step` apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Group {
    pub(super) first: u64,
    step: u64,
    count: u64,
}

impl Group {
    pub(super) const fn last(&self) -> u64 {
        self.first + (self.count - 1) * self.step
    }

    pub(super) const fn is_row(&self) -> bool {
        // A line has two packets at least.
        self.step == 1
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn members(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |i| self.first + i * self.step)
    }
}

impl Grid {
    /// At least two columns; one row and more.
    pub(super) fn new(cols: u32, rows: u32, protects_rows: bool, staircase: bool) -> Self {
        Self { cols: cols.into(), rows: rows.into(), protects_rows, staircase }
    }

    /// Packets in a line.
    pub(super) const fn cols(&self) -> u64 {
        self.cols
    }

    /// Packets in a column's group, 1 if columns are not protected.
    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) const fn protects_columns(&self) -> bool {
        self.rows > 1
    }

    /// Packets after which the pattern repeats.
    pub(super) const fn matrix(&self) -> u64 {
        self.cols * self.rows
    }

    pub(super) const fn line(&self, position: u64) -> u64 {
        position / self.cols
    }

    pub(super) const fn col(&self, position: u64) -> u64 {
        position % self.cols
    }

    /// The group of the row that the packet stands in, if rows are protected.
    pub(super) fn row(&self, position: u64) -> Option<Group> {
        let first = self.line(position) * self.cols;
        self.protects_rows.then_some(Group { first, step: 1, count: self.cols })
    }

    /// The group of the column that the packet stands in; none for the first packets of all, before
    /// their column's stair.
    pub(super) fn column(&self, position: u64) -> Option<Group> {
        if !self.protects_columns() {
            return None;
        }
        let (line, col) = (self.line(position), self.col(position));
        let below = line.checked_sub(self.first_line(col))?;
        let first = (line - below % self.rows) * self.cols + col;
        Some(Group { first, step: self.cols, count: self.rows })
    }

    /// The line in which the last parity packet that covers the packet goes out.
    pub(super) fn last_line(&self, position: u64) -> u64 {
        self.column(position).map_or(self.line(position), |column| self.line(column.last()))
    }

    /// The line where a column begins. Stairs are `rows` high, then the next begins at the top
    /// again.
    pub(super) const fn first_line(&self, col: u64) -> u64 {
        if self.staircase { col % self.rows } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where libsrt begins its columns, told step by step: each column a place to the right and a
    /// line down, until the next would begin below the matrix; that one begins at the top again.
    fn stairs(cols: u64, rows: u64) -> Vec<u64> {
        let mut offset = 0;
        let mut begins = Vec::new();
        for col in 0..cols {
            begins.push(offset);
            offset = if col % rows == rows - 1 { col + 1 } else { offset + cols + 1 };
        }
        begins
    }

    #[test]
    fn staircase_columns_begin_where_libsrts_do() {
        for (cols, rows) in [(5, 5), (10, 5), (7, 3), (3, 7), (2, 2), (12, 4), (255, 10)] {
            let grid = Grid::new(cols, rows, true, true);
            let begins = stairs(cols.into(), rows.into());
            for (col, begin) in begins.iter().enumerate() {
                let group = grid.column(*begin).expect("the first of its column");
                assert_eq!((grid.col(*begin), group.first), (col as u64, *begin), "{cols}x{rows}");
                assert!(
                    begin.checked_sub(grid.cols()).is_none_or(|above| grid.column(above).is_none()),
                    "nothing stands above the stair"
                );
            }
        }
    }

    /// Every packet from the first whole stair on stands in one row and one column, and each group
    /// knows its members.
    #[test]
    fn groups_part_the_packets() {
        for staircase in [false, true] {
            let grid = Grid::new(7, 4, true, staircase);
            for position in 0..1_000 {
                let row = grid.row(position).expect("rows are protected");
                assert!(row.members().any(|member| member == position));
                let Some(column) = grid.column(position) else {
                    assert!(staircase && grid.line(position) < 3);
                    continue;
                };
                assert_eq!(column.members().filter(|member| *member == position).count(), 1);
                for member in column.members() {
                    assert_eq!(grid.column(member), Some(column));
                }
                assert_eq!(column.members().last(), Some(column.last()));
                assert_eq!(grid.last_line(position), grid.line(column.last()));
            }
        }
    }

    #[test]
    fn rows_alone_and_columns_alone() {
        let rows = Grid::new(10, 1, true, true);
        assert_eq!(rows.column(33), None);
        assert_eq!(rows.row(33).map(|row| (row.first, row.last())), Some((30, 39)));
        let columns = Grid::new(10, 3, false, false);
        assert_eq!(columns.row(33), None);
        assert_eq!(columns.column(33).map(|column| (column.first, column.last())), Some((33, 53)));
    }
}
