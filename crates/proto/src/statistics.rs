//! The statistics of a connection: libsrt's under Rust names, and additional ones.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Bitrate;

macro_rules! statistics {
    (totals { $( $(#[$tdoc:meta])* $total:ident : $ttype:ty, )* }
     instants { $( $(#[$idoc:meta])* $instant:ident : $itype:ty, )* }) => {
        /// A snapshot of the statistics of a connection.
        ///
        /// Fields marked *total* count since the connection was opened; fields marked *instant*
        /// hold at the moment of the snapshot. [`Statistics::since`] gives the interval between two
        /// snapshots. Byte counters include the headers of a packet unless noted: 44 bytes with UDP
        /// over IPv4, as libsrt's do, and 64 over IPv6. The name in brackets is libsrt's
        /// (`SRT_TRACEBSTATS`).
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct Statistics {
            $( $(#[$tdoc])* pub $total: $ttype, )*
            $( $(#[$idoc])* pub $instant: $itype, )*
        }

        impl Statistics {
            /// The interval from the snapshot `earlier` to this one: totals become differences,
            /// instants are those of this one.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $( $total: self.$total.saturating_sub(earlier.$total), )*
                    $( $instant: self.$instant.clone(), )*
                }
            }

            /// These statistics with the totals of `other` added; instants are those of these.
            #[must_use]
            pub fn plus_totals(&self, other: &Self) -> Self {
                Self {
                    $( $total: self.$total.saturating_add(other.$total), )*
                    $( $instant: self.$instant.clone(), )*
                }
            }

            /// Every statistic with its name, in the order of the fields.
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
        /// Total: time since the connection was opened; of an interval, its length \[msTimeStamp\].
        elapsed: Duration,
        /// Total: data packets sent: originals, retransmissions and filter packets \[pktSent\].
        packets_sent: u64,
        /// Total: bytes of all data packets sent \[byteSent\].
        bytes_sent: u64,
        /// Total: originals sent, that is first transmissions of packets \[pktSentUnique\].
        packets_sent_unique: u64,
        /// Total: bytes of originals sent \[byteSentUnique\].
        bytes_sent_unique: u64,
        /// Total: retransmissions sent \[pktRetrans\].
        packets_retransmitted: u64,
        /// Total: bytes of retransmissions sent \[byteRetrans\].
        bytes_retransmitted: u64,
        /// Total: packets put into the sender's loss list; a packet that is reported again after
        /// its retransmission counts again \[pktSndLoss\].
        packets_send_lost: u64,
        /// Total: packets that the sender dropped as too late or past their TTL \[pktSndDrop\].
        /// Their acknowledgement had not arrived; the receiver may have them.
        packets_send_dropped: u64,
        /// Total: bytes of packets that the sender dropped \[byteSndDrop\].
        bytes_send_dropped: u64,
        /// Total: packets that the peer never delivers, by its ACKs: its `packets_receive_dropped`.
        /// Only peers of this implementation report them.
        packets_peer_dropped: u64,
        /// Total: ACKs that reported these packets; 0 if the peer does not report them.
        peer_drop_reports: u64,
        /// Total: full and small ACKs received that acknowledged more packets \[pktRecvACK\].
        acks_received: u64,
        /// Total: full and small ACKs that the peer has sent, by the number of the newest received.
        acks_expected: u64,
        /// Total: full and small ACKs that the peer has sent and that were not received.
        acks_missed: u64,
        /// Total: runs of consecutive ACKs that were not received.
        ack_gaps: u64,
        /// Total: NAKs received \[pktRecvNAK\].
        naks_received: u64,
        /// Total: packets that the peer reported lost again before their retransmission can have
        /// arrived, and that were not retransmitted for that reason; each report counts.
        reports_old: u64,
        /// Total: packets that the peer reported lost and that were not retransmitted, because they
        /// would have arrived too late.
        reports_too_late: u64,
        /// Total: redundant retransmissions, sent because no further NAK could be answered in time.
        /// They are part of the retransmissions.
        packets_copied: u64,
        /// Total: packets of the packet filter sent \[pktSndFilterExtra\].
        packets_send_filter_extra: u64,
        /// Total: time during which the send buffer was not empty \[usSndDuration\].
        send_busy: Duration,
        /// Total: data packets received, with duplicates and retransmissions \[pktRecv\].
        packets_received: u64,
        /// Total: bytes of all data packets received \[byteRecv\].
        bytes_received: u64,
        /// Total: packets received for the first time and stored for delivery \[pktRecvUnique\].
        packets_received_unique: u64,
        /// Total: bytes of packets stored for delivery \[byteRecvUnique\].
        bytes_received_unique: u64,
        /// Total: packets received that were marked as retransmitted \[pktRcvRetrans\].
        packets_received_retransmitted: u64,
        /// Total: packets that were missing when a later one arrived, including reordered ones
        /// \[pktRcvLoss\].
        packets_receive_lost: u64,
        /// Total: bytes of missing packets, estimated from the mean payload \[byteRcvLoss\].
        bytes_receive_lost: u64,
        /// Total: gaps in the sequence numbers at arrival; each is a run of missing packets.
        receive_gaps: u64,
        /// Total: gaps in the sequence numbers that were one packet long.
        receive_gaps_single: u64,
        /// Total: originals that arrived after a later packet. They were counted as missing before.
        packets_reordered: u64,
        /// Total: packets that are never delivered, because they were too late, dropped by the
        /// sender, or could not be decrypted \[pktRcvDrop\].
        packets_receive_dropped: u64,
        /// Total: bytes of packets that are never delivered, estimated \[byteRcvDrop\].
        bytes_receive_dropped: u64,
        /// Total: packets that could not be decrypted, or that arrived in the clear in an encrypted
        /// connection \[pktRcvUndecrypt\].
        packets_undecrypted: u64,
        /// Total: payload bytes of packets that could not be decrypted \[byteRcvUndecrypt\].
        bytes_undecrypted: u64,
        /// Total: packets with a wrong GCM tag, because they were changed in transit or are not the
        /// peer's. They are part of the packets that could not be decrypted.
        packets_not_authentic: u64,
        /// Total: keys that the sender began to use after the first one.
        key_refreshes: u64,
        /// Total: packets that arrived after they were delivered or given up, with duplicates
        /// \[pktRcvBelated\].
        packets_belated: u64,
        /// Total: packets that arrived again. They are part of the belated packets.
        packets_duplicate: u64,
        /// Total: full and small ACKs sent \[pktSentACK\].
        acks_sent: u64,
        /// Total: NAKs sent \[pktSentNAK\].
        naks_sent: u64,
        /// Total: packets listed in a further NAK after their retransmission timeout; 0 without NAK
        /// timers of single packets
        /// ([`RetransmitAlgorithm::Deadline`](crate::RetransmitAlgorithm::Deadline)).
        packets_requested_again: u64,
        /// Total: missing packets that arrived after one NAK; 0 without NAK timers.
        recovered_first_round: u64,
        /// Total: missing packets that arrived after two NAKs; 0 without NAK timers.
        recovered_second_round: u64,
        /// Total: missing packets that arrived after three NAKs; 0 without NAK timers.
        recovered_third_round: u64,
        /// Total: missing packets that arrived after more than three NAKs; 0 without NAK timers.
        recovered_later: u64,
        /// Total: round trips that this end measured, one for each ACK whose ACKACK arrived.
        rtt_samples: u64,
        /// Total: packets of the packet filter received \[pktRcvFilterExtra\].
        packets_receive_filter_extra: u64,
        /// Total: packets that the packet filter rebuilt \[pktRcvFilterSupply\].
        packets_filter_supplied: u64,
        /// Total: packets that were still missing when all their rows and columns of the packet
        /// filter had ended \[pktRcvFilterLoss\]. Some may still be retransmitted, or rebuilt.
        packets_filter_lost: u64,
        /// Total: packets received that were ignored because they were invalid.
        packets_ignored: u64,
        /// Total: datagrams that were too long for their path and were returned to the carriage; 0
        /// with UDP.
        packets_oversized: u64,
        /// Total: changes of the peer's address that the connection followed.
        path_changes: u64,
        /// Total: jumps of the receiver to other sequence numbers, as after an outage longer than
        /// its buffer.
        receive_jumps: u64,
        /// Total: packets of a stream of bytes that could not be read at their playout point.
        packets_late: u64,
        /// Total: glitches of a stream of bytes, interruptions at the playout point.
        glitches: u64,
    }
    instants {
        /// Instant: time between two packets of mean size, at the limit that the pacer keeps
        /// \[usPktSndPeriod\].
        send_period: Duration,
        /// Instant: free room of the peer's receive buffer by its newest ACK, packets
        /// \[pktFlowWindow\].
        flow_window: u32,
        /// Instant: most packets in flight: the smaller of the congestion window and of the peer's
        /// room \[pktCongestionWindow\].
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
        /// Instant: latency that the peer's receiver applies \[msSndTsbPdDelay\].
        peer_latency: Duration,
        /// Instant: mean lateness of belated packets, smoothed by 1/5 \[pktRcvAvgBelatedTime\].
        belated_time: Duration,
        /// Instant: largest reordering seen, packets \[pktReorderDistance\].
        reorder_distance: u32,
        /// Instant: packets that may overtake a missing one before its loss is reported
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
        /// Instant: latency that this end's receiver applies \[msRcvTsbPdDelay\].
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
        /// Instant: transit time of the newest original, less that of the handshake that fixed the
        /// time base, microseconds; negative if the original was faster. It changes with the
        /// one-way delay, and with clock drift that is not corrected yet.
        transit_micros: i64,
        /// Instant: queueing delay of the path: of a live stream the least round trip of the last
        /// 45 ms, less the one without a queue; of a file the newest round trip less the least one.
        queueing_delay: Duration,
        /// Instant: the greatest time by which a packet of a stream of bytes was readable after its
        /// playout point.
        longest_lateness: Duration,
        /// Instant: estimated capacity of the link \[mbpsBandwidth\].
        link_capacity: Bitrate,
        /// Instant: largest datagram with IP and UDP headers, bytes \[byteMSS\].
        mss: u32,
    }
}

/// The value of a statistic, for code that handles all statistics in the same way.
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
    /// The rate of all bytes sent over this interval, headers included \[mbpsSendRate\].
    pub fn send_rate(&self) -> Bitrate {
        Bitrate::of(self.bytes_sent, self.elapsed)
    }

    /// The packets sent that the receiver never delivers; `None` if it does not report them.
    pub fn unrecovered_at_peer(&self) -> Option<u64> {
        (self.peer_drop_reports > 0).then_some(self.packets_peer_dropped)
    }

    /// The smoothed round-trip time; `None` before the first measurement, when
    /// [`rtt`](Self::rtt) is the initial estimate of 100 ms.
    pub fn measured_rtt(&self) -> Option<Duration> {
        let Rtt { smoothed, variance } = Rtt::INITIAL;
        let is_initial = (self.rtt, self.rtt_variance) == (smoothed, variance);
        let is_unknown = self.rtt.is_zero() || is_initial && self.rtt_samples == 0;
        (!is_unknown).then_some(self.rtt)
    }

    /// The rate of all bytes received over this interval, headers included \[mbpsRecvRate\].
    pub fn receive_rate(&self) -> Bitrate {
        Bitrate::of(self.bytes_received, self.elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_estimate_of_the_round_trip_is_no_measurement() {
        let Rtt { smoothed: rtt, variance: rtt_variance } = Rtt::INITIAL;
        let initial = Statistics { rtt, rtt_variance, ..Statistics::default() };
        assert_eq!(initial.measured_rtt(), None);
        assert_eq!(Statistics::default().measured_rtt(), None, "a group without links");
        let measured = Statistics { rtt_variance: Duration::from_millis(3), ..initial };
        assert_eq!(measured.measured_rtt(), Some(rtt));
    }

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
