//! The payloads that are sent: a pattern, which begins with a stamp if they are measured.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use punctual_metrics::{Checksum, MIN_PAYLOAD, Stamp, StampWriter, fill};

use crate::exit::Failure;

/// Makes one payload after the other.
pub(crate) struct Payloads {
    size: usize,
    contents: Contents,
    next: u64,
}

enum Contents {
    /// Each payload begins with a stamp.
    Stamped {
        stamps: StampWriter,
        /// Payloads that are being made.
        making: Vec<BytesMut>,
    },
    /// The pattern alone, which repeats after [`PERIOD`] bytes: each payload is a part of this.
    Pattern(Bytes),
}

impl Payloads {
    /// Payloads of `size` bytes, with stamps of this checksum or without.
    pub(crate) fn new(size: usize, stamps: Option<Checksum>) -> Self {
        let contents = match stamps {
            Some(checksum) => {
                Contents::Stamped { stamps: StampWriter::new(checksum), making: Vec::new() }
            }
            None => {
                let mut pattern = vec![0; PERIOD + size];
                fill(&mut pattern, 0);
                Contents::Pattern(pattern.into())
            }
        };
        Self { size, contents, next: 0 }
    }

    /// Checks that messages of this size can be stamped.
    pub(crate) fn check_size(size: usize) -> Result<(), Failure> {
        if size >= MIN_PAYLOAD {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--enable-metrics needs messages of at least {MIN_PAYLOAD} bytes; --msgsize is {size}"
        )))
    }

    /// Adds the next `count` payloads to `batch`; their stamps say that they are sent now.
    pub(crate) fn make(&mut self, count: usize, batch: &mut VecDeque<Bytes>) {
        let first = self.next;
        self.next += count as u64;
        match &mut self.contents {
            Contents::Stamped { stamps, making } => {
                let mut room = BytesMut::zeroed(count * self.size);
                making.extend((0..count).map(|_| room.split_to(self.size)));
                stamps.write(making, stamp_of_now(first)).expect("the size was checked before");
                batch.extend(making.drain(..).map(BytesMut::freeze));
            }
            Contents::Pattern(pattern) => batch.extend((first..self.next).map(|number| {
                let [start, ..] = number.to_le_bytes();
                pattern.slice(usize::from(start)..usize::from(start) + self.size)
            })),
        }
    }
}

/// The pattern repeats after this number of bytes, and after this number of payloads.
const PERIOD: usize = 256;

fn stamp_of_now(seq: u64) -> Stamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp {
        seq,
        system_time_us: i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX),
        monotonic_us: i64::try_from(punctual::now().as_micros()).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(payloads: &mut Payloads, count: usize) -> VecDeque<Bytes> {
        let mut batch = VecDeque::new();
        payloads.make(count, &mut batch);
        batch
    }

    #[test]
    fn payloads_are_numbered_from_zero() {
        let mut payloads = Payloads::new(1316, Some(Checksum::Md5));
        let made = [3, 1, 64].map(|count| make(&mut payloads, count));
        for (payload, seq) in made.iter().flatten().zip(0..) {
            assert_eq!((payload.len(), Stamp::read(payload).unwrap().seq), (1316, seq));
        }
        let mut pattern = Payloads::new(4, None);
        assert_eq!(make(&mut pattern, 2)[1], [1, 2, 3, 4][..]);
        for (payload, number) in make(&mut pattern, 600).iter().zip(2..) {
            let mut expected = [0; 4];
            fill(&mut expected, number);
            assert_eq!(payload, &expected[..]);
        }
    }

    #[test]
    fn a_stamp_needs_its_room() {
        assert!(Payloads::check_size(56).is_ok());
        assert!(Payloads::check_size(55).unwrap_err().is_usage());
    }
}
