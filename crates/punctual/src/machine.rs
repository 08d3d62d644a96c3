//! The protocol machine of a port: SRT over UDP, or over QUIC.

use std::net::SocketAddr;

use bytes::Bytes;
use punctual_proto::{Config, Endpoint, Event, PathId, WakeUp};
use punctual_units::Instant;

use crate::error::Error;
use crate::outbox::Batch;
#[cfg(feature = "quic")]
use crate::srt_over_quic::QuicMachine;

/// The protocol machine of a port.
#[derive(Debug)]
pub(crate) enum Machine {
    /// SRT packets are UDP datagrams.
    Udp(Box<Endpoint>),
    /// SRT packets are in the DATAGRAM frames of QUIC.
    #[cfg(feature = "quic")]
    Quic(Box<QuicMachine>),
}

impl Machine {
    /// The SRT endpoint, for the verbs of the application. The driver uses the other methods.
    pub(crate) const fn endpoint(&mut self) -> &mut Endpoint {
        match self {
            Self::Udp(endpoint) => endpoint,
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.endpoint(),
        }
    }

    /// Listens from now on, with `config` as the default of accepted connections; `None` stops.
    pub(crate) fn listen(&mut self, config: Option<Config>) -> Result<(), Error> {
        #[cfg(feature = "quic")]
        if let Self::Quic(machine) = self {
            machine.listen(config.is_some())?;
        }
        self.endpoint().listen(config);
        Ok(())
    }

    /// The path for a call to `remote`.
    #[cfg_attr(not(feature = "quic"), expect(unused_variables, reason = "UDP needs no time"))]
    pub(crate) fn path_to(&mut self, now: Instant, remote: SocketAddr) -> Result<PathId, Error> {
        match self {
            Self::Udp(_) => Ok(remote.into()),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.path_to(now, remote),
        }
    }

    /// Fails if a rendezvous is not possible.
    pub(crate) const fn check_rendezvous(&self) -> Result<(), Error> {
        match self {
            Self::Udp(_) => Ok(()),
            #[cfg(feature = "quic")]
            Self::Quic(_) => Err(Error::NoRendezvous),
        }
    }

    /// The peer's address of a path; `None` if the path has ended.
    pub(crate) fn remote(&self, path: PathId) -> Option<SocketAddr> {
        match self {
            Self::Udp(_) => path.address(),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.remote(path),
        }
    }

    /// Takes in a UDP datagram.
    pub(crate) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: Bytes) {
        match self {
            Self::Udp(endpoint) => endpoint.handle_datagram(now, from, datagram),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.handle_datagram(now, from, datagram),
        }
    }

    /// Handles the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Udp(endpoint) => endpoint.handle_timeout(now),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.handle_timeout(now),
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) or `poll_transmit`.
    pub(crate) fn poll_timeout(&self) -> WakeUp {
        match self {
            Self::Udp(endpoint) => endpoint.poll_timeout(),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.poll_timeout(),
        }
    }

    /// Appends up to `max_segments` UDP datagrams for one peer to `buffer`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Batch> {
        match self {
            Self::Udp(endpoint) => {
                let transmit = endpoint.poll_transmit(now, max_segments, buffer)?;
                let remote = transmit.path.address().expect("paths of UDP are addresses");
                Some(Batch { remote, size: transmit.size, segment_size: transmit.segment_size })
            }
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.poll_transmit(now, max_segments, buffer),
        }
    }

    /// Whether there are events to [poll](Self::poll_event).
    pub(crate) fn has_events(&self) -> bool {
        match self {
            Self::Udp(endpoint) => endpoint.has_events(),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.has_events(),
        }
    }

    /// The next event of SRT, if any.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Udp(endpoint) => endpoint.poll_event(),
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.poll_event(),
        }
    }

    /// The state and statistics of the QUIC connection of a path.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_info(&mut self, path: PathId) -> Option<punctual_quic::QuicInfo> {
        match self {
            Self::Udp(_) => None,
            Self::Quic(machine) => machine.info(path),
        }
    }

    /// Closes what the port keeps open besides SRT connections. Returns whether there was any.
    #[cfg_attr(not(feature = "quic"), expect(unused_variables, reason = "UDP keeps nothing open"))]
    pub(crate) fn shut_down(&mut self, now: Instant) -> bool {
        match self {
            Self::Udp(_) => false,
            #[cfg(feature = "quic")]
            Self::Quic(machine) => machine.shut_down(now),
        }
    }
}
