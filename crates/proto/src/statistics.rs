//! What a connection counts and measures: libsrt's statistics under Rust names.

use std::time::Duration;

use punctual_units::Bitrate;

macro_rules! statistics {
    (totals { $( $(#[$tdoc:meta])* $total:ident : $ttype:ty, )* }
     instants { $( $(#[$idoc:meta])* $instant:ident : $itype:ty, )* }) => {
        /// A snapshot of everything a connection counts and measures.
        ///
        /// Fields marked *total* count since the connection was opened; fields marked *instant*
        /// hold at the moment of the snapshot. [`Statistics::since`] gives the interval between two
        /// snapshots. Byte counters include 44 bytes of headers a packet unless noted, as libsrt's.
        /// The name in brackets is libsrt's (`SRT_TRACEBSTATS`).
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct Statistics {
            $( $(#[$tdoc])* pub $total: $ttype, )*
            $( $(#[$idoc])* pub $instant: $itype, )*
        }

        impl Statistics {
            /// The interval from the snapshot `earlier` to this one: totals become differences,
            /// instants stay as they are here.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $( $total: self.$total.saturating_sub(earlier.$total), )*
                    $( $instant: self.$instant.clone(), )*
                }
            }

            /// These statistics with the totals of `other` added; instants stay as they are here.
            #[must_use]
            pub fn plus_totals(&self, other: &Self) -> Self {
                Self {
                    $( $total: self.$total.saturating_add(other.$total), )*
                    $( $instant: self.$instant.clone(), )*
                }
            }

            /// Every statistic with its name, as it stands in this page, in this page's order.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, StatisticValue)> {
                [
                    $( (stringify!($total), StatisticValue::from(self.$total)), )*
                    $( (stringify!($instant), StatisticValue::from(self.$instant)), )*
                ]
                .into_iter()
            }
        }
    };
}

statistics! {
    totals {
        /// Total: time since the connection was opened \[msTimeStamp\]; in an interval, its length.
        elapsed: Duration,
        /// Total: data packets sent, originals, retransmissions and filter packets \[pktSent\].
        packets_sent: u64,
        /// Total: bytes of those \[byteSent\].
        bytes_sent: u64,
        /// Total: first transmissions \[pktSentUnique\].
        packets_sent_unique: u64,
        /// Total: bytes of those \[byteSentUnique\].
        bytes_sent_unique: u64,
        /// Total: retransmissions \[pktRetrans\].
        packets_retransmitted: u64,
        /// Total: bytes of those \[byteRetrans\].
        bytes_retransmitted: u64,
        /// Total: packets put into the sender's loss list; a packet reported again after it was
        /// resent counts again \[pktSndLoss\].
        packets_send_lost: u64,
        /// Total: packets that the sender dropped as too late or past their TTL \[pktSndDrop\].
        packets_send_dropped: u64,
        /// Total: bytes of those \[byteSndDrop\].
        bytes_send_dropped: u64,
        /// Total: ACKs received that acknowledged something new, without light ones \[pktRecvACK\].
        acks_received: u64,
        /// Total: full and small ACKs of the peer up to the newest that came, by their numbers.
        acks_expected: u64,
        /// Total: those that did not come.
        acks_missed: u64,
        /// Total: runs of those.
        ack_gaps: u64,
        /// Total: NAKs received \[pktRecvNAK\].
        naks_received: u64,
        /// Total: packets reported lost again before the answer can have arrived, and left alone
        /// for that, each time counted.
        reports_old: u64,
        /// Total: packets reported lost that could not have come in time, and were left alone.
        reports_too_late: u64,
        /// Total: packets sent once more than the peer asked for, because no further request could
        /// be answered in time; they count as retransmitted, too.
        packets_copied: u64,
        /// Total: packet filter packets sent \[pktSndFilterExtra\].
        packets_send_filter_extra: u64,
        /// Total: time with something in the send buffer \[usSndDuration\].
        send_busy: Duration,
        /// Total: data packets that arrived, duplicates and retransmissions included \[pktRecv\].
        packets_received: u64,
        /// Total: bytes of those \[byteRecv\].
        bytes_received: u64,
        /// Total: packets stored for delivery \[pktRecvUnique\].
        packets_received_unique: u64,
        /// Total: bytes of those \[byteRecvUnique\].
        bytes_received_unique: u64,
        /// Total: packets that arrived marked as retransmitted \[pktRcvRetrans\].
        packets_received_retransmitted: u64,
        /// Total: packets found missing at arrival of a later one, reordered ones included
        /// \[pktRcvLoss\].
        packets_receive_lost: u64,
        /// Total: bytes of those, estimated from the average payload \[byteRcvLoss\].
        bytes_receive_lost: u64,
        /// Total: gaps that those packets left: each is a run of packets lost, or overtaken.
        receive_gaps: u64,
        /// Total: gaps of a single packet.
        receive_gaps_single: u64,
        /// Total: originals that arrived after a later one: counted as lost before, but only
        /// overtaken.
        packets_reordered: u64,
        /// Total: packets never delivered: skipped as too late, given up by the sender, or not
        /// decryptable \[pktRcvDrop\].
        packets_receive_dropped: u64,
        /// Total: bytes of those, estimated from the average payload \[byteRcvDrop\].
        bytes_receive_dropped: u64,
        /// Total: packets that could not be decrypted, or came in the clear where they should not
        /// \[pktRcvUndecrypt\].
        packets_undecrypted: u64,
        /// Total: payload bytes of those \[byteRcvUndecrypt\].
        bytes_undecrypted: u64,
        /// Total: packets whose GCM tag did not fit: changed on the way, or not the peer's. A part
        /// of the undecrypted.
        packets_not_authentic: u64,
        /// Total: keys that the sender took into use after the first.
        key_refreshes: u64,
        /// Total: packets that arrived after their place was passed, duplicates included
        /// \[pktRcvBelated\].
        packets_belated: u64,
        /// Total: packets that arrived although they were stored already. A part of the belated.
        packets_duplicate: u64,
        /// Total: full and small ACKs sent \[pktSentACK\].
        acks_sent: u64,
        /// Total: NAKs sent \[pktSentNAK\].
        naks_sent: u64,
        /// Total: packets asked for once more, when the answer was overdue. This and the next four
        /// count where requests have clocks of their own
        /// ([`RetransmitAlgorithm::Deadline`](crate::RetransmitAlgorithm::Deadline)).
        packets_requested_again: u64,
        /// Total: packets that came when they had been asked for once.
        recovered_first_round: u64,
        /// Total: packets that came when they had been asked for twice.
        recovered_second_round: u64,
        /// Total: packets that came when they had been asked for three times.
        recovered_third_round: u64,
        /// Total: packets that came when they had been asked for more often.
        recovered_later: u64,
        /// Total: round trips that this end measured, one for each ACK whose answer came.
        rtt_samples: u64,
        /// Total: packet filter packets received \[pktRcvFilterExtra\].
        packets_receive_filter_extra: u64,
        /// Total: packets rebuilt by the filter \[pktRcvFilterSupply\].
        packets_filter_supplied: u64,
        /// Total: packets that were missing when all their groups of the filter were over
        /// \[pktRcvFilterLoss\]. Some may still be sent again, or rebuilt with others.
        packets_filter_lost: u64,
        /// Total: packets of the peer that were ignored because they broke the rules.
        packets_ignored: u64,
        /// Total: times that the connection followed its peer to another address.
        path_changes: u64,
        /// Total: times that the receiver jumped forward after an outage longer than its buffer.
        receive_jumps: u64,
    }
    instants {
        /// Instant: time between two packets of mean size, at the limit that the pacer keeps
        /// \[usPktSndPeriod\].
        send_period: Duration,
        /// Instant: packets that the peer can take, by its last ACK \[pktFlowWindow\].
        flow_window: u32,
        /// Instant: congestion window, packets \[pktCongestionWindow\].
        congestion_window: u32,
        /// Instant: packets sent and not acknowledged \[pktFlightSize\].
        flight_size: u32,
        /// Instant: limit of the sending rate \[mbpsMaxBW\].
        max_bandwidth: Bitrate,
        /// Instant: free room of the send buffer, bytes \[byteAvailSndBuf\].
        send_buffer_available: u64,
        /// Instant: packets in the send buffer \[pktSndBuf\].
        send_buffer_packets: u32,
        /// Instant: payload bytes in the send buffer \[byteSndBuf\].
        send_buffer_bytes: u64,
        /// Instant: time between the oldest and the newest message in the send buffer \[msSndBuf\].
        send_buffer_span: Duration,
        /// Instant: delay that the peer's receiver applies \[msSndTsbPdDelay\].
        peer_latency: Duration,
        /// Instant: mean lateness of belated packets, smoothed by 1/5 \[pktRcvAvgBelatedTime\].
        belated_time: Duration,
        /// Instant: largest reordering seen, packets \[pktReorderDistance\].
        reorder_distance: u32,
        /// Instant: reordering that is waited for before a loss is reported, packets
        /// \[pktReorderTolerance\].
        reorder_tolerance: u32,
        /// Instant: free room of the receive buffer, bytes \[byteAvailRcvBuf\].
        receive_buffer_available: u64,
        /// Instant: packets in the receive buffer \[pktRcvBuf\].
        receive_buffer_packets: u32,
        /// Instant: payload bytes in the receive buffer, without headers \[byteRcvBuf\].
        receive_buffer_bytes: u64,
        /// Instant: time between the oldest and the newest message in the receive buffer
        /// \[msRcvBuf\].
        receive_buffer_span: Duration,
        /// Instant: delay that this end's receiver applies \[msRcvTsbPdDelay\].
        receive_latency: Duration,
        /// Instant: correction for the drift of the peer's clock, microseconds; positive when the
        /// peer's clock falls behind.
        drift_micros: i64,
        /// Instant: smoothed round-trip time \[msRTT\].
        rtt: Duration,
        /// Instant: mean deviation of the round-trip time.
        rtt_variance: Duration,
        /// Instant: the latest round trip that this end measured, not smoothed; zero before the
        /// first.
        rtt_latest: Duration,
        /// Instant: by how much longer the newest original was on its way than the handshake that
        /// fixed the time base, microseconds; negative if it was faster. Its changes are those of
        /// the one-way delay, and the drift of the clocks that is not corrected yet.
        transit_micros: i64,
        /// Instant: estimated capacity of the link \[mbpsBandwidth\].
        link_capacity: Bitrate,
        /// Instant: largest datagram with IP and UDP headers, bytes \[byteMSS\].
        mss: u32,
    }
}

/// The value of a statistic, for those who treat all of them alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatisticValue {
    /// A number of packets, bytes or times.
    Count(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A time.
    Time(Duration),
    /// A rate.
    Rate(Bitrate),
}

macro_rules! value_from {
    ($( $type:ty => $variant:ident ),*) => {
        $( impl From<$type> for StatisticValue {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        } )*
    };
}

value_from!(u64 => Count, u32 => Count, i64 => Signed, Duration => Time, Bitrate => Rate);

impl Statistics {
    /// Rate of everything sent over this interval, headers included \[mbpsSendRate\].
    pub fn send_rate(&self) -> Bitrate {
        Bitrate::of(self.bytes_sent, self.elapsed)
    }

    /// Rate of everything received over this interval, headers included \[mbpsRecvRate\].
    pub fn receive_rate(&self) -> Bitrate {
        Bitrate::of(self.bytes_received, self.elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_the_difference_of_totals_and_the_later_instants() {
        let a =
            Statistics { packets_sent: 10, rtt: Duration::from_millis(9), ..Statistics::default() };
        let b =
            Statistics { packets_sent: 25, rtt: Duration::from_millis(7), ..Statistics::default() };
        let interval = b.since(&a);
        assert_eq!(interval.packets_sent, 15);
        assert_eq!(interval.rtt, Duration::from_millis(7));
    }

    #[test]
    fn fields_have_their_names_and_values() {
        let statistics =
            Statistics { packets_sent: 7, drift_micros: -3, mss: 1_500, ..Statistics::default() };
        let value = |name| statistics.fields().find(|field| field.0 == name).map(|field| field.1);
        assert_eq!(value("packets_sent"), Some(StatisticValue::Count(7)));
        assert_eq!(value("drift_micros"), Some(StatisticValue::Signed(-3)));
        assert_eq!(value("mss"), Some(StatisticValue::Count(1_500)));
        assert_eq!(value("rtt"), Some(StatisticValue::Time(Duration::ZERO)));
    }
}
