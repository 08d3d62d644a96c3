//! `punctual emulate`: a bad network between any two programs.

#[cfg(target_os = "linux")]
mod tun;

use std::time::Duration;

use punctual_emulator::{DirectionReport, Emulator, EmulatorConfig};
use punctual_ends::{PortTransport, cannot_bind, reaches, resolve};
use punctual_netem::PathProfile;
use punctual_units::{Bitrate, DisplayDuration, percent};
use punctual_uri::split_host_port;

use crate::args::EmulateArgs;
use crate::exit::Failure;
use crate::line::{self, LineText};
use crate::output::print;
use crate::stop;

/// Runs the command until it is stopped or its time is over.
pub(crate) async fn run(args: Box<EmulateArgs>, quiet: bool) -> Result<(), Failure> {
    if let Some(presets) = args.presets() {
        return print(format_args!("{presets}"));
    }
    let (Some(listen), Some(target)) = (&args.listen, &args.target) else {
        if !args.tun.tun {
            return Err(Failure::usage(
                "LISTEN and TARGET are missing: where to relay from and to",
            ));
        }
        return two_sides(&args, quiet).await;
    };
    let PathProfile { up, down } = args.links();
    let target = match address("TARGET", target).await? {
        address if address.ip().is_unspecified() || address.port() == 0 => {
            return Err(Failure::usage(format!(
                "TARGET `{target}` must be a host and a port, like 127.0.0.1:4200"
            )));
        }
        address => address,
    };
    let listen = address("LISTEN", listen).await?;
    if reaches(target, listen) {
        return Err(Failure::usage(format!(
            "LISTEN `{listen}` and TARGET `{target}` are the same port: the emulator would send \
             to itself"
        )));
    }
    let mut config = EmulatorConfig::new(listen, target);
    (config.up, config.down) = (up, down);
    config.each_client = args.each_client;
    config.seed = args.seed;
    config.max_clients = args.max_clients;
    config.client_timeout = args.client_timeout;
    let stop = stop::on_signals(args.duration());
    tracing::info!("to the target:  {}", config.up.in_words());
    tracing::info!("to the client:  {}", config.down.in_words());
    let emulator = Emulator::start(config)
        .await
        .map_err(|error| cannot_bind("listen on", listen, PortTransport::Udp, &error))?;
    tracing::info!("relaying from {} to {target} (Ctrl-C ends it)", emulator.local_addr());
    let report = || {
        let report = emulator.report();
        [report.up, report.down]
    };
    tokio::select! {
        () = stop.told() => {}
        () = show(["to the target", "to the client"], report), if !quiet => {}
    }
    line::finish();
    print(format_args!("{}\n", emulator.stop().await))
}

#[cfg(target_os = "linux")]
async fn two_sides(args: &EmulateArgs, quiet: bool) -> Result<(), Failure> {
    tun::run(args, quiet).await
}

#[cfg(not(target_os = "linux"))]
async fn two_sides(_: &EmulateArgs, _: bool) -> Result<(), Failure> {
    Err(Failure::usage("--tun needs the network namespaces of Linux"))
}

/// Runs a command of a side, in the process that was started for it.
#[cfg(target_os = "linux")]
pub(crate) fn run_in_namespace(arguments: Vec<std::ffi::OsString>) -> std::process::ExitCode {
    match punctual_emulator::init(arguments) {
        Ok(code) => code.into(),
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "punctual: a command cannot be run: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Shows the figures of the links in the live line.
async fn show(names: [&str; 2], report: impl Fn() -> [DirectionReport; 2]) {
    let mut before = report();
    line::show(|time| {
        let report = report();
        let mut late = report[0].lateness.clone();
        late.merge(&report[1].lateness);
        let mut text = LineText::default();
        for (name, (now, before)) in names.iter().zip(report.iter().zip(&before)) {
            let rate =
                Bitrate::of(now.link.sent_bytes.saturating_sub(before.link.sent_bytes), time);
            let lost = percent(now.link.dropped(), now.link.sent);
            text.push(90, format!("{name} {rate:#}, lost {lost}"));
        }
        before = report;
        let late = DisplayDuration(Duration::from_nanos(late.p99()?));
        text.push(50, format!("late p99 {late:#}"));
        Some(text)
    })
    .await;
}

async fn address(what: &str, text: &str) -> Result<std::net::SocketAddr, Failure> {
    let text = text.strip_prefix("udp://").unwrap_or(text);
    let wrong = |problem: &str| {
        Failure::usage(format!("{what} `{}`: {problem}", punctual_uri::redacted(text)))
    };
    let (host, port) = split_host_port(text).map_err(|problem| wrong(&problem.to_string()))?;
    let port = port.ok_or_else(|| wrong("the port is missing; write it like `:5000`"))?;
    resolve(host, port, None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn errors_about_addresses_name_the_fault() {
        assert!(address("LISTEN", ":5000").await.is_ok());
        assert!(address("LISTEN", "udp://127.0.0.1:5000").await.is_ok());
        let failure = address("TARGET", "127.0.0.1").await.unwrap_err();
        assert!(failure.is_usage());
        assert!(failure.to_string().contains("TARGET `127.0.0.1`: the port is missing"));
        let failure = address("TARGET", "srt://h:1?passphrase=hush").await.unwrap_err();
        assert!(!failure.to_string().contains("hush"), "{failure}");
    }
}
