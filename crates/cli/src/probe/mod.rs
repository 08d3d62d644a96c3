//! `punctual probe`: measures a link, and recommends SRT settings for it.

mod listen;
mod show;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual::{RetransmitAlgorithm, Socket, Timer, now};
use punctual_ends::srt;
use punctual_probe::{Measurement, Probe, ProbePeer, ProbeProgress, Stage, document, recommend};
use punctual_units::DisplayDuration;
use punctual_uri::{Mode, SrtTarget, Target, Uri};

use crate::args::ProbeArgs;
use crate::exit::Failure;
use crate::line::{self, LineText};
use crate::output::print;
use crate::stop::{self, Stop};
use crate::uris;

/// Runs the command until the link is measured, or as a listener until it is stopped.
pub(crate) async fn run(args: Box<ProbeArgs>, quiet: bool) -> Result<(), Failure> {
    if let Some(uri) = &args.listen {
        return listen::run(srt_target(uri)?, args.once).await;
    }
    let uri =
        args.uri.as_ref().ok_or_else(|| Failure::usage("the URI of the listener is missing"))?;
    let target = srt_target(uri)?;
    if target.mode == Mode::Listener {
        return Err(Failure::usage(format!(
            "`{uri}` has no host to call; the listening end is `punctual probe --listen`"
        )));
    }
    // Faults in the options should be reported before the peer is called.
    args.config(LATENCY, LARGEST_PAYLOAD).map_err(|error| Failure::usage(error.to_string()))?;
    let stop = stop::on_signals(None);
    let Some(socket) = stop.or(srt::call(&target, LARGEST_PAYLOAD)).await else { return Ok(()) };
    let socket = socket.map_err(|failure| failure.at(uri))?;
    srt::announce(&socket);
    let (probe, end) = drive(&args, &socket, &stop, quiet).await?;
    // The peer need not play the rest of a stream that was sent only to be counted.
    drop(socket);
    line::finish();
    let measurement = probe.measurement();
    print(report(&args, uri, &target, &measurement)?)?;
    match end {
        Some(failure) => Err(failure.at(uri)),
        None => recommend(&measurement, &args.constraints())
            .map(drop)
            .map_err(|error| Failure::runtime(error.to_string())),
    }
}

/// Sends and receives until the probe is done; returns the reason if the connection ended before.
async fn drive(
    args: &ProbeArgs,
    socket: &Socket,
    stop: &Stop,
    quiet: bool,
) -> Result<(Probe, Option<Failure>), Failure> {
    let info = socket.info();
    let latency = info.receive_latency.max(info.peer_latency);
    let config = args
        .config(latency, info.max_payload)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut probe = Probe::new(config, now());
    let watch = ProbeLine::start(quiet);
    let mut timer = Timer::new()?;
    let mut said = LoggedEvents::default();
    let mut end = None;
    while let Some(due) = probe.poll_timeout() {
        let moment = now();
        while let Some(message) = probe.poll_message(moment) {
            // A message without room in the buffer is not sent later: the probe sees the backlog.
            if let Err(error) = socket.try_send(&message) {
                end = Some(error.into());
                break;
            }
        }
        if probe.wants_statistics(moment) {
            probe.observe(moment, &socket.statistics());
            said.tell(&probe);
            watch.show(probe.progress());
        }
        if end.is_some() {
            break;
        }
        tokio::select! {
            received = socket.recv() => match received {
                Ok(message) => probe.handle_message(now(), &message.payload),
                Err(error) => end = Some(error.into()),
            },
            () = timer.sleep_until(probe.poll_timeout().unwrap_or(due)) => {}
            () = stop.told() => break,
        }
    }
    probe.stop(now());
    said.tell(&probe);
    Ok((probe, end))
}

/// The events of the probe that have been logged so far.
#[derive(Default)]
struct LoggedEvents {
    peer: bool,
    steps: usize,
}

impl LoggedEvents {
    fn tell(&mut self, probe: &Probe) {
        if let (Some(peer), false) = (probe.peer(), self.peer) {
            self.peer = true;
            match peer {
                ProbePeer::Punctual => {
                    tracing::info!("the other end is Punctual and reports what arrives");
                }
                ProbePeer::Other => tracing::info!(
                    "the other end is not `punctual probe --listen`: measuring by this end alone"
                ),
            }
        }
        let steps = probe.steps();
        let done = probe.concluded();
        for step in steps.iter().take(done).skip(self.steps) {
            tracing::info!("{}", show::step(step));
        }
        self.steps = self.steps.max(done);
    }
}

/// The live line.
struct ProbeLine {
    progress: Arc<Mutex<Option<ProbeProgress>>>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl ProbeLine {
    fn start(quiet: bool) -> Self {
        let progress = Arc::<Mutex<Option<ProbeProgress>>>::default();
        let shown = Arc::clone(&progress);
        let describe = move |_: Duration| {
            let progress = *shown.lock().unwrap_or_else(PoisonError::into_inner);
            progress.map(|progress| describe(&progress))
        };
        let task = (!quiet).then(|| tokio::spawn(line::show(describe)));
        Self { progress, task }
    }

    fn show(&self, progress: ProbeProgress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }
}

impl Drop for ProbeLine {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn describe(progress: &ProbeProgress) -> LineText {
    let doing = match progress.stage {
        Stage::Greeting => "waiting for the peer".to_owned(),
        Stage::Ramp(rate) => format!("trying {rate:#}"),
        Stage::Pause => "waiting for queues to empty".to_owned(),
        Stage::Sustained(rate) => format!("holding {rate:#}"),
        Stage::Done => "done".to_owned(),
    };
    let rtt = DisplayDuration(progress.rtt);
    let lost = punctual_units::share_in_percent(progress.loss);
    let mut line = LineText::default();
    line.push(100, doing);
    if !progress.rtt.is_zero() {
        line.push(80, format!("RTT {rtt:#}"));
    }
    line.push(70, format!("lost {lost}"));
    if let Some(rate) = progress.usable {
        line.push(90, format!("carried so far: {rate:#}"));
    }
    line
}

/// The results, as text or as JSON.
fn report(
    args: &ProbeArgs,
    uri: &Uri,
    target: &SrtTarget,
    measurement: &Measurement,
) -> Result<String, Failure> {
    let host =
        if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let address = format!("{host}:{}", target.port);
    let recommendation = recommend(measurement, &args.constraints());
    let scheme = if target.port_config.carriage.is_udp() { "srt" } else { "srt+quic" };
    let kept = kept_keys(target, &uri.to_string());
    let uris = recommendation.as_ref().map(|it| it.uris(scheme, &address, &kept));
    let both = match (&recommendation, &uris) {
        (Ok(recommendation), Ok(uris)) => Ok((recommendation, uris)),
        (Err(error), _) => Err(*error),
        (Ok(_), Err(error)) => Err(**error),
    };
    if args.json {
        let json = document(measurement, both);
        return serde_json::to_string_pretty(&json)
            .map(|text| text + "\n")
            .map_err(|error| Failure::runtime(error.to_string()));
    }
    Ok(show::report(&address, measurement, both))
}

/// Keys of the URI that a recommendation does not set: they stay as they were typed.
fn kept_keys(target: &SrtTarget, uri: &str) -> Vec<(String, String)> {
    // A rendezvous stays one, from the same address.
    let meets = target.mode == Mode::Rendezvous;
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(key, _)| {
            let key = key.to_lowercase();
            !RECOMMENDED.contains(&&key[..]) && (meets || !PLACE.contains(&&key[..]))
        })
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// An SRT URI's target, with the latency of probes unless it names one.
fn srt_target(uri: &Uri) -> Result<SrtTarget, Failure> {
    let Target::Srt(target) = &uri.target else {
        return Err(Failure::usage(format!(
            "`{uri}` is no SRT peer; write it like `srt://host:4200`"
        )));
    };
    uris::warn_of(uri);
    let mut target = SrtTarget::clone(target);
    let text = uri.to_string().to_lowercase();
    if !text.contains("latency=") && !text.contains("tsbpddelay=") {
        let config = target.config.clone().with_latency(LATENCY);
        target.config = config.map_err(punctual::Error::from)?;
    }
    target.config = target.config.with_linger(Duration::ZERO);
    if *target.config.retransmit_algorithm() == RetransmitAlgorithm::Auto {
        // The measurement must not depend on the peer's implementation.
        let efficient = RetransmitAlgorithm::Efficient;
        target.config = target.config.with_retransmit_algorithm(efficient);
    }
    Ok(target)
}

/// The latency of the probe's connection: long enough for retransmissions, short enough that
/// reports of congestion come soon.
const LATENCY: Duration = Duration::from_millis(500);

/// The largest payload in an Ethernet frame.
const LARGEST_PAYLOAD: usize = 1_456;

/// Keys that a recommendation sets itself, or that have no place in it.
const RECOMMENDED: &[&str] = &[
    "fc",
    "ffs",
    "inputbw",
    "latency",
    "lossmaxttl",
    "losstarget",
    "maxbw",
    "mininputbw",
    "oheadbw",
    "payload_size",
    "payloadsize",
    "peerlatency",
    "pkt_size",
    "rcvbuf",
    "rcvlatency",
    "retransmitalgo",
    "sndbuf",
    "tsbpddelay",
];

/// Keys for the address of this end and the direction of the call.
const PLACE: &[&str] = &["adapter", "bind", "localport", "mode", "port", "rendezvous"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_recommended_are_kept_as_they_were_typed() {
        let kept = |text: &str| {
            let uri: Uri = text.parse().unwrap();
            kept_keys(&srt_target(&uri).unwrap(), text)
        };
        let meets = "srt://h:1?mode=rendezvous&port=2&maxbw=0";
        let place = ["mode", "port"].map(str::to_owned);
        assert_eq!(kept(meets).into_iter().map(|(key, _)| key).collect::<Vec<_>>(), place);
        let all =
            kept("srt://h:1?latency=200&streamid=#!::r=live/a,m=publish&MAXBW=0&tos=8&port=7");
        let all: Vec<String> = all.into_iter().map(|(key, value)| key + "=" + &value).collect();
        assert_eq!(all, ["streamid=#!::r=live/a,m=publish", "tos=8"]);
        assert!(kept("srt://h:1").is_empty());
    }

    #[test]
    fn a_probe_has_half_a_second_of_latency_unless_told_otherwise() {
        let latency =
            |text: &str| srt_target(&text.parse().unwrap()).unwrap().config.receive_latency();
        assert_eq!(latency("srt://h:1"), LATENCY);
        assert_eq!(latency("srt://h:1?latency=120"), Duration::from_millis(120));
        assert_eq!(latency("srt://h:1?rcvlatency=2s"), Duration::from_secs(2));
        let error = srt_target(&"udp://h:1".parse().unwrap()).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("no SRT peer"), "{error}");
    }
}
