//! A file that rows are added to, also while others rename it, empty it or make it anew.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::console::is_same;
use super::patient::Patient;
use super::queue::Piece;
use super::rows::Columns;
use super::writer::Place;
use super::{tell_rows_again, tell_rows_fail};
use crate::exit::Failure;

/// A file that rows are added to. It is followed by its name: if another file is there, or none
/// for two rows, the rows go on there.
pub(super) struct RowFile {
    path: PathBuf,
    name: String,
    columns: Columns,
    /// `None` before a named pipe has a reader.
    file: Option<Patient>,
    /// Whether no file was there before the last row.
    was_missing: bool,
    /// Whether the last attempt to open it anew failed, which is told once.
    cannot_reopen: bool,
}

impl RowFile {
    /// Opens the file at `path`, which messages call `name`.
    ///
    /// # Errors
    ///
    /// It cannot be written, or has other contents.
    pub(super) fn open(path: &Path, columns: Columns, name: &str) -> Result<Self, Failure> {
        let mut rows = Self {
            path: path.to_owned(),
            name: name.to_owned(),
            columns,
            file: None,
            was_missing: false,
            cannot_reopen: false,
        };
        // The open of a named pipe waits for its reader, so the first row does it.
        if !std::fs::metadata(path).is_ok_and(|found| is_named_pipe(&found)) {
            rows.file = Some(rows.open_file()?);
        }
        Ok(rows)
    }

    fn open_file(&self) -> Result<Patient, Failure> {
        let Self { path, .. } = self;
        let failed = |error| Failure::file(path, &error);
        let mut head = Vec::new();
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(Failure::usage(format!("{} is a folder", self.name)));
            }
            Ok(found) if found.is_file() && found.len() > 0 => {
                if !self.has_rows_of_ours().map_err(failed)? {
                    return Err(self.has_other_contents());
                }
                if !ends_with_line(path).map_err(failed)? {
                    head.push(b'\n');
                }
            }
            _ => head.extend(self.header()),
        }
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        let mut file = Patient::new(file);
        file.put(&head).map_err(failed)?;
        Ok(file)
    }

    /// The line before the first row.
    fn header(&self) -> Vec<u8> {
        match &self.columns {
            Columns::Csv(header) => format!("{header}\n").into_bytes(),
            Columns::Json => Vec::new(),
        }
    }

    fn has_rows_of_ours(&self) -> io::Result<bool> {
        let mut line = Vec::new();
        BufReader::new(File::open(&self.path)?.take(LONGEST_LINE)).read_until(b'\n', &mut line)?;
        let line = line.trim_ascii_end();
        Ok(match &self.columns {
            Columns::Csv(header) => line == header.as_bytes(),
            Columns::Json => std::str::from_utf8(line).is_ok_and(|line| {
                line.starts_with('{') && line.to_lowercase().contains("\"timepoint\":")
            }),
        })
    }

    fn has_other_contents(&self) -> Failure {
        let rows = match self.columns {
            Columns::Csv(_) => "the columns of these rows",
            Columns::Json => "rows of statistics as JSON",
        };
        Failure::usage(format!(
            "{} exists already and is kept, because it does not have {rows}; name another file, or \
             move this one away",
            self.name
        ))
    }

    /// Goes on with the file that has the name now.
    fn follow(&mut self) {
        let Some(file) = &self.file else { return };
        let Ok(ours) = file.file().metadata() else { return };
        if !ours.is_file() {
            return;
        }
        match std::fs::metadata(&self.path) {
            Ok(there) => {
                self.was_missing = false;
                if !is_same(&ours, &there) {
                    self.reopen();
                }
            }
            // Whoever renamed it may be about to make the next one.
            Err(_) if !self.was_missing => self.was_missing = true,
            Err(_) => self.reopen(),
        }
    }

    /// The file to write to, with a header if it was emptied.
    fn ready(&mut self) -> io::Result<&mut Patient> {
        self.follow();
        if self.file.is_none() {
            let opened = self.open_file();
            self.file = Some(opened.map_err(|failure| io::Error::other(failure.to_string()))?);
        }
        let header = self.header();
        let file = self.file.as_mut().expect("it is open");
        if file.file().metadata().is_ok_and(|found| found.is_file() && found.len() == 0) {
            file.forget_rest();
            file.put(&header)?;
        }
        Ok(file)
    }
}

impl Place for RowFile {
    fn write(&mut self, row: &Piece, left_out: u64) -> io::Result<()> {
        let written = self.ready()?.put(&row.text);
        if let Err(error) = written {
            if error.kind() == io::ErrorKind::BrokenPipe {
                // The next reader of a named pipe gets the header, too.
                self.file = None;
            }
            return Err(error);
        }
        if left_out > 0 {
            self.tell(left_out)?;
        }
        Ok(())
    }

    fn tell(&mut self, left_out: u64) -> io::Result<()> {
        tell_rows_again(&self.name, left_out);
        Ok(())
    }

    fn failed(&mut self, error: &io::Error) {
        tell_rows_fail(&self.name, error);
    }

    fn reopen(&mut self) {
        match self.open_file() {
            Ok(file) => {
                self.file = Some(file);
                self.was_missing = false;
                self.cannot_reopen = false;
            }
            Err(_) if self.cannot_reopen => {}
            Err(failure) => {
                self.cannot_reopen = true;
                tracing::warn!("{failure}; rows go to the file that was open");
            }
        }
    }
}

fn ends_with_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(unix)]
fn is_named_pipe(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_named_pipe(_: &Metadata) -> bool {
    false
}

/// More than any header has.
const LONGEST_LINE: u64 = 1 << 16;
