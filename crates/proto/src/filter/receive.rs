use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use punctual_wire::{DataHeader, MsgNo, Position, SeqNo};

use super::grid::{Grid, ParityGroup};
use super::parity::{Cover, ParityPacket};
use super::{Findings, ReceiveFilter};

/// A packet this far ahead is accepted only when a second one confirms it, as in the receive
/// buffer.
const SUSPICIOUS_GAP: u32 = 64;
/// After this number of consecutive parity packets that fit no group, but all imply the same shift
/// of the groups, the groups are shifted.
const MISFITS: u32 = 3;
/// A parity packet may be ahead of all packets by two lines plus this number of packets.
const PARITY_AHEAD: u64 = 16;
/// A longer gap is skipped at once, since stepping through it would be useless work.
const LONGEST_STEP: u64 = 1_024;
/// Lines that are kept in addition to two matrices.
const SPARE_LINES: u64 = 6;

/// Keeps the packets of somewhat more than two matrices, and rebuilds the packet of a group that is
/// missing alone.
///
/// Packets are combined only when one is to be rebuilt: in a stream without losses, each packet
/// costs only its place in a ring. Memory is bounded by the grid: packets and parity packets older
/// than two matrices are dropped.
#[derive(Debug)]
pub(super) struct FecReceiver {
    grid: Grid,
    /// The packets from position `base`, the start of a line, to the newest.
    held: VecDeque<Option<Held>>,
    base: u64,
    /// The sequence number after the newest position in `held`.
    end_seq: SeqNo,
    /// The position after the newest packet of the stream. `held` may extend beyond it, since
    /// parity packets make room too.
    data_end: u64,
    /// The next line whose losses are to be reported.
    next_line: u64,
    /// Losses before this position were reported in a pause, whether their line has ended or not.
    reported: u64,
    /// The parity packets whose groups lack more than one packet, by the position of the group's
    /// last packet.
    rows: BTreeMap<u64, ParityPacket>,
    columns: BTreeMap<u64, ParityPacket>,
    suspect: Option<Held>,
    /// The shift of the groups that the last parity packets imply, and the number of packets that
    /// imply it.
    misfits: (u64, u32),
}

#[derive(Clone, Debug)]
struct Held {
    header: DataHeader,
    payload: Bytes,
}

impl ReceiveFilter for FecReceiver {
    fn handle(&mut self, header: &DataHeader, payload: &Bytes, findings: &mut Findings) {
        if header.msgno == MsgNo::CONTROL {
            match ParityPacket::parse(header, payload) {
                Some((cover, parity)) => self.take_parity(header.seq, cover, parity, findings),
                None => findings.is_invalid = true,
            }
            return;
        }
        let Some(position) = self.position(header.seq) else { return };
        let held = Held { header: *header, payload: payload.clone() };
        if position >= self.suspicious() {
            let Some(first) = self.confirm(&held) else {
                self.suspect = Some(held);
                return;
            };
            self.take_packet(first, findings);
        } else if position >= self.data_end {
            self.suspect = None;
        }
        self.take_packet(held, findings);
    }

    fn pause(&mut self, findings: &mut Findings) {
        let lost = self.unreported();
        self.push_lost(&lost, findings);
        self.reported = self.data_end;
    }
}

impl FecReceiver {
    pub(super) fn new(grid: Grid, isn: SeqNo) -> Self {
        Self {
            grid,
            held: VecDeque::new(),
            base: 0,
            end_seq: isn,
            data_end: 0,
            next_line: 0,
            reported: 0,
            rows: BTreeMap::new(),
            columns: BTreeMap::new(),
            suspect: None,
            misfits: (0, 0),
        }
    }

    /// The suspect packet far ahead, if this one confirms it.
    fn confirm(&mut self, held: &Held) -> Option<Held> {
        let first = self.suspect.take()?;
        let behind = held.header.seq.distance_from(first.header.seq);
        (1..SUSPICIOUS_GAP.cast_signed()).contains(&behind).then_some(first)
    }

    fn take_packet(&mut self, held: Held, findings: &mut Findings) {
        let Some(position) = self.position(held.header.seq) else { return };
        if position >= self.data_end + self.window().min(LONGEST_STEP) {
            self.start_over(self.grid.line(position), findings);
        }
        while position >= self.data_end {
            self.data_end += 1;
            self.make_room(self.data_end);
            self.report_lost(findings);
        }
        if self.put(position, held) {
            self.rebuild_around(position, findings);
        }
    }

    fn take_parity(
        &mut self,
        seq: SeqNo,
        cover: Cover,
        parity: ParityPacket,
        findings: &mut Findings,
    ) {
        // A parity packet far ahead of all packets is useless: most of its group is missing.
        let limit = self.data_end + PARITY_AHEAD + 2 * self.grid.cols();
        let Some(position) = self.position(seq).filter(|at| *at < limit) else { return };
        let Some(group) = self.group_of(position, cover) else {
            findings.is_invalid = true;
            self.note_misfit(position, cover);
            return;
        };
        if self.places_groups(cover) {
            self.misfits = (0, 0);
        }
        self.make_room(position + 1);
        if group.first < self.base {
            return;
        }
        let waiting = if group.is_row() { &mut self.rows } else { &mut self.columns };
        waiting.entry(group.last()).or_insert(parity);
        if let Some(position) = self.solve(&group, findings) {
            self.rebuild_around(position, findings);
        }
    }

    /// A packet was added. Its groups may lack only one packet now, and so may the groups of each
    /// packet that is rebuilt.
    fn rebuild_around(&mut self, position: u64, findings: &mut Findings) {
        let mut fresh = vec![position];
        while let Some(position) = fresh.pop() {
            if self.rows.is_empty() && self.columns.is_empty() {
                return;
            }
            for group in [self.grid.row(position), self.grid.column(position)] {
                fresh.extend(group.and_then(|group| self.solve(&group, findings)));
            }
        }
    }

    /// Rebuilds the only missing packet of the group, if the parity packet is there. Returns its
    /// position. The parity packet of a complete group is dropped.
    fn solve(&mut self, group: &ParityGroup, findings: &mut Findings) -> Option<u64> {
        let waiting = if group.is_row() { &self.rows } else { &self.columns };
        if !waiting.contains_key(&group.last()) {
            return None;
        }
        let mut missing = group.members().filter(|member| self.get(*member).is_none());
        let (absent, second) = (missing.next(), missing.next());
        drop(missing);
        if second.is_some() {
            return None;
        }
        let waiting = if group.is_row() { &mut self.rows } else { &mut self.columns };
        let parity = waiting.remove(&group.last())?;
        let absent = absent?;
        let others = group.members().filter_map(|member| self.get(member));
        let Some((key, timestamp, payload)) =
            parity.solve(others.map(|held| (&held.header, &held.payload)))
        else {
            findings.is_invalid = true;
            return None;
        };
        let neighbour = if absent == group.first { group.last() } else { group.first };
        let (in_order, msgno, dest) = {
            let known = &self.get(neighbour)?.header;
            (known.in_order, msgno_at(known.msgno, neighbour, absent), known.dest)
        };
        let header = DataHeader {
            seq: self.seq(absent),
            position: Position::Solo,
            in_order,
            key,
            retransmitted: true,
            msgno,
            timestamp,
            dest,
        };
        findings.rebuilt.push((header, payload.clone()));
        self.put(absent, Held { header, payload });
        Some(absent)
    }

    /// Makes room up to position `end`, which is within the window, and drops the oldest lines.
    fn make_room(&mut self, end: u64) {
        while self.end() < end {
            self.held.push_back(None);
            self.end_seq = self.end_seq.next();
            if self.held.len() as u64 > self.window() {
                self.forget_line();
            }
        }
    }

    /// Reports the missing packets of the lines that have ended. A parity packet follows the last
    /// packet of its group at once; a third of a line is allowed for reordering, as in libsrt.
    fn report_lost(&mut self, findings: &mut Findings) {
        let cols = self.grid.cols();
        while self.data_end > (self.next_line + 1) * cols + cols / 3 + 1 {
            self.report_lost_with(self.next_line, findings);
            self.next_line += 1;
        }
    }

    /// Reports the missing packets whose last group ended with this line.
    fn report_lost_with(&self, line: u64, findings: &mut Findings) {
        let mut lost = Vec::new();
        for col in 0..self.grid.cols() {
            let position = line * self.grid.cols() + col;
            match self.grid.column(position) {
                None => lost.extend(self.missing(position)),
                Some(group) if group.last() == position => {
                    lost.extend(group.members().filter_map(|member| self.missing(member)));
                }
                Some(_) => {}
            }
        }
        lost.sort_unstable();
        self.push_lost(&lost, findings);
    }

    /// The missing packets that were not reported yet.
    fn unreported(&self) -> Vec<u64> {
        let waiting = (self.base..self.data_end)
            .filter(|position| self.grid.last_line(*position) >= self.next_line);
        waiting.filter_map(|position| self.missing(position)).collect()
    }

    /// Skips to the beginning of a line, which is beyond the window. All missing packets before it
    /// are lost.
    fn start_over(&mut self, line: u64, findings: &mut Findings) {
        // The places that parity packets made are missing too, and belong to the gap.
        self.end_seq = self.seq(self.data_end);
        self.held.truncate(usize::try_from(self.data_end - self.base).unwrap_or(usize::MAX));
        let lost = self.unreported();
        self.push_lost(&lost, findings);
        let start = line * self.grid.cols();
        let (first, next) = (self.end_seq, self.seq(start));
        findings.lost.push((first, next.minus(1)));
        self.base = start;
        self.end_seq = next;
        self.data_end = start;
        self.next_line = line;
        self.held.clear();
        self.rows.clear();
        self.columns.clear();
    }

    fn forget_line(&mut self) {
        let cols = self.grid.cols();
        self.held.drain(..usize::try_from(cols).expect("a line is short"));
        self.base += cols;
        let column = self.grid.matrix() - cols;
        drop_before(&mut self.rows, self.base);
        drop_before(&mut self.columns, self.base + column);
    }

    /// Notes a parity packet at a position where no group ends. If several agree on the shift of
    /// the groups, the sender has started its groups over.
    fn note_misfit(&mut self, position: u64, cover: Cover) {
        if !self.places_groups(cover) {
            return;
        }
        let cols = self.grid.cols();
        let (end, period) = match cover {
            Cover::Row => (cols - 1, cols),
            Cover::Column(col) => {
                let col = u64::from(col);
                if col >= cols {
                    return;
                }
                let line = self.grid.first_line(col) + self.grid.rows() - 1;
                (line * cols + col, self.grid.matrix())
            }
        };
        let shift = (end + period - position % period) % period;
        let times = if self.misfits.0 == shift { self.misfits.1 + 1 } else { 1 };
        self.misfits = (shift, times);
        if times >= MISFITS && shift > 0 {
            self.misfits = (0, 0);
            self.shift_groups(shift);
        }
    }

    /// Shifts all packets by `shift` positions relative to the groups.
    fn shift_groups(&mut self, shift: u64) {
        let cols = self.grid.cols();
        let base = self.base + shift;
        self.base = base / cols * cols;
        for _ in self.base..base {
            self.held.push_front(None);
        }
        // Losses before this line have been reported, or belong to no known group.
        self.data_end += shift;
        self.reported += shift;
        self.next_line = self.grid.line(self.data_end) + 1;
        self.rows.clear();
        self.columns.clear();
        while self.held.len() as u64 > self.window() {
            self.forget_line();
        }
    }

    /// Whether a parity packet of this kind determines the positions of all groups.
    fn places_groups(&self, cover: Cover) -> bool {
        match cover {
            Cover::Row => !self.grid.protects_columns(),
            Cover::Column(_) => self.grid.protects_columns(),
        }
    }

    /// The group that a parity packet covers; `None` if no such group ends at the position.
    fn group_of(&self, position: u64, cover: Cover) -> Option<ParityGroup> {
        let group = match cover {
            Cover::Row => self.grid.row(position),
            Cover::Column(col) if self.grid.col(position) == u64::from(col) => {
                self.grid.column(position)
            }
            Cover::Column(_) => None,
        };
        group.filter(|group| group.last() == position)
    }

    /// Stores the packet; `false` if it is a duplicate or too old.
    fn put(&mut self, position: u64, held: Held) -> bool {
        let place = position.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        let Some(place) = place.and_then(|at| self.held.get_mut(at)) else { return false };
        let is_new = place.is_none();
        if is_new {
            *place = Some(held);
        }
        is_new
    }

    fn get(&self, position: u64) -> Option<&Held> {
        let at = usize::try_from(position.checked_sub(self.base)?).ok()?;
        self.held.get(at)?.as_ref()
    }

    /// The position, if it is in the window, and its packet is missing and was not reported in a
    /// pause.
    fn missing(&self, position: u64) -> Option<u64> {
        let waits = position >= self.base.max(self.reported);
        (waits && self.get(position).is_none()).then_some(position)
    }

    fn push_lost(&self, positions: &[u64], findings: &mut Findings) {
        let mut rest = positions;
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|(at, next)| **at == *next).count();
            let (seq, length) = (self.seq(first), u32::try_from(run).unwrap_or(u32::MAX));
            findings.lost.push((seq, seq.plus(length - 1)));
            rest = &rest[run..];
        }
    }

    /// The position after the newest.
    fn end(&self) -> u64 {
        self.base + self.held.len() as u64
    }

    /// The first position that one packet alone cannot reach.
    fn suspicious(&self) -> u64 {
        self.data_end + u64::from(SUSPICIOUS_GAP)
    }

    /// The largest number of positions that are kept.
    fn window(&self) -> u64 {
        let cols = self.grid.cols();
        (2 * self.grid.rows() + SPARE_LINES + PARITY_AHEAD.div_ceil(cols)) * cols
    }

    /// The position of a sequence number; `None` if it is before the stream.
    fn position(&self, seq: SeqNo) -> Option<u64> {
        self.end().checked_add_signed(seq.distance_from(self.end_seq).into())
    }

    fn seq(&self, position: u64) -> SeqNo {
        let steps = |n: u64| u32::try_from(n).expect("positions kept are near each other");
        match position.checked_sub(self.end()) {
            Some(ahead) => self.end_seq.plus(steps(ahead)),
            None => self.end_seq.minus(steps(self.end() - position)),
        }
    }
}

/// The message number at position `to`, if each packet is a message, as in live streams of libsrt
/// and of this implementation. Authenticated decryption needs the exact number.
fn msgno_at(known: MsgNo, at: u64, to: u64) -> MsgNo {
    let circle = i64::from(MsgNo::MAX.value());
    let steps = to.cast_signed() - at.cast_signed();
    let value = (i64::from(known.value()) - 1 + steps).rem_euclid(circle) + 1;
    MsgNo::new(u32::try_from(value).expect("on the circle"))
}

fn drop_before(waiting: &mut BTreeMap<u64, ParityPacket>, last: u64) {
    while waiting.first_key_value().is_some_and(|(at, _)| *at < last) {
        waiting.pop_first();
    }
}

#[cfg(test)]
impl FecReceiver {
    /// The number of places and parity packets that are kept.
    pub(super) fn kept(&self) -> usize {
        self.held.len() + self.rows.len() + self.columns.len()
    }
}
