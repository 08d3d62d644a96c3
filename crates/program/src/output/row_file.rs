//! A file that rows are added to, also while others rename it, empty it or make it anew.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::patient::Patient;
use super::queue::Piece;
use super::rows::Columns;
use super::writer::WritePlace;
use super::{tell_rows_again, tell_rows_fail};
use crate::exit::Failure;
use crate::same_file::is_same;

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

impl WritePlace for RowFile {
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

#[cfg(test)]
mod tests {
    use super::super::queue::Kind;
    use super::*;

    /// A file of rows under the header `a,b`, which had this text before.
    struct Bench {
        folder: tempfile::TempDir,
        rows: RowFile,
    }

    impl Bench {
        fn new(before: &str) -> Self {
            let folder = tempfile::tempdir().expect("there is a folder");
            let path = folder.path().join("rows.csv");
            std::fs::write(&path, before).expect("it can be written");
            let rows = RowFile::open(&path, Columns::Csv("a,b".into()), "rows.csv");
            Self { folder, rows: rows.expect("it is ours") }
        }

        fn write(&mut self, row: &str) {
            let piece = Piece { kind: Kind::Row, text: format!("{row}\n").into_bytes() };
            self.rows.write(&piece, 0).expect("there is room");
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.folder.path().join(name)).expect("it is there")
        }

        fn rename(&self, from: &str, to: &str) {
            let path = |name| self.folder.path().join(name);
            std::fs::rename(path(from), path(to)).expect("it can be renamed");
        }
    }

    #[test]
    fn a_row_begins_a_line_also_behind_one_that_was_cut() {
        let mut bench = Bench::new("a,b\n1,2\n3");
        bench.write("5,6");
        assert_eq!(bench.text("rows.csv"), "a,b\n1,2\n3\n5,6\n");
    }

    #[test]
    fn a_renamed_file_gets_one_more_row_before_a_new_one_is_made() {
        let mut bench = Bench::new("");
        bench.write("1,2");
        bench.rename("rows.csv", "old.csv");
        ["3,4", "5,6"].into_iter().for_each(|row| bench.write(row));
        assert_eq!(bench.text("old.csv"), "a,b\n1,2\n3,4\n");
        assert_eq!(bench.text("rows.csv"), "a,b\n5,6\n");
    }

    #[test]
    fn a_file_of_somebody_that_takes_the_name_is_kept() {
        let mut bench = Bench::new("a,b\n");
        bench.rename("rows.csv", "old.csv");
        std::fs::write(bench.folder.path().join("rows.csv"), "mine\n").expect("it can be written");
        ["1,2", "3,4"].into_iter().for_each(|row| bench.write(row));
        bench.rows.reopen();
        bench.write("5,6");
        assert_eq!(bench.text("rows.csv"), "mine\n");
        assert_eq!(bench.text("old.csv"), "a,b\n1,2\n3,4\n5,6\n");
    }

    #[test]
    fn rows_of_statistics_as_json_are_recognised() {
        let folder = tempfile::tempdir().expect("there is a folder");
        let path = folder.path().join("rows");
        let is_ours = |text: &str| {
            std::fs::write(&path, text).expect("it can be written");
            RowFile::open(&path, Columns::Json, "rows").is_ok()
        };
        assert!(is_ours("{\"sid\":7,\"timepoint\":\"now\"}\n"));
        assert!(is_ours("{\"ConnStats\":{\"Timepoint\":\"now\",\"SocketID\":7}}\n"));
        assert!(!is_ours("{\"name\":\"punctual\"}\n") && !is_ours("a,b\n"));
    }
}
