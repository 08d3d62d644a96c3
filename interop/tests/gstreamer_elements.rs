//! GStreamer's SRT elements on libsrt and on Punctual's C library, beyond a stream from end to end:
//! several callers at one sink, the question whether to let one in, statistics, callers one after
//! another, and an end while they wait.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use interop::{
    CProgram, Clip, End, Feed, Folder, Nobody, Process, Program, Role, Signal, SrtLibrary, Tool,
    free_port, gstreamer_pipeline, on_each_library, retry_if_stalled, send, start_link,
    wait_for_size, wait_until_bound,
};

on_each_library! {
    a_sink_serves_several_callers_and_asks_whom_to_let_in
    a_sink_does_not_wait_for_a_caller_if_told_so
    statistics_tell_of_the_link
    a_source_takes_callers_one_after_another
    a_source_calls_again
    an_element_that_waits_ends_at_once
}

async fn a_sink_serves_several_callers_and_asks_whom_to_let_in(library: SrtLibrary) {
    let Some(folder) = folder(library, "a_sink_serves_several_callers") else { return };
    let port = free_port();
    let mut sink = Pipeline::start(
        library,
        "sink",
        &sink(port, "mode=listener", "authentication=true"),
        &folder,
    );
    wait_until_bound(port);
    let files = [folder.file("first"), folder.file("second")];

    let end = End::new(Role::Caller, port).with_stream_id("ann");
    let (command, _) = Program::Punctual.receiver(&end, &files[0]);
    let _first = Process::start("first", command, &folder);
    sink.process.wait_for_line("connecting: ann");
    wait_for_size(&files[0], 1, LIMIT);

    let end = End::new(Role::Caller, port).with_stream_id("ben");
    let (mut command, _) = Program::Ffmpeg.receiver(&end, &files[1]);
    library.put_under(&mut command);
    let _second = Process::start("second", command, &folder);
    sink.process.wait_for_line("connecting: ben");
    wait_for_size(&files[1], 1, LIMIT);

    let words = ["call", &port.to_string(), "eve"];
    let mut refused = CProgram::Peer.start(library, &words, &folder);
    // GStreamer gives no reason, for which libsrt 1.5.1 sends a code that it does not take itself.
    refused.wait_for_line("rejected: ");
    sink.process.wait_for_line("rejected: eve");

    // The first caller has all since the beginning, for the sink has waited for it.
    wait_for_size(&files[0], PART, LIMIT);
    wait_for_size(&files[1], PART, LIMIT);
    assert_eq!(beginning(&files[0]), Some(0), "the first has the beginning");
    assert!(beginning(&files[1]) > Some(0), "the second has come later");
    let said = sink.statistics();
    let addresses = said.matches("caller-address").count();
    assert_eq!(addresses, 2, "both callers are counted: {said}");
}

async fn a_sink_does_not_wait_for_a_caller_if_told_so(library: SrtLibrary) {
    let Some(folder) = folder(library, "a_sink_does_not_wait") else { return };
    let port = free_port();
    let pipeline = sink(port, "mode=listener", "wait-for-connection=false");
    let mut sink = Pipeline::start(library, "sink", &pipeline, &folder);
    sink.process.wait_for_line("state: playing");
    let received = folder.file("received");
    let (command, _) = Program::Punctual.receiver(&End::new(Role::Caller, port), &received);
    let _receiver = Process::start("receiver", command, &folder);
    wait_for_size(&received, PART, LIMIT);
    assert!(beginning(&received) > Some(0), "nobody got the beginning");
}

async fn statistics_tell_of_the_link(library: SrtLibrary) {
    let Some(folder) = folder(library, "statistics_tell_of_the_link") else { return };
    retry_if_stalled(|| {
        let (listening, calling) = (free_port(), free_port());
        let received = folder.file("received");
        let source = source(listening, "mode=listener", "", &received);
        let mut source = Pipeline::start(library, "source", &source, &folder);
        let _link = start_link(calling, listening, 1_500, &folder);
        let sink = sink(calling, "mode=caller", "");
        let mut sink = Pipeline::start(library, "sink", &sink, &folder);
        wait_for_size(&received, PART, LIMIT);
        assert_eq!(beginning(&received), Some(0));

        let (sends, receives) = (sink.statistics(), source.statistics());
        let count = |name| number(&sends, name);
        assert!(
            count("packets-sent") >= 1_000.0 && count("packets-retransmitted") > 5.0,
            "{sends}"
        );
        assert!(
            count("bytes-sent") > 1_300_000.0 && count("bytes-sent-total") > 1_200_000.0,
            "{sends}"
        );
        assert!(count("packet-nack-received") > 5.0, "{sends}");
        assert!(count("packet-ack-received") > 50.0, "{sends}");
        assert_eq!(count("packets-sent-dropped"), 0.0, "{sends}");
        assert_eq!(count("negotiated-latency-ms"), 450.0, "{sends}");
        let count = |name| number(&receives, name);
        assert!(count("packets-received") >= 1_000.0, "{receives}");
        assert!(count("packets-received-lost") > 5.0, "{receives}");
        assert!(count("packet-nack-sent") > 5.0, "{receives}");
        assert!(count("receive-rate-mbps") > 3.0, "{receives}");
        assert!(count("bytes-received-total") > 1_200_000.0, "{receives}");
        for said in [&sends, &receives] {
            let round_trip = number(said, "rtt-ms");
            assert!(round_trip > 38.0 && round_trip < 80.0, "40 ms: {said}");
        }
    });
}

async fn a_source_takes_callers_one_after_another(library: SrtLibrary) {
    let Some(folder) = folder(library, "a_source_takes_callers") else { return };
    let port = free_port();
    let received = folder.file("received");
    let pipeline = source(port, "mode=listener", "keep-listening=true", &received);
    let mut source = Pipeline::start(library, "source", &pipeline, &folder);
    wait_until_bound(port);
    for number in 1..=3 {
        let (mut sender, _feed) = send_to(port, Role::Caller, &folder);
        let before = size_of(&received);
        wait_for_size(&received, before + 200_000, LIMIT);
        assert!(size_of(&received) >= before + 200_000, "caller {number} is not received");
        sender.stop();
    }
    source.stop();
}

async fn a_source_calls_again(library: SrtLibrary) {
    let Some(folder) = folder(library, "a_source_calls_again") else { return };
    let port = free_port();
    let received = folder.file("received");
    let pipeline = source(port, "mode=caller", "auto-reconnect=true", &received);
    let mut source = None;
    for number in 1..=2 {
        let (mut sender, _feed) = send_to(port, Role::Listener, &folder);
        wait_until_bound(port);
        source.get_or_insert_with(|| Pipeline::start(library, "source", &pipeline, &folder));
        let before = size_of(&received);
        wait_for_size(&received, before + 200_000, LIMIT);
        assert!(size_of(&received) >= before + 200_000, "call {number} is not answered");
        sender.stop();
    }
    source.expect("it was started").stop();
}

/// The elements wait without a limit, and are woken by a descriptor in the same epoll set.
async fn an_element_that_waits_ends_at_once(library: SrtLibrary) {
    let Some(folder) = folder(library, "an_element_that_waits") else { return };
    for (role, mode) in [(Role::Listener, "mode=listener"), (Role::Caller, "mode=caller")] {
        let none = folder.file("none");
        let pipeline: [&dyn Fn(u16) -> String; 2] =
            [&|port| source(port, mode, "", &none), &|port| sink(port, mode, "")];
        for pipeline in pipeline {
            let nobody = Nobody::opposite(role);
            let pipeline = pipeline(nobody.port());
            let mut waiting = Pipeline::start(library, "waiting", &pipeline, &folder);
            nobody.wait_for_the_other();
            let asked = Instant::now();
            waiting.stop();
            let took = asked.elapsed();
            assert!(took < Duration::from_secs(3), "it took {took:?}: {pipeline}");
        }
    }
}

/// A pipeline with an SRT element that is looked at.
struct Pipeline {
    process: Process,
    /// The clip for its standard input.
    _feed: Feed,
    asked: usize,
}

impl Pipeline {
    fn start(library: SrtLibrary, name: &str, pipeline: &str, folder: &Folder) -> Self {
        let command = gstreamer_pipeline(library, pipeline);
        let mut process = Process::start(name, command, folder);
        library.wait_until_loaded(&process);
        let feed = Clip::get().feed(process.stdin());
        Self { process, _feed: feed, asked: 0 }
    }

    /// The statistics that the element's property has now.
    fn statistics(&mut self) -> String {
        self.asked += 1;
        send(self.process.id(), Signal::USR1);
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            let log = self.process.log();
            let mut answers = log.lines().filter(|line| line.starts_with("stats: "));
            if let Some(answer) = answers.nth(self.asked - 1) {
                return answer.to_owned();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no statistics in {LIMIT:?}");
    }

    /// Ends it.
    fn stop(&mut self) {
        let status = self.process.stop();
        assert!(status.success(), "it ends well: {status}");
        self.process.wait_for_line("stopped");
    }
}

/// A pipeline that sends its standard input.
fn sink(port: u16, mode: &str, properties: &str) -> String {
    let uri = uri(port, mode);
    format!("fdsrc fd=0 blocksize=1316 ! srtsink name=srt {uri} {properties}")
}

/// A pipeline that receives into a file.
fn source(port: u16, mode: &str, properties: &str, output: &Path) -> String {
    let uri = uri(port, mode);
    let output = output.display();
    format!(
        "srtsrc name=srt {uri} {properties} ! filesink buffer-mode=unbuffered location={output}"
    )
}

fn uri(port: u16, mode: &str) -> String {
    let host = if mode == "mode=caller" { "127.0.0.1" } else { "" };
    format!("uri=srt://{host}:{port}?{mode} latency=450")
}

/// Starts a sender of the clip.
fn send_to(port: u16, role: Role, folder: &Folder) -> (Process, Feed) {
    let command = Program::Punctual.sender(&End::new(role, port), &folder.file("none"));
    let mut sender = Process::start("sender", command, folder);
    let feed = Clip::get().feed(sender.stdin());
    (sender, feed)
}

/// The place in the clip where what was received begins, if all of it is from there.
fn beginning(received: &Path) -> Option<usize> {
    let bytes = fs::read(received).expect("something was received");
    let clip = Clip::get().bytes();
    (0..clip.len()).step_by(1_316).find(|&at| clip[at..].starts_with(&bytes))
}

/// The number behind this name in a structure of GStreamer's.
fn number(structure: &str, name: &str) -> f64 {
    // packets-sent=(gint64)9760, or with a backslash before each of the signs.
    let plain = structure.replace('\\', "");
    let (_, rest) = plain.split_once(&format!(" {name}=(")).unwrap_or_else(|| {
        panic!("no {name} in {plain}");
    });
    let (_, value) = rest.split_once(')').expect("a type in parentheses");
    let end = value.find([',', ';', ' ']).unwrap_or(value.len());
    value[..end].parse().unwrap_or_else(|_| panic!("{name} is no number in {plain}"))
}

fn size_of(path: &Path) -> usize {
    fs::metadata(path).map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
}

fn folder(library: SrtLibrary, test: &str) -> Option<Folder> {
    let tools = [Tool::Ffmpeg, Tool::GStreamer, Tool::GStreamerForPython, Tool::CompilerAndLibsrt];
    library.is_there_with(&tools).then(|| library.folder_of(test))
}

/// Two seconds of the clip.
const PART: usize = 1_250_000;
const LIMIT: Duration = Duration::from_secs(15);
