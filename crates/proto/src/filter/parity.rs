//! The content of parity packets.
//!
//! A parity packet is a data packet with message number 0. Its sequence number is that of the last
//! packet that it covers, and its timestamp is the exclusive or of theirs. Its payload begins with
//! four bytes: the number of the column, or 0xFF for a row; the exclusive or of the key flags; the
//! exclusive or of the payload lengths. After them comes the exclusive or of the payloads, the
//! shorter ones padded with zeros.

use bytes::Bytes;
use punctual_wire::{DataHeader, KeyFlag, Timestamp};

/// Bytes before the exclusive or of the payloads.
pub(super) const PREFIX: usize = 4;
/// The first byte of the parity packet of a row.
const ROW: u8 = 0xFF;

/// The kind of group that a parity packet covers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cover {
    Row,
    Column(u8),
}

impl Cover {
    const fn byte(self) -> u8 {
        match self {
            Self::Row => ROW,
            Self::Column(col) => col,
        }
    }
}

/// The exclusive or of packets: of their key flags, lengths, timestamps and payloads.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketXor {
    key: u8,
    length: u16,
    timestamp: u32,
    payload: Vec<u8>,
}

impl PacketXor {
    /// Sets everything to zero, and keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.key = 0;
        self.length = 0;
        self.timestamp = 0;
        self.payload.clear();
    }

    pub(super) fn add(&mut self, header: &DataHeader, payload: &[u8]) {
        self.key ^= header.key as u8;
        self.length ^= length_of(payload);
        self.timestamp ^= header.timestamp.as_micros();
        let (both, beyond) = payload.split_at(payload.len().min(self.payload.len()));
        for (sum, byte) in self.payload.iter_mut().zip(both) {
            *sum ^= byte;
        }
        self.payload.extend_from_slice(beyond);
    }

    pub(super) const fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(self.timestamp)
    }

    /// Appends the payload of the parity packet. It is as long as the longest packet that it
    /// covers: libsrt pads it with zeros to the largest payload, and accepts both.
    pub(super) fn write(&self, cover: Cover, out: &mut Vec<u8>) {
        let [high, low] = self.length.to_be_bytes();
        out.extend_from_slice(&[cover.byte(), self.key, high, low]);
        out.extend_from_slice(&self.payload);
    }
}

/// A received parity packet.
#[derive(Clone, Debug)]
pub(super) struct ParityPacket {
    timestamp: u32,
    payload: Bytes,
}

impl ParityPacket {
    /// Parses a parity packet; `None` if it is too short.
    pub(super) fn parse(header: &DataHeader, payload: &Bytes) -> Option<(Cover, Self)> {
        let cover = match *payload.get(..PREFIX)?.first()? {
            ROW => Cover::Row,
            col => Cover::Column(col),
        };
        let parity = Self { timestamp: header.timestamp.as_micros(), payload: payload.clone() };
        Some((cover, parity))
    }

    /// The key flag, timestamp and payload of the only missing packet of the group, from all
    /// `others`. `None` if the result cannot be a packet: then the parity packet or one of the
    /// others is corrupt or forged.
    pub(super) fn solve<'a>(
        &self,
        others: impl Iterator<Item = (&'a DataHeader, &'a Bytes)>,
    ) -> Option<(KeyFlag, Timestamp, Bytes)> {
        let &[_, key, high, low, ref sum @ ..] = &self.payload[..] else { return None };
        let mut rest = PacketXor {
            key,
            length: u16::from_be_bytes([high, low]),
            timestamp: self.timestamp,
            payload: sum.to_vec(),
        };
        for (header, payload) in others {
            if payload.len() > sum.len() {
                return None;
            }
            rest.add(header, payload);
        }
        let length = usize::from(rest.length);
        let padding = rest.payload.get(length..)?;
        if length == 0 || padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        rest.payload.truncate(length);
        let key = match rest.key {
            0b00 => KeyFlag::Clear,
            0b01 => KeyFlag::Even,
            0b10 => KeyFlag::Odd,
            _ => return None,
        };
        Some((key, Timestamp::from_micros(rest.timestamp), Bytes::from(rest.payload)))
    }
}

fn length_of(payload: &[u8]) -> u16 {
    u16::try_from(payload.len()).expect("a UDP datagram is shorter than 64 KiB")
}

#[cfg(test)]
mod tests {
    use punctual_wire::{MsgNo, Position, SeqNo, SocketId};

    use super::*;

    fn header(key: KeyFlag, timestamp: u32) -> DataHeader {
        DataHeader {
            seq: SeqNo::new(7),
            position: Position::Solo,
            in_order: false,
            key,
            retransmitted: false,
            msgno: MsgNo::CONTROL,
            timestamp: Timestamp::from_micros(timestamp),
            dest: SocketId::new(1),
        }
    }

    #[test]
    fn the_prefix_has_libsrts_layout() {
        let mut sum = PacketXor::default();
        sum.add(&header(KeyFlag::Even, 0x0102_0304), &[0xA0, 0xB0]);
        sum.add(&header(KeyFlag::Odd, 0x1000_0004), &[0x0A, 0x0B, 0x0C]);
        let mut out = Vec::new();
        sum.write(Cover::Row, &mut out);
        assert_eq!(out, [0xFF, 3, 0, 1, 0xAA, 0xBB, 0x0C]);
        assert_eq!(sum.timestamp().as_micros(), 0x1102_0300);
        out.clear();
        sum.write(Cover::Column(9), &mut out);
        assert_eq!(out[0], 9);
    }

    #[test]
    fn an_impossible_result_is_not_taken_for_a_packet() {
        let other = (header(KeyFlag::Clear, 5), Bytes::from_static(&[1, 2, 3]));
        let solve = |payload: &[u8]| {
            let (_, parity) =
                ParityPacket::parse(&header(KeyFlag::Clear, 7), &Bytes::copy_from_slice(payload))?;
            parity.solve([(&other.0, &other.1)].into_iter())
        };
        let whole = solve(&[0xFF, 1, 0, 1, 9, 9, 3]).expect("two bytes, even key");
        let expected = (KeyFlag::Even, Timestamp::from_micros(2), Bytes::from_static(&[8, 11]));
        assert_eq!(whole, expected);
        assert_eq!(solve(&[0xFF, 0, 0]), None, "no whole prefix");
        assert_eq!(solve(&[0xFF, 0, 0, 1]), None, "shorter than a packet that it covers");
        assert_eq!(solve(&[0xFF, 3, 0, 1, 9, 9, 3]), None, "both keys");
        assert_eq!(solve(&[0xFF, 0, 0, 3, 9, 9, 3]), None, "empty");
        assert_eq!(solve(&[0xFF, 0, 0, 1, 9, 9, 4]), None, "bytes after its end");
        assert_eq!(solve(&[0xFF, 0, 1, 0, 9, 9, 3]), None, "longer than the parity payload");
    }
}
