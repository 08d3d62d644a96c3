//! A program that makes the calls of OBS's SRT output streams, on libsrt and on Punctual's C
//! library: as caller and as listener, to punctual and to FFmpeg, and says why if it cannot.

#![forbid(unsafe_code)]

use std::time::Duration;

use interop::{
    CProgram, Clip, End, Folder, Process, Program, Role, SrtLibrary, Tool, Turns,
    assert_arrived_whole, free_port, on_each_library, retry_if_stalled, start_link, wait_for_size,
    wait_until_bound,
};

on_each_library! {
    obs_calls_punctual_and_its_statistics_are_right
    obs_listens_to_ffmpeg_and_encrypts
    obs_listens_as_older_versions_do
    obs_says_that_the_passphrase_is_wrong
    obs_says_that_nobody_answers
}

async fn obs_calls_punctual_and_its_statistics_are_right(library: SrtLibrary) {
    stream(library, "obs_calls_punctual", |library, folder, ports| {
        let receiver =
            start_receiver(Program::Punctual, End::new(Role::Listener, ports[0]), folder);
        let link = start_link(ports[1], ports[0], 1_500, folder);
        let words = ["caller", &ports[1].to_string(), LATENCY, "streamid=#!::r=a,m=publish"];
        let mut obs = CProgram::ObsOutput.start(library, &words, folder);
        obs.wait_for_line("connected");
        (obs, vec![receiver, link])
    });
}

async fn obs_listens_to_ffmpeg_and_encrypts(library: SrtLibrary) {
    stream(library, "obs_listens_to_ffmpeg", |library, folder, ports| {
        let key = format!("passphrase={PASSPHRASE}");
        let words = ["listener", &ports[0].to_string(), LATENCY, &key, "pbkeylen=16"];
        let obs = CProgram::ObsOutput.start(library, &words, folder);
        called(obs, Program::Ffmpeg, Some(PASSPHRASE), folder, ports)
    });
}

async fn obs_listens_as_older_versions_do(library: SrtLibrary) {
    stream(library, "obs_listens_as_older_versions_do", |library, folder, ports| {
        let words = ["listener", &ports[0].to_string(), LATENCY, "waits=out"];
        let obs = CProgram::ObsOutput.start(library, &words, folder);
        called(obs, Program::Punctual, None, folder, ports)
    });
}

/// OBS needs the library as built with OpenSSL, and loads FFmpeg's libraries, which need the one
/// with GnuTLS: one of the two serves all calls.
#[test]
fn obs_runs_with_both_flavours_of_the_library_loaded() {
    stream(SrtLibrary::Punctual, "obs_with_both_flavours", |library, folder, ports| {
        let receiver =
            start_receiver(Program::Punctual, End::new(Role::Listener, ports[0]), folder);
        wait_until_bound(ports[0]);
        let mut command = CProgram::ObsOutput.command(library);
        command.args(["caller", &ports[0].to_string(), LATENCY]);
        command.env("LD_PRELOAD", library.copy_to(folder));
        let mut obs = Process::start("obs", command, folder);
        obs.wait_for_line("connected");
        assert_eq!(SrtLibrary::count_loaded(&obs), 2, "both flavours");
        (obs, vec![receiver])
    });
}

async fn obs_says_that_the_passphrase_is_wrong(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("obs_says_that_the_passphrase_is_wrong");
    let port = free_port();
    let end = End::new(Role::Listener, port).with_passphrase(PASSPHRASE);
    let _receiver = start_receiver(Program::Punctual, end, &folder);
    wait_until_bound(port);
    // OBS lets in an end with another passphrase or none (enforced encryption is off): punctual
    // does not.
    for (key, says) in [
        ("passphrase=something-else", "failed: wrong password"),
        ("streamid=x", "failed: state 6, reason 11, "),
    ] {
        let words = ["caller", &port.to_string(), key];
        let mut obs = CProgram::ObsOutput.start(library, &words, &folder);
        obs.wait_for_line(says);
        assert_eq!(obs.wait(LIMIT).code(), Some(1));
    }
}

async fn obs_says_that_nobody_answers(library: SrtLibrary) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let folder = library.folder_of("obs_says_that_nobody_answers");
    let words = ["caller", &free_port().to_string(), LATENCY];
    let mut obs = CProgram::ObsOutput.start(library, &words, &folder);
    obs.wait_for_line("failed: state 6, reason 16, ");
    assert_eq!(obs.wait(LIMIT).code(), Some(1));
}

/// Starts the receiver that calls the listening OBS over the link.
fn called(
    mut obs: Process,
    program: Program,
    passphrase: Option<&str>,
    folder: &Folder,
    ports: [u16; 2],
) -> (Process, Vec<Process>) {
    let link = start_link(ports[1], ports[0], 1_500, folder);
    let end = End::new(Role::Caller, ports[1]).with_stream_id(STREAM_ID);
    let receiver = start_receiver(program, End { passphrase, ..end }, folder);
    let accepted = obs.wait_for_line("stream id");
    assert_eq!(accepted, format!("stream id: [{STREAM_ID}], length {}", STREAM_ID.len()));
    (obs, vec![receiver, link])
}

fn start_receiver(program: Program, end: End, folder: &Folder) -> Process {
    let (command, _) = program.receiver(&end, &folder.file("received.ts"));
    Process::start("receiver", command, folder)
}

/// Sends the first part of the clip to the receiver that `start` starts beside OBS, and checks what
/// arrives and what the statistics say.
fn stream(
    library: SrtLibrary,
    test: &str,
    start: impl Fn(SrtLibrary, &Folder, [u16; 2]) -> (Process, Vec<Process>),
) {
    if !library.is_there_with(&[Tool::CompilerAndLibsrt, Tool::Ffmpeg]) {
        return;
    }
    retry_if_stalled(|| {
        let clip = Clip::get();
        let part = clip.beginning();
        let _turn = TURNS.take(1);
        let folder = library.folder_of(test);
        let (mut obs, others) = start(library, &folder, [free_port(), free_port()]);
        library.wait_until_loaded(&obs);
        let feed = clip.feed(obs.stdin());
        let received = folder.file("received.ts");
        wait_for_size(&received, part.len(), clip.duration());
        assert_arrived_whole(&received, part);
        drop(feed);
        let summary = obs.wait_for_line("summary: ");
        assert_eq!(obs.wait(LIMIT).code(), Some(0));
        let lossy = others.len() > 1;
        check_statistics(&summary, &obs.log(), part.len(), lossy);
    });
}

/// Checks the totals at the end against what was sent, and the round-trip times on the way.
fn check_statistics(summary: &str, log: &str, sent: usize, lossy: bool) {
    let all = |key: &str| number_after(summary, &format!("{key}=")).expect("it is there");
    let packets = f64::from(u32::try_from(sent / 1_316).expect("it is small"));
    assert!(all("packets") >= packets && all("packets") < 2.0 * packets, "{summary}");
    // With the headers of IP, UDP and SRT.
    assert_eq!(all("bytes"), all("packets") * 1_360.0, "{summary}");
    assert_eq!(all("dropped"), 0.0, "{summary}");
    assert!(all("mbps") > 3.5 && all("mbps") < 8.0, "5 Mb/s and what is repeated: {summary}");
    assert!(all("ms") > 4_000.0 && all("ms") < 25_000.0, "{summary}");
    assert!(all("acks") > 100.0, "one each 10 ms: {summary}");
    let round_trips: Vec<f64> =
        log.lines().filter_map(|line| number_after(line, "rtt: ")).skip(2).collect();
    assert!(!round_trips.is_empty(), "{log}");
    if lossy {
        assert!(round_trips.iter().all(|&it| it > 38.0 && it < 80.0), "40 ms: {log}");
        assert!(all("retransmitted") > 10.0 && all("naks") > 5.0, "{summary}");
        assert!(all("lost") > 10.0 && all("lost") < packets / 5.0, "{summary}");
    } else {
        assert!(round_trips.iter().all(|&it| it < 20.0), "this machine: {log}");
    }
}

fn number_after(text: &str, key: &str) -> Option<f64> {
    let (_, rest) = text.split_once(key)?;
    rest.split(' ').next()?.parse().ok()
}

/// As in `streams.rs`.
static TURNS: Turns = Turns::new(4);

const STREAM_ID: &str = "#!::r=live/clip,m=request";
const PASSPHRASE: &str = "correct-horse-battery";
/// OBS takes microseconds.
const LATENCY: &str = "latency=450000";
const LIMIT: Duration = Duration::from_secs(10);
