//! Programs on libsrt and on Punctual's C library notice that the other end has left, whether it
//! said so or vanished, as receivers and as senders, and end.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "real programs run in real time")]

use std::time::{Duration, Instant};

use interop::{
    Clip, End, Feed, Folder, Process, Program, Role, Signal, SrtLibrary, Tool, free_port,
    on_each_library, retry_if_stalled, send, wait_for_size, wait_until_bound,
};

on_each_library! {
    ffmpeg_ends_when_its_sender_leaves
    ffmpeg_ends_when_its_sender_vanishes
    ffmpeg_ends_when_its_receiver_leaves
    gstreamer_ends_when_its_sender_leaves
    gstreamer_ends_when_its_sender_vanishes
    gstreamer_ends_when_its_receiver_leaves
}

async fn ffmpeg_ends_when_its_sender_leaves(library: SrtLibrary) {
    ends(library, "ffmpeg_ends_when_its_sender_leaves", Program::Ffmpeg, false, Signal::TERM);
}

async fn ffmpeg_ends_when_its_sender_vanishes(library: SrtLibrary) {
    ends(library, "ffmpeg_ends_when_its_sender_vanishes", Program::Ffmpeg, false, Signal::KILL);
}

async fn ffmpeg_ends_when_its_receiver_leaves(library: SrtLibrary) {
    ends(library, "ffmpeg_ends_when_its_receiver_leaves", Program::Ffmpeg, true, Signal::TERM);
}

async fn gstreamer_ends_when_its_sender_leaves(library: SrtLibrary) {
    ends(library, "gstreamer_ends_when_its_sender_leaves", Program::GStreamer, false, Signal::TERM);
}

async fn gstreamer_ends_when_its_sender_vanishes(library: SrtLibrary) {
    let test = "gstreamer_ends_when_its_sender_vanishes";
    ends(library, test, Program::GStreamer, false, Signal::KILL);
}

async fn gstreamer_ends_when_its_receiver_leaves(library: SrtLibrary) {
    let test = "gstreamer_ends_when_its_receiver_leaves";
    ends(library, test, Program::GStreamer, true, Signal::TERM);
}

/// Lets punctual, the listener, get this signal in the middle of a stream, and waits for the end of
/// the other program.
fn ends(library: SrtLibrary, test: &str, program: Program, sends: bool, signal: Signal) {
    if !library.is_there_with(&[Tool::Ffmpeg]) || !library.is_there_with(program.tools()) {
        return;
    }
    retry_if_stalled(|| {
        let folder = library.folder_of(test);
        let (ours, mut other, _feeds) = connect(library, program, sends, &folder);
        wait_for_size(&folder.file("received.ts"), 200_000, LIMIT);
        let left = Instant::now();
        send(ours.id(), signal);
        if sends && program == Program::Ffmpeg {
            // It has another output, which goes on.
            other.wait_for_line("Slave muxer #1 failed: Input/output error");
        } else {
            other.wait(LIMIT);
        }
        let took = left.elapsed();
        let (least, most) = if signal == Signal::KILL { (4, 9) } else { (0, 4) };
        let range = Duration::from_secs(least)..Duration::from_secs(most);
        assert!(range.contains(&took), "it took {took:?}");
    });
}

/// Starts both programs with a stream between them: ours, then the other.
fn connect(
    library: SrtLibrary,
    program: Program,
    sends: bool,
    folder: &Folder,
) -> (Process, Process, Vec<Feed>) {
    let port = free_port();
    let (listener, caller) = (End::new(Role::Listener, port), End::new(Role::Caller, port));
    let (received, reference) = (folder.file("received.ts"), folder.file("reference.ts"));
    let (ours, mut other) = if sends {
        let ours = Program::Punctual.receiver(&listener, &received).0;
        (ours, program.sender(&caller, &reference))
    } else {
        let ours = Program::Punctual.sender(&listener, &reference);
        (ours, program.receiver(&caller, &received).0)
    };
    library.put_under(&mut other);
    let mut ours = Process::start("punctual", ours, folder);
    wait_until_bound(port);
    let mut other = Process::start("other", other, folder);
    library.wait_until_loaded(&other);
    let feed = if sends { other.stdin() } else { ours.stdin() };
    (ours, other, vec![Clip::get().feed(feed)])
}

const LIMIT: Duration = Duration::from_secs(15);
