//! Virtual time: the machine that ships, over modelled links.

use std::time::Duration;

use punctual::{Instant, Statistics};
use punctual_metrics::Quantiles;
use punctual_sim::{
    End, HostConfig, HostId, Lateness, LinkId, RateSchedule, StreamConfig, StreamId, StreamOutcome,
    TcpConfig, Traffic, TrafficConfig, TrafficId, Transport as StreamTransport, World, WorldError,
};

use crate::backend::course::of_the_course;
use crate::backend::ramp::usable;
use crate::backend::series::{Sample, series};
use crate::backend::{Backend, blocks, quic, quic_model, tcp};
use crate::numbers::{NamedNumber, number};
use crate::outcome::Outcome;
use crate::results::columns::{link, quantiles, report, statistics, traffic};
use crate::run::{
    CrossTraffic, HostOptions, MessageCarriage, RunSpec, RunTransport, Setup, TrafficKind,
};

/// Runs in virtual time. The same run gives the same outcome, on any machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, String> {
        quic_model::refuse(spec)?;
        quic::check(&spec.setup)?;
        let outcome = match spec.setup.tcp {
            Some(stream) => tcp::run(&spec.setup, stream),
            None if spec.setup.blocks.is_some() && !has_blocks(&spec.setup) => {
                return Err(blocks::ONE_STREAM.to_owned());
            }
            None => run(&spec.setup),
        };
        outcome.map_err(|error| error.to_string())
    }
}

/// The world of a run.
struct Built {
    world: World,
    up: LinkId,
    down: LinkId,
    streams: Vec<StreamId>,
    /// The cross traffic, if there is any.
    cross: Option<(TrafficId, CrossTraffic)>,
}

fn run(setup: &Setup) -> Result<Outcome, WorldError> {
    let Built { mut world, up, down, streams, cross } = build(setup)?;
    let mut watch = blocks::BlockWatch::new(setup, &mut world, up, down);
    connect(&mut world, setup, &streams);
    pass(&mut world, &mut watch, setup.duration);
    // Now, because after the streams' end it has the link to itself.
    let beside = cross.map(|cross| of_the_traffic(&world, cross));
    pass(&mut world, &mut watch, tail(setup));
    let observed = observed(setup, &streams);
    let outcomes: Vec<StreamOutcome> = observed.iter().map(|id| world.outcome(*id)).collect();
    let mut outcome = Outcome { status: status(&outcomes), ..Outcome::default() };
    outcome.extend(beside.into_iter().flatten());
    of_the_streams(&mut outcome, &outcomes);
    let senders: Vec<&Statistics> = outcomes.iter().map(|outcome| &outcome.sender).collect();
    let receivers: Vec<&Statistics> = outcomes.iter().map(|outcome| &outcome.receiver).collect();
    if setup.transport.observed.is_srt() {
        outcome.extend(statistics("sender", &senders));
        outcome.extend(statistics("receiver", &receivers));
        mean_rates(&mut outcome, setup);
    }
    if let Some(dropped) = quic::datagrams_dropped(&world, &observed) {
        outcome.set("quicDatagramsDropped", number(dropped));
    }
    outcome.extend(link("up", world.link_statistics(up)));
    outcome.extend(link("down", world.link_statistics(down)));
    if let Some(first) = outcomes.first().filter(|_| setup.series.is_some()) {
        let samples = first.series.iter().map(|sample| Sample {
            at: sample.at,
            sender: &sample.sender,
            receiver: &sample.receiver,
            metrics: &sample.metrics,
        });
        let course = series(samples);
        if let Some(rate) = usable(setup, &course) {
            outcome.set("mbpsUsable", rate);
        }
        for (name, number) in of_the_course(&course) {
            outcome.set(name, number);
        }
        outcome.series = Some(course);
    }
    if let Some(watch) = watch {
        watch.tell(setup, &mut outcome);
    }
    if setup.captures {
        outcome.capture = Some(world.capture_of_all());
    }
    Ok(outcome)
}

/// Lets time pass, under the eyes of the record of blocks if there is one.
fn pass(world: &mut World, watch: &mut Option<blocks::BlockWatch>, time: Duration) {
    match watch {
        Some(watch) => watch.run_for(world, time),
        None => world.run_for(time),
    }
}

/// Whether the data packets of a run are those of one stream.
fn has_blocks(setup: &Setup) -> bool {
    let RunTransport { observed, together, .. } = &setup.transport;
    setup.streams == 1 && together.is_empty() && *observed == MessageCarriage::Srt
}

fn build(setup: &Setup) -> Result<Built, WorldError> {
    let mut world = World::new(setup.seed);
    let mut pairs = vec![add_pair(&mut world, setup, carriages(setup)[0])?];
    let up = world.add_link(setup.path.up.clone());
    let down = world.add_link(setup.path.down.clone());
    // Streams that are carried alike share their hosts, except over bare QUIC.
    for &carriage in &carriages(setup)[1..] {
        let is_alike = setup.transport.together.is_empty() && carriage != MessageCarriage::Quic;
        pairs.push(if is_alike { pairs[0] } else { add_pair(&mut world, setup, carriage)? });
    }
    for &(from, to) in &pairs {
        world.set_route(from, to, &[up])?;
        world.set_route(to, from, &[down])?;
    }
    let cross = add_traffic(&mut world, setup, up, down)?;
    if setup.captures {
        world.capture(up);
        world.capture(down);
    }
    let streams = carriages(setup).into_iter().zip(pairs);
    let streams = streams
        .map(|(carriage, ends)| world.add_stream(stream(setup, carriage, ends)))
        .collect::<Result<_, _>>()?;
    Ok(Built { world, up, down, streams, cross })
}

/// The carriages of all streams of a run: at least one.
fn carriages(setup: &Setup) -> Vec<MessageCarriage> {
    match setup.transport.together.as_slice() {
        [] => vec![setup.transport.observed; setup.streams.max(1)],
        together => together.to_vec(),
    }
}

/// The streams of which a run reports.
fn observed(setup: &Setup, streams: &[StreamId]) -> Vec<StreamId> {
    let RunTransport { observed, together, .. } = &setup.transport;
    match together.iter().position(|carriage| carriage == observed) {
        Some(place) => vec![streams[place]],
        None => streams.to_vec(),
    }
}

/// The sender's and the receiver's host of a stream.
fn add_pair(
    world: &mut World,
    setup: &Setup,
    carriage: MessageCarriage,
) -> Result<(HostId, HostId), WorldError> {
    let carriage = quic::host_carriage(carriage, setup.transport.congestion);
    let [from, to] = setup.hosts;
    let from = world.add_host(host(from)?.with_carriage(carriage));
    Ok((from, world.add_host(host(to)?.with_carriage(carriage))))
}

fn stream(setup: &Setup, carriage: MessageCarriage, (from, to): (HostId, HostId)) -> StreamConfig {
    let transport = match carriage {
        MessageCarriage::Srt | MessageCarriage::SrtOverQuic => StreamTransport::Srt {
            sender: setup.sender.clone(),
            receiver: setup.receiver.clone(),
            caller: End::Sender,
        },
        MessageCarriage::Udp => StreamTransport::Udp,
        MessageCarriage::Quic => quic::datagrams(),
    };
    let rate = match setup.ramp {
        None => RateSchedule::constant(setup.bitrate),
        Some(ramp) => RateSchedule::ramp(setup.bitrate, ramp.by, ramp.every, setup.duration),
    };
    StreamConfig {
        transport,
        rate,
        payload: setup.payload,
        start: Duration::ZERO,
        duration: setup.duration,
        from,
        to,
        series: setup.series,
    }
}

fn host(options: HostOptions) -> Result<HostConfig, WorldError> {
    let HostOptions { lateness, drift_ppm, offset } = options;
    let lateness = Lateness { least: Duration::ZERO, mean: lateness, most: lateness * 10 };
    HostConfig::default().with_offset(offset).with_lateness(lateness).with_drift_ppm(drift_ppm)
}

fn add_traffic(
    world: &mut World,
    setup: &Setup,
    up: LinkId,
    down: LinkId,
) -> Result<Option<(TrafficId, CrossTraffic)>, WorldError> {
    let Some(cross) = setup.traffic else { return Ok(None) };
    let (links, back) = if cross.up { (vec![up], vec![down]) } else { (vec![down], vec![up]) };
    let traffic = match cross.kind {
        TrafficKind::Constant(rate) => Traffic::Constant { rate },
        TrafficKind::OnOff(rate, on, off) => Traffic::OnOff { rate, on, off },
        TrafficKind::Tcp => Traffic::TcpLike { max_window: TCP_WINDOW },
        TrafficKind::TcpConnection(control) => Traffic::Tcp(TcpConfig::new(control)),
    };
    let duration = cross.duration.unwrap_or(setup.duration);
    let (packet, start) = (cross.packet, cross.start);
    let config = TrafficConfig { traffic, packet, links, back, start, duration };
    world.add_traffic(config).map(|id| Some((id, cross)))
}

/// Totals of the cross traffic so far, and its rate over the time in which it was sent.
fn of_the_traffic(world: &World, (id, cross): (TrafficId, CrossTraffic)) -> Vec<NamedNumber> {
    let since_start = (world.now() - Instant::ORIGIN).saturating_sub(cross.start);
    let there = cross.duration.map_or(since_start, |duration| duration.min(since_start));
    traffic(&world.traffic_statistics(id), there)
}

/// Lets time pass until all streams can send, or every caller has timed out.
fn connect(world: &mut World, setup: &Setup, streams: &[StreamId]) {
    let timeout = setup.sender.connect_timeout();
    while world.now() - Instant::ORIGIN < timeout {
        if streams.iter().all(|id| world.outcome(*id).connected_at.is_some()) {
            return;
        }
        world.run_for(GLANCE);
    }
}

/// The time in which the last messages arrive and are played: latency and path.
fn tail(setup: &Setup) -> Duration {
    let latency = setup.sender.peer_latency().max(setup.receiver.receive_latency());
    latency + setup.path.up.config.delay * 2 + AFTER_THE_LAST
}

/// How the streams of a run ended: that of the first which did not end well, or all is well.
fn status(outcomes: &[StreamOutcome]) -> String {
    for outcome in outcomes {
        if let Some(reason) = &outcome.closed {
            return format!("closed: {reason}");
        }
        if outcome.connected_at.is_none() {
            return "not connected".to_owned();
        }
    }
    Outcome::OK.to_owned()
}

/// The applications' view of all streams together.
fn of_the_streams(outcome: &mut Outcome, streams: &[StreamOutcome]) {
    let sum = |value: fn(&StreamOutcome) -> u64| {
        let sum: u64 = streams.iter().map(value).sum();
        number(sum)
    };
    let connected = streams.iter().map(|s| s.connected_at.unwrap_or_default()).max();
    let least = streams.iter().map(|stream| stream.bytes_received).min();
    let late = streams.iter().map(|stream| stream.integrity.late_max).max();
    for (name, number) in [
        ("messagesSent", sum(|s| s.messages_sent)),
        ("messagesReceived", sum(|s| s.messages_received)),
        ("messagesRefused", sum(|s| s.messages_refused)),
        ("byteMessagesSent", sum(|s| s.bytes_sent)),
        ("byteMessagesReceived", sum(|s| s.bytes_received)),
        ("byteMessagesReceivedMin", number(least.unwrap_or_default())),
        ("msConnected", connected.unwrap_or_default().as_secs_f64() * 1e3),
        ("messagesDamaged", sum(|s| s.integrity.damaged)),
        ("messagesDoubled", sum(|s| s.integrity.doubled)),
        ("messagesDisordered", sum(|s| s.integrity.disordered)),
        ("messagesEarly", sum(|s| s.integrity.early)),
        ("messagesLate", sum(|s| s.integrity.late)),
        ("msLateMax", late.unwrap_or_default().as_secs_f64() * 1e3),
    ] {
        outcome.set(name, number);
    }
    let mut latency_us = Quantiles::default();
    streams.iter().for_each(|stream| latency_us.merge(&stream.latency_us));
    outcome.extend(quantiles(&latency_us));
    if let Some(first) = streams.first() {
        outcome.extend(report(&first.metrics));
        for (name, value) in [
            ("pktReceived", sum(|s| s.metrics.received)),
            ("pktLost", sum(|s| s.metrics.lost)),
            ("pktReordered", sum(|s| s.metrics.reordered)),
            ("pktDuplicated", sum(|s| s.metrics.duplicates)),
        ] {
            outcome.set(name, value);
        }
    }
}

/// Rates over the time in which the streams sent: the silence after it is only a tail.
fn mean_rates(outcome: &mut Outcome, setup: &Setup) {
    let seconds = setup.duration.as_secs_f64();
    for (rate, bytes) in
        [("sender.mbpsSendRate", "sender.byteSent"), ("receiver.mbpsRecvRate", "receiver.byteRecv")]
    {
        let bytes = outcome.numbers.get(bytes).copied().unwrap_or_default();
        outcome.set(rate, bytes * 8.0 / 1e6 / seconds);
    }
}

/// Time for what waits in the links.
const AFTER_THE_LAST: Duration = Duration::from_secs(2);

/// How often to check whether streams can send.
const GLANCE: Duration = Duration::from_millis(10);

/// The largest window of cross traffic: that of Linux' default receive buffer.
const TCP_WINDOW: u64 = 6 << 20;

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::run::{Selection, runs};

    use super::*;

    fn outcomes(text: &str) -> Vec<Outcome> {
        let plan = Plan::parse("my.toml", text).unwrap();
        let specs = runs(&plan, &Selection::default()).unwrap();
        specs.iter().map(|spec| Sim.run(spec).unwrap()).collect()
    }

    const SMALL: &str = "name = 'n'\n[stream]\nbitrate = '2Mbps'\nduration = '5s'\n\
        [link]\nrtt = '20ms'\nloss = ['0', '5%']\n[hosts]\nlateness = '50us'\n\
        [options]\nlatency = '4 * RTT'\n[run]\nseries = '100ms'";

    #[test]
    fn a_lossless_run_delivers_all_and_a_lossy_one_retransmits() {
        let outcomes = outcomes(SMALL);
        let number = |run: usize, name: &str| outcomes[run].numbers[name];
        for (run, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.status, "ok");
            assert!(number(run, "sender.pktSentUnique") > 900.0);
            assert_eq!(outcome.series.as_ref().unwrap().columns[0], "time_s");
            assert!(outcome.series.as_ref().unwrap().rows.len() >= 50);
        }
        assert_eq!(number(0, "sender.pktRetrans"), 0.0);
        assert_eq!(number(0, "messagesSent"), number(0, "messagesReceived"));
        assert!(number(1, "sender.pktRetrans") > 30.0);
        assert!(number(1, "up.pktLost") > 30.0);
    }

    const SHARED: &str = "name = 'n'\n[stream]\nbitrate = '5Mbps'\nduration = '20s'\n\
        [link]\nrtt = '40ms'\nrate = '14Mbps'\nqueue = '50ms'\n[options]\nlatency = '200ms'\n";

    #[test]
    fn a_neighbours_rate_is_reported_and_is_the_rest_of_the_link() {
        let with = |traffic: &str| outcomes(&format!("{SHARED}[traffic]\n{traffic}")).remove(0);
        let tcp = with("kind = 'tcp'\nstart = '10s'");
        let rate = tcp.numbers["traffic.mbpsGoodput"];
        // Of 14 Mb/s the stream takes 5.2 with its headers.
        assert!((7.5..8.9).contains(&rate), "{rate}");
        let bytes = tcp.numbers["traffic.byteGoodput"];
        assert!((bytes * 8.0 / 10.1e6..bytes * 8.0 / 9.9e6).contains(&rate), "{bytes} {rate}");
        let packets = tcp.numbers["traffic.pktSent"];
        assert!(bytes < packets * 1_500.0 && bytes > packets * 1_450.0, "{bytes} {packets}");
        for kind in ["newreno", "cubic", "bbr", "bbr3"] {
            let tcp = with(&format!("kind = '{kind}'\nstart = '10s'"));
            let rate = tcp.numbers["traffic.mbpsGoodput"];
            assert!((6.5..9.0).contains(&rate), "{kind} {rate}");
        }
        let short = with("kind = 'constant'\nrate = '6Mbps'\nstart = '5s'\nduration = '5s'");
        let rate = short.numbers["traffic.mbpsGoodput"];
        assert!((5.9..6.1).contains(&rate), "{rate}");
        let later = with("kind = 'tcp'\nstart = '1min'");
        assert!(later.numbers["traffic.mbpsGoodput"].is_nan());
    }

    #[test]
    fn where_there_is_no_traffic_its_columns_are_empty() {
        let outcome = outcomes(SHARED).remove(0);
        assert!(!outcome.numbers.keys().any(|name| name.starts_with("traffic.")));
    }

    #[test]
    fn the_stream_that_received_least_is_reported() {
        // 7 Mb/s for two streams of 5.
        let shared =
            SHARED.replace("'14Mbps'", "'7Mbps'").replace("duration", "streams = 2\nduration");
        let numbers = outcomes(&shared).remove(0).numbers;
        let (all, least) = (numbers["byteMessagesReceived"], numbers["byteMessagesReceivedMin"]);
        assert!(least > 0.0 && least <= all / 2.0, "{least} of {all}");
        let alone = outcomes(SHARED).remove(0).numbers;
        assert_eq!(alone["byteMessagesReceivedMin"], alone["byteMessagesReceived"]);
    }

    #[test]
    fn every_number_has_a_column_in_the_results() {
        let columns = crate::results::columns::result_columns();
        let shared = format!("{SHARED}[traffic]\nkind = 'tcp'");
        for outcome in outcomes(SMALL).into_iter().chain(outcomes(&shared)) {
            for name in outcome.numbers.keys() {
                assert!(columns.contains(name), "{name}");
            }
        }
    }

    #[test]
    fn the_same_run_gives_the_same_outcome() {
        // As texts, because NaN is not equal to itself.
        assert!(format!("{:?}", outcomes(SMALL)) == format!("{:?}", outcomes(SMALL)));
    }
}
