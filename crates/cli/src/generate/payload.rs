//! What is sent: a pattern, with a stamp in front if it is to be measured.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use punctual_metrics::{MIN_PAYLOAD, fill, write_stamp};

use crate::exit::Failure;

/// Makes one payload after the other.
pub(crate) struct Payloads {
    size: usize,
    is_stamped: bool,
    next: u64,
    /// Room for many payloads, so that not each needs an allocation.
    room: BytesMut,
}

impl Payloads {
    /// Payloads of `size` bytes, stamped or not.
    pub(crate) fn new(size: usize, is_stamped: bool) -> Self {
        Self { size, is_stamped, next: 0, room: BytesMut::new() }
    }

    /// Whether messages of this size can be stamped.
    pub(crate) fn check_size(size: usize) -> Result<(), Failure> {
        if size >= MIN_PAYLOAD {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--enable-metrics needs messages of at least {MIN_PAYLOAD} bytes; --msgsize is {size}"
        )))
    }

    /// The next payload; its stamp says that it is sent now.
    pub(crate) fn next(&mut self) -> Bytes {
        if self.room.capacity() < self.size {
            self.room = BytesMut::with_capacity(self.size * PAYLOADS_A_ROOM);
        }
        self.room.resize(self.size, 0);
        if self.is_stamped {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let system = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
            let monotonic = i64::try_from(punctual::now().as_micros()).unwrap_or(i64::MAX);
            write_stamp(&mut self.room, self.next, system, monotonic)
                .expect("the size was checked before the start");
        } else {
            fill(&mut self.room, self.next);
        }
        self.next += 1;
        self.room.split().freeze()
    }
}

const PAYLOADS_A_ROOM: usize = 64;

#[cfg(test)]
mod tests {
    use punctual_metrics::Stamp;

    use super::*;

    #[test]
    fn payloads_are_numbered_from_zero() {
        let mut payloads = Payloads::new(1316, true);
        for seq in 0..200 {
            let payload = payloads.next();
            assert_eq!((payload.len(), Stamp::read(&payload).unwrap().seq), (1316, seq));
        }
        let mut pattern = Payloads::new(4, false);
        pattern.next();
        assert_eq!(pattern.next(), [1, 2, 3, 4][..]);
    }

    #[test]
    fn a_stamp_needs_its_room() {
        assert!(Payloads::check_size(56).is_ok());
        assert_eq!(Payloads::check_size(55).unwrap_err().code(), 2);
    }
}
