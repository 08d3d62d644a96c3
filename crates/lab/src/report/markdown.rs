//! The tables of results as Markdown, for documents that show them.

use punctual_figures::Text;

use super::{again, experiment_of, facts, shortcomings, table, words};
use crate::results::Results;

/// The tables of results as a Markdown page that says which command wrote it, how the results were
/// obtained and how often each combination was run.
pub fn markdown(results: &Results) -> String {
    let plan = &results.plan;
    let title = if plan.title.is_empty() { &plan.name } else { &plan.title };
    let mut blocks = vec![
        format!("# {}", plain(title)),
        format!(
            "Written by `punctual lab report {} --format markdown`: changes by hand are \
             lost when it is written again.",
            words::quoted(&plan.name)
        ),
    ];
    let about: Vec<&str> = plan.about.split_whitespace().collect();
    blocks.extend((!about.is_empty()).then(|| plain(&about.join(" "))));
    blocks.extend(shortcomings(results).iter().map(|note| format!("> {note}")));
    let mut how: Vec<String> =
        facts(results).iter().map(|fact| format!("- {}.", fact.to_markdown())).collect();
    how.push(format!("- Runs of each combination: {}.", repeats(results)));
    blocks.push(how.join("\n"));
    blocks.push(format!("```sh\n{}\n```", again(results)));
    let mut group = String::new();
    for grouping in &plan.tables {
        let tabulation = results.tabulation(grouping);
        let Some(table) = table::titled(results, grouping, &tabulation) else { continue };
        let title = experiment_of(results, &grouping.filters);
        if title != group {
            blocks.push(format!("## {}", plain(&words::capital(&title))));
            group = title;
        }
        blocks.push(table.to_markdown().trim_end().to_owned());
        let caption = Some(&grouping.caption).filter(|caption| !caption.is_empty());
        blocks.extend(caption.map(|caption| plain(caption)));
    }
    if plan.tables.is_empty() {
        blocks.push(table::summary(results).to_markdown().trim_end().to_owned());
    }
    blocks.join("\n\n") + "\n"
}

fn plain(text: &str) -> String {
    Text::from(text).to_markdown()
}

/// The number of runs of each combination: `3`, or `3 to 10` where experiments differ.
fn repeats(results: &Results) -> String {
    let mut runs = std::collections::BTreeMap::new();
    for row in 0..results.sheet.rows().len() {
        // The name of a run is that of its combination, and the number of its repeat.
        let run = results.sheet.text(row, "run");
        let combination = run.rsplit_once('-').map_or(run, |(combination, _)| combination);
        let backend = results.sheet.text(row, "backend");
        *runs.entry((combination.to_owned(), backend.to_owned())).or_insert(0_usize) += 1;
    }
    match (runs.values().min(), runs.values().max()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (Some(all), _) => all.to_string(),
        (None, _) => "0".to_owned(),
    }
}
