//! `punctual emulate`: a bad network between any two UDP programs.

use std::time::Duration;

use punctual_emulator::{DirectionReport, Emulator, EmulatorConfig};
use punctual_netem::LinkConfig;
use punctual_units::{Bitrate, DisplayDuration, percent};
use punctual_uri::split_host_port;

use crate::args::EmulateArgs;
use crate::endpoint::resolve;
use crate::exit::Failure;
use crate::live::line;
use crate::print::print;
use crate::stop::Stop;

/// Runs the command until it is stopped or its time is over.
pub(crate) async fn run(args: Box<EmulateArgs>, quiet: bool) -> Result<(), Failure> {
    let (up, down) = args.links().map_err(|error| Failure::usage(error.to_string()))?;
    let target = address("TARGET", &args.target).await?;
    let listen = address("LISTEN", &args.listen).await?;
    if target.ip().is_unspecified() || target.port() == 0 {
        return Err(Failure::usage(format!(
            "TARGET `{}` must be a host and a port, like 127.0.0.1:4200",
            args.target
        )));
    }
    let mut config = EmulatorConfig::new(listen, target);
    (config.up, config.down) = (up, down);
    config.seed = args.seed;
    config.max_clients = args.max_clients;
    config.client_timeout = args.client_timeout;
    let stop = Stop::on_signals(args.duration());
    tracing::info!("to the target:  {}", describe(&config.up));
    tracing::info!("to the client:  {}", describe(&config.down));
    let emulator = Emulator::start(config)
        .await
        .map_err(|error| Failure::runtime(format!("cannot listen on {listen}: {error}")))?;
    tracing::info!("relaying from {} to {target} (Ctrl-C ends it)", emulator.local_addr());
    tokio::select! {
        () = stop.told() => {}
        () = show(&emulator), if !quiet => {}
    }
    line::finish();
    print(format_args!("{}\n", emulator.stop().await))
}

/// Shows again and again what the links do.
async fn show(emulator: &Emulator) {
    let mut before = emulator.report();
    line::show(|time| {
        let report = emulator.report();
        let rate = |now: &DirectionReport, before: &DirectionReport| {
            Bitrate::of(now.link.sent_bytes - before.link.sent_bytes, time)
        };
        let (up, down) = (rate(&report.up, &before.up), rate(&report.down, &before.down));
        let link = |direction: &DirectionReport| {
            let link = &direction.link;
            percent(link.lost + link.dropped_by_queue, link.sent)
        };
        let mut late = report.up.lateness.clone();
        late.merge(&report.down.lateness);
        let late = late.p99().map(|nanos| DisplayDuration(Duration::from_nanos(nanos)));
        let text = late.map(|late| {
            let (lost_up, lost_down) = (link(&report.up), link(&report.down));
            format!(
                "to the target {up:#}, lost {lost_up}  |  to the client {down:#}, \
                 lost {lost_down}  |  late p99 {late:#}"
            )
        });
        before = report;
        text
    })
    .await;
}

async fn address(what: &str, text: &str) -> Result<std::net::SocketAddr, Failure> {
    let text = text.strip_prefix("udp://").unwrap_or(text);
    let wrong = |problem: &str| Failure::usage(format!("{what} `{text}`: {problem}"));
    let (host, port) = split_host_port(text).map_err(|problem| wrong(&problem.to_string()))?;
    let port = port.ok_or_else(|| wrong("the port is missing; write it like `:5000`"))?;
    resolve(host, port, None).await
}

/// A link in words.
pub(crate) fn describe(config: &LinkConfig) -> String {
    use punctual_netem::{Jitter, Loss, Reorder};
    let percent = |share: f64| format!("{} %", (share * 1e6).round() / 1e4);
    let time = |time: Duration| DisplayDuration(time).to_string();
    let mut parts = match config.delay {
        Duration::ZERO => vec!["no delay".to_owned()],
        delay => vec![format!("delay {}", time(delay))],
    };
    match config.jitter {
        Jitter::Uniform { spread } => parts.push(format!("jitter up to {}", time(spread))),
        Jitter::Normal { std_dev } => parts.push(format!("jitter {}", time(std_dev))),
        _ => {}
    }
    match &config.loss {
        Loss::None => {}
        Loss::GilbertElliott { .. } => {
            parts.push(format!("loss {} in bursts", percent(config.loss.mean())));
        }
        loss => parts.push(format!("loss {}", percent(loss.mean()))),
    }
    if let Some(rate) = config.rate {
        parts.push(format!("rate {rate}, queue {}", queue(config.queue)));
    }
    if let Reorder::Ahead { share, by } | Reorder::Late { share, by } = config.reorder {
        parts.push(format!("{} reordered by {}", percent(share), time(by)));
    }
    if config.duplicate > 0.0 {
        parts.push(format!("{} duplicated", percent(config.duplicate)));
    }
    if config.corrupt > 0.0 {
        parts.push(format!("{} corrupted", percent(config.corrupt)));
    }
    parts.join(", ")
}

fn queue(limit: punctual_netem::QueueLimit) -> String {
    use punctual_netem::QueueLimit;
    match limit {
        QueueLimit::Bytes(bytes) => punctual_units::DisplayBytes(bytes as u64).to_string(),
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Time(time) => DisplayDuration(time).to_string(),
        _ => "unlimited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_described_by_what_it_does() {
        let config = LinkConfig::default()
            .with_delay(Duration::from_millis(25))
            .with_rate(Some(Bitrate::from_mbps(20)))
            .with_loss(punctual_netem::Loss::bursts(0.02, 8.0))
            .unwrap();
        assert_eq!(
            describe(&config),
            "delay 25 ms, loss 2 % in bursts, rate 20 Mb/s, queue 1000 packets"
        );
        assert_eq!(describe(&LinkConfig::default()), "no delay");
    }

    #[tokio::test]
    async fn addresses_say_what_is_wrong_with_them() {
        assert!(address("LISTEN", ":5000").await.is_ok());
        assert!(address("LISTEN", "udp://127.0.0.1:5000").await.is_ok());
        let failure = address("TARGET", "127.0.0.1").await.unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("TARGET `127.0.0.1`: the port is missing"));
    }
}
