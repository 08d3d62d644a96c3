//! The reports of a listener to a probe, as messages of the same SRT connection.
//!
//! A report is one message. All numbers are big-endian and unsigned, but for the transit:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | the letters `PPRB` |
//! | 4 | 2 | version: 1 |
//! | 6 | 2 | samples at the end of the report, up to 40 |
//! | 8 | 4 | number of the report, from 0 |
//! | 12 | 4 | the largest payload received, bytes |
//! | 16 | 15 × 8 | totals since the connection was opened: see [`Totals`], in its order |
//! | 136 | 4 | smoothed RTT, µs |
//! | 140 | 4 | its mean deviation, µs |
//! | 144 | 4 | largest reordering, packets |
//! | 148 | 4 | estimated capacity of the link, kb/s |
//! | 152 | 24 each | samples, the oldest first: see [`LinkSample`], in its order |
//!
//! In a sample, time and transit have 8 and 4 bytes, the round trip 4, and each count since the
//! sample before 2 bytes. A reader ignores a report of another version or length. The counts of a
//! lost report are in the totals of the next, but its round trips and transits are lost.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use punctual_proto::Statistics;
use punctual_units::Bitrate;

/// The receiving end's figures of the stream so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Number of the report, from 0.
    pub number: u32,
    /// The largest payload received, bytes.
    pub largest_payload: u32,
    /// Totals since the connection was opened.
    pub totals: Totals,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variance: Duration,
    /// Largest reordering seen, packets.
    pub reorder_distance: u32,
    /// Estimated capacity of the link.
    pub link_capacity: Bitrate,
    /// The samples since the last report.
    pub samples: Vec<LinkSample>,
}

macro_rules! totals {
    ($( $(#[$doc:meta])* $name:ident = $value:expr, )*) => {
        /// The receiver's totals since the connection was opened.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        pub struct Totals { $( $(#[$doc])* pub $name: u64, )* }

        impl Totals {
            /// The totals in a connection's statistics.
            pub fn of(statistics: &Statistics) -> Self {
                Self { $( $name: $value(statistics), )* }
            }

            /// Adds the counts from `first` to `last`.
            pub(crate) fn add_since(&mut self, first: &Self, last: &Self) {
                $( self.$name += last.$name.saturating_sub(first.$name); )*
            }

            fn write(&self, out: &mut BytesMut) {
                $( out.put_u64(self.$name); )*
            }

            fn read(fields: &mut FieldReader<'_>) -> Option<Self> {
                Some(Self { $( $name: u64::from_be_bytes(fields.take()?), )* })
            }
        }
    };
}

totals! {
    /// Time since the connection was opened, µs.
    elapsed_us = |s: &Statistics| micros(s.elapsed),
    /// Data packets that arrived, each as often as it did.
    received = |s: &Statistics| s.packets_received,
    /// Packets stored for delivery.
    unique = |s: &Statistics| s.packets_received_unique,
    /// Packets that were missing when a later one arrived, reordered ones included.
    lost = |s: &Statistics| s.packets_receive_lost,
    /// Gaps that those left.
    gaps = |s: &Statistics| s.receive_gaps,
    /// Gaps of one packet.
    gaps_single = |s: &Statistics| s.receive_gaps_single,
    /// Reordered packets: missing ones whose originals came after all.
    reordered = |s: &Statistics| s.packets_reordered,
    /// Packets that were stored already.
    duplicate = |s: &Statistics| s.packets_duplicate,
    /// Packets that came after their place was passed, duplicates included.
    belated = |s: &Statistics| s.packets_belated,
    /// Packets never delivered.
    dropped = |s: &Statistics| s.packets_receive_dropped,
    /// Packets that arrived with the retransmission flag.
    retransmitted = |s: &Statistics| s.packets_received_retransmitted,
    /// ACKs sent.
    acks_sent = |s: &Statistics| s.acks_sent,
    /// ACKs whose answer came: round trips measured.
    acks_answered = |s: &Statistics| s.rtt_samples,
    /// NAKs sent.
    naks_sent = |s: &Statistics| s.naks_sent,
    /// Bytes of the packets stored, with 44 bytes of headers each.
    bytes_unique = |s: &Statistics| s.bytes_received_unique,
}

/// The receiver's part of a sample.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkSample {
    /// Time since the connection was opened.
    pub elapsed: Duration,
    /// The newest original's time on the way beyond the handshake's, µs; `None` if none came.
    pub transit_us: Option<i32>,
    /// The latest round trip, if one was measured since the sample before.
    pub rtt: Option<Duration>,
    /// Packets stored since the sample before.
    pub received: u16,
    /// Packets that were missing since then, reordered ones included.
    pub lost: u16,
    /// Gaps that those left, or 65,535 if there were more.
    pub gaps: u16,
    /// Reordered originals since then.
    pub reordered: u16,
}

impl Report {
    /// The report as a message.
    pub fn to_bytes(&self) -> Bytes {
        let samples = &self.samples[..self.samples.len().min(MAX_SAMPLES)];
        let mut out = BytesMut::with_capacity(HEADER + samples.len() * SAMPLE);
        out.put_slice(MAGIC);
        out.put_u16(VERSION);
        out.put_u16(u16::try_from(samples.len()).unwrap_or(0));
        out.put_u32(self.number);
        out.put_u32(self.largest_payload);
        self.totals.write(&mut out);
        out.put_u32(micros32(self.rtt));
        out.put_u32(micros32(self.rtt_variance));
        out.put_u32(self.reorder_distance);
        let kbps = self.link_capacity.as_bits_per_sec() / 1_000;
        out.put_u32(u32::try_from(kbps).unwrap_or(u32::MAX));
        for sample in samples {
            sample.write(&mut out);
        }
        out.freeze()
    }

    /// Reads a message; `None` if it is no report, or one of another version.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let mut fields = FieldReader(message);
        if &fields.take()? != MAGIC || u16::from_be_bytes(fields.take()?) != VERSION {
            return None;
        }
        let count = usize::from(u16::from_be_bytes(fields.take()?));
        if count > MAX_SAMPLES || message.len() != HEADER + count * SAMPLE {
            return None;
        }
        Some(Self {
            number: u32::from_be_bytes(fields.take()?),
            largest_payload: u32::from_be_bytes(fields.take()?),
            totals: Totals::read(&mut fields)?,
            rtt: duration32(fields.take()?),
            rtt_variance: duration32(fields.take()?),
            reorder_distance: u32::from_be_bytes(fields.take()?),
            link_capacity: Bitrate::from_bits_per_sec(
                u64::from(u32::from_be_bytes(fields.take()?)) * 1_000,
            ),
            samples: (0..count)
                .map(|_| LinkSample::read(&mut fields))
                .collect::<Option<Vec<_>>>()?,
        })
    }
}

impl LinkSample {
    fn write(&self, out: &mut BytesMut) {
        out.put_u64(micros(self.elapsed));
        out.put_i32(self.transit_us.unwrap_or(NO_TRANSIT));
        out.put_u32(self.rtt.map_or(0, |rtt| micros32(rtt).max(1)));
        out.put_u16(self.received);
        out.put_u16(self.lost);
        out.put_u16(self.gaps);
        out.put_u16(self.reordered);
    }

    fn read(fields: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self {
            elapsed: Duration::from_micros(u64::from_be_bytes(fields.take()?)),
            transit_us: Some(i32::from_be_bytes(fields.take()?)).filter(|&us| us != NO_TRANSIT),
            rtt: Some(duration32(fields.take()?)).filter(|rtt| !rtt.is_zero()),
            received: u16::from_be_bytes(fields.take()?),
            lost: u16::from_be_bytes(fields.take()?),
            gaps: u16::from_be_bytes(fields.take()?),
            reordered: u16::from_be_bytes(fields.take()?),
        })
    }
}

/// The rest of a message.
struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn micros32(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

fn duration32(micros: [u8; 4]) -> Duration {
    Duration::from_micros(u32::from_be_bytes(micros).into())
}

/// Samples of a report at most: with these it is no longer than a payload of 1316 bytes.
pub(crate) const MAX_SAMPLES: usize = 40;

const MAGIC: &[u8; 4] = b"PPRB";
const VERSION: u16 = 1;
const HEADER: usize = 152;
const SAMPLE: usize = 24;
/// Stands for a transit that is not known.
const NO_TRANSIT: i32 = i32::MIN;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report() -> Report {
        let statistics = Statistics::default();
        Report {
            number: 7,
            largest_payload: 1_316,
            totals: Totals { lost: 5, bytes_unique: 1 << 40, ..Totals::of(&statistics) },
            rtt: Duration::from_millis(20),
            rtt_variance: Duration::from_micros(700),
            reorder_distance: 3,
            link_capacity: Bitrate::from_mbps(45),
            samples: vec![
                LinkSample {
                    elapsed: Duration::from_millis(20),
                    transit_us: Some(-300),
                    rtt: Some(Duration::from_millis(21)),
                    received: 10,
                    lost: 2,
                    gaps: 1,
                    reordered: 1,
                },
                LinkSample::default(),
            ],
        }
    }

    #[test]
    fn a_report_reads_as_it_was_written() {
        let bytes = report().to_bytes();
        assert_eq!(bytes.len(), HEADER + 2 * SAMPLE);
        assert_eq!(Report::parse(&bytes), Some(report()));
    }

    #[test]
    fn the_longest_report_fits_the_usual_payload() {
        let samples = vec![LinkSample::default(); 100];
        let bytes = Report { samples, ..report() }.to_bytes();
        assert!(bytes.len() <= 1_316, "{}", bytes.len());
        assert_eq!(Report::parse(&bytes).map(|report| report.samples.len()), Some(MAX_SAMPLES));
    }

    #[test]
    fn other_messages_and_versions_are_not_reports() {
        let bytes = report().to_bytes();
        assert_eq!(Report::parse(&[]), None);
        assert_eq!(Report::parse(&bytes[..bytes.len() - 1]), None, "too short");
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert_eq!(Report::parse(&longer), None, "too long");
        let mut other = bytes.to_vec();
        other[5] = 2;
        assert_eq!(Report::parse(&other), None, "another version");
        let mut many = bytes.to_vec();
        many[6..8].copy_from_slice(&[0xFF, 0xFF]);
        assert_eq!(Report::parse(&many), None, "more samples than there are");
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(message in prop::collection::vec(any::<u8>(), 0..1_500)) {
            let _ = Report::parse(&message);
            let mut framed = MAGIC.to_vec();
            framed.extend([0, 1]);
            framed.extend(&message);
            if let Some(report) = Report::parse(&framed) {
                prop_assert_eq!(report.samples.len() * SAMPLE + HEADER, framed.len());
            }
        }
    }
}
