//! `punctual generate` and `punctual receive` as a user runs them: CPU time, the highest rate and
//! the number of streams that arrive whole.

use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::Bench;
use crate::Result;
use crate::program::{self, Running};
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let program = match program::build() {
        Ok(program) => program,
        Err(failure) => {
            eprintln!("programs: {failure}");
            return Vec::new();
        }
    };
    let mut rows = Vec::new();
    for (what, megabits) in COSTS {
        rows.push(cost(bench, &program, what, megabits).await);
    }
    rows.push(highest_rate(bench, &program).await);
    rows.push(most_streams(bench, &program).await);
    rows
}

/// CPU time a gigabit of both ends, with metrics.
async fn cost(bench: &mut Bench, program: &Path, what: &'static str, megabits: f64) -> Row {
    let mut samples = Vec::new();
    for _ in 0..bench.effort.repeats {
        let load =
            Load { streams: 1, rate: megabits * 1e6, seconds: bench.effort.steady, metrics: true };
        samples.push(told(what, measure(bench, program, load).await.map(|run| run.cpu_a_gigabit)));
    }
    Row { what, unit: "s", target: Target::None, samples }
}

async fn highest_rate(bench: &mut Bench, program: &Path) -> Row {
    let what = "programs: highest rate of one stream without a drop, with metrics";
    let mut samples = Vec::new();
    let mut found = None;
    for _ in 0..bench.effort.searches {
        let search = bench.effort.search(found, 3_000.0);
        let highest = search
            .highest(async |megabits, seconds, _| {
                let load = Load { streams: 1, rate: megabits * 1e6, seconds, metrics: true };
                is_whole(measure(bench, program, load).await)
            })
            .await;
        found = highest.as_ref().ok().copied();
        samples.push(told(what, highest));
    }
    Row { what, unit: "Mb/s", target: Target::AtLeast(5_000.0), samples }
}

async fn most_streams(bench: &mut Bench, program: &Path) -> Row {
    let what = "programs: 5 Mb/s streams into one listener without a drop";
    let mut samples = Vec::new();
    let mut found = None;
    for _ in 0..bench.effort.searches {
        let search = bench.effort.search(found, 400.0);
        let most = search
            .highest(async |streams, seconds, _| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "loads are positive"
                )]
                let streams = streams as u64;
                let load = Load { streams, rate: STREAM, seconds, metrics: false };
                is_whole(measure(bench, program, load).await)
            })
            .await
            .map(f64::floor);
        found = most.as_ref().ok().copied();
        samples.push(told(what, most));
    }
    Row { what, unit: "streams", target: Target::AtLeast(700.0), samples }
}

/// Streams that `generate` sends to `receive`.
#[derive(Clone, Copy, Debug)]
struct Load {
    streams: u64,
    /// Payload of each, bits a second.
    rate: f64,
    seconds: f64,
    metrics: bool,
}

/// The results of a load.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// CPU time of both programs for a gigabit of payload, from start to end, seconds.
    cpu_a_gigabit: f64,
    /// Messages that were sent.
    sent: u64,
    /// Messages that arrived.
    received: u64,
    /// Messages that the generator had to leave out to keep its pace.
    left_out: bool,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run lie far below 2^53")]
async fn measure(bench: &mut Bench, program: &Path, load: Load) -> Result<Run> {
    let port = bench.pairs.port();
    let streams = load.streams.to_string();
    let mut receive = arguments("receive", &format!("srt://127.0.0.1:{port}?mode=listener"));
    receive.extend(["--concurrent-streams".into(), streams.clone()]);
    let mut generate = arguments("generate", &format!("srt://127.0.0.1:{port}"));
    generate.extend(["--concurrent-streams".into(), streams]);
    generate.extend(["--sendrate".into(), format!("{:.0}", load.rate)]);
    generate.extend(["--duration".into(), format!("{}s", load.seconds)]);
    if load.metrics {
        generate.push("--enable-metrics".into());
        receive.extend(["--enable-metrics", "--metricsfile", "/dev/null"].map(String::from));
    }

    let receiver = Running::start(program, &receive)?;
    sleep(START).await;
    let sender = Running::start(program, &generate)?;
    sleep(Duration::from_secs_f64(load.seconds * 0.2)).await;
    let before = [sender.usage()?.cpu, receiver.usage()?.cpu];
    let window = load.seconds * 0.7;
    sleep(Duration::from_secs_f64(window)).await;
    let after = [sender.usage()?.cpu, receiver.usage()?.cpu];
    let cpu = (after[0] - before[0] + after[1] - before[1]).as_secs_f64();

    let sent = sender.ended(END).await?;
    let received = receiver.ended(END).await?;
    Ok(Run {
        cpu_a_gigabit: cpu / (load.rate * load.streams as f64 * window / 1e9),
        sent: messages(&sent, "sent"),
        received: messages(&received, "received"),
        left_out: sent.iter().any(|line| line.contains("the pace could not be kept")),
    })
}

fn arguments(command: &str, uri: &str) -> Vec<String> {
    let uri = match uri.contains('?') {
        true => format!("{uri}&{OPTIONS}"),
        false => format!("{uri}?{OPTIONS}"),
    };
    vec![command.to_owned(), uri]
}

/// The messages of all connections, as the last summary tells them: that of all connections, or of
/// the only one.
fn messages(log: &[String], verb: &str) -> u64 {
    let told = log.iter().rev().find_map(|line| {
        let (_, count) = line.split_once(&format!(": {verb} "))?;
        count.split_once(" messages")?.0.parse().ok()
    });
    told.unwrap_or(0)
}

fn is_whole(run: Result<Run>) -> bool {
    match run {
        Ok(run) => run.sent > 0 && run.received == run.sent && !run.left_out,
        Err(failure) => {
            eprint!("({failure}) ");
            false
        }
    }
}

/// A sample, with a line on the terminal.
fn told(what: &str, figure: Result<f64>) -> Sample {
    match figure {
        Ok(figure) => {
            eprintln!("{what}: {figure:.3}");
            Sample::punctual(Some(figure))
        }
        Err(failure) => {
            eprintln!("{what}: failed: {failure}");
            Sample::punctual(None)
        }
    }
}

const COSTS: [(&str, f64); 4] = [
    ("programs: CPU time a gigabit at 10 Mb/s, both ends, with metrics", 10.0),
    ("programs: CPU time a gigabit at 100 Mb/s, both ends, with metrics", 100.0),
    ("programs: CPU time a gigabit at 500 Mb/s, both ends, with metrics", 500.0),
    ("programs: CPU time a gigabit at 1000 Mb/s, both ends, with metrics", 1_000.0),
];
/// Payload of a stream where there are many, bits a second.
const STREAM: f64 = 5e6;
/// 160 Gb/s: nothing is held back.
const OPTIONS: &str = "latency=120ms&maxbw=20000000000&linger=10s";
/// Time for a listener to bind its port.
const START: Duration = Duration::from_millis(500);
/// Time for both ends to end after the last message.
const END: Duration = Duration::from_secs(20);
