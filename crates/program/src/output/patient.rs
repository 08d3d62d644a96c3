//! A file that a stalled terminal, a full disk or a signal in between does not confuse.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::thread;
use std::time::Duration;

/// A file, a pipe or a terminal that is written to text by text, each as a whole: the rest of a
/// text that was written in part is written before the next one.
#[derive(Debug)]
pub(super) struct Patient<F = File> {
    file: F,
    rest: Vec<u8>,
}

impl<F: Write> Patient<F> {
    /// Writes to `file`.
    pub(super) fn new(file: F) -> Self {
        Self { file, rest: Vec::new() }
    }

    /// The file.
    pub(super) fn file(&self) -> &F {
        &self.file
    }

    /// Does not complete a text that was cut: the file was emptied meanwhile.
    pub(super) fn forget_rest(&mut self) {
        self.rest.clear();
    }

    /// Writes `text`; an error means that nothing of it was written or will be.
    pub(super) fn put(&mut self, text: &[u8]) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        let (written, result) = self.write(&rest);
        self.rest = rest;
        self.rest.drain(..written);
        result?;
        match self.write(text) {
            (0, Err(error)) => Err(error),
            (written, _) => {
                self.rest = text[written..].to_vec();
                Ok(())
            }
        }
    }

    /// The bytes that could be written, and the reason why no more of them.
    fn write(&mut self, text: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < text.len() {
            match self.file.write(&text[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Another program has set a terminal or a pipe of both to this mode.
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }
}

/// The time from one attempt to the next at a place that does not say when it has room.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A disk that has room for these numbers of bytes, one call after the other.
    struct Disk {
        room: VecDeque<usize>,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let room = self.room.pop_front().unwrap_or(usize::MAX).min(text.len());
            self.written.extend_from_slice(&text[..room]);
            if room == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(room) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_text_that_was_cut_is_completed_before_the_next_one() {
        let disk = Disk { room: [6, 4, 0, 0, 1, 0].into(), written: Vec::new() };
        let mut file = Patient::new(disk);
        assert!(file.put(b"first\n").is_ok());
        assert!(file.put(b"second\n").is_ok(), "four bytes are written, the others follow");
        assert!(file.put(b"third\n").is_err());
        assert!(file.put(b"fourth\n").is_err(), "one byte of the second");
        assert!(file.put(b"fifth\n").is_ok());
        assert_eq!(file.file().written, b"first\nsecond\nfifth\n");
    }
}
