//! The payloads that are sent: a pattern, which begins with a stamp if they are measured.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use punctual_metrics::{Stamp, StampWriter, draft, fill};

use crate::args::Stamping;
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
    /// Each payload begins with a header of the draft.
    Draft(draft::StampWriter),
    /// The pattern alone, which repeats after [`PERIOD`] bytes: each payload is a part of this.
    Pattern(Bytes),
}

impl Payloads {
    /// Payloads of `size` bytes, stamped like this or not at all.
    pub(crate) fn new(size: usize, stamping: Option<Stamping>) -> Self {
        let contents = match stamping {
            Some(Stamping::Xtransmit(checksum)) => {
                Contents::Stamped { stamps: StampWriter::new(checksum), making: Vec::new() }
            }
            Some(Stamping::Draft(checksum, group)) => {
                Contents::Draft(draft::StampWriter::new(checksum, group))
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
    pub(crate) fn check_size(size: usize, stamping: Stamping) -> Result<(), Failure> {
        let least = stamping.least();
        if size >= least {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--enable-metrics needs messages of at least {least} bytes; --msgsize is {size}"
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
            Contents::Draft(stamps) => {
                let Stamp { system_time_us, monotonic_us, .. } = stamp_of_now(first);
                batch.extend((first..self.next).map(|seq| {
                    let mut payload = vec![0; self.size];
                    let written = stamps.write(
                        &mut payload,
                        seq,
                        system_time_us,
                        monotonic_us.unsigned_abs(),
                    );
                    written.expect("the size was checked before");
                    payload.into()
                }));
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
    use punctual_metrics::Checksum;

    fn make(payloads: &mut Payloads, count: usize) -> VecDeque<Bytes> {
        let mut batch = VecDeque::new();
        payloads.make(count, &mut batch);
        batch
    }

    #[test]
    fn payloads_are_numbered_from_zero() {
        let stamping = Stamping::Xtransmit(Checksum::Md5);
        let mut payloads = Payloads::new(1316, Some(stamping));
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
    fn payloads_of_the_draft_are_in_groups() {
        let mut payloads = Payloads::new(200, Some(Stamping::Draft(Checksum::Md5, 3)));
        for (payload, seq) in make(&mut payloads, 7).iter().zip(0..) {
            let stamp = draft::Stamp::read(payload, Checksum::Md5).unwrap();
            assert_eq!((stamp.seq, stamp.group), (seq, seq / 3));
            assert_eq!(stamp.position.is_last(), seq % 3 == 2);
        }
    }

    #[test]
    fn a_stamp_needs_its_room() {
        for (stamping, least) in
            [(Stamping::Xtransmit(Checksum::Md5), 56), (Stamping::Draft(Checksum::Md5, 1), 52)]
        {
            assert!(Payloads::check_size(least, stamping).is_ok());
            assert_eq!(Payloads::check_size(least - 1, stamping).unwrap_err().code(), 2);
        }
    }
}
