//! Rows of measurements, in a file or on standard output.

use std::path::Path;
use std::sync::Once;

use punctual_units::one_line;

use super::queue::{Kind, Piece};
use super::row_file::RowFile;
use super::writer::Writer;
use super::{OUTPUTS, console, reopen_files, tell_nobody_reads};
use crate::exit::Failure;
use crate::{hangup, written};

/// The form of a file of rows, by which it is recognised.
#[derive(Clone, Debug)]
pub enum Columns {
    /// CSV with this header.
    Csv(String),
    /// A JSON object of statistics in each line.
    Json,
}

/// A file that rows are added to, or standard output.
pub struct Rows {
    name: String,
    writer: Writer,
}

impl Rows {
    /// Opens the file, or takes the standard output for `-`. A file that has rows of this form is
    /// added to.
    ///
    /// # Errors
    ///
    /// The file cannot be written, is another one of the command's, or has other contents.
    pub fn open(path: &Path, columns: Columns) -> Result<Self, Failure> {
        written::claim(path)?;
        if path.as_os_str() == "-" {
            let rows = Self { name: console::NAME.to_owned(), writer: OUTPUTS.output().clone() };
            if let Columns::Csv(header) = columns {
                rows.write(header);
            }
            return Ok(rows);
        }
        let name = one_line(&path.display().to_string()).into_owned();
        let writer = Writer::start(RowFile::open(path, columns, &name)?);
        let mut files = OUTPUTS.files.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        files.push((name.clone(), writer.clone()));
        REOPENING.call_once(reopen_on_hangup);
        Ok(Self { name, writer })
    }

    /// Adds a row.
    pub fn write(&self, row: String) {
        let mut text = row.into_bytes();
        text.push(b'\n');
        if self.writer.write(Piece { kind: Kind::Row, text }) {
            tell_nobody_reads(&self.name);
        }
    }
}

/// Whether SIGHUP opens the files anew.
static REOPENING: Once = Once::new();

fn reopen_on_hangup() {
    hangup::means(|| {
        reopen_files();
        true
    });
}
