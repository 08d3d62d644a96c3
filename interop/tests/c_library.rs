//! Programs that were built against libsrt run on Punctual's C library, unchanged: a real transport
//! stream over a bad link arrives whole, whether the other end runs on the same library, on libsrt,
//! or is the punctual program.
//!
//! The tests cover each pair of program, library at the other end, role, direction and encryption.
//! All streams together take about twelve minutes and print a table for docs/interop.md:
//!
//! ```sh
//! PUNCTUAL_C_LIBRARY=PREFIX/lib cargo test -p interop --test c_library -- --ignored --nocapture
//! ```

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real programs run in real time, some at a time"
)]

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use interop::{
    End, Folder, Middle, Nobody, Passage, Process, Program, Role, SrtLibrary, Tool, Turns,
    free_port, have_all, retry_if_stalled, start_link, wait_until_bound,
};

/// One test for each stream: sender, its role, receiver.
macro_rules! streams {
    ($($name:ident: $sender:ident $role:ident $receiver:ident $secrecy:ident;)*) => {
        $(#[test]
        fn $name() {
            retry_if_stalled(|| {
                Stream {
                    sender: $sender,
                    sender_role: Role::$role,
                    receiver: $receiver,
                    secrecy: Secrecy::$secrecy,
                }.pass(stringify!($name));
            });
        })*
    };
}

streams! {
    ffmpeg_calls_ffmpeg_and_sends: FFMPEG Caller FFMPEG Encrypted;
    ffmpeg_listens_to_ffmpeg_on_libsrt_and_sends: FFMPEG Listener FFMPEG_ON_LIBSRT Clear;
    ffmpeg_on_libsrt_calls_ffmpeg_and_sends: FFMPEG_ON_LIBSRT Caller FFMPEG Clear;
    ffmpeg_calls_punctual_and_sends: FFMPEG Caller PUNCTUAL Clear;
    punctual_listens_to_ffmpeg_and_sends: PUNCTUAL Listener FFMPEG Encrypted;
    gstreamer_listens_to_gstreamer_and_sends: GSTREAMER Listener GSTREAMER Clear;
    gstreamer_calls_gstreamer_on_libsrt_and_sends: GSTREAMER Caller GSTREAMER_ON_LIBSRT Encrypted;
    punctual_calls_gstreamer_and_sends: PUNCTUAL Caller GSTREAMER Encrypted;
    punctual_calls_vlc_and_sends: PUNCTUAL Caller VLC Clear;
    ffmpeg_on_libsrt_listens_to_vlc_and_sends: FFMPEG_ON_LIBSRT Listener VLC Encrypted;
}

#[test]
fn gstreamer_meets_punctual_in_rendezvous_and_sends() {
    retry_if_stalled(|| meet("gstreamer_meets_punctual", GSTREAMER, PUNCTUAL));
}

#[test]
fn gstreamer_meets_gstreamer_on_libsrt_in_rendezvous_and_receives() {
    retry_if_stalled(|| meet("gstreamer_meets_gstreamer", GSTREAMER_ON_LIBSRT, GSTREAMER));
}

/// Debian's VLC 3.0.24 calls and sends nothing, on libsrt as well.
#[test]
fn vlc_calls_as_a_sender() {
    if !VLC.is_there() || !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let folder = Folder::of("vlc_calls_as_a_sender");
    let port = free_port();
    let (receiver, _) =
        Program::Punctual.receiver(&End::new(Role::Listener, port), &folder.file("received.ts"));
    let mut receiver = Process::start("receiver", receiver, &folder);
    wait_until_bound(port);
    let sender = Program::Vlc.sender(&End::new(Role::Caller, port), &folder.file("none"));
    let mut sender = VLC.start("sender", sender, &folder);
    receiver.wait_for_line("connected with");
    sender.stop();
}

/// It is woken by another of its threads, which takes the socket out of the epoll set.
#[test]
fn vlc_ends_while_it_waits() {
    if !VLC.is_there() {
        return;
    }
    for role in [Role::Caller, Role::Listener] {
        let folder = Folder::of(&format!("vlc_ends_while_it_waits-{role:?}"));
        let nobody = Nobody::opposite(role);
        let end = End::new(role, nobody.port());
        let (command, _) = Program::Vlc.receiver(&end, &folder.file("received.ts"));
        let mut waiting = VLC.start("waiting", command, &folder);
        VLC.check(&waiting);
        nobody.wait_for_the_other();
        let asked = Instant::now();
        waiting.stop();
        assert!(asked.elapsed() < Duration::from_secs(3), "as {role:?}: {:?}", asked.elapsed());
    }
}

/// A program, and the library that it runs on unless it has SRT inside.
#[derive(Clone, Copy)]
struct Peer {
    program: Program,
    library: Option<SrtLibrary>,
}

const FFMPEG: Peer = on(Program::Ffmpeg, SrtLibrary::Punctual);
const FFMPEG_ON_LIBSRT: Peer = on(Program::Ffmpeg, SrtLibrary::Libsrt);
const GSTREAMER: Peer = on(Program::GStreamer, SrtLibrary::Punctual);
const GSTREAMER_ON_LIBSRT: Peer = on(Program::GStreamer, SrtLibrary::Libsrt);
const VLC: Peer = on(Program::Vlc, SrtLibrary::Punctual);
const PUNCTUAL: Peer = Peer { program: Program::Punctual, library: None };

const fn on(program: Program, library: SrtLibrary) -> Peer {
    Peer { program, library: Some(library) }
}

impl Peer {
    fn is_there(self) -> bool {
        have_all(self.program.tools()) && self.library.is_none_or(SrtLibrary::is_there)
    }

    /// Starts this command of the program on its library.
    fn start(self, name: &str, mut command: Command, folder: &Folder) -> Process {
        if let Some(library) = self.library {
            library.put_under(&mut command);
        }
        Process::start(name, command, folder)
    }

    /// Checks that the running program has loaded its library.
    fn check(self, process: &Process) {
        if let Some(library) = self.library {
            library.wait_until_loaded(process);
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = match self.program {
            Program::Ffmpeg => "FFmpeg",
            Program::GStreamer => "GStreamer",
            Program::Punctual => "`punctual`",
            Program::SrtLiveTransmit => "srt-live-transmit",
            Program::Vlc => "VLC",
        };
        match self.library {
            Some(SrtLibrary::Punctual) => write!(f, "{program} on ours"),
            Some(SrtLibrary::Libsrt) => write!(f, "{program} on libsrt"),
            None => f.write_str(program),
        }
    }
}

/// Whether the stream is encrypted: with AES-256.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Secrecy {
    Clear,
    Encrypted,
}

/// A stream of the clip from one program to another.
#[derive(Clone, Copy)]
struct Stream {
    sender: Peer,
    sender_role: Role,
    receiver: Peer,
    secrecy: Secrecy,
}

impl Stream {
    /// Sends the clip over the link, and checks the stream that arrives.
    fn pass(&self, test: &str) {
        let Self { sender, sender_role, receiver, .. } = *self;
        if !have_all(&[Tool::Ffmpeg]) || !sender.is_there() || !receiver.is_there() {
            return;
        }
        let _turn = TURNS.take(1);
        let passage = Passage::new(test, sender.program, sender_role, receiver.program);
        let listening = free_port();
        let calling = free_port();
        let port = |role| if role == Role::Listener { listening } else { calling };
        let end = |peer, role| self.end(peer, role, port(role));
        let link = || vec![start_link(calling, listening, 1_500, passage.folder())];
        self.run(&passage, &end(sender, sender_role), &end(receiver, sender_role.other()), link);
    }

    /// Starts both programs on their libraries.
    fn run(
        &self,
        passage: &Passage,
        sending: &End,
        receiving: &End,
        start_path: impl FnOnce() -> Vec<Process>,
    ) {
        let mut sending = passage.sender(sending);
        let (mut receiving, to_stdout) = passage.receiver(receiving);
        let ends = [(self.sender, &mut sending), (self.receiver, &mut receiving)];
        for (peer, command) in ends {
            if let Some(library) = peer.library {
                library.put_under(command);
            }
        }
        passage.run(sending, (receiving, to_stdout), start_path, |sender, receiver| {
            self.sender.check(sender);
            self.receiver.check(receiver);
        });
    }

    fn end(&self, peer: Peer, role: Role, port: u16) -> End<'static> {
        let end = End::new(role, port);
        let end = match (role, peer.program) {
            (Role::Listener, _) => end,
            // VLC takes the `#` of the standard form for a part of its own syntax.
            (Role::Caller, Program::Vlc) => end.with_stream_id("live/clip"),
            (Role::Caller, _) => end.with_stream_id("#!::r=live/clip,m=publish"),
        };
        match (self.secrecy, peer.program) {
            (Secrecy::Clear, _) => end,
            // VLC calls this by another name. The sender decides.
            (Secrecy::Encrypted, Program::Vlc) => end.with_passphrase(PASSPHRASE),
            (Secrecy::Encrypted, _) => end.with_passphrase(PASSPHRASE).with_options("pbkeylen=32"),
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.sender_role == Role::Caller { "calls" } else { "listens to" };
        let secrecy = if self.secrecy == Secrecy::Encrypted { ", encrypted" } else { "" };
        write!(f, "{} {verb} {} and sends{secrecy}", self.sender, self.receiver)
    }
}

/// Sends the clip between two ends that call each other, over a path that loses every fiftieth
/// packet and every second handshake.
fn meet(test: &str, sender: Peer, receiver: Peer) {
    if !have_all(&[Tool::Ffmpeg]) || !sender.is_there() || !receiver.is_there() {
        return;
    }
    let _turn = TURNS.take(1);
    let middle = Middle::start(true, 0);
    let passage = Passage::new(test, sender.program, Role::Caller, receiver.program).brief();
    let stream =
        Stream { sender, sender_role: Role::Caller, receiver, secrecy: Secrecy::Encrypted };
    let ends = [middle.here, middle.there]
        .map(|place| End::at(place).with_passphrase(PASSPHRASE).with_options("pbkeylen=32"));
    let receiver_is_bound = || {
        wait_until_bound(middle.there.local);
        Vec::new()
    };
    stream.run(&passage, &ends[0], &ends[1], receiver_is_bound);
}

/// Every stream there is, and a table of the results.
#[test]
#[ignore = "takes about twelve minutes"]
fn every_stream() {
    if !SrtLibrary::Punctual.is_there() {
        return;
    }
    let left = Mutex::new(every_pair().into_iter().flat_map(every_way).rev().collect::<Vec<_>>());
    let rows = Mutex::new(Vec::new());
    let next = || left.lock().expect("no test panics with it").pop();
    let work = || {
        while let Some(stream) = next() {
            let arrived = arrives(&stream);
            println!("{stream}: {}", if arrived { "bytes" } else { "FAILED" });
            rows.lock().expect("no test panics with it").push((stream, arrived));
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let rows = rows.into_inner().expect("no test panics with it");
    print_table(&rows);
    assert!(rows.iter().all(|(_, arrived)| *arrived), "see the table");
}

/// Whether the clip arrives, at the second attempt if the machine was busy at the first one.
fn arrives(stream: &Stream) -> bool {
    let test = format!("every_stream-{stream}").replace([' ', ',', '`'], "_");
    let pass = || retry_if_stalled(|| stream.pass(&test));
    catch_unwind(AssertUnwindSafe(pass)).is_ok()
}

/// Each program on Punctual's library with itself, with itself on libsrt, and with punctual; and
/// VLC, which only receives, with each sender.
fn every_pair() -> Vec<(Peer, Peer)> {
    let mut pairs = Vec::new();
    for (own, on_libsrt) in [(FFMPEG, FFMPEG_ON_LIBSRT), (GSTREAMER, GSTREAMER_ON_LIBSRT)] {
        pairs.push((own, own));
        for other in [on_libsrt, PUNCTUAL] {
            pairs.extend([(own, other), (other, own)]);
        }
    }
    pairs.extend([FFMPEG, FFMPEG_ON_LIBSRT, GSTREAMER, PUNCTUAL].map(|sender| (sender, VLC)));
    pairs
}

/// The sender as caller and as listener, in the clear and encrypted.
fn every_way((sender, receiver): (Peer, Peer)) -> Vec<Stream> {
    let stream = |sender_role, secrecy| Stream { sender, sender_role, receiver, secrecy };
    WAYS.map(|(role, secrecy)| stream(role, secrecy)).into()
}

fn print_table(rows: &[(Stream, bool)]) {
    println!("\n| sender | receiver | sender calls | sender listens |\n|---|---|---|---|");
    for (sender, receiver) in every_pair() {
        let of_pair: Vec<_> =
            every_way((sender, receiver)).iter().map(ToString::to_string).collect();
        let results = of_pair.iter().map(|name| {
            let row = rows.iter().find(|(stream, _)| stream.to_string() == *name);
            if row.is_some_and(|(_, arrived)| *arrived) { "bytes" } else { "FAILED" }
        });
        let results: Vec<_> = results.collect();
        let cell = |at: usize| match (results[at], results[at + 1]) {
            ("bytes", "bytes") => "bytes, clear and encrypted".to_owned(),
            (clear, encrypted) => format!("{clear}, encrypted {encrypted}"),
        };
        println!("| {sender} | {receiver} | {} | {} |", cell(0), cell(2));
    }
}

const WAYS: [(Role, Secrecy); 4] = [
    (Role::Caller, Secrecy::Clear),
    (Role::Caller, Secrecy::Encrypted),
    (Role::Listener, Secrecy::Clear),
    (Role::Listener, Secrecy::Encrypted),
];

/// As in `streams.rs`.
static TURNS: Turns = Turns::new(4);

const PASSPHRASE: &str = "correct-horse-battery";
