//! Files by `punctual file`: a large one over the loopback interface, the rate under control by
//! delay beside that by losses; and many small ones over a long path.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Bench;
use crate::Result;
use crate::program::{self, Folder, Running};
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let program = match program::build() {
        Ok(program) => program,
        Err(failure) => {
            eprintln!("files: {failure}");
            return Vec::new();
        }
    };
    let mut rows = large(bench, &program).await;
    for (what, loss, least) in SMALL {
        let mut samples = Vec::new();
        for _ in 0..bench.effort.repeats {
            let figure = small_files(bench, &program, loss).await;
            samples.push(Sample::punctual(told(what, "files/s", figure)));
        }
        rows.push(Row { what, unit: "/s", target: Target::AtLeast(least), samples });
    }
    rows
}

/// A large file, by delay and by losses in turn.
async fn large(bench: &mut Bench, program: &Path) -> Vec<Row> {
    let mut samples = [const { Vec::new() }; 2];
    for _ in 0..bench.effort.repeats {
        let [by_delay, by_losses] = ["delay", "file"];
        let delay = told("files: rate by delay", "Mb/s", rate(bench, program, by_delay).await);
        let losses = told("files: rate by losses", "Mb/s", rate(bench, program, by_losses).await);
        let share = delay.zip(losses).map(|(delay, losses)| delay / losses);
        for (samples, figure) in samples.iter_mut().zip([delay, share]) {
            samples.push(Sample::punctual(figure));
        }
    }
    let [delay, share] = samples;
    vec![
        Row { what: "files: rate by delay", unit: "Mb/s", target: Target::None, samples: delay },
        Row {
            what: "files: rate by delay, as a share of that by losses",
            unit: "",
            target: Target::AtLeast(0.95),
            samples: share,
        },
    ]
}

/// The rate of a large file from the start of the sender to its end, Mb/s.
async fn rate(bench: &mut Bench, program: &Path, control: &str) -> Result<f64> {
    let folder = folder()?;
    std::fs::File::create(sent(&folder).join("file.bin"))?.set_len(BYTES)?;
    let port = bench.pairs.port();
    let uri = format!("srt://127.0.0.1:{port}?ratecontrol={control}");
    let time = transfer(program, &folder, port, &uri).await?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    Ok(BYTES as f64 * 8e-6 / time)
}

/// The number of small files a second over a round trip of 200 ms with this loss each way.
async fn small_files(bench: &mut Bench, program: &Path, loss: &str) -> Result<f64> {
    let folder = folder()?;
    for n in 0..FILES {
        std::fs::write(sent(&folder).join(format!("{n}.bin")), [0; 1_000])?;
    }
    let (port, behind) = (bench.pairs.port(), bench.pairs.port());
    let (from, to) = (format!(":{port}"), format!("127.0.0.1:{behind}"));
    let emulate = ["emulate", &from, &to, "--rtt", "200ms", "--loss", loss].map(str::to_owned);
    let emulator = Running::start(program, &emulate)?;
    let time = transfer(program, &folder, behind, &format!("srt://127.0.0.1:{port}")).await;
    drop(emulator);
    Ok(f64::from(FILES) / time?)
}

/// Sends the folder's files to a receiver at this port. Returns the time from the start of the
/// sender to its end, seconds.
async fn transfer(program: &Path, folder: &Folder, port: u16, uri: &str) -> Result<f64> {
    let text = |path: PathBuf| path.display().to_string();
    let receiver = format!("srt://127.0.0.1:{port}?mode=listener");
    let receive = ["file".into(), "receive".into(), receiver, text(folder.path().join("incoming"))];
    let send = ["file".into(), "send".into(), text(sent(folder)), uri.to_owned()];
    let receiver = Running::start(program, &receive)?;
    sleep(START).await;
    let began = Instant::now();
    Running::start(program, &send)?.ended(END).await?;
    let time = began.elapsed().as_secs_f64();
    receiver.ended(END).await?;
    Ok(time)
}

/// A folder with one for the files to send and one for arrivals.
fn folder() -> Result<Folder> {
    let folder = Folder::new("files")?;
    std::fs::create_dir_all(folder.path().join("incoming"))?;
    std::fs::create_dir_all(sent(&folder))?;
    Ok(folder)
}

fn sent(folder: &Folder) -> PathBuf {
    folder.path().join("files")
}

/// The figure, with a line on the terminal.
fn told(what: &str, unit: &str, figure: Result<f64>) -> Option<f64> {
    match figure {
        Ok(figure) => {
            eprintln!("{what}: {figure:.0} {unit}");
            Some(figure)
        }
        Err(failure) => {
            eprintln!("{what}: failed: {failure}");
            None
        }
    }
}

/// Many small files: the row, the loss each way, and its target.
const SMALL: [(&str, &str, f64); 2] = [
    ("files: small ones a second, RTT 200 ms", "0%", 289.0),
    ("files: small ones a second, RTT 200 ms, 1 % of loss", "1%", 159.0),
];
/// The number of small files.
const FILES: u32 = 4_000;
/// The size of the large file.
const BYTES: u64 = 1 << 30;
/// Time for a listener to bind its port.
const START: Duration = Duration::from_millis(500);
/// Time for a program to end.
const END: Duration = Duration::from_secs(120);
