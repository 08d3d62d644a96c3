//! A folder of results.
//!
//! | file | holds |
//! |---|---|
//! | `plan.toml` | the plan |
//! | `meta.json` | how it was run, see [`Meta`] |
//! | `results.csv` | a row a run, in the order of the plan |
//! | `results.parquet` | the same with typed columns, with the feature `parquet` |
//! | `results.partial.csv` | while it runs: the rows that there are, as they came |
//! | `series/RUN-BACKEND.csv` | the course of a run |
//! | `blocks/RUN-BACKEND.csv`, `readchunks/RUN-BACKEND.csv` | the records of its parts |
//! | `captures/RUN-BACKEND.pcapng` | its packets |

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::outcome::{Outcome, RunSeries};
use crate::plan::{Overlay, Plan, PlanError, hidden};
use crate::results::Results;
use crate::results::blocks::RECORDS;
use crate::results::meta::Meta;
use crate::results::sheet::{Sheet, cell, csv_line};

/// A folder of results.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it, with the files that do not change while it is filled. Others will read it: its
    /// plan has no passphrases.
    pub(crate) fn create(&self, plan: &str, meta: &Meta) -> Result<(), String> {
        self.make(&self.0)?;
        let json = serde_json::to_string_pretty(meta).map_err(|error| error.to_string())?;
        self.write(PLAN, hidden(plan).as_bytes())?;
        self.write(META, format!("{json}\n").as_bytes())
    }

    /// The description of the results there; `None` if there are none.
    ///
    /// # Errors
    ///
    /// It cannot be read, or files lie there that results would replace.
    pub(crate) fn meta(&self) -> Result<Option<Meta>, String> {
        let path = self.0.join(META);
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let there = [PLAN, RESULTS, PARTIAL].into_iter().find(|it| self.has(it));
                there.map_or(Ok(None), |name| {
                    let path = self.0.display();
                    Err(format!(
                        "{path}: {name} lies there, and no results of a sweep (there is no \
                         {META}); name another folder, or move this file away"
                    ))
                })
            }
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// The results there, finished or not.
    ///
    /// # Errors
    ///
    /// The file that is missing or cannot be read.
    pub(crate) fn load(&self) -> Result<Results, String> {
        let path = &self.0;
        let meta = self.meta()?.ok_or_else(|| {
            format!("{}: no results lie there (there is no {META})", path.display())
        })?;
        let text = self.read(PLAN)?;
        let file = path.join(PLAN).display().to_string();
        let plan = replay(&file, &text, &meta).map_err(|error| error.to_string())?;
        let sheet = self.rows()?;
        let sheet = sheet.ok_or_else(|| format!("{}: there is no {RESULTS}", path.display()))?;
        let plan_folder = Some(path.clone());
        Ok(Results { plan, meta, sheet, folder: Some(path.clone()), plan_folder })
    }

    /// The record of a run with this backend, by the name of the record.
    ///
    /// # Errors
    ///
    /// None was written, or it cannot be read.
    pub(crate) fn record_of(
        &self,
        run: &str,
        backend: &str,
        record: &str,
    ) -> Result<Sheet, String> {
        let name = format!("{record}/{run}-{backend}.csv");
        Sheet::parse(&self.read(&name)?).map_err(|error| format!("{name}: {error}"))
    }

    /// The rows that there are: all of a finished sweep, or those of one that was interrupted. A
    /// row that was cut off by the end of the program is left out.
    pub(crate) fn rows(&self) -> Result<Option<Sheet>, String> {
        for name in [PARTIAL, RESULTS] {
            let path = self.0.join(name);
            if path.exists() {
                let text = self.read(name)?;
                let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
                let sheet = Sheet::parse(whole);
                return sheet.map(Some).map_err(|error| format!("{}: {error}", path.display()));
            }
        }
        Ok(None)
    }

    /// Begins the file of rows as they come, with the rows that there are already.
    pub(crate) fn begin(&self, sheet: &Sheet) -> Result<File, String> {
        self.write(PARTIAL, sheet.to_csv().as_bytes())?;
        let path = self.0.join(PARTIAL);
        let open = OpenOptions::new().append(true).open(&path);
        open.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes the rows of a finished sweep.
    pub(crate) fn finish(&self, sheet: &Sheet) -> Result<(), String> {
        self.write(RESULTS, sheet.to_csv().as_bytes())?;
        #[cfg(feature = "parquet")]
        {
            let bytes = crate::results::parquet_file::parquet(sheet);
            let bytes = bytes.map_err(|error| format!("{PARQUET}: {error}"))?;
            self.write(PARQUET, &bytes)?;
        }
        match fs::remove_file(self.0.join(PARTIAL)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Writes the recordings of a run.
    pub(crate) fn record(&self, run: &str, backend: &str, outcome: &Outcome) -> Result<(), String> {
        if let Some(series) = &outcome.series {
            self.make(&self.0.join(SERIES))?;
            let name = format!("{SERIES}/{run}-{backend}.csv");
            self.write(&name, series_csv(series).as_bytes())?;
        }
        for (record, table) in &outcome.records {
            self.make(&self.0.join(record))?;
            let name = format!("{record}/{run}-{backend}.csv");
            self.write(&name, series_csv(table).as_bytes())?;
        }
        if let Some(capture) = &outcome.capture {
            self.make(&self.0.join(CAPTURES))?;
            self.write(&format!("{CAPTURES}/{run}-{backend}.pcapng"), capture)?;
        }
        Ok(())
    }

    /// Copies series, records and captures from another folder.
    pub(crate) fn copy_records(&self, from: &Self) -> Result<(), String> {
        let records = RECORDS.map(|record| record.name);
        for name in [SERIES, CAPTURES].into_iter().chain(records) {
            let (source, target) = (from.0.join(name), self.0.join(name));
            let Ok(entries) = fs::read_dir(&source) else { continue };
            self.make(&target)?;
            for entry in entries.flatten() {
                let path = entry.path();
                fs::copy(&path, target.join(entry.file_name()))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(())
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> Result<String, String> {
        let path = self.0.join(name);
        punctual_units::read_text(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn make(&self, path: &Path) -> Result<(), String> {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Replaces a file as a whole, so that none is ever half written.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.0.join(name);
        let temporary = path.with_extension("tmp");
        let written = File::create(&temporary)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The plan as it was run.
fn replay(file: &str, text: &str, meta: &Meta) -> Result<Plan, PlanError> {
    let mut plan = Plan::parse(file, text)?;
    if meta.quick {
        plan.quick()?;
    }
    plan.adjust(&Overlay::words(meta.set.iter().map(String::as_str))?)?;
    Ok(plan)
}

/// A series as CSV.
fn series_csv(series: &RunSeries) -> String {
    let mut text = csv_line(&series.columns);
    for row in &series.rows {
        let cells: Vec<String> = row.iter().map(|number| cell(*number)).collect();
        text += &csv_line(&cells);
    }
    text
}

const PLAN: &str = "plan.toml";
const META: &str = "meta.json";
pub(crate) const RESULTS: &str = "results.csv";
#[cfg(feature = "parquet")]
const PARQUET: &str = "results.parquet";
const PARTIAL: &str = "results.partial.csv";
pub(crate) const SERIES: &str = "series";
const CAPTURES: &str = "captures";
