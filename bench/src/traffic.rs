//! The arguments that both implementations' programs take for a run, and the reports that they
//! print.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

/// The streams of a run. The same flags go to our `send` and `receive` and to libsrt-bench's.
#[derive(Args, Clone, Debug)]
pub(crate) struct Traffic {
    /// UDP port of the listener on 127.0.0.1.
    #[arg(long)]
    pub(crate) port: u16,
    /// Connections, each with one stream from caller to listener.
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: u32,
    /// Bytes of each message.
    #[arg(long, default_value_t = PAYLOAD)]
    pub(crate) payload: usize,
    /// Latency of both ends, milliseconds.
    #[arg(long, default_value_t = 120)]
    pub(crate) latency_ms: u64,
    /// Payload rate of each stream, bits per second; 0 for idle connections.
    #[arg(long, default_value_t = 0)]
    pub(crate) rate: u64,
    /// The time to send for, seconds.
    #[arg(long, default_value_t = 3.0)]
    pub(crate) seconds: f64,
    /// Least time between two batches of messages, microseconds; 0 sends each message at its time.
    #[arg(long, default_value_t = 1000)]
    pub(crate) batch_us: u64,
    /// Limit of the sending rate, bytes per second; -1 for the implementation's default.
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    pub(crate) max_bandwidth: i64,
    /// Buffers of the UDP sockets, bytes; 0 for the implementation's default.
    #[arg(long, default_value_t = 0)]
    pub(crate) udp_buffer: usize,
    /// Bytes of the key that encrypts: 16, 24 or 32; 0 for no encryption.
    #[arg(long, default_value_t = 0)]
    pub(crate) key_length: usize,
    /// AES-GCM instead of AES-CTR, which libsrt's packages do not have.
    #[arg(long)]
    pub(crate) gcm: bool,
    /// SRT over QUIC instead of UDP, which libsrt does not have.
    #[arg(long)]
    pub(crate) quic: bool,
    /// The file into which the receiver writes one record a message about its time of delivery.
    #[arg(long)]
    pub(crate) trace: Option<PathBuf>,
    /// Whether the receiver takes further callers, too, and reads what they send.
    #[arg(long)]
    pub(crate) strangers: bool,
}

impl Traffic {
    /// One stream without messages: what the scenarios start from.
    pub(crate) fn new(port: u16, seconds: f64) -> Self {
        Self {
            port,
            streams: 1,
            payload: PAYLOAD,
            latency_ms: 120,
            rate: 0,
            seconds,
            batch_us: 1_000,
            max_bandwidth: -1,
            udp_buffer: 0,
            key_length: 0,
            gcm: false,
            quic: false,
            trace: None,
            strangers: false,
        }
    }

    /// The flags that say this, for either implementation's program.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--port={}", self.port),
            format!("--streams={}", self.streams),
            format!("--payload={}", self.payload),
            format!("--latency-ms={}", self.latency_ms),
            format!("--rate={}", self.rate),
            format!("--seconds={}", self.seconds),
            format!("--batch-us={}", self.batch_us),
            format!("--max-bandwidth={}", self.max_bandwidth),
            format!("--udp-buffer={}", self.udp_buffer),
            format!("--key-length={}", self.key_length),
        ];
        flags.extend(self.gcm.then(|| "--gcm".to_owned()));
        flags.extend(self.quic.then(|| "--quic".to_owned()));
        flags.extend(self.trace.as_ref().map(|path| format!("--trace={}", path.display())));
        flags.extend(self.strangers.then(|| "--strangers".to_owned()));
        flags
    }

    /// The time to send for.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Time between two messages of all streams together, nanoseconds; `None` for idle connections.
    #[expect(clippy::cast_precision_loss, reason = "rates and sizes lie far below 2^53")]
    pub(crate) fn interval_ns(&self) -> Option<f64> {
        let bits_per_second = self.rate as f64 * f64::from(self.streams);
        (self.rate > 0).then(|| self.payload as f64 * 8e9 / bits_per_second)
    }

    /// Messages of all streams together.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floor is meant")]
    pub(crate) fn messages(&self) -> u64 {
        self.interval_ns().map_or(0, |interval| (self.seconds * 1e9 / interval) as u64)
    }
}

/// The first bytes of each payload, little-endian.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    /// The monotonic clock, which all processes of a machine share, just before the message was
    /// handed to the library, nanoseconds.
    pub(crate) sent_ns: u64,
    /// The stream, from 0.
    pub(crate) stream: u32,
    /// Which message of its stream, from 0.
    pub(crate) number: u32,
}

impl Stamp {
    /// Bytes that a stamp takes.
    pub(crate) const SIZE: usize = 16;

    /// The stamp as in the payload.
    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stream.to_le_bytes());
        bytes[12..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// The stamp of a payload; `None` if it is too short for one.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let (sent_ns, rest) = payload.split_first_chunk()?;
        let (stream, rest) = rest.split_first_chunk()?;
        let number = rest.first_chunk()?;
        Some(Self {
            sent_ns: u64::from_le_bytes(*sent_ns),
            stream: u32::from_le_bytes(*stream),
            number: u32::from_le_bytes(*number),
        })
    }
}

/// The report that a sender prints at the end.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SendReport {
    /// Messages handed to the library.
    pub(crate) sent: u64,
    /// The time that this took, seconds.
    pub(crate) seconds: f64,
    /// Messages that the sender's library dropped.
    pub(crate) dropped: u64,
    /// Packets that were retransmitted.
    pub(crate) retransmitted: u64,
    /// The median of the smoothed round-trip time of the first stream, microseconds; 0 if it was
    /// not measured.
    #[serde(default)]
    pub(crate) rtt_us: u64,
}

/// The report that a receiver prints at the end.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ReceiveReport {
    /// Messages delivered.
    pub(crate) received: u64,
    /// Messages that were not the next of their stream.
    pub(crate) out_of_order: u64,
    /// Longest time from sending to delivery, microseconds.
    pub(crate) delay_max_us: u64,
    /// The same time of the last message; the longest of all streams.
    pub(crate) delay_last_us: u64,
}

/// A receiver's record of one message in its trace, 24 bytes, little-endian.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TraceRecord {
    /// The time in the message's stamp.
    pub(crate) sent_ns: u64,
    /// The same clock when the message was in the application's hands.
    pub(crate) delivered_ns: u64,
    /// The delay of the delivery against the TSBPD time; negative if it was earlier.
    pub(crate) late_ns: i64,
}

impl TraceRecord {
    /// The record as in the file.
    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.delivered_ns.to_le_bytes());
        bytes[16..].copy_from_slice(&self.late_ns.to_le_bytes());
        bytes
    }

    /// All records of a file's contents.
    pub(crate) fn read_all(contents: &[u8]) -> impl Iterator<Item = Self> {
        contents.as_chunks::<{ Self::SIZE }>().0.iter().map(|record| {
            let word = |i: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&record[i * 8..][..8]);
                word
            };
            Self {
                sent_ns: u64::from_le_bytes(word(0)),
                delivered_ns: u64::from_le_bytes(word(1)),
                late_ns: i64::from_le_bytes(word(2)),
            }
        })
    }

    const SIZE: usize = 24;
}

/// Seven MPEG-TS packets.
const PAYLOAD: usize = 1_316;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_records_read_back() {
        let stamp = Stamp { sent_ns: u64::MAX - 7, stream: 70_000, number: 3 };
        assert_eq!(Stamp::read(&stamp.to_bytes()), Some(stamp));
        assert_eq!(Stamp::read(&[0; Stamp::SIZE - 1]), None);
        let record = TraceRecord { sent_ns: 1 << 40, delivered_ns: 5, late_ns: -300 };
        let file = [record.to_bytes(), record.to_bytes()].concat();
        assert_eq!(TraceRecord::read_all(&file).collect::<Vec<_>>(), [record, record]);
    }

    #[test]
    fn counts_messages_of_all_streams() {
        let traffic =
            Traffic { rate: 5_000_000, streams: 100, payload: 1_250, ..Traffic::new(1, 2.0) };
        assert_eq!(traffic.interval_ns(), Some(20_000.0));
        assert_eq!(traffic.messages(), 100_000);
        assert_eq!(Traffic::new(1, 2.0).messages(), 0);
    }
}
