//! Files of statistics and metrics become reports and figures.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("punctual-plot-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        let parent = path.parent().expect("it lies in the folder");
        std::fs::create_dir_all(parent).expect("a folder can be made");
        std::fs::write(&path, text).expect("a file can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plot(arguments: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
    command.arg("plot").args(files).args(arguments).output().expect("the program starts")
}

fn statistics(start: u8) -> String {
    let mut text = "Timepoint,Time,SocketID,msRTT,pktSent,pktRetrans,mbpsSendRate\n".to_owned();
    for second in 0..20 {
        let clock = format!("2026-01-02T03:{start:02}:{second:02}.000000+0000");
        let retransmitted = second % 3;
        text += &format!("{clock},{second}000,7,20.5,480,{retransmitted},5.0{second}\n");
    }
    text
}

#[test]
fn two_files_make_one_report_that_names_both() {
    let folder = Folder::new("report");
    let (one, two) =
        (folder.write("one.csv", &statistics(4)), folder.write("two.csv", &statistics(5)));
    let output = plot(&[], &[&one, &two]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(folder.0.join("one.html")).unwrap();
    for text in ["Round-trip time", "Sender: packets", ">one<", ">two<", "each drawn from its own"]
    {
        assert!(html.contains(text), "{text}");
    }
    let again = plot(&["-o", "-"], &[&one, &two]).stdout;
    assert_eq!(String::from_utf8(again).unwrap(), html);
}

#[test]
fn each_figure_can_be_had_as_a_file() {
    let folder = Folder::new("svg");
    let file = folder.write("stats.csv", &statistics(4));
    let figures = folder.0.join("out");
    let output = plot(&["--format", "svg", "-o", figures.to_str().unwrap()], &[&file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names: Vec<String> = std::fs::read_dir(&figures)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["01-sender-packets.svg", "02-rates.svg", "03-round-trip-time.svg"]);
    let svg = std::fs::read_to_string(figures.join(&names[2])).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("RTT, ms"));
}

#[test]
fn a_fault_in_a_file_is_reported_with_its_place() {
    let folder = Folder::new("fault");
    let file = folder.write("stats.csv", "Time,msRTT\n0,1\n5,high\n6,1\n");
    let output = plot(&[], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("stats.csv: line 3: column msRTT: `high` is no number"), "{told}");
    let output = plot(&[], &[&folder.0.join("missing.csv")]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("missing.csv: "));
    let other = folder.write("other.csv", "a,b\n1,2\n");
    let told = String::from_utf8(plot(&[], &[&other]).stderr).unwrap();
    assert!(told.contains("other.csv: line 1: ") && told.contains("msRTT"), "{told}");
}

#[test]
fn a_file_that_is_still_written_is_drawn_with_a_warning() {
    let folder = Folder::new("cut");
    let text = statistics(4);
    let file = folder.write("stats.csv", &text[..text.len() - 10]);
    let output = plot(&[], &[&file]);
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("line 21: the last line has no end"), "{told}");
    let html = std::fs::read_to_string(folder.0.join("stats.html")).unwrap();
    assert!(html.contains("the last line has no end"));
}

#[test]
fn unicode_text_of_spreadsheets_and_shells_is_drawn_as_utf_8_is() {
    let folder = Folder::new("utf-16");
    let text = statistics(4);
    let plain = folder.write("a/stats.csv", &text);
    // Excel's "Unicode text" has tabs.
    for (name, text) in [("b", text.clone()), ("c", text.replace(',', "\t"))] {
        for (mark, decode) in [
            ([0xFF, 0xFE], u16::to_le_bytes as fn(u16) -> [u8; 2]),
            ([0xFE, 0xFF], u16::to_be_bytes),
        ] {
            let wide = folder.write(&format!("{name}/stats.csv"), "");
            let units = text.encode_utf16().flat_map(decode);
            std::fs::write(&wide, mark.into_iter().chain(units).collect::<Vec<_>>()).unwrap();
            let [drawn, expected] = [&wide, &plain].map(|file| {
                let output = plot(&["-o", "-"], &[file]);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let page = String::from_utf8(output.stdout).expect("a page is text");
                page.replace(file.to_str().unwrap(), "FILE")
            });
            assert!(drawn == expected, "{name}");
        }
    }
    let odd = folder.write("odd.csv", "");
    std::fs::write(&odd, b"\xFF\xFET\0i").unwrap();
    let told = String::from_utf8(plot(&[], &[&odd]).stderr).unwrap();
    assert!(told.contains("odd.csv: this is not valid UTF-16: save it as UTF-8"), "{told}");
}

#[test]
fn statistics_as_json_are_drawn_as_those_in_csv_are() {
    let folder = Folder::new("json");
    let json: String = (0..20)
        .map(|second| {
            format!(
                "{{\"sid\":7,\"timepoint\":\"2026-01-02T03:04:{second:02}.000000+0000\",\
                 \"time\":{},\"link\":{{\"rtt\":20.5}},\"send\":{{\"packets\":480,\
                 \"packetsRetransmitted\":{},\"mbitRate\":5.0{second}}}}}\n",
                second * 1000,
                second % 3
            )
        })
        .collect();
    let csv = folder.write("a/one.csv", &statistics(4));
    let json = folder.write("b/one.json", &json);
    let drawn = |file: &Path| {
        let out = file.with_extension("out");
        let output = plot(&["--format", "svg", "-o", out.to_str().unwrap()], &[file]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut files: Vec<_> =
            std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(drawn(&json), drawn(&csv));
}
