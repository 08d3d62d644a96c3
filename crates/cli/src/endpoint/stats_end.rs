//! The ends of a stream that have statistics.

use std::sync::Arc;

use punctual_stats::QuicStatistics;

use crate::endpoint::{Row, SrtEnd, Traffic};

/// An end with statistics.
pub(crate) enum StatsEnd {
    /// An SRT connection or a group, and the messages that it has carried.
    Srt(SrtEnd, Arc<Traffic>),
    /// A QUIC connection without SRT, with its number in reports.
    #[cfg(feature = "quic")]
    Quic(u32, punctual::quic::QuicConnection),
}

impl StatsEnd {
    /// Whether it has carried anything.
    pub(crate) fn has_carried(&self) -> bool {
        match self {
            Self::Srt(end, _) => {
                let total = end.statistics();
                total.packets_sent + total.packets_received > 0
            }
            #[cfg(feature = "quic")]
            Self::Quic(_, connection) => connection.info().is_some(),
        }
    }

    /// The statistics of SRT: a row for the whole, and one for each link of a group. Messages that
    /// are too long for the connection count as dropped by the sender.
    pub(crate) fn srt_rows(&self) -> Vec<Row> {
        match self {
            Self::Srt(end, traffic) => {
                let mut rows = end.rows();
                if let Some(whole) = rows.first_mut() {
                    let (messages, bytes) = traffic.unsent();
                    whole.statistics.packets_send_dropped += messages;
                    whole.statistics.bytes_send_dropped += bytes;
                }
                rows
            }
            #[cfg(feature = "quic")]
            Self::Quic(..) => Vec::new(),
        }
    }

    /// The statistics of a QUIC connection without SRT, with its number.
    pub(crate) fn bare_quic(&self) -> Option<(u32, QuicStatistics)> {
        match self {
            Self::Srt(..) => None,
            #[cfg(feature = "quic")]
            Self::Quic(id, connection) => {
                Some((*id, crate::endpoint::quic::statistics(&connection.info()?)))
            }
        }
    }
}
