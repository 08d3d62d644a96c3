//! Transport stream as RTP (RFC 3550, RFC 2250).

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use punctual::{Instant, Outgoing, Timer, now};
use punctual_metrics::rtp::{
    MPEG_TS, RTP_HEADER_LEN, ReorderBuffer, RtpHeader, RtpPacket, rtp_header,
};

use crate::end::MessageTraffic;
use crate::end::datagrams::{DatagramReader, DatagramWriter};
use crate::end::fit::Fit;
use crate::end::plain_packets::PlainPackets;
use crate::end::rtp_datagram::is_transport_stream;
use crate::failure::Failure;

/// Reads the payloads of RTP packets from a UDP socket, in the order of their numbers.
pub(crate) struct RtpReader {
    datagrams: DatagramReader,
    order: ReorderBuffer<Instant, Outgoing>,
    /// Takes timestamps and parity off the packets.
    packets: Option<PlainPackets>,
    /// The stream that is read.
    source: Option<u32>,
    timer: Timer,
    arrived: Vec<Outgoing>,
    /// The origin time of the last message: time does not go back.
    latest: Option<Instant>,
    name: String,
    traffic: Arc<MessageTraffic>,
    has_told: bool,
}

impl RtpReader {
    /// Reads what `datagrams` gives, at the end of this name, as `packets` gives it.
    pub(crate) fn new(
        datagrams: DatagramReader,
        packets: Option<PlainPackets>,
        name: String,
    ) -> io::Result<Self> {
        Ok(Self {
            datagrams,
            order: ReorderBuffer::new(),
            packets,
            source: None,
            timer: Timer::new()?,
            arrived: Vec::new(),
            latest: None,
            name,
            traffic: Arc::default(),
            has_told: false,
        })
    }

    /// Counts lost packets here from now on.
    pub(super) fn count_in(&mut self, traffic: &Arc<MessageTraffic>) {
        self.traffic = Arc::clone(traffic);
        self.traffic.count_lost(0, 0);
    }

    /// Discards the packets that have come so far.
    pub(super) async fn skip(&mut self) {
        self.datagrams.skip().await;
    }

    /// Reads at least one message, each with the time of its arrival. Cancel safe.
    pub(super) async fn read_timed(&mut self, batch: &mut Vec<Outgoing>) -> Result<(), Failure> {
        let before = batch.len();
        loop {
            self.order.expire(now(), |message| batch.push(message));
            self.take_off(batch, before);
            if batch.len() > before {
                break;
            }
            let deadline = self.order.deadline();
            tokio::select! {
                biased;
                read = self.datagrams.read_timed(&mut self.arrived) => {
                    read?;
                    for datagram in std::mem::take(&mut self.arrived) {
                        self.take_in(datagram, batch);
                    }
                }
                () = self.timer.sleep_until(deadline.unwrap_or_default()), if deadline.is_some() => {}
            }
        }
        for message in &mut batch[before..] {
            let latest = message.options.origin.max(self.latest);
            (self.latest, message.options.origin) = (latest, latest);
        }
        let counted = self.traffic.lost().unwrap_or_default();
        self.traffic.count_lost(self.order.lost() - counted.0, self.order.late() - counted.1);
        Ok(())
    }

    fn take_in(&mut self, datagram: Outgoing, batch: &mut Vec<Outgoing>) {
        let Outgoing { payload: bytes, options } = datagram;
        let packet = RtpPacket::parse(&bytes);
        let Some(RtpPacket { header, payload }) = packet else { return self.refuse(&bytes) };
        let payload = bytes.slice(payload);
        if header.payload_type != MPEG_TS && !is_transport_stream(&payload) {
            return self.refuse(&bytes);
        }
        if self.source.replace(header.source).is_some_and(|source| source != header.source) {
            self.order.restart(|message| batch.push(message));
        }
        let until = options.origin.unwrap_or_default() + WAIT;
        let message = Outgoing { payload, options };
        self.order.push(header.sequence, until, message, |message| batch.push(message));
    }

    /// Takes timestamps and parity off the messages from this one on.
    fn take_off(&mut self, batch: &mut Vec<Outgoing>, from: usize) {
        let Some(packets) = &mut self.packets else { return };
        for Outgoing { payload, options } in batch.split_off(from) {
            batch.extend(packets.take(payload).map(|payload| Outgoing { payload, options }));
        }
    }

    /// Says once that there are other datagrams, which are left out.
    fn refuse(&mut self, datagram: &[u8]) {
        if std::mem::replace(&mut self.has_told, true) {
            return;
        }
        let what = match RtpPacket::parse(datagram) {
            Some(packet) => format!("RTP with the payload type {}", packet.header.payload_type),
            None if is_transport_stream(datagram) => {
                "MPEG-TS without RTP, for which the URI is `udp://`".to_owned()
            }
            None => "no RTP".to_owned(),
        };
        tracing::warn!("{}: datagrams that are left out came: {what}", self.name);
    }
}

/// Writes transport stream as RTP packets to a UDP socket.
pub(crate) struct RtpWriter {
    datagrams: DatagramWriter,
    fit: Fit,
    /// The header of the next packet, with the timestamp of time zero.
    next: RtpHeader,
}

impl RtpWriter {
    /// Writes by `datagrams`, at the end of this name.
    pub(crate) fn new(datagrams: DatagramWriter, name: String) -> Self {
        // RFC 3550 wants starts that nobody can guess.
        let random = |what: u8| RandomState::new().hash_one(what).to_be_bytes();
        let ([a, b, c, d, e, f, g, h], [i, j, ..]) = (random(0), random(1));
        let next = RtpHeader {
            payload_type: MPEG_TS,
            sequence: u16::from_be_bytes([i, j]),
            timestamp: u32::from_be_bytes([a, b, c, d]),
            source: u32::from_be_bytes([e, f, g, h]),
        };
        Self { datagrams, fit: Fit::of_packets(name, PAYLOAD), next }
    }

    pub(super) fn fit(&mut self) -> &mut Fit {
        &mut self.fit
    }

    /// Writes all of `batch`.
    pub(super) async fn write<M: Into<Outgoing>>(
        &mut self,
        batch: &mut VecDeque<M>,
    ) -> io::Result<()> {
        while let Some(message) = batch.pop_front() {
            self.fit.take(message.into(), !batch.is_empty());
        }
        let now = now();
        let Self { fit, next, datagrams } = self;
        let mut packets: VecDeque<Bytes> = VecDeque::new();
        for Outgoing { payload, options } in fit.parts().drain(..) {
            let at = ticks(options.origin.unwrap_or(now));
            let header = RtpHeader { timestamp: next.timestamp.wrapping_add(at), ..*next };
            let mut packet = BytesMut::with_capacity(RTP_HEADER_LEN + payload.len());
            packet.put_slice(&rtp_header(header));
            packet.put_slice(&payload);
            packets.push_back(packet.freeze());
            next.sequence = next.sequence.wrapping_add(1);
        }
        datagrams.write(&mut packets).await
    }
}

/// The time in 1/90,000 s, which wraps.
fn ticks(at: Instant) -> u32 {
    let ticks = u128::from(at.as_nanos()) * 90_000 / 1_000_000_000;
    u32::try_from(ticks & u128::from(u32::MAX)).expect("it was masked")
}

/// The longest time that packets wait for one before them.
const WAIT: Duration = Duration::from_millis(50);

/// Seven packets of a transport stream, as everybody sends them.
const PAYLOAD: usize = 7 * 188;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_rtp_runs_at_90_khz_and_wraps() {
        assert_eq!(ticks(Instant::from_millis(1_000)), 90_000);
        let wrap = Duration::from_nanos((1_u64 << 32) * 1_000_000_000 / 90_000);
        assert!(ticks(Instant::ORIGIN + wrap + Duration::from_millis(1)) <= 91);
    }
}
