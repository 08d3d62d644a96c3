use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread;

use crate::program::vlc;

/// A program of other people's that a test needs. Even what every system has may be missing in a
/// container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tool {
    /// Python with aioquic, a QUIC implementation.
    Aioquic,
    /// Chromium, a browser.
    Chromium,
    /// The C compiler and libsrt's headers.
    CompilerAndLibsrt,
    /// The C++ compiler.
    CppCompiler,
    /// FFmpeg.
    Ffmpeg,
    /// GStreamer's command line with the SRT elements.
    GStreamer,
    /// GStreamer's interface for Python.
    GStreamerForPython,
    /// The command line of the kernel's network devices.
    Ip,
    /// The names in object files.
    Nm,
    /// Echo requests.
    Ping,
    /// Prometheus, and its tool that checks metrics and rules.
    Prometheus,
    /// Python without any package.
    Python,
    /// Privileges of a command.
    Setpriv,
    /// Runs a command in a new session.
    Setsid,
    /// A command that does nothing for a while.
    Sleep,
    /// libsrt's own sample program.
    SrtLiveTransmit,
    /// Wireshark's dissectors on the command line.
    Tshark,
    /// VLC.
    Vlc,
}

impl Tool {
    fn is_installed(self) -> bool {
        match self {
            Self::Aioquic => succeeds("python3", &["-c", "import aioquic"]),
            Self::Chromium => succeeds("chromium", &["--version"]),
            Self::CompilerAndLibsrt => {
                succeeds("cc", &["--version"]) && succeeds("pkg-config", &["--exists", "srt"])
            }
            Self::CppCompiler => succeeds("c++", &["--version"]),
            Self::Ffmpeg => succeeds("ffmpeg", &["-version"]),
            Self::GStreamer => succeeds("gst-inspect-1.0", &["srtsink"]),
            Self::GStreamerForPython => {
                let import = "import gi; gi.require_version('Gst', '1.0')";
                succeeds(SYSTEM_PYTHON, &["-c", import])
            }
            Self::Ip => succeeds("ip", &["-Version"]),
            Self::Nm => succeeds("nm", &["--version"]),
            Self::Ping => succeeds("ping", &["-V"]),
            Self::Prometheus => {
                succeeds("promtool", &["--version"]) && succeeds("prometheus", &["--version"])
            }
            Self::Python => succeeds("python3", &["--version"]),
            Self::Setpriv => succeeds("setpriv", &["--version"]),
            Self::Setsid => succeeds("setsid", &["--version"]),
            Self::Sleep => succeeds("sleep", &["0"]),
            Self::SrtLiveTransmit => succeeds("srt-live-transmit", &["-version"]),
            Self::Tshark => succeeds("tshark", &["--version"]),
            Self::Vlc => runs(vlc().arg("--version")),
        }
    }

    /// The command that installs it.
    fn installation(self) -> String {
        let packages = match self {
            Self::Aioquic => {
                return "python3 -m venv target/tools/python && target/tools/python/bin/pip install \
                        -r interop/peers/requirements.txt, and its bin folder in PATH"
                    .to_owned();
            }
            Self::Chromium => "chromium",
            Self::CompilerAndLibsrt => "gcc libc6-dev pkg-config libsrt-gnutls-dev",
            Self::CppCompiler => "g++",
            Self::Ffmpeg => "ffmpeg",
            Self::GStreamer => "gstreamer1.0-tools gstreamer1.0-plugins-bad",
            Self::GStreamerForPython => "python3-gi gir1.2-gstreamer-1.0",
            Self::Ip => "iproute2",
            Self::Nm => "binutils",
            Self::Ping => "iputils-ping",
            Self::Prometheus => "prometheus",
            Self::Python => "python3",
            Self::Setpriv | Self::Setsid => "util-linux",
            Self::Sleep => "coreutils",
            Self::SrtLiveTransmit => "srt-tools",
            Self::Tshark => "tshark",
            Self::Vlc => "vlc-bin vlc-plugin-base vlc-plugin-access-extra util-linux",
        };
        format!("Debian: apt install {packages}")
    }
}

/// Whether all of these tools are installed. If one is not, says so past the test harness's
/// capture, so that nobody takes a skipped test for a passed one.
///
/// # Panics
///
/// If one is missing and `PUNCTUAL_REQUIRE_PEERS` is set to `1`.
pub fn have_all(tools: &[Tool]) -> bool {
    let Some(missing) = tools.iter().find(|tool| !tool.is_installed()) else { return true };
    skip(&format!("{missing:?} is missing ({})", missing.installation()));
    false
}

/// Says past the test harness's capture that this test is skipped, and why.
///
/// # Panics
///
/// If `PUNCTUAL_REQUIRE_PEERS` is set to `1`.
pub fn skip(why: &str) {
    let current = thread::current();
    let problem = format!("{}: {why}", current.name().unwrap_or("test"));
    assert!(std::env::var("PUNCTUAL_REQUIRE_PEERS").as_deref() != Ok("1"), "{problem}");
    // The harness may be in the middle of a line.
    let _ = writeln!(io::stdout(), "\nskipped: {problem}");
}

/// The Python that Debian's packages are for. The one of a virtual environment does not see them.
pub(crate) const SYSTEM_PYTHON: &str = "/usr/bin/python3";

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    runs(Command::new(program).args(arguments))
}

fn runs(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
