//! Parts of a sweep become the whole.

use std::path::Path;

use crate::plan::Plan;
use crate::results::Results;
use crate::results::folder::Folder;
use crate::results::sheet::Sheet;
use crate::run::{Selection, runs};
use crate::sweep::order::ordered;

/// Puts the parts of a sweep together into the folder `into`. An interrupted part contributes the
/// runs that it has.
///
/// # Errors
///
/// The parts are not of one sweep, or cannot be read, or `into` cannot be written.
pub fn merge(parts: &[impl AsRef<Path>], into: &Path) -> Result<Results, String> {
    let loaded: Vec<Results> =
        parts.iter().map(|part| Results::load(part.as_ref())).collect::<Result<_, _>>()?;
    let Some((first, others)) = loaded.split_first() else {
        return Err("there is nothing to merge".to_owned());
    };
    for (other, path) in others.iter().zip(parts.iter().skip(1)) {
        if other.meta.sweep != first.meta.sweep {
            return Err(format!(
                "{}: its results are of another sweep than those of {}",
                path.as_ref().display(),
                parts[0].as_ref().display()
            ));
        }
    }
    let mut sheet = Sheet::new(first.sheet.columns().to_vec());
    loaded.iter().flat_map(|part| part.sheet.rows()).for_each(|row| sheet.push(row.clone()));
    let plan: &Plan = &first.plan;
    let mut meta = first.meta.clone();
    "1/1".clone_into(&mut meta.shard);
    let selection = Selection { backends: meta.backends.clone(), ..Selection::default() };
    let specs = runs(plan, &selection).map_err(|error| error.to_string())?;
    let sheet = ordered(&sheet, &specs);

    let folder = Folder::new(into);
    if folder.meta()?.is_some() {
        return Err(format!("{}: results lie there already", into.display()));
    }
    folder.create(&plan.text, &meta)?;
    for part in parts {
        folder.copy_records(&Folder::new(part.as_ref()))?;
    }
    if sheet.rows().len() == specs.len() {
        folder.finish(&sheet)?;
    } else {
        // The missing runs can still be done: --resume.
        folder.begin(&sheet)?;
    }
    let folder = Some(into.to_owned());
    Ok(Results { plan: plan.clone(), meta, sheet, plan_folder: folder.clone(), folder })
}
