//! Loads that show the limits of `punctual relay`: many viewers, many streams, idle viewers, calls
//! to absent streams, and nothing at all.

use std::time::Duration;

use tokio::time::sleep;

use super::server::{RunningServer, Server};
use super::{Lab, Load};
use crate::Result;
use crate::pair::Process;
use crate::relay_ends::{RefusedReport, RelayEnds};
use crate::report::{Row, Sample, Target};
use crate::scenario::Bench;

pub(super) async fn run(bench: &mut Bench, lab: &Lab) -> Vec<Row> {
    let mut rows = taken(bench, MANY_VIEWERS, async |bench| many_viewers(bench, lab).await).await;
    rows.extend(taken(bench, MANY_STREAMS, async |bench| many_streams(bench, lab).await).await);
    rows.extend(taken(bench, IDLE_VIEWERS, async |bench| idle_viewers(bench, lab).await).await);
    rows.extend(taken(bench, ABSENT_STREAMS, async |bench| absent_streams(bench, lab).await).await);
    rows.extend(taken(bench, NO_CONNECTIONS, async |bench| idle(bench, lab).await).await);
    rows
}

/// The name of a figure, its unit and its target.
type Figure = (&'static str, &'static str, Target);

/// Takes these figures of Punctual's relay some times; a row for each.
async fn taken<const N: usize>(
    bench: &mut Bench,
    figures: [Figure; N],
    mut measure: impl AsyncFnMut(&mut Bench) -> Result<[f64; N]>,
) -> Vec<Row> {
    let mut turns = Vec::new();
    for _ in 0..bench.effort.repeats.min(3) {
        match measure(bench).await {
            Ok(turn) => {
                eprintln!("{}: {turn:.3?}", figures[0].0);
                turns.push(turn);
            }
            Err(failure) => eprintln!("{}: failed: {failure}", figures[0].0),
        }
    }
    let rows = figures.into_iter().enumerate().map(|(at, (what, unit, target))| {
        let samples = turns.iter().map(|turn| Sample::punctual(Some(turn[at]))).collect();
        Row { what, unit, target, samples }
    });
    rows.collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run lie far below 2^53")]
async fn many_viewers(bench: &mut Bench, lab: &Lab) -> Result<[f64; 4]> {
    let load = Load { streams: 1, viewers: VIEWERS };
    let carried = lab.carry(bench, Server::Punctual, load).await?;
    let [before, after] = carried.resident;
    let memory = after.saturating_sub(before) as f64 / f64::from(VIEWERS) / 1e3;
    let [given_up, missed] = [carried.given_up as f64, carried.viewers.dropped as f64];
    Ok([given_up, missed, carried.cpu_a_gigabit(), memory])
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run lie far below 2^53")]
async fn many_streams(bench: &mut Bench, lab: &Lab) -> Result<[f64; 3]> {
    let load = Load { streams: STREAMS, viewers: STREAMS };
    let carried = lab.carry(bench, Server::Punctual, load).await?;
    Ok([carried.given_up as f64, carried.viewers.dropped as f64, carried.cpu_a_gigabit()])
}

/// Viewers of a stream that has no picture: they stay connected and get nothing.
#[expect(clippy::cast_precision_loss, reason = "memory lies far below 2^53 bytes")]
async fn idle_viewers(bench: &mut Bench, lab: &Lab) -> Result<[f64; 2]> {
    let relay = lab.relays.start(Server::Punctual, bench.pairs.port()).await?;
    let [publish, view] = Server::Punctual.stream_ids();
    let publisher = RelayEnds { rate: SLOW, ..RelayEnds::new(relay.port(), publish) };
    let mut source = Process::start(bench.pairs.own(), "publish", &publisher.flags())?;
    source.expect("started").await?;
    sleep(Duration::from_secs(1)).await;
    let before = relay.usage()?.resident;
    let mut viewers = Vec::new();
    for _ in 0..PARTS {
        let ends = RelayEnds {
            number: IDLE / PARTS,
            each_port: 100,
            seconds: LONG,
            ..RelayEnds::new(relay.port(), view)
        };
        let mut process = Process::start(bench.pairs.own(), "view", &ends.flags())?;
        process.expect("started").await?;
        viewers.push(process);
    }
    sleep(Duration::from_secs(1)).await;
    let connected = relay.ask("/v1/streams").await?;
    let connected = connected[0]["viewers"][0]["viewers"].as_u64().unwrap_or_default();
    if connected != u64::from(IDLE) {
        return Err(format!("{connected} of {IDLE} viewers are connected").into());
    }
    let resident = relay.usage()?.resident.saturating_sub(before);
    let share = share_of_a_core(&relay, bench.effort.idle).await?;
    Ok([resident as f64 / f64::from(IDLE) / 1e3, share])
}

/// The memory after all calls, divided by that after the first of them.
#[expect(clippy::cast_precision_loss, reason = "memory lies far below 2^53 bytes")]
async fn absent_streams(bench: &mut Bench, lab: &Lab) -> Result<[f64; 1]> {
    let relay = lab.relays.start(Server::Punctual, bench.pairs.port()).await?;
    let (mut first, mut last) = (0, 0);
    for part in 0..CALLS / CALLS_AT_ONCE {
        let stream_id = format!("#!::r=absent/{part}-{{}},m=request");
        let ends = RelayEnds {
            streams: CALLS_AT_ONCE,
            number: CALLS_AT_ONCE,
            ..RelayEnds::new(relay.port(), &stream_id)
        };
        let mut callers = Process::start(bench.pairs.own(), "call-absent", &ends.flags())?;
        let report: RefusedReport = callers.report().await?;
        if report.others > 0 {
            return Err(format!("{} calls were not refused", report.others).into());
        }
        last = relay.usage()?.resident;
        if (part + 1) * CALLS_AT_ONCE == FIRST_CALLS {
            first = last;
        }
    }
    Ok([last as f64 / first as f64])
}

async fn idle(bench: &mut Bench, lab: &Lab) -> Result<[f64; 1]> {
    let relay = lab.relays.start(Server::Punctual, bench.pairs.port()).await?;
    sleep(Duration::from_secs(2)).await;
    Ok([share_of_a_core(&relay, bench.effort.idle).await?])
}

/// The share of a core that the relay takes in this time, percent.
async fn share_of_a_core(relay: &RunningServer, seconds: f64) -> Result<f64> {
    let before = relay.usage()?.cpu;
    sleep(Duration::from_secs_f64(seconds)).await;
    Ok((relay.usage()?.cpu - before).as_secs_f64() / seconds * 100.0)
}

const MANY_VIEWERS: [Figure; 4] = [
    ("300 viewers: packets that the relay gave up", "packets", NONE_LOST),
    ("300 viewers: packets that viewers missed", "packets", NONE_LOST),
    ("300 viewers: CPU time a gigabit", "s", Target::None),
    ("300 viewers, latency 120 ms: memory a viewer", "kB", Target::AtMost(100.0)),
];
const MANY_STREAMS: [Figure; 3] = [
    ("100 streams with a viewer each: packets that the relay gave up", "packets", NONE_LOST),
    ("100 streams with a viewer each: packets that viewers missed", "packets", NONE_LOST),
    ("100 streams with a viewer each: CPU time a gigabit sent", "s", Target::None),
];
const IDLE_VIEWERS: [Figure; 2] = [
    ("10,000 idle viewers: memory each", "kB", Target::AtMost(100.0)),
    ("10,000 idle viewers: share of a core", "%", Target::None),
];
const ABSENT_STREAMS: [Figure; 1] =
    [("100,000 calls to absent streams: memory, of that after 10,000", "×", Target::AtMost(1.1))];
const NO_CONNECTIONS: [Figure; 1] =
    [("a relay without connections, share of a core", "%", Target::AtMost(0.1))];
const NONE_LOST: Target = Target::AtMost(0.0);
const VIEWERS: u32 = 300;
const STREAMS: u32 = 100;
const IDLE: u32 = 10_000;
/// Processes that idle viewers come from.
const PARTS: u32 = 4;
/// Seconds that idle viewers stay: until the run ends them.
const LONG: f64 = 600.0;
/// A message a second, bits a second.
const SLOW: u64 = 1_316 * 8;
const CALLS: u32 = 100_000;
/// Calls after which the memory should stay as it is.
const FIRST_CALLS: u32 = 10_000;
/// Calls of one process.
const CALLS_AT_ONCE: u32 = 5_000;
