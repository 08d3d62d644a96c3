//! `punctual-lab model`: how rarely a reliable stream glitches, by the model.

use crate::program::run;

/// The paper's case at 40 Mb/s, with its advice for the buffer.
const ADVICE: [&str; 10] =
    ["--rate", "40Mbps", "--loss", "2%", "--rtt", "200ms", "--buffer", "500ms", "--block", "1373"];

fn text(args: &[&str]) -> String {
    let ended = run(&[&["model"], args].concat());
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    String::from_utf8(ended.stdout).expect("text")
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&text(&[&["--json"], args].concat())).expect("it is JSON")
}

/// The rows of the table, as cells without units.
fn rows(text: &str) -> Vec<Vec<String>> {
    let table = text.split("\n\n").nth(1).expect("a table");
    let cells = |line: &str| {
        line.split("  ").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
    };
    table.lines().skip(1).map(cells).collect()
}

#[test]
fn half_a_second_is_half_a_minute_without_copies_and_weeks_with_three() {
    let text = text(&ADVICE);
    let rows = rows(&text);
    assert_eq!(rows[0], ["0", "2", "34.2 s", "8.2e-4 %", "2.04 %"], "{text}");
    assert_eq!(rows[3], ["3", "2", "24.4 days", "1.3e-8 %", "2.16 %"], "{text}");
    assert!(text.contains("0.51 Mb/s by Mathis, 0.43 Mb/s by PFTK"), "{text}");
}

#[test]
fn the_papers_own_rounds_glitch_each_nine_seconds() {
    let rounds =
        ["--copies", "0", "--nak-datagrams", "1", "--last-nak-datagrams", "1", "--margin", "0"];
    let said = json(&[&ADVICE[..], &rounds].concat());
    let [answer] = said["answers"].as_array().expect("a list").as_slice() else { panic!("{said}") };
    let mean_time = answer["mean_time_s"].as_f64().expect("seconds");
    assert!((mean_time - 9.26).abs() < 0.01, "{said}");
    assert_eq!(answer["rounds"], 2);
}

#[test]
fn a_wanted_mean_time_gives_the_least_buffer() {
    let args = ["--rate", "10Mbps", "--loss", "2%", "--rtt", "200ms", "--glitch-target", "1day"];
    let said = json(&args);
    assert_eq!((&said["schema"], &said["solved"]), (&"punctual-model/1".into(), &"buffer".into()));
    let buffers: Vec<f64> = said["answers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|answer| {
            assert!(answer["mean_time_s"].as_f64() >= Some(86_400.0), "{answer}");
            assert_eq!(answer["is_enough"], true);
            answer["buffer_ms"].as_f64().expect("milliseconds")
        })
        .collect();
    assert!(buffers[0] > 800.0 && buffers[2] < 500.0, "{buffers:?}");
    assert_eq!(rows(&text(&args)).len(), 5);
}

#[test]
fn figures_that_stay_open_are_varied() {
    let said = json(&["--loss", "2%", "--rtt", "200ms", "--glitch-target", "1week"]);
    assert_eq!(said["varied"], serde_json::json!(["rate"]));
    assert_eq!(said["answers"].as_array().map(Vec::len), Some(12));
    let buffers = json(&["--rate", "40Mbps", "--loss", "2%", "--rtt", "200ms", "--copies", "0"]);
    let rounds: Vec<_> = buffers["answers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["rounds"].as_u64())
        .collect();
    assert_eq!(rounds, (1..=6).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_page_has_curves_for_rates_losses_and_copies() {
    let path = std::env::temp_dir().join(format!("punctual-model-{}.html", std::process::id()));
    text(&[&ADVICE[..], &["--page", path.to_str().expect("a path")]].concat());
    let html = std::fs::read_to_string(&path).expect("the page is written");
    std::fs::remove_file(&path).expect("the page can be removed");
    for part in ["Mean time to a glitch over the buffer", "6 Mb/s", "0.5 %", "3 copies"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.matches("<svg").count() >= 6, "each chart is drawn wide and narrow");
}

#[test]
fn senseless_questions_are_refused_with_what_would_be_right() {
    let path = ["--rate", "10Mbps", "--loss", "2%", "--rtt", "200ms"];
    for (args, code, said) in [
        ([].as_slice(), 2, "0 of the six figures are known; name at least three"),
        (&path[..4], 2, "2 of the six figures are known"),
        (&["--buffer", "50ms"], 2, "shorter than a one-way delay of 100 ms"),
        (&["--buffer", "2h"], 2, "the buffer is 2 h; it must be 1 h at most"),
        (&["--buffer", "1s", "--block", "2000"], 2, "it must be 1 to 1456 bytes"),
        (&["--buffer", "1s", "--loss-back", "60%"], 2, "the loss on the way back is 60 %"),
        (&["--buffer", "1s", "--readchunk", "1us"], 2, "the readchunk is 1 µs; it must be"),
        (&["--glitch-target", "soon"], 2, "1day, 3weeks"),
        (&["--overhead", "1%"], 1, "2.041 % must be retransmitted at least"),
        (&["--buffer", "300ms", "--glitch-target", "1year", "--copies", "0"], 1, "cannot be had"),
    ] {
        let known = if args.first() == Some(&"--rate") { &[][..] } else { &path[..] };
        let known = if args.is_empty() { &[][..] } else { known };
        let ended = run(&[&["model"], known, args].concat());
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
}
