//! The lab's text files: plans, and sheets of results.

use punctual_lab::plan::Plan;
use punctual_lab::results::Sheet;

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % 2 {
        0 => plan(text),
        _ => sheet(text),
    }
}

/// A plan is read, or an error names a line of it; every key has a name.
fn plan(text: &str) {
    match Plan::parse("plan.toml", text) {
        Ok(plan) => {
            for key in plan.keys() {
                assert_eq!(plan.key(&key), Ok(key.clone()));
            }
        }
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!(error.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

/// A sheet that was read reads the same after it was written.
fn sheet(text: &str) {
    let Ok(sheet) = Sheet::parse(text) else { return };
    if sheet.columns().is_empty() {
        return;
    }
    for row in sheet.rows() {
        assert_eq!(row.len(), sheet.columns().len());
    }
    assert_eq!(Sheet::parse(&sheet.to_csv()), Ok(sheet));
}
