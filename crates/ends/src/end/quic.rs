//! QUIC: the hash of a listener's certificate, and statistics.
//!
//! Without the feature `quic` there is none of it.

use punctual::{LinkReport, Socket};
use punctual_stats::QuicStatistics;

/// Logs the hash of a listener's certificate, by which callers can pin it, and warns if callers
/// will refuse the certificate for its dates.
#[cfg(feature = "quic")]
pub(crate) fn announce_certificate(port: &punctual::PortConfig) {
    let punctual::Carriage::Quic(config) = &port.carriage else { return };
    let Some(identity) = config.server.as_ref().map(punctual::quic::ServerTls::identity) else {
        return;
    };
    if let Some(hash) = identity.hash() {
        tracing::info!("callers can verify this listener by `certhash={hash}`");
    }
    if let Err(fault) = identity.check_dates(punctual::quic::pki_types::UnixTime::now()) {
        tracing::warn!("{fault}: only callers that pin its hash will accept it");
    }
}

/// The statistics of the QUIC connection that carries `socket`.
#[cfg(feature = "quic")]
pub(crate) fn of_socket(socket: &Socket) -> Option<QuicStatistics> {
    socket.quic_info().map(|info| statistics(&info))
}

/// The statistics of the QUIC connection that carries a link of a group.
#[cfg(feature = "quic")]
pub(crate) fn of_link(link: &LinkReport) -> Option<QuicStatistics> {
    link.quic.as_ref().map(statistics)
}

/// The statistics of a QUIC connection.
#[cfg(feature = "quic")]
pub(crate) fn statistics(info: &punctual::quic::QuicInfo) -> QuicStatistics {
    QuicStatistics {
        peer: info.remote,
        protocol: info.protocol.map_or("", punctual::quic::Protocol::name),
        byteMTU: info.mtu,
        byteMaxDatagram: info.largest_datagram.unwrap_or_default(),
        rtt: info.rtt,
        byteCongestionWindow: info.congestion_window,
        pktSent: info.packets_sent,
        pktLost: info.packets_lost,
        dgramSent: info.datagrams_sent,
        dgramSndDrop: info.datagrams_dropped,
        msgSent: info.messages_sent,
        mtuFalls: info.black_holes,
    }
}

#[cfg(not(feature = "quic"))]
pub(crate) const fn announce_certificate(_: &punctual::PortConfig) {}

#[cfg(not(feature = "quic"))]
pub(crate) const fn of_socket(_: &Socket) -> Option<QuicStatistics> {
    None
}

#[cfg(not(feature = "quic"))]
pub(crate) const fn of_link(_: &LinkReport) -> Option<QuicStatistics> {
    None
}
