use punctual_wire::{DataHeader, MsgNo, Position, SeqNo};

use super::SendFilter;
use super::grid::{Grid, Group};
use super::parity::{Cover, Sum};

/// Sums up what is sent, and makes a parity packet of each group that is whole.
///
/// Memory: a payload for each column, and one for the row.
#[derive(Debug)]
pub(super) struct FecSender {
    grid: Grid,
    /// The position and number that the next original is expected to have.
    next: (u64, SeqNo),
    row: Collected,
    columns: Vec<Collected>,
    /// The original that was sent last: its header, if parity packets wait behind it.
    last: Option<DataHeader>,
    /// Parity packets that wait, in the order in which they go out: a column's before a row's.
    owed_column: Option<usize>,
    owed_row: bool,
}

/// A group's packets so far.
#[derive(Clone, Debug, Default)]
struct Collected {
    /// Where the group begins; another beginning starts it over.
    first: u64,
    members: u64,
    sum: Sum,
}

impl Collected {
    /// Adds a packet; whether the group is whole by it. A group with a number that was never sent,
    /// because its message was given up, never is.
    fn add(&mut self, group: &Group, header: &DataHeader, payload: &[u8]) -> bool {
        if self.first != group.first || self.members == 0 {
            self.first = group.first;
            self.members = 0;
            self.sum.clear();
        }
        self.members += 1;
        self.sum.add(header, payload);
        let whole = self.members == group.count();
        if whole {
            self.members = 0;
        }
        whole
    }
}

impl FecSender {
    pub(super) fn new(grid: Grid, isn: SeqNo) -> Self {
        let columns = if grid.protects_columns() { grid.cols() } else { 0 };
        Self {
            grid,
            next: (0, isn),
            row: Collected::default(),
            columns: (0..columns).map(|_| Collected::default()).collect(),
            last: None,
            owed_column: None,
            owed_row: false,
        }
    }
}

impl SendFilter for FecSender {
    fn feed(&mut self, header: &DataHeader, payload: &[u8]) {
        let (position, expected) = self.next;
        // Numbers of messages that were given up before they were sent are passed over.
        let Ok(skipped) = u32::try_from(header.seq.distance_from(expected)) else { return };
        let position = position + u64::from(skipped);
        self.next = (position + 1, header.seq.next());
        self.last = Some(*header);
        self.owed_column = None;
        self.owed_row = false;
        if let Some(group) = self.grid.column(position) {
            let col = usize::try_from(self.grid.col(position)).expect("columns are few");
            let whole = self.columns[col].add(&group, header, payload);
            self.owed_column = whole.then_some(col);
        }
        if let Some(group) = self.grid.row(position) {
            self.owed_row = self.row.add(&group, header, payload);
        }
    }

    fn owes(&self) -> bool {
        self.owed_row || self.owed_column.is_some()
    }

    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(last) = &self.last else { return false };
        let (cover, sum) = if let Some(col) = self.owed_column.take() {
            let number = u8::try_from(col).expect("protected columns are at most 255");
            (Cover::Column(number), &self.columns[col].sum)
        } else if std::mem::take(&mut self.owed_row) {
            (Cover::Row, &self.row.sum)
        } else {
            return false;
        };
        // The number of the last original, which is that of the group's last packet, too; and its
        // key, though the parity packet is not encrypted: what it sums up is.
        let header = DataHeader {
            position: Position::Solo,
            in_order: false,
            retransmitted: false,
            msgno: MsgNo::CONTROL,
            timestamp: sum.timestamp(),
            ..*last
        };
        out.extend_from_slice(&header.to_bytes());
        sum.write(cover, out);
        true
    }
}
