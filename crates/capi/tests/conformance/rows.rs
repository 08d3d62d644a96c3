use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs};

/// The name of a row: the program, the function of libsrt's that it calls, and the situation.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    pub(crate) program: String,
    pub(crate) function: String,
    pub(crate) situation: String,
}

impl Key {
    /// The key that this text of `differences.toml` stands for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, " | ").map(str::to_owned);
        Some(Self { program: parts.next()?, function: parts.next()?, situation: parts.next()? })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} | {}", self.program, self.function, self.situation)
    }
}

/// The answer in a row: the returned value, the error, the state and the readiness.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer([String; 4]);

impl fmt::Display for Answer {
    /// The columns that have a meaning in this row.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> =
            self.0.iter().filter(|column| *column != "-").map(String::as_str).collect();
        f.write_str(if columns.is_empty() { "-" } else { "" })?;
        f.write_str(&columns.join(", "))
    }
}

/// The rows of one library.
pub(crate) type Rows = BTreeMap<Key, Answer>;

/// Adds the rows that this program has printed.
///
/// # Panics
///
/// If a line is not a row, or if two rows have the same key.
pub(crate) fn add_rows(rows: &mut Rows, program: &str, printed: &str) {
    for line in printed.lines() {
        let (key, answer) =
            parse(program, line).unwrap_or_else(|| panic!("{program} printed {line:?}"));
        let older = rows.insert(key.clone(), answer);
        assert!(older.is_none(), "{program} printed two rows of {key}");
    }
}

/// The rows of libsrt that are kept, by the names of the files: those of programs that need another
/// libsrt than the installed one. They were printed once, by hand.
///
/// # Panics
///
/// If a file cannot be read, or as [`add_rows`].
pub(crate) fn recorded(folder: &Path) -> Rows {
    let mut rows = Rows::new();
    for file in fs::read_dir(folder).expect("the folder can be read") {
        let path = file.expect("the folder can be read").path();
        if path.extension().is_some_and(|it| it == "rows") {
            let program = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let printed = fs::read_to_string(&path).expect("the record can be read");
            add_rows(&mut rows, &program, &printed);
        }
    }
    rows
}

fn parse(program: &str, line: &str) -> Option<(Key, Answer)> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [function, situation, answer @ ..] = columns.as_slice() else { return None };
    let answer: [&str; 4] = answer.try_into().ok()?;
    let [program, function, situation] = [program, function, situation].map(str::to_owned);
    Some((Key { program, function, situation }, Answer(answer.map(str::to_owned))))
}

#[test]
fn a_row_has_a_key_of_two_columns_and_an_answer_of_four() {
    let mut rows = Rows::new();
    add_rows(&mut rows, "closing", "srt_close\topened\t0\t-\tCLOSED\t-\n");
    let key = Key::parse("closing | srt_close | opened").expect("a key");
    assert_eq!(rows[&key].to_string(), "0, CLOSED");
    assert_eq!(parse("closing", "srt_close\topened\t0\t-\tCLOSED"), None);
}
