use punctual_wire::{DataHeader, MsgNo, Position, SeqNo};

use super::SendFilter;
use super::grid::{Grid, ParityGroup};
use super::parity::{Cover, PacketXor};

/// Adds up the originals, and makes a parity packet of each complete group.
///
/// It keeps one payload for each column, and one for the row.
#[derive(Debug)]
pub(super) struct FecSender {
    grid: Grid,
    /// The position and the sequence number that are expected of the next original.
    next: (u64, SeqNo),
    row: Collected,
    columns: Vec<Collected>,
    /// The header of the last original, which waiting parity packets follow.
    last: Option<DataHeader>,
    /// The parity packets that wait: the one of a column is sent before the one of a row.
    owed_column: Option<usize>,
    owed_row: bool,
}

/// The packets of a group so far.
#[derive(Clone, Debug, Default)]
struct Collected {
    /// The position of the group's first packet. A packet of another group starts over.
    first: u64,
    members: u64,
    sum: PacketXor,
}

impl Collected {
    /// Adds a packet. Returns whether the group is complete now. A group with a number that was
    /// never sent, because its message was given up, never is.
    fn add(&mut self, group: &ParityGroup, header: &DataHeader, payload: &[u8]) -> bool {
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
        // Sequence numbers are skipped if their messages were given up before they were sent.
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

    fn has_parity_due(&self) -> bool {
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
        // The parity packet has the sequence number of the last original, which ends the group, and
        // its key flag: it is not encrypted itself, but it is made from encrypted packets.
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
