//! Plans in words.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::sweep::{Adjustments, Sweep};

use punctual_program::exit::Failure;

/// The plans that are built in.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for (name, plan) in published::plans() {
        let title = Plan::parse(name, plan).map_or(String::new(), |plan| plan.title);
        let _ = writeln!(text, "{name:<24} {title}");
    }
    text + "\n`punctual lab show NAME` tells more, `punctual lab run NAME` runs it.\n"
}

/// A plan: its purpose, the factors that it varies, the number of its runs.
pub(super) fn plan(plan: &Plan) -> Result<String, Failure> {
    let sweep = Sweep::new(plan.clone(), &Adjustments::default());
    let sweep = sweep.map_err(|error| Failure::usage(error.to_string()))?;
    let mut text = format!("{}: {}\n", plan.name, plan.title);
    for part in [&plan.about, &plan.source, &plan.url] {
        if !part.is_empty() {
            let _ = write!(text, "\n{part}\n");
        }
    }
    for experiment in &plan.experiments {
        let name = match (experiment.name.as_str(), experiment.title.as_str()) {
            ("", _) => "varied".to_owned(),
            (name, "") => name.to_owned(),
            (name, title) => format!("{name}: {title}"),
        };
        let _ = write!(text, "\n{name}\n");
        if plan.repeats(experiment) != plan.run.repeats {
            let _ = writeln!(text, "  {:<24} {}", "repeats", plan.repeats(experiment));
        }
        let runs = || sweep.runs().iter().filter(|run| run.experiment == experiment.name);
        for key in plan.keys() {
            let mut values: Vec<String> = Vec::new();
            for (_, value) in runs().flat_map(|run| &run.values).filter(|(k, _)| *k == key) {
                let value = value.to_string();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            if values.len() > 1 || (!experiment.name.is_empty() && !values.is_empty()) {
                let _ = writeln!(text, "  {key:<24} {}", values.join(", "));
            }
        }
    }
    let streaming: f64 = sweep.runs().iter().map(|run| run.setup.duration.as_secs_f64()).sum();
    let repeats: BTreeSet<u32> =
        plan.experiments.iter().map(|experiment| plan.repeats(experiment)).collect();
    let repeats: Vec<String> = repeats.iter().map(u32::to_string).collect();
    let _ = write!(
        text,
        "\n{} runs on {}, {} repeats each, {:.0} minutes of streaming; {} figures, {} tables\n",
        sweep.runs().len(),
        plan.run.backends.join(", "),
        repeats.join(" or "),
        streaming / 60.0,
        plan.figures.len(),
        plan.tables.len(),
    );
    Ok(text)
}
