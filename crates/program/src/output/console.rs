//! Standard error and standard output as places that are written to.

use std::fs::File;
use std::io::{self, IsTerminal, Write};

use super::patient::Patient;
use super::queue::{Kind, Piece};
use super::writer::WritePlace;
use crate::log;
use crate::same_file::is_same;

/// Standard error with the live line at its end; and standard output, if both are one place.
pub(super) struct Messages {
    error: Patient,
    output: Option<Patient>,
    is_terminal: bool,
    /// The live line that is shown.
    line: String,
}

impl Messages {
    /// The place; `with_output` if standard output is the same.
    pub(super) fn open(with_output: bool) -> io::Result<Self> {
        let is_terminal = io::stderr().is_terminal();
        let output = if with_output { Some(Patient::new(output_file()?)) } else { None };
        let error = error_file()?;
        append(&error);
        Ok(Self { error: Patient::new(error), output, is_terminal, line: String::new() })
    }
}

impl WritePlace for Messages {
    fn write(&mut self, piece: &Piece, left_out: u64) -> io::Result<()> {
        if left_out > 0 {
            self.tell(left_out)?;
        }
        if self.line.is_empty() && (piece.kind == Kind::Message || self.output.is_none()) {
            return self.error.put(&piece.text);
        }
        match &mut self.output {
            Some(output) if piece.kind != Kind::Message => {
                if !self.line.is_empty() {
                    self.error.put(CLEAR.as_bytes())?;
                }
                output.put(&piece.text)?;
                self.error.put(self.line.as_bytes())
            }
            _ => {
                let text = [CLEAR.as_bytes(), &piece.text, self.line.as_bytes()].concat();
                self.error.put(&text)
            }
        }
    }

    fn tell(&mut self, left_out: u64) -> io::Result<()> {
        let (clear, line) = if self.line.is_empty() { ("", "") } else { (CLEAR, &*self.line) };
        let notice = log::left_out(left_out);
        self.error.put(format!("{clear}{notice}{line}").as_bytes())
    }

    fn show(&mut self, line: String) -> io::Result<()> {
        if !self.is_terminal || line == self.line {
            return Ok(());
        }
        self.error.put(format!("{CLEAR}{line}").as_bytes())?;
        self.line = line;
        Ok(())
    }
}

/// Standard error without a descriptor of its own, for a process that has none left.
pub(super) struct Borrowed;

impl WritePlace for Borrowed {
    fn write(&mut self, piece: &Piece, _: u64) -> io::Result<()> {
        io::stderr().write_all(&piece.text)
    }

    fn tell(&mut self, left_out: u64) -> io::Result<()> {
        io::stderr().write_all(log::left_out(left_out).as_bytes())
    }
}

/// Standard output, if standard error is elsewhere.
pub(super) struct Output(Patient);

impl Output {
    /// The place.
    pub(super) fn open() -> io::Result<Self> {
        let file = output_file()?;
        append(&file);
        Ok(Self(Patient::new(file)))
    }
}

impl WritePlace for Output {
    fn write(&mut self, piece: &Piece, left_out: u64) -> io::Result<()> {
        self.0.put(&piece.text)?;
        if left_out > 0 {
            self.tell(left_out)?;
        }
        Ok(())
    }

    fn tell(&mut self, left_out: u64) -> io::Result<()> {
        super::tell_rows_again(NAME, left_out);
        Ok(())
    }

    fn failed(&mut self, error: &io::Error) {
        super::tell_rows_fail(NAME, error);
    }
}

/// Checks that there are descriptors for the places.
///
/// # Errors
///
/// There are too few.
pub(super) fn check() -> io::Result<()> {
    let _both = (error_file()?, output_file()?);
    Ok(())
}

/// Whether messages and results go to one terminal, one pipe or one file, where they need an order.
pub(super) fn is_one_place() -> bool {
    let (Ok(error), Ok(output)) = (error_file(), output_file()) else { return false };
    let (Ok(error), Ok(output)) = (error.metadata(), output.metadata()) else { return false };
    is_same(&error, &output)
}

/// Standard output in messages.
pub(super) const NAME: &str = "standard output";

/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[2K";

// Of their own, because a write that stalls holds the lock of the library's.
#[cfg(unix)]
fn error_file() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stderr().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(unix)]
fn output_file() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
fn error_file() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stderr().as_handle().try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
fn output_file() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Lets a file go on at its end after it was emptied, as logrotate's `copytruncate` does, also if
/// the shell opened it by `>` instead of `>>`.
#[cfg(unix)]
fn append(file: &File) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    if let (true, Ok(flags)) = (is_file, fcntl_getfl(file)) {
        // Without it the file is as the shell opened it.
        let _ = fcntl_setfl(file, flags | OFlags::APPEND);
    }
}

#[cfg(not(unix))]
fn append(_: &File) {}
