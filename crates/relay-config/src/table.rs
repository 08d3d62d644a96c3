//! Reading tables by their rows of keys.

use toml::de::DeTable;

use crate::problem::{Faults, PartFault};
use crate::rows::{KeyRow, find};
use crate::value::{Context, Value, unknown};

/// A key that was read from a table, and its place.
pub(crate) struct SeenKey {
    pub(crate) name: &'static str,
    pub(crate) at: usize,
}

/// Reads the keys of a table into the target. Returns the keys that were there, and all faults.
pub(crate) fn read_table<T>(
    table: &DeTable<'_>,
    rows: &[KeyRow<T>],
    target: &mut T,
    context: &Context<'_>,
) -> (Vec<SeenKey>, Vec<PartFault>) {
    let (mut seen, mut faults): (Vec<SeenKey>, _) = (Vec::new(), Vec::new());
    for (key, content) in table {
        let (name, at) = (key.get_ref().as_ref(), key.span());
        let fault = |message| PartFault { path: name.to_owned(), span: Some(at.clone()), message };
        let Some(row) = find(rows, name) else {
            faults.push(fault(unknown(name, rows.iter().map(|row| row.facts.name))));
            continue;
        };
        if let Some(other) = seen.iter().find(|other| are_same(other.name, name)) {
            faults.push(fault(format!("`{}` is given as well; write one of them", other.name)));
            continue;
        }
        seen.push(SeenKey { name: row.facts.name, at: at.start });
        let value = Value::new(content.get_ref(), context);
        if let Err(found) = (row.set)(target, &value) {
            let form = row.facts.form;
            faults.extend(found.0.into_iter().map(|mut found| {
                if found.path.is_empty() {
                    found.message += &format!(" (allowed: {form})");
                }
                found.path.insert_str(0, name);
                found.span.get_or_insert_with(|| content.span());
                found
            }));
        }
    }
    (seen, faults)
}

/// Reads a value that is a table with these keys.
pub(crate) fn part<T: Default>(value: &Value<'_>, rows: &[KeyRow<T>]) -> Result<T, Faults> {
    let mut target = T::default();
    let (_, mut faults) = read_table(value.table()?, rows, &mut target, value.context());
    if faults.is_empty() {
        return Ok(target);
    }
    faults.iter_mut().for_each(|fault| fault.path.insert(0, '.'));
    Err(Faults(faults))
}

/// Whether two keys give the same value: one written, the other in a file.
fn are_same(a: &str, b: &str) -> bool {
    a.strip_suffix("-file") == Some(b) || b.strip_suffix("-file") == Some(a)
}
