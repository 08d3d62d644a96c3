//! The memory of ten thousand idle connections on one listener, and the rest after their end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Bench;
use crate::Result;
use crate::pair::Process;
use crate::report::{Row, Sample, Target};
use crate::traffic::{SendReport, Traffic};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let (mut each, mut remains) = (Vec::new(), Vec::new());
    for _ in 0..bench.effort.repeats.min(3) {
        let figures = crowd(bench).await.map_err(|failure| eprintln!("a crowd: {failure}")).ok();
        each.push(Sample::punctual(figures.map(|[each, _]| each)));
        remains.push(Sample::punctual(figures.map(|[_, remains]| remains)));
    }
    let row =
        |what, unit, limit, samples| Row { what, unit, target: Target::AtMost(limit), samples };
    vec![
        row("10,000 idle connections on one listener: resident memory each", "kB", 40.0, each),
        row(
            "the same listener 10 s after they have closed, of the level before",
            "×",
            1.1,
            remains,
        ),
    ]
}

/// Resident kilobytes of the listener for each connection, and its memory 10 s after they closed,
/// divided by that before they came.
#[expect(clippy::cast_precision_loss, reason = "memory lies far below 2^53 bytes")]
async fn crowd(bench: &mut Bench) -> Result<[f64; 2]> {
    let program = bench.pairs.own();
    let first = Traffic { strangers: true, ..Traffic::new(FIRST_PORT, LONG) };
    let mut listener = Process::start(program, "receive", &first.flags())?;
    listener.expect("ready").await?;
    let mut keeper = Process::start(program, "send", &first.flags())?;
    keeper.expect("started").await?;

    // A crowd that comes and goes shows how far the allocator's own tables grow.
    let warm = Instant::now();
    visit(program, 1, 1.0).await?.leave().await?;
    sleep(SETTLE.saturating_sub(warm.elapsed())).await;
    let before = listener.usage()?.resident;
    let visitors = visit(program, PARTS, STAY).await?;
    let during = listener.usage()?.resident;
    visitors.leave().await?;
    let mut after = listener.usage()?.resident;
    let closed = Instant::now();
    while closed.elapsed() < SETTLE && after > before {
        sleep(Duration::from_millis(500)).await;
        after = listener.usage()?.resident;
    }
    let each = (during - before) as f64 / f64::from(PARTS * PART) / 1e3;
    let [before, during, after] = [before, during, after].map(|bytes| bytes as f64 / 1e6);
    eprintln!(
        "crowd: {before:.1} MB before, {during:.1} MB with all, {after:.1} MB {:.1} s later",
        closed.elapsed().as_secs_f64()
    );
    Ok([each, after / before])
}

/// Callers that are connected.
struct Visitors(Vec<Process>);

impl Visitors {
    /// Waits until all have closed their connections.
    async fn leave(self) -> Result<()> {
        for mut visitors in self.0 {
            visitors.report::<SendReport>().await?;
        }
        Ok(())
    }
}

/// Starts `parts` processes one after the other; the callers of each stay for a while.
async fn visit(program: &std::path::Path, parts: u32, stay: f64) -> Result<Visitors> {
    let mut visitors = Vec::new();
    for part in 0..parts {
        // Those who came first stay for those who come last.
        let seconds = stay * f64::from(parts - part);
        let traffic = Traffic { streams: PART, ..Traffic::new(FIRST_PORT, seconds) };
        let mut process = Process::start(program, "send", &traffic.flags())?;
        process.expect("started").await?;
        visitors.push(process);
    }
    Ok(Visitors(visitors))
}

const FIRST_PORT: u16 = 19_990;
/// Processes that callers come from, one after the other: a listener takes 1,000 in a second.
const PARTS: u32 = 4;
/// Connections of one of them.
const PART: u32 = 2_500;
/// Seconds that callers stay for each part that comes behind them.
const STAY: f64 = 3.5;
/// Seconds that the listener has its first connection.
const LONG: f64 = 300.0;
/// By when memory should be given back.
const SETTLE: Duration = Duration::from_secs(10);
