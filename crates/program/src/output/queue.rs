//! The texts that wait to be written to one place.

use std::collections::VecDeque;
use std::io;

/// A text to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) text: Vec<u8>,
}

/// The kind of a text, which says what becomes of it if it cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// A message on standard error: it is left out.
    Message,
    /// A row of measurements: it is left out.
    Row,
    /// A result of the command, on standard output: that is an error.
    Result,
}

/// The texts that wait to be written to one place. Those of streams have limited room and are left
/// out without it; the results of a command are never left out.
#[derive(Debug, Default)]
pub(super) struct TextQueue {
    pieces: VecDeque<Piece>,
    /// The bytes of messages and rows in `pieces`.
    bytes: usize,
    /// The newest live line that was not shown yet.
    line: Option<String>,
    /// Whether the place is to be opened anew.
    reopens: bool,
    /// The pieces that found no room since the last one that did.
    overflow: u64,
    /// The pieces that could not be written since the last one that could.
    failed: u64,
    /// The job that was taken and is not done yet.
    busy: Option<Busy>,
    /// The reason for which a result could not be written.
    problem: Option<io::Error>,
}

/// A job under way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Busy {
    /// A result is written.
    WithResult,
    /// Another job.
    Otherwise,
}

/// The next work of a writer.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Job {
    /// Open the place anew.
    Reopen,
    /// Write a piece, before which this number of pieces was left out.
    Write(Piece, u64),
    /// Tell that this number of pieces was left out.
    Tell(u64),
    /// Show the live line.
    Show(String),
}

impl TextQueue {
    /// Adds a piece. Messages and rows are left out without room, and then further ones too until
    /// all that wait are written; a result always has room. Returns whether the piece is the first
    /// that is left out.
    pub(super) fn add(&mut self, piece: Piece) -> bool {
        if piece.kind != Kind::Result {
            if self.overflow > 0 || self.bytes + piece.text.len() > ROOM {
                self.overflow += 1;
                return self.overflow == 1;
            }
            self.bytes += piece.text.len();
        } else if self.problem.is_some() {
            return false;
        }
        self.pieces.push_back(piece);
        false
    }

    /// Shows this live line as soon as possible, in place of an older one.
    pub(super) fn show(&mut self, line: String) {
        self.line = Some(line);
    }

    /// Opens the place anew before the next piece.
    pub(super) fn reopen(&mut self) {
        self.reopens = true;
    }

    /// The next job; `None` if there is nothing to do.
    pub(super) fn take(&mut self) -> Option<Job> {
        let job = self.next();
        self.busy = job.as_ref().map(|job| match job {
            Job::Write(piece, _) if piece.kind == Kind::Result => Busy::WithResult,
            _ => Busy::Otherwise,
        });
        job
    }

    fn next(&mut self) -> Option<Job> {
        if std::mem::take(&mut self.reopens) {
            return Some(Job::Reopen);
        }
        if let Some(piece) = self.pieces.pop_front() {
            if piece.kind != Kind::Result {
                self.bytes -= piece.text.len();
            }
            return Some(Job::Write(piece, self.failed));
        }
        let overflow = std::mem::take(&mut self.overflow);
        if self.failed > 0 {
            // The next piece tries again.
            self.failed += overflow;
        } else if overflow > 0 {
            return Some(Job::Tell(overflow));
        }
        self.line.take().map(Job::Show)
    }

    /// The last piece was written.
    pub(super) fn written(&mut self) {
        self.failed = 0;
    }

    /// The last piece, or what was left out in this number, could not be written or told. Returns
    /// whether this is the first failure since a piece was written.
    pub(super) fn failed(&mut self, count: u64) -> bool {
        let is_first = self.failed == 0;
        self.failed += count;
        is_first
    }

    /// A result could not be written: those behind it cannot either. A reader that ends early is no
    /// problem.
    pub(super) fn result_failed(&mut self, error: io::Error) {
        self.pieces.retain(|piece| piece.kind != Kind::Result);
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.problem = Some(error);
        }
    }

    /// The reason for which a result could not be written, once.
    pub(super) fn take_problem(&mut self) -> Option<io::Error> {
        self.problem.take()
    }

    /// Whether everything is written or left out.
    pub(super) fn is_done(&self) -> bool {
        self.busy.is_none()
            && self.pieces.is_empty()
            && self.line.is_none()
            && self.overflow == 0
            && !self.reopens
    }

    /// Whether no result waits to be written.
    pub(super) fn has_no_results(&self) -> bool {
        self.busy != Some(Busy::WithResult)
            && self.pieces.iter().all(|piece| piece.kind != Kind::Result)
    }

    /// The pieces that were left out and of which nothing was told, and the pieces that wait.
    pub(super) fn untold(&self) -> u64 {
        let waiting = self.pieces.len() as u64 + u64::from(self.busy.is_some());
        self.failed + self.overflow + waiting
    }
}

/// The bytes of messages or rows that may wait at one place: thousands of them.
const ROOM: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(length: usize) -> Piece {
        Piece { kind: Kind::Message, text: vec![b'x'; length] }
    }

    fn result(length: usize) -> Piece {
        Piece { kind: Kind::Result, ..piece(length) }
    }

    #[test]
    fn pieces_are_left_out_without_room_and_told_where_they_are_missing() {
        let mut queue = TextQueue::default();
        assert!(!queue.add(piece(ROOM)));
        assert!(queue.add(piece(1)), "the first");
        assert!(!queue.add(piece(1)), "the second");
        assert_eq!(queue.take(), Some(Job::Write(piece(ROOM), 0)));
        // There is room again, but the gap is not told yet.
        queue.add(piece(1));
        assert_eq!(queue.take(), Some(Job::Tell(3)));
        assert!(!queue.add(piece(1)));
        assert_eq!(queue.take(), Some(Job::Write(piece(1), 0)));
        assert_eq!(queue.take(), None);
        assert!(queue.is_done());
    }

    #[test]
    fn pieces_that_could_not_be_written_are_told_with_the_next_one() {
        let mut queue = TextQueue::default();
        for is_first in [true, false, false] {
            queue.add(piece(1));
            assert!(matches!(queue.take(), Some(Job::Write(..))));
            assert_eq!(queue.failed(1), is_first);
            assert_eq!(queue.take(), None, "nothing is tried without a new piece");
        }
        queue.add(piece(1));
        assert_eq!(queue.take(), Some(Job::Write(piece(1), 3)));
        queue.written();
        queue.add(piece(1));
        assert_eq!(queue.take(), Some(Job::Write(piece(1), 0)));
    }

    #[test]
    fn results_are_never_left_out() {
        let mut queue = TextQueue::default();
        queue.add(piece(ROOM));
        queue.add(piece(1));
        (0..10).for_each(|_| assert!(!queue.add(result(ROOM))));
        assert!(!queue.has_no_results());
        let written = std::iter::from_fn(|| queue.take());
        assert_eq!(written.filter(|job| matches!(job, Job::Write(..))).count(), 11);
        assert!(queue.has_no_results());
    }

    #[test]
    fn a_stalled_message_keeps_nobody_waiting_for_results() {
        let mut queue = TextQueue::default();
        queue.add(piece(1));
        queue.take();
        assert!(queue.has_no_results() && !queue.is_done());
    }

    #[test]
    fn after_a_result_that_cannot_be_written_the_others_are_given_up() {
        let mut queue = TextQueue::default();
        for _ in 0..3 {
            queue.add(result(1));
        }
        queue.take();
        queue.result_failed(io::ErrorKind::StorageFull.into());
        assert_eq!(queue.take(), None);
        assert_eq!(queue.take_problem().unwrap().kind(), io::ErrorKind::StorageFull);
        queue.result_failed(io::ErrorKind::BrokenPipe.into());
        assert!(queue.take_problem().is_none(), "a reader may end early");
    }

    #[test]
    fn of_live_lines_the_newest_is_shown_after_the_messages() {
        let mut queue = TextQueue::default();
        queue.show("old".into());
        queue.show("new".into());
        queue.add(piece(1));
        assert!(matches!(queue.take(), Some(Job::Write(..))));
        assert_eq!(queue.take(), Some(Job::Show("new".into())));
        assert_eq!(queue.take(), None);
    }
}
