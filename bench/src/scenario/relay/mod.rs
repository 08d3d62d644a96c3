//! A relay with one publisher and many viewers over loopback: `punctual relay` beside srtrelay and
//! MediaMTX, and alone under loads that show its limits. Metrics and lists are asked for once a
//! second.

mod crowds;
mod server;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tokio::time::sleep;

use self::server::{Server, Servers};
use super::{Bench, STREAM_RATE};
use crate::Result;
use crate::pair::Process;
use crate::program::Folder;
use crate::relay_ends::{RelayEnds, ViewersReport};
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let (relays, clip) = match (Servers::find(), Clip::make()) {
        (Ok(relays), Ok(clip)) => (relays, clip),
        (Err(failure), _) | (_, Err(failure)) => {
            eprintln!("relay: {failure}");
            return Vec::new();
        }
    };
    let lab = Lab { relays, clip };
    let mut rows = beside_peers(bench, &lab).await;
    rows.extend(crowds::run(bench, &lab).await);
    rows
}

/// The means of all rows: the relays and a stream.
struct Lab {
    relays: Servers,
    clip: Clip,
}

/// A stream of 5 Mb/s in a file, long enough for a run.
struct Clip {
    file: PathBuf,
    _folder: Folder,
}

impl Clip {
    /// Encodes FFmpeg's test picture with noise, and a tone.
    fn make() -> Result<Self> {
        let folder = Folder::new("stream")?;
        let file = folder.path().join("stream.ts");
        let rate = STREAM_RATE.to_string();
        let made = Command::new("ffmpeg")
            .args(["-loglevel", "error", "-f", "lavfi", "-i"])
            .arg("testsrc2=size=640x360:rate=25,noise=alls=20:allf=t")
            .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t"])
            .arg(CLIP_SECONDS.to_string())
            .args(["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50"])
            .args(["-b:v", "4600k", "-maxrate", "4600k", "-bufsize", "2300k"])
            .args(["-x264-params", "nal-hrd=cbr", "-c:a", "aac", "-b:a", "128k", "-ac", "2"])
            .args(["-muxrate", &rate, "-pcr_period", "20", "-f", "mpegts", "-y"])
            .arg(&file)
            .status()
            .map_err(|error| format!("ffmpeg, which makes the stream, does not start: {error}"))?;
        if !made.success() {
            return Err("ffmpeg did not make the stream".into());
        }
        Ok(Self { file, _folder: folder })
    }
}

/// Publishers and viewers of a run.
#[derive(Clone, Copy, Debug)]
struct Load {
    streams: u32,
    viewers: u32,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
struct Carried {
    /// CPU time of the relay in the time that was measured.
    cpu: Duration,
    /// That time.
    seconds: f64,
    /// Resident memory of the relay before the viewers came, and at the end, bytes.
    resident: [u64; 2],
    /// The figures of all viewers.
    viewers: ViewersReport,
    /// Packets that Punctual's relay gave up because a viewer could not take them in time, and
    /// jumps of slow viewers.
    given_up: u64,
}

impl Carried {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a run lie far below 2^53")]
    fn cpu_a_gigabit(&self) -> f64 {
        self.cpu.as_secs_f64() / (self.viewers.bytes as f64 * 8e-9)
    }

    /// Cores that it kept busy.
    fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.seconds
    }
}

impl Lab {
    /// Runs a relay with this load, and measures for a time.
    ///
    /// # Errors
    ///
    /// A program failed, or a viewer got less than nine tenths of the stream.
    async fn carry(&self, bench: &mut Bench, server: Server, load: Load) -> Result<Carried> {
        let seconds = bench.effort.steady;
        let mut relay = self.relays.start(server, bench.pairs.port()).await?;
        relay.scrape_each_second();
        let [publish, view] = server.stream_ids();
        let publishers = RelayEnds {
            streams: load.streams,
            number: load.streams,
            file: Some(self.clip.file.clone()),
            rate: STREAM_RATE,
            ..RelayEnds::new(relay.port(), publish)
        };
        let mut source = Process::start(bench.pairs.own(), "publish", &publishers.flags())?;
        source.expect("started").await?;
        sleep(BEGIN).await;

        let empty = relay.usage()?;
        let ends = RelayEnds {
            streams: load.streams,
            number: load.viewers,
            settle: SETTLE.as_secs_f64(),
            seconds,
            ..RelayEnds::new(relay.port(), view)
        };
        let mut viewers = Process::start(bench.pairs.own(), "view", &ends.flags())?;
        viewers.expect("started").await?;
        sleep(SETTLE).await;
        let [before, viewed] = [relay.usage()?, viewers.usage()?];
        sleep(Duration::from_secs_f64(seconds)).await;
        let [after, views] = [relay.usage()?, viewers.usage()?];
        let given_up = match server {
            Server::Punctual => given_up(&relay.ask("/v1/streams").await?),
            Server::Srtrelay | Server::Mediamtx => 0,
        };
        let report: ViewersReport = viewers.report().await?;
        let cores = (views.cpu - viewed.cpu).as_secs_f64() / seconds;
        eprintln!("relay: {server}, {load:?}: {report:?}; the viewers took {cores:.2} cores");
        check(report, load, seconds)?;
        Ok(Carried {
            cpu: after.cpu - before.cpu,
            seconds,
            resident: [empty.resident, after.resident],
            viewers: report,
            given_up,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a run lie far below 2^53")]
fn check(report: ViewersReport, load: Load, seconds: f64) -> Result<()> {
    let least = STREAM_RATE as f64 / 8.0 * seconds * 0.9;
    if report.left < load.viewers {
        return Err(format!("only {} of {} viewers were left", report.left, load.viewers).into());
    }
    if (report.least as f64) < least {
        return Err(format!("a viewer got only {} bytes in {seconds} s", report.least).into());
    }
    Ok(())
}

/// Packets that the relay gave up, and jumps of slow viewers, of all streams of its list.
fn given_up(list: &serde_json::Value) -> u64 {
    let streams = list.as_array().map_or(&[][..], Vec::as_slice);
    let of = |stream: &serde_json::Value| {
        let dropped = stream["outbound"]["packets_unrecovered"].as_u64();
        let skips = stream["viewer_skips"].as_array().map_or(&[][..], Vec::as_slice);
        let skips = skips.iter().filter_map(|tally| tally["count"].as_u64()).sum::<u64>();
        dropped.unwrap_or_default() + skips
    };
    streams.iter().map(of).sum()
}

/// Ten and thirty viewers of each relay, in turn.
async fn beside_peers(bench: &mut Bench, lab: &Lab) -> Vec<Row> {
    // Of Punctual, srtrelay and MediaMTX, in each turn: CPU time a gigabit with few and with many
    // viewers, and the share of a core of one more.
    let mut turns = Vec::new();
    for _ in 0..bench.effort.repeats {
        let mut turn = [None; 3];
        for (server, figures) in Server::ALL.into_iter().zip(&mut turn) {
            if lab.relays.has(server) {
                *figures = told(server, few_and_many(bench, lab, server).await);
            }
        }
        turns.push(turn);
    }
    let mut rows = Vec::new();
    for (peer, names, times) in [(2, BESIDE_MEDIAMTX, 0.25), (1, BESIDE_SRTRELAY, 0.5)] {
        let targets = [Target::None, Target::AtMostTimes(times), Target::None];
        let units = ["s", "s", "%"];
        for (figure, ((what, target), unit)) in
            names.into_iter().zip(targets).zip(units).enumerate()
        {
            let of = |figures: Option<[f64; 3]>| figures.map(|figures| figures[figure]);
            let samples = turns.iter().map(|turn| Sample::beside(of(turn[peer]), of(turn[0])));
            rows.push(Row { what, unit, target, samples: samples.collect() });
        }
    }
    let more = |turn: &[Option<[f64; 3]>; 3]| Sample::punctual(turn[0].map(|figures| figures[2]));
    rows.push(Row {
        what: "one more viewer, share of a core",
        unit: "%",
        target: Target::AtMost(0.15),
        samples: turns.iter().map(more).collect(),
    });
    rows
}

async fn few_and_many(bench: &mut Bench, lab: &Lab, server: Server) -> Result<[f64; 3]> {
    let few = lab.carry(bench, server, Load { streams: 1, viewers: FEW }).await?;
    let many = lab.carry(bench, server, Load { streams: 1, viewers: MANY }).await?;
    let more = (many.cores() - few.cores()) / f64::from(MANY - FEW) * 100.0;
    Ok([few.cpu_a_gigabit(), many.cpu_a_gigabit(), more])
}

fn told(server: Server, figures: Result<[f64; 3]>) -> Option<[f64; 3]> {
    match figures {
        Ok(figures) => {
            eprintln!("relay: {server}: {figures:.3?}");
            Some(figures)
        }
        Err(failure) => {
            eprintln!("relay: {server}: failed: {failure}");
            None
        }
    }
}

const BESIDE_MEDIAMTX: [&str; 3] = [
    "10 viewers, beside MediaMTX: CPU time a gigabit",
    "30 viewers, beside MediaMTX: CPU time a gigabit",
    "one more viewer, beside MediaMTX: share of a core",
];
const BESIDE_SRTRELAY: [&str; 3] = [
    "10 viewers, beside srtrelay: CPU time a gigabit",
    "30 viewers, beside srtrelay: CPU time a gigabit",
    "one more viewer, beside srtrelay: share of a core",
];
const FEW: u32 = 10;
const MANY: u32 = 30;
/// Time for a stream to begin: relays find its tables and formats.
const BEGIN: Duration = Duration::from_millis(2_500);
/// Time for viewers to start at a random access point, which comes every 2 s.
const SETTLE: Duration = Duration::from_millis(2_500);
/// The length of the stream: longer than any run.
const CLIP_SECONDS: u32 = 40;
