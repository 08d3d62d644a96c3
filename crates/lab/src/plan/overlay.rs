//! Values that replace those of a plan: for a quick run, on one backend, from a command line.

use crate::plan::document::{DocumentEntry, DocumentNode, DocumentTable};
use crate::plan::error::{PlanError, PlanPlace};
use crate::plan::parameter::Parameter;
use crate::plan::run::{ExternalPrograms, RunOptions};
use crate::plan::{ParameterGrid, Plan, keys, word_source};
use punctual_uri::did_you_mean;

/// Values that replace those of a plan.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    entries: Vec<DocumentEntry>,
    /// The only experiments that are run; empty for all.
    experiments: Vec<(String, PlanPlace)>,
}

/// The overlays of a plan: which of them apply depends on the command and on the backend.
#[derive(Clone, Debug)]
pub(crate) struct Overlays {
    quick: Overlay,
    backends: Vec<(String, Overlay)>,
    /// The values from the command line, which win over a backend's.
    words: Vec<DocumentEntry>,
}

impl Overlays {
    /// Reads the overlays of a plan.
    pub(super) fn read(plan: &DocumentTable) -> Result<Self, PlanError> {
        let backends = ["net", "external"]
            .into_iter()
            .filter_map(|name| plan.get(name).map(|entry| (name, entry)))
            .map(|(name, entry)| Ok((name.to_owned(), Overlay::read(entry.table()?)?)))
            .collect::<Result<_, _>>()?;
        let quick = plan.table("quick")?.map_or(Ok(Overlay::quick()), Overlay::read)?;
        Ok(Self { quick, backends, words: Vec::new() })
    }

    /// The overlay of a backend, if the plan has one.
    fn of_backend(&self, name: &str) -> Option<&Overlay> {
        self.backends.iter().find(|(backend, _)| backend == name).map(|(_, overlay)| overlay)
    }
}

impl Overlay {
    /// The changes of a quick run, where a plan does not give them.
    pub(crate) fn quick() -> Self {
        let source = word_source("--quick");
        let entry = |key: &str, value: &str| DocumentEntry {
            key: key.to_owned(),
            place: PlanPlace::new(&source, 0),
            value: DocumentNode::word(&source, value),
        };
        Self { entries: vec![entry("repeats", "1")], experiments: Vec::new() }
    }

    pub(crate) fn read(table: &DocumentTable) -> Result<Self, PlanError> {
        let mut overlay = Self::default();
        for entry in &table.entries {
            if entry.key == "experiments" {
                let place = &entry.place;
                let names = entry.texts()?.into_iter().map(|name| (name, place.clone()));
                overlay.experiments.extend(names);
            } else if !ExternalPrograms::KEYS.contains(&entry.key.as_str()) {
                overlay.entries.push(entry.clone());
            }
        }
        Ok(overlay)
    }

    /// Reads `key=value` words of a command line.
    ///
    /// # Errors
    ///
    /// A word without `=`.
    pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError> {
        let mut overlay = Self::default();
        for word in words {
            let source = word_source(&format!("--set {}", punctual_uri::redacted(word)));
            let place = PlanPlace::new(&source, 0);
            let Some((key, value)) = word.split_once('=') else {
                return Err(place.error("must be KEY=VALUE, such as latency=120ms"));
            };
            let (key, value) = (key.trim().to_owned(), DocumentNode::word(&source, value.trim()));
            if key == "experiments" {
                let entry = DocumentEntry { key, place: place.clone(), value };
                let names = entry.texts()?.into_iter().map(|name| (name, place.clone()));
                overlay.experiments.extend(names);
            } else {
                overlay.entries.push(DocumentEntry { key, place, value });
            }
        }
        Ok(overlay)
    }
}

/// Replaces values of a plan, as [`Plan::overlay`] does.
pub(super) fn overlay(plan: &mut Plan, overlay: &Overlay) -> Result<(), PlanError> {
    if !overlay.experiments.is_empty() {
        keep_experiments(plan, &overlay.experiments)?;
    }
    replace(plan, &overlay.entries)
}

/// Replaces values of a plan by those of a command line, as [`Plan::adjust`] does.
pub(super) fn adjust(plan: &mut Plan, words: &Overlay) -> Result<(), PlanError> {
    overlay(plan, words)?;
    plan.overlays.words.extend(words.entries.iter().cloned());
    Ok(())
}

fn replace(plan: &mut Plan, entries: &[DocumentEntry]) -> Result<(), PlanError> {
    for entry in entries {
        if RunOptions::KEYS.contains(&entry.key.as_str()) {
            plan.run.set(entry)?;
            if entry.key == "repeats" {
                plan.experiments.iter_mut().for_each(|experiment| experiment.repeats = None);
            }
            continue;
        }
        let key = match plan.key(&entry.key) {
            Ok(key) => key,
            Err(_) => keys::full(&entry.key).map_err(|message| entry.place.error(message))?,
        };
        let parameter = Parameter::from_node(key, entry.place.clone(), &entry.value)?;
        set(plan, &parameter);
    }
    Ok(())
}

/// Makes a plan the one that is run quickly.
pub(super) fn quick(plan: &mut Plan) -> Result<(), PlanError> {
    let values = plan.overlays.quick.clone();
    overlay(plan, &values)
}

/// A plan as it is run on a backend.
pub(super) fn on(plan: &Plan, backend: &str) -> Result<Plan, PlanError> {
    let mut changed = plan.clone();
    if let Some(values) = plan.overlays.of_backend(backend) {
        overlay(&mut changed, values)?;
        replace(&mut changed, &plan.overlays.words)?;
    }
    Ok(changed)
}

/// Replaces a parameter in each experiment that has it, or in all if none has it.
fn set(plan: &mut Plan, parameter: &Parameter) {
    let has = |grid: &ParameterGrid| grid.parameters.iter().any(|other| other.key == parameter.key);
    let anywhere = plan.experiments.iter().any(|experiment| has(&experiment.grid));
    for experiment in &mut plan.experiments {
        if !anywhere || has(&experiment.grid) {
            experiment.grid.set(parameter.clone());
        }
    }
}

fn keep_experiments(plan: &mut Plan, names: &[(String, PlanPlace)]) -> Result<(), PlanError> {
    for (name, place) in names {
        let known = || plan.experiments.iter().map(|experiment| experiment.name.as_str());
        if !known().any(|known| known == name) {
            let suggestion = did_you_mean(name, known());
            return Err(place.error(format!("no experiment `{name}`{suggestion}")));
        }
    }
    plan.experiments.retain(|experiment| names.iter().any(|(name, _)| *name == experiment.name));
    Ok(())
}
