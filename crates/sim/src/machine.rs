//! The protocol machine of a host: SRT over UDP, SRT over QUIC, or QUIC alone.

use std::net::SocketAddr;

use bytes::Bytes;
use punctual_proto::{Connection, ConnectionId, Endpoint, EndpointConfig, Event, PathId, WakeUp};
use punctual_units::Instant;
#[cfg(feature = "quic")]
use {
    crate::bare_quic::{BareQuic, SRT, quic_endpoint},
    punctual_quic::tls::simulated::{InsecureSimulatedClient, InsecureSimulatedServer},
    punctual_quic::{SrtEndpoint, SrtEvent, TransportConfig},
};

/// How a host's packets travel. Both hosts of a stream must have the same carriage, except that of
/// a bare UDP stream.
#[derive(Clone, Copy, Debug, Default)]
pub enum HostCarriage {
    /// An SRT packet is a UDP datagram.
    #[default]
    SrtOverUdp,
    /// An SRT packet is in a DATAGRAM frame of QUIC. The handshake of QUIC is simulated: it has the
    /// flights and the sizes of TLS, but no cryptography.
    #[cfg(feature = "quic")]
    SrtOverQuic(TransportConfig),
    /// Messages over QUIC without SRT.
    #[cfg(feature = "quic")]
    Quic(TransportConfig),
}

/// The protocol machine of a host.
#[derive(Debug)]
pub(crate) enum HostMachine {
    SrtOverUdp(Box<Endpoint>),
    #[cfg(feature = "quic")]
    SrtOverQuic(Box<SrtEndpoint>, TransportConfig),
    #[cfg(feature = "quic")]
    Quic(Box<BareQuic>),
}

/// An event of a host's machine.
#[derive(Debug)]
pub(crate) enum MachineEvent {
    Srt(Event),
    #[cfg(feature = "quic")]
    Quic(punctual_quic::Event),
}

/// UDP datagrams to send, which are at the end of the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) remote: SocketAddr,
    pub(crate) size: usize,
    pub(crate) segment_size: usize,
}

impl HostMachine {
    /// A machine whose chance comes from `seed`.
    pub(crate) fn new(carriage: HostCarriage, seed: [u8; 32], now: Instant) -> Self {
        let srt = || Endpoint::new(EndpointConfig::new(seed), now);
        match carriage {
            HostCarriage::SrtOverUdp => Self::SrtOverUdp(Box::new(srt())),
            #[cfg(feature = "quic")]
            HostCarriage::SrtOverQuic(transport) => {
                let mut quic = quic_endpoint(seed, transport);
                quic.listen_insecure_simulated(InsecureSimulatedServer(SRT.to_vec()));
                Self::SrtOverQuic(Box::new(SrtEndpoint::new(quic, srt())), transport)
            }
            #[cfg(feature = "quic")]
            HostCarriage::Quic(transport) => Self::Quic(Box::new(BareQuic::new(seed, transport))),
        }
    }

    /// The kind of the machine, for the check of streams.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::SrtOverUdp(_) => Kind::SrtOverUdp,
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(..) => Kind::SrtOverQuic,
            #[cfg(feature = "quic")]
            Self::Quic(_) => Kind::Quic,
        }
    }

    /// The SRT endpoint of a host that carries SRT.
    pub(crate) fn srt(&mut self) -> &mut Endpoint {
        match self {
            Self::SrtOverUdp(endpoint) => endpoint,
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => machine.srt(),
            #[cfg(feature = "quic")]
            Self::Quic(_) => unreachable!("{NO_SRT}"),
        }
    }

    /// The endpoint of a host that carries bare QUIC.
    #[cfg(feature = "quic")]
    pub(crate) fn bare_quic(&mut self) -> Option<&mut BareQuic> {
        match self {
            Self::Quic(quic) => Some(quic),
            _ => None,
        }
    }

    /// An SRT connection, for reading.
    pub(crate) fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        match self {
            Self::SrtOverUdp(endpoint) => endpoint.connections().get(id),
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => machine.as_srt().connections().get(id),
            #[cfg(feature = "quic")]
            Self::Quic(_) => None,
        }
    }

    /// Accepts SRT callers with these options as the default.
    pub(crate) fn listen(&mut self, config: punctual_proto::Config) {
        match self {
            #[cfg(feature = "quic")]
            Self::Quic(_) => {}
            machine => machine.srt().listen(Some(config)),
        }
    }

    /// The path for an SRT call to `remote`.
    #[cfg_attr(not(feature = "quic"), expect(unused_variables, reason = "UDP needs no time"))]
    pub(crate) fn path_to(&mut self, now: Instant, remote: SocketAddr) -> PathId {
        match self {
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, transport) => machine.path_to(remote).unwrap_or_else(|| {
                let tls = InsecureSimulatedClient(SRT.to_vec());
                let opened = machine.open_insecure_simulated(now, remote, tls, transport);
                opened.expect("hosts have valid addresses, and a world has few connections")
            }),
            _ => remote.into(),
        }
    }

    /// The peer's address of a path.
    pub(crate) fn remote(&self, path: PathId) -> Option<SocketAddr> {
        match self {
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => machine.remote(path),
            _ => path.address(),
        }
    }

    pub(crate) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: Bytes) {
        match self {
            Self::SrtOverUdp(endpoint) => endpoint.handle_datagram(now, from, datagram),
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => {
                machine.handle_datagram(now, from, None, datagram.into());
            }
            #[cfg(feature = "quic")]
            Self::Quic(quic) => quic.endpoint.handle_datagram(now, from, None, datagram.into()),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::SrtOverUdp(endpoint) => endpoint.handle_timeout(now),
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => machine.handle_timeout(now),
            #[cfg(feature = "quic")]
            Self::Quic(quic) => quic.endpoint.handle_timeout(now),
        }
    }

    pub(crate) fn poll_timeout(&self) -> WakeUp {
        match self {
            Self::SrtOverUdp(endpoint) => endpoint.poll_timeout(),
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => machine.poll_timeout(),
            #[cfg(feature = "quic")]
            Self::Quic(quic) => quic.endpoint.poll_timeout(),
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<MachineEvent> {
        match self {
            Self::SrtOverUdp(endpoint) => endpoint.poll_event().map(MachineEvent::Srt),
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => {
                while let Some(event) = machine.poll_event() {
                    // SRT learns of what happens to its path.
                    if let SrtEvent::Srt(event) = event {
                        return Some(MachineEvent::Srt(event));
                    }
                }
                None
            }
            #[cfg(feature = "quic")]
            Self::Quic(quic) => quic.endpoint.poll_event().map(MachineEvent::Quic),
        }
    }

    /// Appends up to `max_segments` UDP datagrams for one peer to `buffer`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Batch> {
        #[cfg(feature = "quic")]
        let of_quic = |it: punctual_quic::QuicTransmit| Batch {
            remote: it.remote,
            size: it.size,
            segment_size: it.segment_size,
        };
        match self {
            Self::SrtOverUdp(endpoint) => {
                let transmit = endpoint.poll_transmit(now, max_segments, buffer)?;
                let remote = transmit.path.address().expect("paths of UDP are addresses");
                Some(Batch { remote, size: transmit.size, segment_size: transmit.segment_size })
            }
            #[cfg(feature = "quic")]
            Self::SrtOverQuic(machine, _) => {
                machine.poll_transmit(now, max_segments, buffer).map(of_quic)
            }
            #[cfg(feature = "quic")]
            Self::Quic(quic) => quic.endpoint.poll_transmit(now, max_segments, buffer).map(of_quic),
        }
    }

    /// The state of the connection of a stream over bare QUIC.
    #[cfg(feature = "quic")]
    pub(crate) fn bare_quic_info(&self, stream: usize) -> Option<punctual_quic::QuicInfo> {
        match self {
            Self::Quic(quic) => quic.endpoint.info(quic.connection(stream)?),
            _ => None,
        }
    }

    /// The state of the QUIC connection below an SRT connection.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_info_of(&self, path: PathId) -> Option<punctual_quic::QuicInfo> {
        match self {
            Self::SrtOverQuic(machine, _) => machine.as_quic().info(machine.carrier(path)?),
            _ => None,
        }
    }
}

/// The kind of a host's machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    SrtOverUdp,
    #[cfg(feature = "quic")]
    SrtOverQuic,
    #[cfg(feature = "quic")]
    Quic,
}

impl Kind {
    pub(crate) fn carries_srt(self) -> bool {
        match self {
            Self::SrtOverUdp => true,
            #[cfg(feature = "quic")]
            Self::SrtOverQuic => true,
            #[cfg(feature = "quic")]
            Self::Quic => false,
        }
    }
}

#[cfg(feature = "quic")]
const NO_SRT: &str = "streams over SRT are added only between hosts that carry it";
