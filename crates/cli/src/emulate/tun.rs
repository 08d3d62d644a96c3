//! Two sides, and a command on each.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use punctual_emulator::{Helper, Running, Side, SideCommand, TunConfig, TunEmulator};
use punctual_netem::PathProfile;
use tokio::time::timeout;

use crate::args::{EmulateArgs, TunArgs, Until};
use crate::emulate::show;
use crate::exit::Failure;
use crate::line;
use crate::output::{self, print};
use crate::stop;
use crate::written;

/// Runs the command until its commands have ended, it is stopped or its time is over.
pub(super) async fn run(args: &EmulateArgs, quiet: bool) -> Result<(), Failure> {
    let PathProfile { up, down } = args.links();
    let tun = &args.tun;
    let stop = stop::on_signals(args.duration());
    tracing::info!("left to right:  {}", up.in_words());
    tracing::info!("right to left:  {}", down.in_words());
    let config = TunConfig { up, down, seed: args.seed, mtu: tun.device_mtu };
    let mut emulator =
        TunEmulator::start(config).map_err(|error| Failure::runtime(error.to_string()))?;
    let right = SideProcess::start(&emulator, Side::Right, tun)?;
    if tun.left.is_some() && tun.right.is_some() {
        // If it is time to end now, the left command is started and ended at once.
        let _ = stop.or(tokio::time::sleep(tun.left_after)).await;
        emulator.restart();
    }
    let mut commands = [SideProcess::start(&emulator, Side::Left, tun)?, right];
    let alone = commands.iter().all(|command| !command.writes_to_ours);
    let result = tokio::select! {
        result = ended(&mut commands, tun.until()) => result,
        () = stop.told() => Ok(()),
        () = show_links(&emulator), if alone && !quiet => Ok(()),
    };
    for command in &mut commands {
        command.end().await;
    }
    line::finish();
    let report = emulator.stop();
    // Standard output belongs to the commands that write there.
    if alone {
        print(format_args!("{report}\n"))?;
    } else {
        output::message(format!("{report}\n"));
    }
    result
}

async fn show_links(emulator: &TunEmulator) {
    show(["left to right", "right to left"], || {
        let report = emulator.report();
        [report.up, report.down]
    })
    .await;
}

/// The process on a side.
struct SideProcess {
    side: Side,
    /// Whether it is the user's command; otherwise it only keeps the side open.
    works: bool,
    /// Whether it writes to this program's standard output and error.
    writes_to_ours: bool,
    running: Running,
    has_ended: bool,
}

impl SideProcess {
    fn start(emulator: &TunEmulator, side: Side, args: &TunArgs) -> Result<Self, Failure> {
        let (text, log) = match side {
            Side::Left => (&args.left, &args.left_log),
            Side::Right => (&args.right, &args.right_log),
        };
        let writes_to_ours = text.is_some() && log.is_none();
        let command = match text {
            Some(text) => {
                let command = SideCommand::new(helper(), text);
                // Two programs cannot read from one terminal.
                let reads = side == Side::Left || args.left.is_none();
                let command = if reads { command } else { command.stdin(Stdio::null()) };
                logged(command, log.as_deref())?
            }
            None => SideCommand::idle(helper())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        };
        let running = emulator.spawn(side, command).map_err(|error| {
            Failure::runtime(format!("the {side} side cannot run a command: {error}"))
        })?;
        match text {
            Some(text) => {
                let shown = punctual_uri::redacted_words(&text.to_string_lossy());
                tracing::info!("{side} ({}): {shown}", side.ipv4());
            }
            None => tracing::info!(
                "for a shell on the {side} side ({}): nsenter -t {} -n -m -p",
                side.ipv4(),
                running.id()
            ),
        }
        Ok(Self { side, works: text.is_some(), writes_to_ours, running, has_ended: false })
    }

    /// Completes when a command has ended by itself; never without one.
    async fn ended(&mut self) -> Result<(), Failure> {
        if !self.works || self.has_ended {
            return std::future::pending().await;
        }
        let status = self.running.wait().await;
        self.has_ended = true;
        let status = status.map_err(|error| Failure::from(error).at(self.side))?;
        let text = format!("the {} command ended {}", self.side, how(status));
        if !status.success() {
            return Err(Failure::runtime(text));
        }
        tracing::info!("{text}");
        Ok(())
    }

    /// Ends the command if it has not ended: by SIGTERM first, later by force.
    async fn end(&mut self) {
        if !self.has_ended {
            self.running.terminate();
            if timeout(GRACE, self.running.wait()).await.is_err() {
                tracing::warn!("the {} command does not end; it is killed", self.side);
                self.running.kill();
                let _ = self.running.wait().await;
            }
            self.has_ended = true;
        }
    }
}

/// Waits for the commands that end the run. A command that fails ends it in any case.
async fn ended(commands: &mut [SideProcess; 2], until: Until) -> Result<(), Failure> {
    let [left, right] = commands;
    loop {
        tokio::select! {
            result = left.ended() => result?,
            result = right.ended() => result?,
        }
        let done = match until {
            Until::Left => left.has_ended,
            Until::Right => right.has_ended,
            Until::First => left.has_ended || right.has_ended,
            Until::Both => left.has_ended && right.has_ended,
        };
        if done {
            return Ok(());
        }
    }
}

fn logged(command: SideCommand, log: Option<&Path>) -> Result<SideCommand, Failure> {
    let Some(log) = log else { return Ok(command) };
    let file = written::add_to(log)?;
    let same = file.try_clone().map_err(|error| Failure::file(log, &error))?;
    Ok(command.stdout(file).stderr(same))
}

/// This program itself, even if its file has been replaced since it was started.
fn helper() -> Helper {
    Helper { program: "/proc/self/exe".into(), arguments: vec![OsString::from(SUBCOMMAND)] }
}

fn how(status: ExitStatus) -> String {
    match status.code() {
        Some(code @ 129..) => format!("by signal {}", code - 128),
        Some(code) => format!("with exit code {code}"),
        None => status.to_string(),
    }
}

/// The hidden subcommand that a side's command runs under.
pub(crate) const SUBCOMMAND: &str = "run-in-namespace";

/// Time for a command to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
