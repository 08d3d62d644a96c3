/// The division of packets into rows and columns.
///
/// The position of a packet counts from the first packet of its direction and never wraps. A line
/// is `cols` consecutive packets, whether or not rows are protected. The group of a column has one
/// packet of each of `rows` lines. Everything is computed from positions: no state is kept for
/// groups, and a packet always belongs to the right ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    cols: u64,
    rows: u64,
    protects_rows: bool,
    staircase: bool,
}

/// The packets that one parity packet covers: `count` positions from `first`, `step` apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ParityGroup {
    pub(super) first: u64,
    step: u64,
    count: u64,
}

impl ParityGroup {
    pub(super) const fn last(&self) -> u64 {
        self.first + (self.count - 1) * self.step
    }

    pub(super) const fn is_row(&self) -> bool {
        // A line has at least two packets.
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
    /// `cols` must be at least 2, and `rows` at least 1.
    pub(super) fn new(cols: u32, rows: u32, protects_rows: bool, staircase: bool) -> Self {
        Self { cols: cols.into(), rows: rows.into(), protects_rows, staircase }
    }

    /// The number of packets in a line.
    pub(super) const fn cols(&self) -> u64 {
        self.cols
    }

    /// The number of packets in the group of a column; 1 if columns are not protected.
    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) const fn protects_columns(&self) -> bool {
        self.rows > 1
    }

    /// The number of packets after which the pattern repeats.
    pub(super) const fn matrix(&self) -> u64 {
        self.cols * self.rows
    }

    pub(super) const fn line(&self, position: u64) -> u64 {
        position / self.cols
    }

    pub(super) const fn col(&self, position: u64) -> u64 {
        position % self.cols
    }

    /// The row of the packet; `None` if rows are not protected.
    pub(super) fn row(&self, position: u64) -> Option<ParityGroup> {
        let first = self.line(position) * self.cols;
        self.protects_rows.then_some(ParityGroup { first, step: 1, count: self.cols })
    }

    /// The column group of the packet; `None` if columns are not protected, and for the first
    /// packets of the stream, which are before the first group of their column.
    pub(super) fn column(&self, position: u64) -> Option<ParityGroup> {
        if !self.protects_columns() {
            return None;
        }
        let (line, col) = (self.line(position), self.col(position));
        let below = line.checked_sub(self.first_line(col))?;
        let first = (line - below % self.rows) * self.cols + col;
        Some(ParityGroup { first, step: self.cols, count: self.rows })
    }

    /// The line in which the last parity packet that covers the packet is sent.
    pub(super) fn last_line(&self, position: u64) -> u64 {
        self.column(position).map_or(self.line(position), |column| self.line(column.last()))
    }

    /// The line in which a column begins. A stair is `rows` lines high; after it the next column
    /// begins in the first line again.
    pub(super) const fn first_line(&self, col: u64) -> u64 {
        if self.staircase { col % self.rows } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions at which libsrt begins its columns, computed step by step: each column a place
    /// to the right and a line down. A column that would begin below the matrix begins in the first
    /// line.
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
                    "no group begins above the stair"
                );
            }
        }
    }

    /// Every packet after the first stair belongs to one row and one column, and each group lists
    /// its members.
    #[test]
    fn each_packet_belongs_to_one_row_and_one_column() {
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
    fn rows_or_columns_can_be_protected_alone() {
        let rows = Grid::new(10, 1, true, true);
        assert_eq!(rows.column(33), None);
        assert_eq!(rows.row(33).map(|row| (row.first, row.last())), Some((30, 39)));
        let columns = Grid::new(10, 3, false, false);
        assert_eq!(columns.row(33), None);
        assert_eq!(columns.column(33).map(|column| (column.first, column.last())), Some((33, 53)));
    }
}
