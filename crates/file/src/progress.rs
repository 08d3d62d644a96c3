//! The sums of a transfer's events.

use crate::event::Event;

/// The progress of a transfer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Bytes of all files, with the bytes that are spared; `None` as long as a receiver does not
    /// know.
    pub total: Option<u64>,
    /// Bytes that were handed over, received, or spared.
    pub done: u64,
    /// Bytes that were handed over or received.
    pub carried: u64,
    /// Bytes that were compared since the last ones were handed over or received.
    pub compared: u64,
    /// The path of the file that began last; empty before the first one.
    pub file: String,
    /// Files that are complete.
    pub completed: u64,
    /// Files that the receiver had already, with the same contents.
    pub unchanged: u64,
    /// Problems that were reported.
    pub problems: u64,
}

impl Progress {
    /// The progress of a sender of `total` bytes, before its first event.
    pub fn of_sender(total: u64) -> Self {
        Self { total: Some(total), ..Self::default() }
    }

    /// Adds an event.
    pub fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Offered(bytes) => self.total = Some(self.total.unwrap_or(0) + bytes),
            Event::Began(path) => path.as_str().clone_into(&mut self.file),
            Event::Carried(bytes) => {
                self.done += bytes as u64;
                self.carried += bytes as u64;
                self.compared = 0;
            }
            Event::Compared(bytes) => self.compared += bytes as u64,
            Event::Spared(bytes) => self.done += bytes,
            Event::Completed => self.completed += 1,
            Event::Unchanged => self.unchanged += 1,
            Event::Problem(_) => self.problems += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RelativePath;

    #[test]
    fn bytes_that_are_spared_are_done_but_not_carried() {
        let mut progress = Progress::of_sender(1_000);
        let path = RelativePath::parse(b"a.ts").unwrap();
        let events = [
            Event::Began(&path),
            Event::Compared(400),
            Event::Spared(400),
            Event::Carried(600),
            Event::Completed,
            Event::Problem("b.ts: it cannot be read"),
        ];
        events.into_iter().for_each(|event| progress.note(event));
        assert_eq!((progress.done, progress.carried, progress.total), (1_000, 600, Some(1_000)));
        assert_eq!((progress.completed, progress.unchanged, progress.problems), (1, 0, 1));
        assert_eq!(progress.file, "a.ts");
    }

    #[test]
    fn a_receiver_learns_the_total_from_the_offers() {
        let mut progress = Progress::default();
        assert_eq!(progress.total, None);
        progress.note(Event::Offered(10));
        progress.note(Event::Offered(32));
        assert_eq!(progress.total, Some(42));
    }
}
