use crate::checksum::{Checksum, Checksums};

/// The stamp at the head of a measuring payload: which one it is, and when it was sent.
///
/// The layout is srt-xtransmit's, little-endian, as that program writes it on every machine that it
/// is used on:
///
/// | offset | bytes | field |
/// |---|---|---|
/// | 0 | 8 | number of the payload, from 0 |
/// | 8 | 8 | system clock, µs since the Unix epoch, signed |
/// | 16 | 8 | monotonic clock, µs, signed |
/// | 24 | 8 | filler |
/// | 32 | 8 | length of the payload in bytes |
/// | 40 | 16 | MD5 of bytes 0 to 39 and 56 to the end, or zeros |
/// | 56 | | filler |
///
/// The checksum finds damage, not forgery. Zeros say that the sender computed none
/// ([`Checksum::None`]); srt-xtransmit takes them for damage.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stamp {
    /// Number of the payload, from 0, one more for each payload of a stream.
    pub seq: u64,
    /// The sender's system clock, µs since the Unix epoch. Against the receiver's it gives a
    /// latency, if the two are synchronised.
    pub system_time_us: i64,
    /// The sender's monotonic clock, µs since an origin of its own: only differences mean anything.
    pub monotonic_us: i64,
}

impl Stamp {
    /// Reads the stamp of `payload` and checks its length and checksum.
    ///
    /// # Errors
    ///
    /// The first of these that holds: the payload cannot hold a stamp; it has another length than
    /// its stamp says; its bytes do not match the checksum.
    pub fn read(payload: &[u8]) -> Result<Self, ReadStampError> {
        let mut stamp = Err(ReadStampError::WrongChecksum);
        StampReader::default().read(&[payload], |read| stamp = read);
        stamp
    }

    /// Reads the stamp and checks the length alone.
    fn read_unchecked(payload: &[u8]) -> Result<(Self, &Head, &[u8]), ReadStampError> {
        let Some((head, filler)) = payload.split_first_chunk() else {
            return Err(ReadStampError::TooShort { length: payload.len(), least: MIN_PAYLOAD });
        };
        let stamped = u64::from_le_bytes(field(head, LENGTH_AT));
        if usize::try_from(stamped) != Ok(payload.len()) {
            return Err(ReadStampError::WrongLength { length: payload.len(), stamped });
        }
        let stamp = Self {
            seq: u64::from_le_bytes(field(head, SEQ_AT)),
            system_time_us: i64::from_le_bytes(field(head, SYSTEM_TIME_AT)),
            monotonic_us: i64::from_le_bytes(field(head, MONOTONIC_AT)),
        };
        Ok((stamp, head, filler))
    }
}

/// Reads the stamps of payloads that came together, and checks all their checksums at once.
#[derive(Clone, Debug, Default)]
pub struct StampReader {
    checksum: Checksum,
    checksums: Checksums,
    read: Vec<ReadStamp>,
}

/// A stamp whose checksum was not compared yet.
#[derive(Clone, Copy, Debug)]
struct ReadStamp {
    stamp: Result<Stamp, ReadStampError>,
    /// The checksum in it, if it is to be compared.
    checksum: Option<[u8; 16]>,
}

impl StampReader {
    /// A reader that checks checksums, or with [`Checksum::None`] does not look at them.
    pub fn new(checksum: Checksum) -> Self {
        Self { checksum, ..Self::default() }
    }

    /// Gives the stamp of each payload to `take`, in their order, or the first of these that holds:
    /// the payload cannot hold a stamp; it has another length than its stamp says; its bytes do not
    /// match the checksum.
    pub fn read(
        &mut self,
        payloads: &[impl AsRef<[u8]>],
        mut take: impl FnMut(Result<Stamp, ReadStampError>),
    ) {
        for payload in payloads {
            let read = match Stamp::read_unchecked(payload.as_ref()) {
                Ok((stamp, head, filler)) => {
                    let checksum = self.stamped(head);
                    if checksum.is_some() {
                        self.checksums.add(&head[..CHECKSUM_AT], filler);
                    }
                    ReadStamp { stamp: Ok(stamp), checksum }
                }
                Err(error) => ReadStamp { stamp: Err(error), checksum: None },
            };
            self.read.push(read);
        }
        let mut computed = self.checksums.take().iter();
        for ReadStamp { stamp, checksum } in self.read.drain(..) {
            let matches = checksum.is_none() || checksum.as_ref() == computed.next();
            take(if matches { stamp } else { Err(ReadStampError::WrongChecksum) });
        }
    }

    /// The checksum in a stamp, if it is to be compared.
    fn stamped(&self, head: &Head) -> Option<[u8; 16]> {
        let mut stamped = NO_CHECKSUM;
        stamped.copy_from_slice(&head[CHECKSUM_AT..]);
        Some(stamped).filter(|stamped| self.checksum == Checksum::Md5 && *stamped != NO_CHECKSUM)
    }
}

/// Writes the stamps of payloads that are sent together, and computes all their checksums at once.
#[derive(Clone, Debug, Default)]
pub struct StampWriter {
    checksum: Checksum,
    checksums: Checksums,
}

impl StampWriter {
    /// A writer whose payloads have this checksum.
    pub fn new(checksum: Checksum) -> Self {
        Self { checksum, ..Self::default() }
    }

    /// Makes the first of `payloads` the one that `first` tells of, and each further one that with
    /// the next number and the same times: [filler](fill) and a [stamp](Stamp).
    ///
    /// # Errors
    ///
    /// A payload has fewer than [`MIN_PAYLOAD`] bytes; all are left as they were.
    pub fn write<P: AsMut<[u8]> + AsRef<[u8]>>(
        &mut self,
        payloads: &mut [P],
        first: Stamp,
    ) -> Result<(), PayloadTooShort> {
        let mut lengths = payloads.iter().map(|payload| payload.as_ref().len());
        if let Some(length) = lengths.find(|&length| length < MIN_PAYLOAD) {
            return Err(PayloadTooShort { length, least: MIN_PAYLOAD });
        }
        for (payload, seq) in payloads.iter_mut().zip(first.seq..) {
            let payload = payload.as_mut();
            let length = payload.len() as u64;
            fill(payload, seq);
            let Some((head, filler)) = payload.split_first_chunk_mut::<MIN_PAYLOAD>() else {
                continue;
            };
            head[SEQ_AT..][..8].copy_from_slice(&seq.to_le_bytes());
            head[SYSTEM_TIME_AT..][..8].copy_from_slice(&first.system_time_us.to_le_bytes());
            head[MONOTONIC_AT..][..8].copy_from_slice(&first.monotonic_us.to_le_bytes());
            head[LENGTH_AT..][..8].copy_from_slice(&length.to_le_bytes());
            head[CHECKSUM_AT..].copy_from_slice(&NO_CHECKSUM);
            if self.checksum == Checksum::Md5 {
                self.checksums.add(&head[..CHECKSUM_AT], filler);
            }
        }
        for (payload, checksum) in payloads.iter_mut().zip(self.checksums.take()) {
            payload.as_mut()[CHECKSUM_AT..MIN_PAYLOAD].copy_from_slice(checksum);
        }
        Ok(())
    }
}

/// Makes `payload` the payload number `seq`: [filler](fill), and a [stamp](Stamp) with the sender's
/// system clock (µs since the Unix epoch) and its monotonic clock (µs).
///
/// # Errors
///
/// The payload has fewer than [`MIN_PAYLOAD`] bytes; it is left as it was.
pub fn write_stamp(
    payload: &mut [u8],
    seq: u64,
    system_time_us: i64,
    monotonic_us: i64,
) -> Result<(), PayloadTooShort> {
    StampWriter::default().write(&mut [payload], Stamp { seq, system_time_us, monotonic_us })
}

/// Fills `payload` with the pattern of payload number `seq`: byte i is the low byte of `seq + i`.
///
/// This is the whole of a payload that carries no stamp.
pub fn fill(payload: &mut [u8], seq: u64) {
    let [mut value, ..] = seq.to_le_bytes();
    for byte in payload {
        *byte = value;
        value = value.wrapping_add(1);
    }
}

/// Why a payload has no stamp to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReadStampError {
    /// The payload cannot hold a stamp.
    #[error("a payload of {length} bytes carries no stamp: the shortest that does has {least}")]
    TooShort {
        /// Bytes in the payload.
        length: usize,
        /// Bytes of the shortest payload with a stamp.
        least: usize,
    },
    /// The payload was cut or joined on its way, or never had a stamp.
    #[error("a payload of {length} bytes is stamped as one of {stamped}")]
    WrongLength {
        /// Bytes in the payload.
        length: usize,
        /// Bytes that the stamp tells.
        stamped: u64,
    },
    /// Some of the payload's bytes changed on its way.
    #[error("the payload does not match the MD5 checksum in its stamp")]
    WrongChecksum,
}

/// A payload too short to be stamped.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a payload of {length} bytes has no room for a stamp: at least {least} are needed")]
pub struct PayloadTooShort {
    /// Bytes in the payload.
    pub length: usize,
    /// Bytes of the shortest payload with a stamp.
    pub least: usize,
}

/// The shortest payload that holds a stamp, in bytes.
pub const MIN_PAYLOAD: usize = 56;

const SEQ_AT: usize = 0;
const SYSTEM_TIME_AT: usize = 8;
const MONOTONIC_AT: usize = 16;
const LENGTH_AT: usize = 32;
const CHECKSUM_AT: usize = 40;

/// The bytes in place of the checksum in a payload without one.
const NO_CHECKSUM: [u8; 16] = [0; 16];

/// The part of a payload that holds the stamp.
type Head = [u8; MIN_PAYLOAD];

fn field(head: &Head, at: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&head[at..at + 8]);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes 0 to 55 of an srt-xtransmit payload of 64 bytes, number 258, put together by hand from
    /// the layout. The checksum comes from Python's hashlib:
    /// `p = bytearray((258 + i) & 255 for i in range(64))`
    /// `struct.pack_into("<Qqq", p, 0, 258, 1649951173441614, 987654321)`
    /// `struct.pack_into("<Q", p, 32, 64); hashlib.md5(p[:40] + p[56:]).hexdigest()`
    const HEAD: [u8; 56] = [
        0x02, 0x01, 0, 0, 0, 0, 0, 0, // number
        0x4E, 0xF8, 0x96, 0x31, 0x9F, 0xDC, 0x05, 0, // system time
        0xB1, 0x68, 0xDE, 0x3A, 0, 0, 0, 0, // monotonic time
        0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x21, // filler
        0x40, 0, 0, 0, 0, 0, 0, 0, // length
        0xCC, 0x15, 0xFB, 0x42, 0x45, 0xD2, 0x42, 0xEE, // checksum
        0xD6, 0xAB, 0xBA, 0xD0, 0x6A, 0x61, 0xD6, 0x9B,
    ];
    const TAIL: [u8; 8] = [0x3A, 0x3B, 0x3C, 0x3D, 0x3E, 0x3F, 0x40, 0x41];

    #[test]
    fn the_layout_is_srt_xtransmits() {
        let mut payload = [0xEE; 64];
        write_stamp(&mut payload, 258, 1_649_951_173_441_614, 987_654_321).unwrap();
        assert_eq!(payload[..56], HEAD);
        assert_eq!(payload[56..], TAIL);
        assert_eq!(
            Stamp::read(&payload),
            Ok(Stamp {
                seq: 258,
                system_time_us: 1_649_951_173_441_614,
                monotonic_us: 987_654_321
            })
        );
    }

    #[test]
    fn a_full_message_has_the_checksum_that_python_computes() {
        // The same lines of Python with range(1316), number 4294967295 and length 1316.
        let mut payload = [0; 1316];
        write_stamp(&mut payload, 0xFFFF_FFFF, 1_649_951_173_441_614, 987_654_321).unwrap();
        assert_eq!(payload[40..56], 0x362A_390E_11C4_A427_9087_805B_3D16_3B5F_u128.to_be_bytes());
    }

    #[test]
    fn filler_counts_up_from_the_number() {
        let mut payload = [0; 4];
        fill(&mut payload, 0x1FE);
        assert_eq!(payload, [0xFE, 0xFF, 0x00, 0x01]);
    }

    #[test]
    fn each_fault_has_its_error() {
        let mut payload = [0; 100];
        assert_eq!(
            write_stamp(&mut payload[..55], 0, 0, 0),
            Err(PayloadTooShort { length: 55, least: MIN_PAYLOAD })
        );
        write_stamp(&mut payload, 7, 8, 9).unwrap();
        assert_eq!(
            Stamp::read(&payload[..55]),
            Err(ReadStampError::TooShort { length: 55, least: MIN_PAYLOAD })
        );
        assert_eq!(
            Stamp::read(&payload[..99]),
            Err(ReadStampError::WrongLength { length: 99, stamped: 100 })
        );
        payload[99] ^= 1;
        assert_eq!(Stamp::read(&payload), Err(ReadStampError::WrongChecksum));
    }

    #[test]
    fn a_batch_is_stamped_and_read_as_its_payloads_are() {
        let first = Stamp { seq: 40, system_time_us: 8, monotonic_us: 9 };
        let mut together = vec![vec![0; 1_316]; 35];
        StampWriter::default().write(&mut together, first).unwrap();
        for (payload, seq) in together.iter().zip(first.seq..) {
            let mut alone = vec![0; 1_316];
            write_stamp(&mut alone, seq, 8, 9).unwrap();
            assert_eq!(*payload, alone);
        }
        together[7][1_000] ^= 1;
        together[20].pop();
        let mut read = Vec::new();
        StampReader::default().read(&together, |stamp| read.push(stamp));
        let faults: Vec<usize> = (0..35).filter(|&number| read[number].is_err()).collect();
        assert_eq!(faults, [7, 20]);
        assert_eq!(read[34], Ok(Stamp { seq: 74, ..first }));
    }

    #[test]
    fn a_payload_too_short_leaves_its_batch_as_it_was() {
        let mut batch = [vec![1; 100], vec![1; 55]];
        let first = Stamp { seq: 0, system_time_us: 0, monotonic_us: 0 };
        let written = StampWriter::default().write(&mut batch, first);
        assert_eq!(written, Err(PayloadTooShort { length: 55, least: MIN_PAYLOAD }));
        assert_eq!(batch[0], [1; 100]);
    }

    #[test]
    fn without_a_checksum_damage_shows_in_the_length_alone() {
        let stamp = Stamp { seq: 7, system_time_us: 8, monotonic_us: 9 };
        let mut payload = vec![0; 100];
        StampWriter::new(Checksum::None).write(&mut [&mut payload[..]], stamp).unwrap();
        assert_eq!(Stamp::read(&payload), Ok(stamp));
        payload[99] ^= 1;
        assert_eq!(Stamp::read(&payload), Ok(stamp), "there is nothing to compare it with");
        assert!(Stamp::read(&payload[..99]).is_err());
    }

    #[test]
    fn a_reader_may_ignore_checksums() {
        let mut payload = [0; 100];
        write_stamp(&mut payload, 7, 8, 9).unwrap();
        payload[99] ^= 1;
        let read = |checksum| {
            let mut stamp = None;
            StampReader::new(checksum).read(&[payload], |read| stamp = Some(read.is_ok()));
            stamp.unwrap()
        };
        assert_eq!([Checksum::Md5, Checksum::None].map(read), [false, true]);
    }

    proptest! {
        #[test]
        fn reads_what_was_written(
            seq: u64, system_time_us: i64, monotonic_us: i64, length in MIN_PAYLOAD..1500,
        ) {
            let mut payload = vec![0; length];
            write_stamp(&mut payload, seq, system_time_us, monotonic_us).unwrap();
            prop_assert_eq!(
                Stamp::read(&payload),
                Ok(Stamp { seq, system_time_us, monotonic_us })
            );
        }

        #[test]
        fn any_changed_byte_is_found(at in 0_usize..200, change in 1_u8..) {
            let mut payload = [0; 200];
            write_stamp(&mut payload, 42, 43, 44).unwrap();
            payload[at] ^= change;
            prop_assert!(Stamp::read(&payload).is_err());
        }

        #[test]
        fn any_bytes_are_read_without_panic(payload: Vec<u8>) {
            prop_assert!(Stamp::read(&payload).is_err());
        }
    }
}
