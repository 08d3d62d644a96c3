//! All streams of a world, and the way of a host's events to them.

#[cfg(feature = "quic")]
use punctual_proto::CloseReason;
use punctual_proto::{ConnectionId, Event};
use punctual_units::Instant;

use crate::agenda::Source;
use crate::error::WorldError;
use crate::ground::Ground;
use crate::host::Use;
use crate::ids::{HostId, StreamId, number};
use crate::machine::MachineEvent;
use crate::memory::Memory;
use crate::packet::{Cargo, IpPacket};
use crate::stream::{End, GroupLinkConfig, MIN_PAYLOAD, Stream, StreamConfig, Transport};

/// All streams.
#[derive(Debug, Default)]
pub(super) struct WorldStreams {
    streams: Vec<Stream>,
    memory: Memory,
}

impl WorldStreams {
    /// Adds a stream to the world with this seed.
    pub(super) fn add(
        &mut self,
        config: StreamConfig,
        seed: u64,
        ground: &mut Ground,
    ) -> Result<StreamId, WorldError> {
        self.check(&config, ground)?;
        admit(&config, ground)?;
        let index = self.streams.len();
        let route = ground.network.route(config.from, config.to)?;
        let start = Instant::ORIGIN + config.start;
        let sample = config.series.map(|period| start + period);
        let lateness = ground.hosts.get(config.from.index()).lateness;
        self.streams.push(Stream::new(config, route, lateness, seed, index));
        ground.time.set(Source::Stream(index), Some(start.max(ground.now())));
        ground.time.set(Source::StreamSample(index), sample);
        Ok(StreamId(number(index)))
    }

    /// A stream.
    pub(super) fn get(&self, stream: StreamId) -> &Stream {
        &self.streams[stream.0 as usize]
    }

    /// The application of a stream sends no more.
    pub(super) fn stop(&mut self, stream: StreamId, ground: &mut Ground) {
        self.streams[stream.0 as usize].stop(ground);
    }

    /// The application of a stream has something to do.
    pub(super) fn run(&mut self, index: usize, ground: &mut Ground) {
        self.streams[index].run(ground, &mut self.memory);
        self.drain_touched(ground);
    }

    /// A group's timer has fired: that of the sender of stream n is number 2n, that of its receiver
    /// 2n + 1.
    pub(super) fn run_group(&mut self, number: usize, ground: &mut Ground) {
        let end = [End::Sender, End::Receiver][number % 2];
        self.streams[number / 2].run_group(ground, end);
        self.drain_touched(ground);
    }

    /// Takes a sample of a stream.
    pub(super) fn sample(&mut self, index: usize, ground: &mut Ground) {
        self.streams[index].sample(ground);
    }

    /// Reads a bare datagram.
    pub(super) fn read_datagram(&mut self, packet: &IpPacket, ground: &Ground) {
        if let Cargo::Udp { stream, .. } = packet.cargo {
            let receiving = &mut self.streams[stream as usize].receiving;
            receiving.read(ground.now(), &packet.content);
        }
    }

    /// Takes the output of all machines that were touched, and handles its consequences.
    pub(super) fn drain_touched(&mut self, ground: &mut Ground) {
        while let Some(host) = ground.hosts.next_touched() {
            self.drain(host, ground);
        }
    }

    /// Takes out of a machine that was touched all that it has to say.
    pub(super) fn drain(&mut self, host: usize, ground: &mut Ground) {
        self.handle_events(host, ground);
        ground.transmit(host);
        self.handle_events(host, ground);
        ground.settle_host(host);
    }

    fn handle_events(&mut self, host: usize, ground: &mut Ground) {
        while let Some(event) = ground.hosts.get_mut(host).machine.poll_event() {
            match event {
                MachineEvent::Srt(event) => self.handle_srt_event(host, event, ground),
                #[cfg(feature = "quic")]
                MachineEvent::Quic(event) => self.handle_quic_event(host, event, ground),
            }
        }
    }

    fn handle_srt_event(&mut self, host: usize, event: Event, ground: &mut Ground) {
        match event {
            Event::Incoming(incoming) => {
                let at = ground.hosts.get(host);
                let Some(remote) = at.machine.remote(incoming.path) else { return };
                let caller = (remote, incoming.peer_socket_id);
                let Some(&Use { stream, link }) = at.expected.get(&caller) else { return };
                self.streams[stream].accept(ground, host, &incoming, link);
            }
            Event::Connected(id) => {
                if let Some(stream) = self.stream_of(host, id, ground) {
                    stream.connected(ground, host, id);
                }
            }
            Event::Readable(id) | Event::LinkNews(id) => self.read(host, id, ground),
            Event::Writable(id) => {
                if let Some(stream) = self.stream_of(host, id, ground) {
                    stream.writable(ground);
                }
            }
            Event::Closed(id, reason) => {
                self.read(host, id, ground);
                // A group has released a connection from which nothing more comes.
                if let Some(stream) = self.stream_of(host, id, ground) {
                    stream.closed(ground, host, id, reason);
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, host: usize, id: ConnectionId, ground: &mut Ground) {
        if let Some(stream) = self.stream_of(host, id, ground) {
            stream.read(ground, host, id);
        }
    }

    #[cfg(feature = "quic")]
    fn handle_quic_event(&mut self, host: usize, event: punctual_quic::Event, ground: &mut Ground) {
        use punctual_quic::Event;

        let now = ground.now();
        let Some(quic) = ground.hosts.get_mut(host).machine.bare_quic() else { return };
        match event {
            Event::Established(id, _) => {
                let stream = quic.established(id).map(|stream| &mut self.streams[stream]);
                if let Some(stream) = stream.filter(|it| it.from == host) {
                    stream.begin(ground);
                }
            }
            Event::Readable(id) => {
                let Some(stream) = quic.stream(id) else { return };
                while let Some(message) = quic.recv(id) {
                    self.streams[stream].receiving.read(now, &message);
                }
            }
            Event::Closed(id, reason) => {
                let Some(stream) = quic.stream(id) else { return };
                let reason = CloseReason::PathLost(reason.to_string().into());
                self.streams[stream].end(ground, reason);
            }
            Event::LargestDatagram(..) | Event::Moved(..) => {}
        }
    }

    /// The stream of a connection at a host.
    fn stream_of(&mut self, host: usize, id: ConnectionId, ground: &Ground) -> Option<&mut Stream> {
        let purpose = ground.hosts.get(host).streams.get(&id)?;
        Some(&mut self.streams[purpose.stream])
    }

    fn check(&self, config: &StreamConfig, ground: &Ground) -> Result<(), WorldError> {
        for GroupLinkConfig { from, to, .. } in config.links() {
            ground.check_hosts(from, to)?;
            ground.network.route(from, to)?;
            if config.transport.ends().is_some() {
                ground.network.route(to, from)?;
            }
            for (host, first) in [(from, config.from), (to, config.to)] {
                if ground.hosts.get(host.index()).clock != ground.hosts.get(first.index()).clock {
                    return Err(WorldError::Clocks(first, host));
                }
            }
        }
        self.check_carriage(config, ground)?;
        config.check_ends()?;
        let (payload, max) = (config.payload, config.max_payload());
        if !(MIN_PAYLOAD..=max).contains(&payload) {
            return Err(WorldError::Payload { payload, min: MIN_PAYLOAD, max });
        }
        if config.series.is_some_and(|period| period.is_zero()) {
            return Err(WorldError::ZeroPeriod);
        }
        config.rate.check()
    }

    /// Both hosts of each link must carry what the stream needs. A connection of bare QUIC is known
    /// by the address of its caller, so that two hosts have no second one.
    fn check_carriage(&self, config: &StreamConfig, ground: &Ground) -> Result<(), WorldError> {
        if matches!(config.transport, Transport::Udp) {
            return Ok(());
        }
        for GroupLinkConfig { from, to, .. } in config.links() {
            let kinds = [from, to].map(|host| ground.hosts.get(host.index()).machine.kind());
            let is_srt = config.transport.ends().is_some();
            if kinds[0] != kinds[1] || kinds[0].carries_srt() != is_srt {
                return Err(WorldError::Carriage(from, to));
            }
            let joins = |stream: &&Stream| (stream.from, stream.to) == (from.index(), to.index());
            if !is_srt && self.streams.iter().any(|it| joins(&it) && !it.is_bare_udp()) {
                return Err(WorldError::SharedQuic(from, to));
            }
        }
        Ok(())
    }
}

/// Lets the called hosts admit the stream's calls.
fn admit(config: &StreamConfig, ground: &mut Ground) -> Result<(), WorldError> {
    let Some((sender, _, caller)) = config.transport.ends() else { return Ok(()) };
    let called = |link: GroupLinkConfig| if caller == End::Sender { link.to } else { link.from };
    let mut called: Vec<HostId> = config.links().map(called).collect();
    called.dedup();
    let transmission = sender.transmission();
    let other = |host: &&HostId| {
        ground.hosts.get(host.index()).transmission.is_some_and(|it| it != transmission)
    };
    if let Some(&host) = called.iter().find(other) {
        return Err(WorldError::Transmission(host));
    }
    for host in called {
        ground.hosts.get_mut(host.index()).admit(transmission);
    }
    Ok(())
}
