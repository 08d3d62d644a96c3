//! Real sockets: the library at both ends, and the emulator between them, in real time; or the
//! kernel's TCP between the emulator's two sides.

#[cfg(feature = "quic")]
mod bare_quic;
mod blocks;
#[cfg(target_os = "linux")]
mod kernel_tcp;
#[cfg(not(target_os = "linux"))]
#[path = "net/without_two_sides.rs"]
mod kernel_tcp;
#[cfg(feature = "quic")]
mod quic;
#[cfg(not(feature = "quic"))]
#[path = "net/without_quic.rs"]
mod quic;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use punctual::{Listener, ListenerConfig, Port, Socket, Statistics, Transmission, now};
use punctual_metrics::MeterReport;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::backend::Backend;
use crate::backend::blocks::ONE_STREAM;
use crate::backend::course::of_the_course;
use crate::backend::ramp::usable;
use crate::backend::real::{
    LOOPBACK, SharedArrivals, emulator, of_the_links, runtime, send, since, watched_emulator,
};
use crate::backend::series::{Sample, series};
use crate::numbers::number;
use crate::outcome::{Outcome, RunSeries};
use crate::results::columns::{quantiles, report, statistics};
use crate::run::{MessageCarriage, RunSpec, Setup};

/// Runs with real sockets on this machine, through the emulator, in real time. All measured times
/// are this machine's. The run's seed decides which packets of a link are hit, but it depends on
/// real time which packet of the stream that is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Net;

impl Backend for Net {
    fn name(&self) -> &'static str {
        "net"
    }

    fn lacks(&self, spec: &RunSpec) -> Option<String> {
        kernel_tcp::lacks(spec.setup.tcp?)
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, String> {
        let setup = &spec.setup;
        super::quic_model::refuse(spec)?;
        super::quic::check(setup)?;
        if setup.streams > 1 || !setup.transport.together.is_empty() {
            return Err("`net` runs one stream at a time; `sim` runs several".to_owned());
        }
        if setup.traffic.is_some() {
            return Err("`net` has no cross traffic; `sim` has".to_owned());
        }
        if let Some(control) = setup.tcp {
            return kernel_tcp::run(setup, control);
        }
        if setup.blocks.is_some() && setup.transport.observed != MessageCarriage::Srt {
            return Err(ONE_STREAM.to_owned());
        }
        runtime()?.block_on(async {
            match setup.transport.observed {
                MessageCarriage::Srt | MessageCarriage::SrtOverQuic => srt(setup).await,
                MessageCarriage::Udp => udp(setup).await,
                MessageCarriage::Quic => quic::run(setup).await,
            }
        })
    }
}

async fn srt(setup: &Setup) -> Result<Outcome, String> {
    let wrong = |error: punctual::Error| error.to_string();
    let [listening, calling_port] = quic::ports(setup)?;
    let connection = setup.receiver.clone();
    let listener = ListenerConfig { port: listening, connection, ..ListenerConfig::default() };
    let listener = Listener::bind_with(listener).await.map_err(wrong)?;
    let (blocks, notes) = blocks::BlockTask::new(setup).unzip();
    let emulator = watched_emulator(setup, listener.local_addr(), notes).await?;
    let accepting = tokio::spawn(async move { listener.accept().await });
    let calling = now();
    let is_stream = setup.sender.transmission() == Transmission::Stream;
    let linger = linger(setup);
    let config = setup.sender.clone().with_linger(linger);
    let port = Port::bind(calling_port).await.map_err(wrong)?;
    let sender = match port.connect(emulator.local_addr(), config).await {
        Ok(sender) => Arc::new(sender),
        Err(error) => {
            let mut outcome = Outcome { status: format!("closed: {error}"), ..Outcome::default() };
            of_the_links(&mut outcome, &emulator.stop().await);
            return Ok(outcome);
        }
    };
    let connected = since(calling);
    let receiver = timeout(GRACE, accepting).await;
    let receiver = receiver.map_err(|_| "the listener accepted nobody".to_owned())?;
    let receiver = receiver.map_err(|error| error.to_string())?.map_err(wrong)?;
    let receiver = Arc::new(receiver);
    let measured = SharedArrivals::default();
    let size = is_stream.then_some(setup.payload);
    let receiving = receive(Arc::clone(&receiver), size, measured.clone());
    let ends = [Arc::clone(&sender), Arc::clone(&receiver)];
    let of_both = move || ends.each_ref().map(|end| end.statistics());
    let watching = setup.series.map(|period| watch(period, of_both, measured.clone()));
    let socket = &sender;
    let send = send(setup, now(), |payload| async move {
        let whole =
            if is_stream { socket.write_all(payload).await } else { socket.send(payload).await };
        whole.is_ok()
    });
    let sent = send.await?;
    sender.close().await;
    let _ = timeout(linger + GRACE, receiving).await;

    let mut outcome = Outcome { status: Outcome::OK.to_owned(), ..Outcome::default() };
    outcome.set("messagesSent", number(sent));
    outcome.set("byteMessagesSent", number(sent * setup.payload as u64));
    outcome.set("msConnected", connected.as_secs_f64() * 1e3);
    arrived(&mut outcome, &measured);
    outcome.extend(statistics("sender", &[&sender.statistics()]));
    outcome.extend(statistics("receiver", &[&receiver.statistics()]));
    of_the_links(&mut outcome, &emulator.stop().await);
    if let Some(blocks) = blocks {
        blocks.tell(setup, &mut outcome).await?;
    }
    watched(&mut outcome, setup, watching).await?;
    Ok(outcome)
}

/// The time in which the last data arrives: of live messages all that is not too late, of others
/// all, even if the machine stalled.
fn linger(setup: &Setup) -> Duration {
    let Setup { sender, receiver, .. } = setup;
    let latency = sender.peer_latency().max(receiver.receive_latency()) + GRACE;
    match sender.transmission() {
        Transmission::Live => latency,
        Transmission::Messages | Transmission::Stream => latency.max(sender.linger()),
    }
}

/// Ends a watch, if there is one, and takes its series and the numbers of the whole course.
async fn watched(
    outcome: &mut Outcome,
    setup: &Setup,
    watching: Option<StatisticsTask>,
) -> Result<(), String> {
    let Some(watching) = watching else { return Ok(()) };
    watching.end.notify_one();
    let course = watching.task.await.map_err(|error| error.to_string())?;
    if let Some(rate) = usable(setup, &course) {
        outcome.set("mbpsUsable", rate);
    }
    for (name, number) in of_the_course(&course) {
        outcome.set(name, number);
    }
    outcome.series = Some(course);
    Ok(())
}

/// Receives until the sender ends the connection. A stream of bytes has messages of this `size`.
fn receive(socket: Arc<Socket>, size: Option<usize>, measured: SharedArrivals) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut begun = BytesMut::new();
        while let Ok(message) = socket.recv().await {
            let Some(size) = size else {
                measured.submit(&message.payload, now());
                continue;
            };
            begun.extend_from_slice(&message.payload);
            while begun.len() >= size {
                measured.submit(&begun.split_to(size), now());
            }
        }
    })
}

/// A task that writes down statistics.
struct StatisticsTask {
    task: JoinHandle<RunSeries>,
    end: Arc<tokio::sync::Notify>,
}

/// Watches a stream whose ends have these `statistics`.
fn watch(
    period: Duration,
    statistics: impl Fn() -> [Statistics; 2] + Send + 'static,
    measured: SharedArrivals,
) -> StatisticsTask {
    let end = Arc::new(tokio::sync::Notify::new());
    let ended = Arc::clone(&end);
    let task = tokio::spawn(async move {
        let start = now();
        let mut samples: Vec<(Duration, Statistics, Statistics, MeterReport)> = Vec::new();
        let mut ticks = tokio::time::interval(period);
        ticks.tick().await;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = ended.notified() => break,
            }
            let [sender, receiver] = statistics();
            samples.push((since(start), sender, receiver, measured.period()));
        }
        series(samples.iter().map(|(at, sender, receiver, metrics)| Sample {
            at: *at,
            sender,
            receiver,
            metrics,
        }))
    });
    StatisticsTask { task, end }
}

async fn udp(setup: &Setup) -> Result<Outcome, String> {
    let wrong = |error: std::io::Error| error.to_string();
    let receiver = UdpSocket::bind(LOOPBACK).await.map_err(wrong)?;
    let emulator = emulator(setup, receiver.local_addr().map_err(wrong)?).await?;
    let sender = UdpSocket::bind(LOOPBACK).await.map_err(wrong)?;
    sender.connect(emulator.local_addr()).await.map_err(wrong)?;
    let measured = SharedArrivals::default();
    let receiving = receive_datagrams(receiver, measured.clone());
    let watching = setup.series.map(|period| watch(period, Default::default, measured.clone()));
    let socket = &sender;
    // A datagram that cannot be sent is as good as lost.
    let send = send(setup, now(), |payload| async move {
        let _ = socket.send(&payload).await;
        true
    });
    let sent = send.await?;
    let delay = setup.path.up.config.delay;
    tokio::time::sleep(delay + GRACE).await;
    receiving.abort();
    let mut outcome = Outcome { status: Outcome::OK.to_owned(), ..Outcome::default() };
    outcome.set("messagesSent", number(sent));
    outcome.set("byteMessagesSent", number(sent * setup.payload as u64));
    arrived(&mut outcome, &measured);
    of_the_links(&mut outcome, &emulator.stop().await);
    watched(&mut outcome, setup, watching).await?;
    Ok(outcome)
}

/// Receives until it is aborted.
pub(crate) fn receive_datagrams(socket: UdpSocket, measured: SharedArrivals) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        loop {
            if let Ok(length) = socket.recv(&mut buffer).await {
                measured.submit(&buffer[..length], now());
            }
        }
    })
}

/// The receiving application's view.
pub(crate) fn arrived(outcome: &mut Outcome, measured: &SharedArrivals) {
    let mut arrived = measured.so_far();
    outcome.set("messagesReceived", number(arrived.messages));
    outcome.set("byteMessagesReceived", number(arrived.bytes));
    outcome.extend(report(&arrived.meter.report()));
    outcome.extend(quantiles(&arrived.latency_us));
}

/// Longer than anything takes that should happen at once.
const GRACE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::run::{Selection, runs};

    #[test]
    fn a_plan_runs_over_real_sockets() {
        let over_quic = if cfg!(feature = "quic") { ", 'srt+quic', 'quic'" } else { "" };
        let text = format!(
            "name = 'n'\n[stream]\nbitrate = '2Mbps'\nduration = '1s'\n\
             transport = ['srt', 'udp'{over_quic}]\n[link]\nrtt = '10ms'\nloss = '5%'\n\
             [options]\nlatency = '100ms'\n[run]\nseries = '100ms'"
        );
        let plan = Plan::parse("n.toml", &text).unwrap();
        for spec in runs(&plan, &Selection::default()).unwrap() {
            let outcome = Net.run(&spec).unwrap();
            let number = |name: &str| outcome.numbers[name];
            assert_eq!(outcome.status, "ok");
            assert!(number("messagesSent") > 150.0);
            assert!(number("messagesReceived") > 100.0);
            assert!(number("up.pktLost") > 0.0);
            if spec.setup.transport.observed.is_srt() {
                assert!(number("sender.pktRetrans") > 0.0);
                assert!(outcome.series.is_some());
            }
        }
    }

    #[test]
    fn features_of_virtual_time_alone_are_refused() {
        let text = "name = 'n'\n[stream]\nbitrate = '2Mbps'\nduration = '1s'\nstreams = 2";
        let plan = Plan::parse("n.toml", text).unwrap();
        let spec = runs(&plan, &Selection::default()).unwrap().remove(0);
        assert!(Net.run(&spec).unwrap_err().contains("`sim` runs several"));
    }
}
