//! Runs over QUIC in virtual time. A build without the feature `quic` has none.

#[cfg(feature = "quic")]
pub(super) use with::{control, datagrams, datagrams_dropped, host_carriage};
#[cfg(not(feature = "quic"))]
pub(super) use without::{datagrams, datagrams_dropped, host_carriage};

use crate::run::Setup;

/// Fails if a run needs QUIC and the build has none.
pub(super) fn check(setup: &Setup) -> Result<(), String> {
    let transport = &setup.transport;
    let needs_quic =
        transport.together.iter().chain([&transport.observed]).any(|carriage| carriage.is_quic());
    if needs_quic && cfg!(not(feature = "quic")) {
        return Err("this build has no QUIC; the feature `quic` adds it".to_owned());
    }
    Ok(())
}

#[cfg(feature = "quic")]
mod with {
    use punctual::quic::{CongestionControl, TransportConfig};
    use punctual_sim::{End, HostCarriage, StreamId, Transport, World};

    use crate::run::{MessageCarriage, QuicCongestion};

    /// The carriage of the hosts of a stream.
    pub(in super::super) fn host_carriage(
        carriage: MessageCarriage,
        congestion: Option<QuicCongestion>,
    ) -> HostCarriage {
        let with = |usual| {
            let congestion = congestion.map_or(usual, control);
            TransportConfig { congestion, ..TransportConfig::default() }
        };
        match carriage {
            MessageCarriage::Srt | MessageCarriage::Udp => HostCarriage::SrtOverUdp,
            MessageCarriage::SrtOverQuic => {
                HostCarriage::SrtOverQuic(with(CongestionControl::None))
            }
            MessageCarriage::Quic => HostCarriage::Quic(with(CongestionControl::Bbr)),
        }
    }

    /// The congestion control of the library.
    pub(in super::super) const fn control(congestion: QuicCongestion) -> CongestionControl {
        match congestion {
            QuicCongestion::None => CongestionControl::None,
            QuicCongestion::Cubic => CongestionControl::Cubic,
            QuicCongestion::NewReno => CongestionControl::NewReno,
            QuicCongestion::Bbr => CongestionControl::Bbr,
        }
    }

    /// The transport of a stream of bare datagrams.
    pub(in super::super) const fn datagrams() -> Transport {
        Transport::Quic
    }

    /// Datagrams that the senders' QUIC dropped before it sent them; `None` without QUIC.
    pub(in super::super) fn datagrams_dropped(world: &World, streams: &[StreamId]) -> Option<u64> {
        let infos = streams.iter().filter_map(|&stream| world.quic_info(stream, End::Sender));
        infos.map(|info| info.datagrams_dropped).reduce(|sum, dropped| sum + dropped)
    }
}

#[cfg(not(feature = "quic"))]
mod without {
    use punctual_sim::{HostCarriage, StreamId, Transport, World};

    use crate::run::{MessageCarriage, QuicCongestion};

    pub(in super::super) const fn host_carriage(
        _: MessageCarriage,
        _: Option<QuicCongestion>,
    ) -> HostCarriage {
        HostCarriage::SrtOverUdp
    }

    pub(in super::super) const fn datagrams() -> Transport {
        Transport::Udp
    }

    pub(in super::super) const fn datagrams_dropped(_: &World, _: &[StreamId]) -> Option<u64> {
        None
    }
}
