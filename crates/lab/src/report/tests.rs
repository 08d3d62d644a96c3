use std::path::Path;

use super::*;

/// Writes a folder of results: the plan's metrics over made-up counts. The command line changed the
/// plan.
fn results(folder: &Path) -> Results {
    results_of(folder, r#"["rtt=20ms"]"#)
}

/// The same with these values of `--set`.
fn results_of(folder: &Path, set: &str) -> Results {
    let plan = r#"
name = "small"
title = "A small plan"
about = "How much is sent <again>?"
findings = ["Twice the loss, twice the overhead."]
source = "Somebody: Something, 2022"
url = "https://example.org/article"
[stream]
bitrate = "5Mbps"
duration = "10s"
[link]
loss = ["5%", "10%"]
rtt = "20ms"
[options]
latency = ["20ms", "40ms"]
[run]
repeats = 3
[metrics]
overhead = { mean = "pktRetrans / pktSentUnique", unit = "%", title = "Overhead" }
[[reference]]
name = "article"
title = "the article"
source = "its table 3"
rows = [ { loss = "5%", overhead = "9.66%" }, { loss = "10%", overhead = "19.18%" } ]
[[figure]]
name = "1"
title = "Overhead"
x = "latency"
y = "overhead"
by = "loss"
[[table]]
name = "2"
title = "Mean overhead"
value = "overhead"
rows = ["loss"]
reference = "article"
"#;
    let meta = r#"{
        "program": "punctual 0.1.0", "plan": "small", "sweep": "x", "seed": 1,
        "backends": ["sim"], "quick": false, "set": SET, "runs": 12, "shard": "1/1",
        "parameters": [
            {"key": "link.loss", "column": "loss", "unit": ""},
            {"key": "options.latency", "column": "latency_ms", "unit": "ms"}
        ]
    }"#;
    let meta = meta.replace("SET", set);
    let mut rows = "run,experiment,backend,repeat,seed,status,loss,latency_ms,\
                    sender.pktRetrans,sender.pktSentUnique,overhead\n"
        .to_owned();
    for (loss, again) in [("0.05", 960), ("0.1", 1918)] {
        for latency in [20, 40] {
            for repeat in 1..=3 {
                let again = again + repeat * 3 + latency / 10;
                let share = f64::from(again) / 1e4;
                rows += &format!("r{loss}{latency}{repeat},,sim,{repeat},1,ok,{loss},{latency},");
                rows += &format!("{again},10000,{share}\n");
            }
        }
    }
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("plan.toml"), plan).unwrap();
    std::fs::write(folder.join("meta.json"), meta).unwrap();
    std::fs::write(folder.join("results.csv"), rows).unwrap();
    Results::load(folder).unwrap()
}

#[test]
fn a_report_has_questions_results_and_the_command_to_repeat_it() {
    let folder = std::env::temp_dir().join(format!("punctual-report-{}", std::process::id()));
    let results = results(&folder);
    let html = page(&results).to_html();
    for text in [
        "<h1>A small plan</h1>",
        "How much is sent &lt;again&gt;?",
        "<a href=\"https://example.org/article\">Somebody: Something, 2022</a>",
        "Figure 1. Overhead",
        "Table 2. Mean overhead, %",
        "9.66",
        "19.18",
        "punctual lab run plan.toml --set rtt=20ms",
        "name = &quot;small&quot;",
        "of 2<",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert_eq!(page(&results).to_html(), html);
    let figures = figures(&results);
    assert_eq!(figures.iter().map(|figure| &*figure.name).collect::<Vec<_>>(), ["1"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn findings_are_those_of_the_plan_as_it_is_written() {
    let folder = std::env::temp_dir().join(format!("punctual-findings-{}", std::process::id()));
    let finding = "Twice the loss, twice the overhead.";
    let changed = page(&results(&folder)).to_html();
    assert!(
        !changed.contains(">Findings</a></h2>")
            && changed.contains("differ from the plan: rtt=20ms")
    );
    assert!(changed.contains("Its findings do not hold for these runs"), "{changed}");
    let unchanged = page(&results_of(&folder, "[]")).to_html();
    assert!(unchanged.contains(">Findings</a></h2>") && unchanged.contains(finding));
    assert!(!unchanged.contains("differ from the plan"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_markdown_page_says_how_it_was_made_and_has_every_table() {
    let folder = std::env::temp_dir().join(format!("punctual-markdown-{}", std::process::id()));
    let results = results(&folder);
    let text = markdown(&results);
    for line in [
        "# A small plan",
        "Written by `punctual lab report small --format markdown`: changes by hand are \
         lost when it is written again.",
        "How much is sent \\<again\\>?",
        "- Runs of each combination: 1.",
        "punctual lab run plan.toml --set rtt=20ms",
        "## All experiments",
        "**Table 2. Mean overhead, %**",
        "| loss | Punctual | the article |",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in {text}");
    }
    assert!(text.contains("| 5 % | 9.6") && text.contains(" | 9.66 |"), "{text}");
    assert_eq!(markdown(&results), text);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn numbers_that_are_left_out_are_named() {
    assert_eq!(gaps(["1", "2", "2b", "3"].into_iter()), None);
    assert_eq!(gaps(["link", "streams"].into_iter()), None);
    let told = gaps(["1", "3", "7, means", "8"].into_iter()).unwrap();
    assert!(told.ends_with("its numbers 2, 4, 5, 6 have no counterpart here."), "{told}");
}

#[test]
fn columns_of_one_unit_share_a_name() {
    let shared = |titles: &[&str], unit| {
        let titles: Vec<String> = titles.iter().map(|title| (*title).to_owned()).collect();
        words::shared_title(&titles, unit)
    };
    assert_eq!(shared(&["latency, mean", "latency, least"], "µs"), "latency");
    assert_eq!(shared(&["sending rate", "receiving rate"], "Mb/s"), "rate");
    assert_eq!(shared(&["RTT"], "ms"), "RTT");
}
