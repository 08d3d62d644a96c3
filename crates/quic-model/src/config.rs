//! The parameters of a run.

use std::time::Duration;

use punctual_netem::{LinkConfig, QueueLimit};
use punctual_rtt::{BuiltInRtt, TimerRule};
use punctual_units::Bitrate;

use crate::ack_policy::AckPolicy;
use crate::congestion::Control;
use crate::loss::LossDetection;

/// The parameters of the sending end.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The estimator of the round-trip time.
    pub estimator: BuiltInRtt,
    /// The formula of the retransmission timer.
    pub timer: TimerRule,
    /// How lost packets are found.
    pub detection: LossDetection,
    /// The congestion control.
    pub control: Control,
    /// The acknowledgements of the receiver.
    pub acks: AckPolicy,
    /// The smoothed round-trip time, and the timer, before the first sample.
    pub initial_round_trip: Duration,
    /// Bytes of a UDP payload that surely pass.
    pub base_mtu: usize,
    /// Bytes of the largest UDP payload that the peer accepts.
    pub greatest_mtu: usize,
    /// Whether probes of a timeout have the base size, so that they pass where longer packets no
    /// longer do.
    pub probes_at_base_mtu: bool,
    /// The timeouts in a row after which the size of packets is the base again; `None` for any
    /// number. Without it a black hole may remain: with [`LossDetection::Rfc9002`] no packet is
    /// declared lost where none is acknowledged, and with the other only losses of full packets
    /// count, of which the end of an object may not have enough.
    pub timeouts_reset_mtu: Option<u32>,
    /// Packets of 200 bytes that the server sends at the end of the handshake: 1, or 2 in the
    /// published classic arm. The second is an inference: the first burst of that arm has 24
    /// packets instead of 25, and one packet more in the pacer's bucket explains it. Why the
    /// earlier acknowledgements of that arm lead to it is not modelled.
    pub packets_after_handshake: u32,
}

impl Default for SenderConfig {
    /// RFC 9002 with `NewReno`, and an acknowledgement for every second packet.
    fn default() -> Self {
        Self {
            estimator: BuiltInRtt::Rfc9002,
            timer: TimerRule::FourVariances,
            detection: LossDetection::Rfc9002,
            control: Control::NewReno,
            acks: AckPolicy::Every { packets: 2, delay: Duration::from_millis(25) },
            initial_round_trip: Duration::from_millis(333),
            base_mtu: 1_252,
            greatest_mtu: 1_440,
            probes_at_base_mtu: false,
            // RFC 8899 section 5.1.2: MAX_PROBES.
            timeouts_reset_mtu: Some(3),
            packets_after_handshake: 1,
        }
    }
}

impl SenderConfig {
    /// The sender of picoquic in June 2023, with which the table of "Update QUIC timers once per
    /// RTT" was made.
    pub fn picoquic_2023(control: Control, estimator: BuiltInRtt, timer: TimerRule) -> Self {
        Self {
            estimator,
            timer,
            control,
            detection: LossDetection::Picoquic2023,
            acks: AckPolicy::RETUNED,
            initial_round_trip: Duration::from_millis(250),
            timeouts_reset_mtu: None,
            ..Self::default()
        }
    }

    /// The same with the acknowledgements of the published classic arm.
    #[must_use]
    pub fn without_retuned_acks(mut self) -> Self {
        self.acks = AckPolicy::NOT_RETUNED;
        self.packets_after_handshake = 2;
        self
    }

    pub(crate) fn is_rfc9002(&self) -> bool {
        self.detection == LossDetection::Rfc9002
    }
}

/// A run: a client asks for an object, and the server sends it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The server, which sends the object.
    pub sender: SenderConfig,
    /// Bytes of the object, at least 1.
    pub object: u64,
    /// The link from the client to the server.
    pub up: LinkConfig,
    /// The link from the server to the client. Losses, and the limits of both queues, begin when
    /// the client has finished the handshake, whose packets the model does not repeat.
    pub down: LinkConfig,
    /// When the path begins to swallow long packets: the time since the client finished the
    /// handshake, and the bytes of the longest UDP payload that still passes, both ways.
    pub mtu_drop: Option<(Duration, usize)>,
    /// The last packets of the object that are lost when they are sent for the first time.
    pub lost_tail: u64,
    /// Where the run's chance comes from.
    pub seed: u64,
    /// The run ends after this time in any case.
    pub limit: Duration,
}

impl Scenario {
    /// The scenario of the published table: an object of 1,000,000 bytes over 1.048576 Mb/s and
    /// 100 ms each way with queues of 200 ms, whose MTU falls from 1536 to 1394 bytes a second
    /// after the handshake.
    pub fn mtu_drop(sender: SenderConfig) -> Self {
        let delay = Duration::from_millis(100);
        // The queue takes a packet that waits for less than 200 ms.
        let queue = QueueLimit::Time(2 * delay - Duration::from_nanos(1));
        let rate = Bitrate::from_bits_per_sec(1_048_576);
        let link = LinkConfig::default().with_rate(Some(rate)).with_delay(delay).with_queue(queue);
        let link = link.with_mtu(Some(1_536));
        Self {
            sender,
            object: 1_000_000,
            up: link.clone(),
            down: link,
            mtu_drop: Some((Duration::from_secs(1), 1_394)),
            lost_tail: 0,
            seed: 1,
            limit: Duration::from_secs(120),
        }
    }
}
