//! `punctual demo`: the same clip over the same bad link, bare and with SRT.

mod clip;
mod outcome;
mod streams;
mod table;

use std::path::Path;
use std::time::Duration;

use punctual_netem::{LinkProfile, presets};
use punctual_units::DisplayDuration;

use crate::args::DemoArgs;
use crate::exit::Failure;
use crate::output::print;
use crate::stop;
use crate::written;
use clip::Clip;
use outcome::Outcome;

/// Runs the demonstration.
pub(crate) async fn run(args: DemoArgs, quiet: bool) -> Result<(), Failure> {
    let clip = Clip::load();
    let stop = stop::on_signals(None);
    let out = |name: &str| args.output.join(name);
    let (udp_file, srt_file) = (out("bare-udp.ts"), out("srt.ts"));
    for file in [&udp_file, &srt_file] {
        written::check(file, CLIP, |start| clip.has(start))?;
    }
    std::fs::create_dir_all(&args.output).map_err(|error| Failure::file(&args.output, &error))?;
    print(format_args!(
        "A clip of {} with picture and sound, {:.1}, goes twice at once through an emulated\n\
         mobile link ({}):\n\
         over bare UDP, and over SRT with a latency of {} ms.\n\n",
        DisplayDuration(Duration::from_secs(clip.duration().as_secs())),
        clip.rate(),
        LinkProfile::from(presets::mobile()).in_words(),
        LATENCY.as_millis()
    ))?;
    let Some(received) = stop.or(streams::run(&clip, args.seed, quiet)).await else {
        return Err(Failure::runtime("stopped before the end"));
    };
    let received = received?;
    write(&clip, &udp_file, &received.udp)?;
    write(&clip, &srt_file, &received.srt)?;
    let udp = Outcome::of(&clip, &received.sent, &received.udp);
    let srt = Outcome::of(&clip, &received.sent, &received.srt);
    print(format_args!(
        "{}\n{}\n\nSee the difference:\n  ffplay -autoexit {}\n  ffplay -autoexit {}\n",
        table::table(&udp, &srt, &received.statistics),
        table::verdict(&udp, &srt, LATENCY),
        udp_file.display(),
        srt_file.display()
    ))
}

fn write(clip: &Clip, path: &Path, messages: &[streams::Received]) -> Result<(), Failure> {
    let bytes: Vec<u8> = messages.iter().flat_map(|message| message.payload.to_vec()).collect();
    written::replace(path, bytes, CLIP, |start| clip.has(start))
}

/// The kind of file that is written.
const CLIP: &str = "clip";

/// The latency of the SRT receiver: five round trips, so that a packet can be retransmitted four
/// times.
const LATENCY: Duration = Duration::from_millis(250);
