use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::folder::{profile, shared, target};
use crate::tool::SYSTEM_PYTHON;
use crate::{Clip, Place, SrtLibrary, Tool};

/// Which side of the handshake a program takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It calls.
    Caller,
    /// It waits for a call.
    Listener,
}

impl Role {
    /// The role of the other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Caller => Self::Listener,
            Self::Listener => Self::Caller,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Listener => "listener",
        }
    }
}

/// Which way the stream goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Punctual sends.
    FromUs,
    /// Punctual receives.
    ToUs,
}

/// One end of a connection on this machine.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Whether this end calls.
    pub role: Role,
    /// The port to call or to listen on.
    pub port: u16,
    /// The stream ID to send, if any.
    pub stream_id: Option<&'a str>,
    /// The passphrase to encrypt with, if any.
    pub passphrase: Option<&'a str>,
    /// More of the URI's query, as this program writes it: `key=value`, with `&` between two.
    pub options: &'a str,
    /// The scheme of the URI.
    pub scheme: &'a str,
    /// The port to bind if this end meets another one that calls, too.
    pub meets_at: Option<u16>,
}

impl<'a> End<'a> {
    /// An end of a rendezvous.
    pub fn at(place: Place) -> Self {
        Self { meets_at: Some(place.local), ..Self::new(Role::Caller, place.remote) }
    }

    /// An end without stream ID and passphrase.
    pub fn new(role: Role, port: u16) -> Self {
        Self {
            role,
            port,
            stream_id: None,
            passphrase: None,
            options: "",
            scheme: "srt",
            meets_at: None,
        }
    }

    /// This end with a stream ID to send.
    #[must_use]
    pub fn with_stream_id(self, stream_id: &'a str) -> Self {
        Self { stream_id: Some(stream_id), ..self }
    }

    /// This end with a passphrase.
    #[must_use]
    pub fn with_passphrase(self, passphrase: &'a str) -> Self {
        Self { passphrase: Some(passphrase), ..self }
    }

    /// This end with more options.
    #[must_use]
    pub fn with_options(self, options: &'a str) -> Self {
        Self { options, ..self }
    }

    /// This end with another scheme in its URI.
    #[must_use]
    pub fn with_scheme(self, scheme: &'a str) -> Self {
        Self { scheme, ..self }
    }

    /// The URI of this end, with the latency written as this program wants it.
    fn uri(&self, latency: &str) -> String {
        let host = match self.role {
            Role::Caller => "127.0.0.1",
            Role::Listener => "",
        };
        let Self { scheme, port, role, .. } = self;
        let mode = if self.meets_at.is_some() { "rendezvous" } else { role.name() };
        let mut uri = format!("{scheme}://{host}:{port}?mode={mode}&{latency}");
        if let Some(stream_id) = self.stream_id {
            uri += &format!("&streamid={stream_id}");
        }
        if let Some(passphrase) = self.passphrase {
            uri += &format!("&passphrase={passphrase}");
        }
        if let Some(local) = self.meets_at {
            uri += &format!("&adapter=127.0.0.1&port={local}");
        }
        if !self.options.is_empty() {
            uri += &format!("&{}", self.options);
        }
        uri
    }

    /// This end as properties of a GStreamer element. In a URI GStreamer takes the `#` that stream
    /// IDs begin with for the start of a fragment, and drops it.
    fn properties(&self) -> Vec<String> {
        let plain = Self { stream_id: None, passphrase: None, meets_at: None, ..*self };
        let mut properties =
            vec!["auto-reconnect=false".to_owned(), format!("uri={}", plain.uri("latency=450"))];
        properties.extend(self.stream_id.map(|id| format!("streamid={id}")));
        properties.extend(self.passphrase.map(|passphrase| format!("passphrase={passphrase}")));
        if let Some(local) = self.meets_at {
            let mode = ["mode=rendezvous", "localaddress=127.0.0.1"].map(str::to_owned);
            properties.extend(mode.into_iter().chain([format!("localport={local}")]));
        }
        properties
    }
}

/// A program that streams: ours or a peer.
///
/// All of them use a latency of 450 ms. Until libsrt has measured the round-trip time, it repeats a
/// NAK only after 300 ms, so that at 250 ms one session in fifteen loses a packet in its first
/// tenths of a second over a link that loses 2 %.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Program {
    /// FFmpeg.
    Ffmpeg,
    /// GStreamer's command line.
    GStreamer,
    /// The program of this repository.
    Punctual,
    /// libsrt's own sample program.
    SrtLiveTransmit,
    /// VLC.
    Vlc,
}

impl Program {
    /// The tools that it needs.
    pub fn tools(self) -> &'static [Tool] {
        match self {
            Self::Ffmpeg => &[Tool::Ffmpeg],
            Self::GStreamer => &[Tool::GStreamer],
            Self::Punctual => &[],
            Self::SrtLiveTransmit => &[Tool::SrtLiveTransmit],
            Self::Vlc => &[Tool::Vlc],
        }
    }

    /// The command that sends a live stream: its standard input.
    ///
    /// FFmpeg would write its own transport stream. It sends one made from the clip, and writes the
    /// same bytes to the file `reference`. VLC would do the former without the latter, but Debian's
    /// 3.0.24 connects and sends nothing.
    pub fn sender(self, end: &End, reference: &Path) -> Command {
        match self {
            Self::Ffmpeg => {
                let mut command = ffmpeg();
                command.args(["-re", "-i"]).arg(Clip::get().path());
                command.args(["-map", "0", "-c", "copy", "-f", "tee"]);
                let srt = end.uri("latency=450000") + "&pkt_size=1316";
                let mux = "[f=mpegts:muxrate=5000000:max_delay=1200000]";
                command.arg(format!("{mux}{}|{mux}{srt}", reference.display()));
                command
            }
            Self::GStreamer => {
                let mut command = Command::new("gst-launch-1.0");
                command.args(["-q", "fdsrc", "fd=0", "blocksize=1316", "!", "srtsink"]);
                command.args(end.properties());
                command
            }
            Self::Punctual => {
                let mut command = Command::new(punctual());
                command.args(["route", "-", &end.uri("latency=450ms")]);
                command
            }
            Self::SrtLiveTransmit => {
                let mut command = Command::new("srt-live-transmit");
                command.args(["-a:no", "-v", "-chunk:1316", "file://con"]);
                command.arg(end.uri("latency=450"));
                command
            }
            Self::Vlc => {
                let mut command = vlc();
                let uri = end.uri("latency=450");
                let target = uri.trim_start_matches("srt://");
                let output = format!("#standard{{access=srt,mux=ts,dst={target}}}");
                command.arg(Clip::get().path()).args(["--sout", &output, "vlc://quit"]);
                command
            }
        }
    }

    /// Whether [`sender`](Self::sender) sends its standard input.
    pub fn reads_standard_input(self) -> bool {
        !matches!(self, Self::Ffmpeg | Self::Vlc)
    }

    /// The line that it writes once it is connected in this role, if it does so before data flow.
    pub fn says_when_connected(self, role: Role, sends: bool) -> Option<&'static str> {
        match (self, role) {
            (Self::SrtLiveTransmit, Role::Caller) => sends.then_some("SRT target connected"),
            (Self::SrtLiveTransmit, Role::Listener) => Some("Accepted SRT"),
            (Self::Punctual, _) => Some("connected with"),
            (Self::Ffmpeg | Self::GStreamer | Self::Vlc, _) => None,
        }
    }

    /// The command that receives into the file `output`, and whether it writes the stream to its
    /// standard output instead.
    pub fn receiver(self, end: &End, output: &Path) -> (Command, bool) {
        let path = output.display();
        match self {
            Self::Ffmpeg => {
                let mut command = ffmpeg();
                command.args(["-f", "data", "-i", &end.uri("latency=450000")]);
                command.args(["-map", "0", "-c", "copy", "-flush_packets", "1", "-f", "data"]);
                command.arg(output);
                (command, false)
            }
            Self::GStreamer => {
                let mut command = Command::new("gst-launch-1.0");
                command.args(["-q", "srtsrc"]).args(end.properties());
                command.args(["!", "filesink", "buffer-mode=unbuffered"]);
                command.arg(format!("location={path}"));
                (command, false)
            }
            Self::Punctual => {
                let mut command = Command::new(punctual());
                command.args(["route", &end.uri("latency=450ms"), &format!("file://{path}")]);
                (command, false)
            }
            Self::SrtLiveTransmit => {
                let mut command = Command::new("srt-live-transmit");
                command.args(["-a:no", "-v", "-chunk:1316", &end.uri("latency=450")]);
                command.arg("file://con");
                (command, true)
            }
            Self::Vlc => {
                let mut command = vlc();
                command.args([&end.uri("latency=450"), "--demux=dump"]);
                command.args([&format!("--demuxdump-file={path}"), "vlc://quit"]);
                (command, false)
            }
        }
    }
}

/// The command that relays UDP between the ports `from` and `to` of this machine over an emulated
/// link.
pub fn emulator(from: u16, to: u16, link: &[&str]) -> Command {
    let mut command = Command::new(punctual());
    command.args(["emulate", &format!("127.0.0.1:{from}"), &format!("127.0.0.1:{to}")]).args(link);
    command
}

/// The command that bridges between SRT over QUIC and SRT over UDP in this role of QUIC: it waits
/// on the port `from`, and calls the port `to` of this machine. Its UDP datagrams have up to
/// `largest` bytes. Its certificate is [`bridge_certificate`].
pub fn quic_bridge(role: Role, largest: u16, from: u16, to: u16) -> Command {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let (certificate, key) = bridge_certificate();
    let mut command = Command::new("python3");
    command.arg(peers.join("quic_bridge.py"));
    let numbers = [largest, from, to].map(|number| number.to_string());
    match role {
        Role::Listener => command.arg("server").args(&numbers).arg(certificate).arg(key),
        Role::Caller => command.arg("client").args(&numbers).arg(certificate).arg("studio.example"),
    };
    command
}

/// The command that runs this GStreamer pipeline on this library, shows what the SRT element in it
/// says and takes commands, as `peers/gst_srt.py` explains.
pub fn gstreamer_pipeline(library: SrtLibrary, pipeline: &str) -> Command {
    let mut command = Command::new(SYSTEM_PYTHON);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/gst_srt.py")).arg(pipeline);
    library.put_under(&mut command);
    command
}

/// The files of a certificate for `studio.example` and of its key.
pub fn bridge_certificate() -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/uri/tests");
    (folder.join("certificate.pem"), folder.join("key.pem"))
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-nostdin", "-nostats", "-loglevel", "info", "-y"]);
    command
}

/// VLC without a window. It refuses to run as root; as nobody it may still read and write where the
/// tests do.
pub(crate) fn vlc() -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "vlc"]);
        command
    } else {
        Command::new("vlc")
    };
    command.env("HOME", shared()).args(["-I", "dummy", "--ignore-config", "--no-one-instance"]);
    command
}

/// The punctual program: the one that `PUNCTUAL_BIN` names, or the one of this build, brought up to
/// date.
pub fn punctual() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        if let Some(program) = std::env::var_os("PUNCTUAL_BIN") {
            return program.into();
        }
        build("punctual-cli");
        profile().join("punctual")
    };
    PROGRAM.get_or_init(build).clone()
}

/// The program punctual-relay beside the one that `PUNCTUAL_BIN` names, or that of this build,
/// brought up to date.
pub fn punctual_relay() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        if let Some(program) = std::env::var_os("PUNCTUAL_BIN") {
            return Path::new(&program).with_file_name("punctual-relay");
        }
        build("punctual-relay-server");
        profile().join("punctual-relay")
    };
    PROGRAM.get_or_init(build).clone()
}

/// Builds the program punctual-lab beside the punctual program, if it is not there.
pub fn build_punctual_lab() {
    if !profile().join("punctual-lab").exists() {
        build("punctual-lab-cli");
    }
}

/// Builds a package of this workspace in the profile of the tests.
fn build(package: &str) {
    let profile = profile();
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, "--profile", name]);
    cargo.arg("--target-dir").arg(target()).current_dir(env!("CARGO_MANIFEST_DIR"));
    let status = cargo.status().expect("cargo runs the tests, so it can build");
    assert!(status.success(), "{package} does not build");
}
