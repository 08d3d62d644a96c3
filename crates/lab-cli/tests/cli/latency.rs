//! `punctual-lab latency`: what latency a link needs, by the model.

use crate::program::run;

fn json(args: &[&str]) -> serde_json::Value {
    let ended = run(&[&["latency", "--json"], args].concat());
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    serde_json::from_slice(&ended.stdout).expect("it is JSON")
}

#[test]
fn each_algorithm_has_its_latency_and_its_overhead() {
    let args = ["latency", "--rtt", "20", "--loss", "10%", "--target", "1e-6"];
    let ended = run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = String::from_utf8(ended.stdout).expect("text");
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        let cells: Vec<&str> = line.expect(name).split_whitespace().collect();
        cells[1].parse::<u32>().expect("milliseconds")
    };
    assert!(row("deadline") < row("aggressive") && row("aggressive") < row("efficient"), "{text}");
    assert!(text.contains("at least 11.1 % must be retransmitted"), "{text}");
    assert!(text.contains("&retransmitalgo=deadline&losstarget="), "{text}");
}

#[test]
fn the_table_says_whose_answer_each_line_is() {
    let args = ["latency", "--rtt", "40ms", "--loss", "5%", "--target", "1e-9"];
    let text = String::from_utf8(run(&args).stdout).expect("text");
    assert!(text.starts_with("Least latency for 0.0000001 % unrecovered"), "{text}");
    for (line, said) in [
        ("  deadline", "Punctual at both ends"),
        ("  efficient", "other programs: libsrt's default"),
        ("  Punctual both ends", "&retransmitalgo=deadline&losstarget=0.0000000"),
        ("  srt-live-transmit", "'srt://host:4200?latency="),
        ("  FFmpeg", "?mode=caller&latency="),
        ("  OBS, server", "000"),
    ] {
        let found = text.lines().find(|it| it.starts_with(line)).expect(line);
        assert!(found.contains(said), "{found}");
    }
}

#[test]
fn a_ceiling_holds_for_all_retransmissions() {
    let with = |ceiling: &str| {
        json(&["--rtt", "40ms", "--loss", "5%", "--target", "1e-6", "--ceiling", ceiling])
    };
    let generous = with("20%");
    assert!(generous["deadline"][0]["overhead_share"].as_f64() <= Some(0.2), "{generous}");
    assert_eq!(with("3%")["deadline"].as_array().map(Vec::len), Some(0));
}

#[test]
fn json_has_the_figures_of_the_table() {
    let said = json(&["--rtt", "40ms", "--loss", "5%", "--target-loss", "0.0001%"]);
    assert_eq!(said["schema"], "punctual-latency/1");
    assert_eq!(said["target_share"].as_f64(), Some(1e-6));
    let latency = |value: &serde_json::Value| value["latency_ms"].as_u64().expect("milliseconds");
    let first = &said["deadline"][0];
    assert!(latency(first) < latency(&said["efficient"]), "{said}");
    let keys = first["keys"].as_str().expect("keys");
    assert!(keys.starts_with(&format!("latency={}&", latency(first))), "{said}");
    for need in [first, &said["efficient"], &said["aggressive"]] {
        assert!(need["unrecovered_share"].as_f64() <= Some(1e-6), "{said}");
        assert!(need["overhead_share"].as_f64() >= Some(0.05), "{said}");
    }
    let bursts = json(&["--rtt", "40ms", "--loss", "5%", "--bursts", "8"]);
    assert!(latency(&bursts["deadline"][0]) > latency(first), "{bursts}");
}

#[test]
fn senseless_values_are_refused_with_their_range() {
    for (args, said) in [
        (["--rtt", "40ms"].as_slice(), "--loss"),
        (&["--rtt", "20s", "--loss", "5%"], "the round-trip time is 20 s; it must be 1 ms to 10 s"),
        (&["--rtt", "40ms", "--loss", "60%"], "the loss is 60 %; it must be 0 to 50 %"),
        (&["--rtt", "40ms", "--loss", "5"], "did you mean `5%`?"),
        (&["--rtt", "40ms", "--loss", "5%", "--target", "0"], "at least 0.00000001%"),
        (&["--rtt", "40ms", "--loss", "5%", "--bursts", "0"], "1 to 1000 packets"),
        (&["--rtt", "40ms", "--loss", "5%", "--jitter", "50ms"], "no more than the round-trip"),
        (&["--rtt", "40ms", "--loss", "5%", "--max-latency", "2min"], "65530ms at most"),
    ] {
        let ended = run(&[&["latency"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
    let args = ["latency", "--rtt", "1s", "--loss", "5%", "--max-latency", "500ms"];
    let ended = run(&args);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("out of reach within 500 ms"), "{}", ended.stderr);
}
