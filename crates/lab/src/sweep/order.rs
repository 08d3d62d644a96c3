//! Rows in the order of the plan, whoever ran them first.

use std::collections::BTreeMap;

use crate::results::sheet::Sheet;
use crate::run::RunSpec;

/// The rows of a sheet in the order of the runs; rows of no run are left out.
pub(crate) fn ordered(sheet: &Sheet, specs: &[RunSpec]) -> Sheet {
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in 0..sheet.rows().len() {
        places.insert((sheet.text(row, "run"), sheet.text(row, "backend")), row);
    }
    let mut ordered = Sheet::new(sheet.columns().to_vec());
    for spec in specs {
        if let Some(place) = places.get(&(spec.id.as_str(), spec.backend.as_str())) {
            ordered.push(sheet.rows()[*place].clone());
        }
    }
    ordered
}
