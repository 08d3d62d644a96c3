//! The header of a payload.

use crate::checksum::Checksums;
use crate::{Checksum, PayloadTooShort, ReadStampError};

/// The header of a payload, in network byte order:
///
/// | offset | bits | field |
/// |---|---|---|
/// | 0 | 64 | number of the payload, from 0 |
/// | 8 | 2 | position in its group: 10 first, 00 middle, 01 last, 11 the only one |
/// | | 62 | number of the group, from 0 |
/// | 16 | 64 | system clock when the payload was made, in the 64-bit format of NTP (RFC 5905) |
/// | 24 | 64 | monotonic clock, µs |
/// | 32 | 32 | length of the payload in bytes |
/// | 36 | 128 | MD5 of the payload with zeros here; all zeros for none |
/// | 52 | | filler: bytes that count up from the number modulo 32 |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    /// Number of the payload, from 0.
    pub seq: u64,
    /// Position in its group.
    pub position: Position,
    /// Number of the group, from 0, below 2^62.
    pub group: u64,
    /// The sender's system clock in the 64-bit format of NTP: seconds since 1900 and their
    /// fraction, 32 bits each.
    pub ntp: u64,
    /// The sender's monotonic clock, µs since an origin of its own.
    pub monotonic_us: u64,
}

/// The position of a payload in its group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither the first nor the last.
    Middle,
    /// The last of several.
    Last,
    /// The only one.
    Single,
}

impl Position {
    /// The position of number `index` of a group of `size` payloads.
    const fn of(index: u64, size: u64) -> Self {
        match (index == 0, index + 1 == size) {
            (true, true) => Self::Single,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Whether a group begins with it.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Single)
    }

    /// Whether a group ends with it.
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::Single)
    }

    const fn bits(self) -> u64 {
        match self {
            Self::Middle => 0b00,
            Self::Last => 0b01,
            Self::First => 0b10,
            Self::Single => 0b11,
        }
    }

    const fn from_bits(bits: u64) -> Self {
        match bits & 0b11 {
            0b00 => Self::Middle,
            0b01 => Self::Last,
            0b10 => Self::First,
            _ => Self::Single,
        }
    }
}

impl Stamp {
    /// Reads the header of `payload`, and checks its length and, with [`Checksum::Md5`], its
    /// checksum unless that is all zeros.
    ///
    /// # Errors
    ///
    /// The payload is too short for a header, has another length than its header says, or does not
    /// match the checksum.
    pub fn read(payload: &[u8], checksum: Checksum) -> Result<Self, ReadStampError> {
        let Some((head, rest)) = payload.split_first_chunk::<MIN_PAYLOAD>() else {
            return Err(ReadStampError::TooShort { length: payload.len(), least: MIN_PAYLOAD });
        };
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[at..at + 8]);
            u64::from_be_bytes(bytes)
        };
        let stamped = word(LENGTH_AT) >> 32;
        if u64::try_from(payload.len()) != Ok(stamped) {
            return Err(ReadStampError::WrongLength { length: payload.len(), stamped });
        }
        let found = &head[CHECKSUM_AT..];
        if checksum == Checksum::Md5 && found != NONE && found != digest(head, rest) {
            return Err(ReadStampError::WrongChecksum);
        }
        let group = word(GROUP_AT);
        Ok(Self {
            seq: word(0),
            position: Position::from_bits(group >> 62),
            group: group & GROUP_MASK,
            ntp: word(NTP_AT),
            monotonic_us: word(MONOTONIC_AT),
        })
    }

    /// The sender's system clock, µs since the Unix epoch. NTP's seconds begin again in 2036: of
    /// all that they can mean this is the time nearest to `near_us`, the receiver's system clock.
    pub fn system_time_us(&self, near_us: i64) -> i64 {
        let near = i64::from_be_bytes(ntp_of(near_us).to_be_bytes());
        let sent = i64::from_be_bytes(self.ntp.to_be_bytes());
        // The difference of two instants of NTP, which wraps as they do, in 2^-32 s.
        let difference = i128::from(sent.wrapping_sub(near)) * 1_000_000;
        let difference = (difference + (1 << 31)) >> 32;
        near_us.saturating_add(i64::try_from(difference).unwrap_or(i64::MAX))
    }
}

/// A time in µs since the Unix epoch in the 64-bit format of NTP.
pub(super) fn ntp_of(unix_us: i64) -> u64 {
    let seconds = unix_us.div_euclid(1_000_000).wrapping_add(NTP_TO_UNIX);
    let micros = i128::from(unix_us.rem_euclid(1_000_000));
    // Rounded up, so that the way back gives the same microsecond.
    let fraction = ((micros << 32) + 999_999) / 1_000_000;
    let [.., a, b, c, d] = seconds.to_be_bytes();
    let [.., e, f, g, h] = fraction.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Writes payloads in groups of a fixed number.
#[derive(Clone, Debug)]
pub struct StampWriter {
    checksum: Checksum,
    group_size: u64,
}

impl StampWriter {
    /// A writer for groups of `group_size` payloads, at least one.
    pub fn new(checksum: Checksum, group_size: u64) -> Self {
        Self { checksum, group_size: group_size.max(1) }
    }

    /// Makes `payload` the one with number `seq`, made at `system_time_us` (µs since the Unix
    /// epoch) and `monotonic_us`.
    ///
    /// # Errors
    ///
    /// The payload has fewer than [`MIN_PAYLOAD`] bytes; it is left as it was.
    pub fn write(
        &self,
        payload: &mut [u8],
        seq: u64,
        system_time_us: i64,
        monotonic_us: u64,
    ) -> Result<(), PayloadTooShort> {
        let length = payload.len();
        let Some((head, rest)) = payload.split_first_chunk_mut::<MIN_PAYLOAD>() else {
            return Err(PayloadTooShort { length, least: MIN_PAYLOAD });
        };
        let (group, index) = (seq / self.group_size, seq % self.group_size);
        let position = Position::of(index, self.group_size);
        let words = [
            (0, seq),
            (GROUP_AT, position.bits() << 62 | group & GROUP_MASK),
            (NTP_AT, ntp_of(system_time_us)),
            (MONOTONIC_AT, monotonic_us),
        ];
        for (at, word) in words {
            head[at..at + 8].copy_from_slice(&word.to_be_bytes());
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        head[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&length.to_be_bytes());
        head[CHECKSUM_AT..].copy_from_slice(&NONE);
        crate::fill(rest, seq % 32);
        if self.checksum == Checksum::Md5 {
            let digest = digest(head, rest);
            head[CHECKSUM_AT..].copy_from_slice(&digest);
        }
        Ok(())
    }
}

/// The checksum of a payload, over zeros in place of the checksum.
fn digest(head: &[u8; MIN_PAYLOAD], rest: &[u8]) -> [u8; 16] {
    let mut zeroed = *head;
    zeroed[CHECKSUM_AT..].copy_from_slice(&NONE);
    let mut checksums = Checksums::default();
    checksums.add(&zeroed, rest);
    checksums.take().first().copied().unwrap_or_default()
}

/// The shortest payload that holds a header, in bytes.
pub const MIN_PAYLOAD: usize = 52;

const GROUP_AT: usize = 8;
const NTP_AT: usize = 16;
const MONOTONIC_AT: usize = 24;
const LENGTH_AT: usize = 32;
const CHECKSUM_AT: usize = 36;
const GROUP_MASK: u64 = (1 << 62) - 1;
const NONE: [u8; 16] = [0; 16];
/// Seconds from 1900 to 1970.
const NTP_TO_UNIX: i64 = 2_208_988_800;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SENT_US: i64 = 1_666_000_000_250_000;

    fn written(seq: u64, group_size: u64, length: usize) -> Vec<u8> {
        let mut payload = vec![0xEE; length];
        let writer = StampWriter::new(Checksum::Md5, group_size);
        writer.write(&mut payload, seq, SENT_US, 987_654_321).expect("there is room");
        payload
    }

    #[test]
    fn the_layout_is_the_drafts() {
        // Put together by hand; the checksum comes from Python's hashlib over
        // `struct.pack(">QQQQI", 38, 1 << 62 | 12, (1666000000 + 2208988800) << 32 | 1 << 30,
        // 987654321, 56) + bytes(16) + bytes([6, 7, 8, 9])`.
        let payload = written(38, 3, 56);
        assert_eq!(payload[..8], 38_u64.to_be_bytes());
        assert_eq!(payload[8..16], (0b01 << 62 | 12_u64).to_be_bytes());
        assert_eq!(payload[16..20], 3_874_988_800_u32.to_be_bytes());
        assert_eq!(payload[20..24], [0x40, 0, 0, 0]);
        assert_eq!(payload[24..32], 987_654_321_u64.to_be_bytes());
        assert_eq!(payload[32..36], [0, 0, 0, 56]);
        let digest = 0xE206_2222_E4CD_D888_1BCF_80F5_FBEE_56AE_u128;
        assert_eq!(payload[36..52], digest.to_be_bytes());
        assert_eq!(payload[52..], [6, 7, 8, 9]);
    }

    #[test]
    fn groups_begin_and_end_at_their_positions() {
        let position = |seq, size| Stamp::read(&written(seq, size, 52), Checksum::Md5).unwrap();
        let of = |seq, size| (position(seq, size).position, position(seq, size).group);
        assert_eq!(of(5, 1), (Position::Single, 5));
        assert_eq!(of(6, 3), (Position::First, 2));
        assert_eq!(of(7, 3), (Position::Middle, 2));
        assert_eq!(of(8, 3), (Position::Last, 2));
    }

    #[test]
    fn times_are_read_across_the_year_2036() {
        // 2036-02-07 06:28:16 UTC, when NTP's seconds begin again.
        let turn_us = 2_085_978_496_000_000;
        for sent_us in [SENT_US, 0, turn_us - 1, turn_us, turn_us + 1] {
            let mut payload = [0; 52];
            StampWriter::new(Checksum::None, 1).write(&mut payload, 0, sent_us, 0).unwrap();
            let stamp = Stamp::read(&payload, Checksum::None).unwrap();
            for late_us in [-2_000_000, 0, 120_000] {
                assert_eq!(stamp.system_time_us(sent_us + late_us), sent_us, "{sent_us} {late_us}");
            }
        }
    }

    #[test]
    fn damage_is_found() {
        let payload = written(7, 3, 100);
        for place in 0..100 {
            let mut damaged = payload.clone();
            damaged[place] ^= 0x20;
            assert!(Stamp::read(&damaged, Checksum::Md5).is_err(), "{place}");
        }
        assert_eq!(
            Stamp::read(&payload[..99], Checksum::Md5),
            Err(ReadStampError::WrongLength { length: 99, stamped: 100 })
        );
        assert!(Stamp::read(&payload[..51], Checksum::Md5).is_err());
        let too_short = StampWriter::new(Checksum::Md5, 1).write(&mut [0; 51], 0, 0, 0);
        assert!(too_short.unwrap_err().to_string().contains("at least 52"));
    }

    proptest! {
        #[test]
        fn a_written_stamp_reads_back(
            seq: u64, size in 1_u64..100, length in 52_usize..2_000, monotonic_us: u64,
            system_us in 0_i64..4_000_000_000_000_000,
        ) {
            let mut payload = vec![0; length];
            let writer = StampWriter::new(Checksum::Md5, size);
            writer.write(&mut payload, seq, system_us, monotonic_us).unwrap();
            let stamp = Stamp::read(&payload, Checksum::Md5).unwrap();
            prop_assert_eq!((stamp.seq, stamp.group), (seq, (seq / size) & GROUP_MASK));
            prop_assert_eq!(stamp.monotonic_us, monotonic_us);
            prop_assert_eq!(stamp.system_time_us(system_us + 5_000), system_us);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = Stamp::read(&bytes, Checksum::None);
            prop_assert!(Stamp::read(&bytes, Checksum::Md5).is_err());
        }
    }
}
