//! The options that each call reads.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use punctual_blocking::now;

use crate::options::{OptionNumber, Options};

/// Copies of options that calls read without a lock.
#[derive(Debug)]
pub(super) struct Settings {
    send_blocks: AtomicBool,
    receive_blocks: AtomicBool,
    send_timeout: AtomicI32,
    receive_timeout: AtomicI32,
    payload: AtomicUsize,
}

impl Settings {
    pub(super) fn new(options: &Options) -> Self {
        let settings = Self {
            send_blocks: AtomicBool::new(true),
            receive_blocks: AtomicBool::new(true),
            send_timeout: AtomicI32::new(-1),
            receive_timeout: AtomicI32::new(-1),
            payload: AtomicUsize::new(0),
        };
        settings.follow(options);
        settings
    }

    /// Takes the options over.
    pub(super) fn follow(&self, options: &Options) {
        let relaxed = Ordering::Relaxed;
        self.send_blocks.store(options.is_on(OptionNumber::SNDSYN), relaxed);
        self.receive_blocks.store(options.is_on(OptionNumber::RCVSYN), relaxed);
        self.send_timeout.store(options.int(OptionNumber::SNDTIMEO), relaxed);
        self.receive_timeout.store(options.int(OptionNumber::RCVTIMEO), relaxed);
        let payload = usize::try_from(options.int(OptionNumber::PAYLOADSIZE)).unwrap_or(0);
        self.payload.store(payload, relaxed);
    }

    /// Whether calls that send wait.
    pub(super) fn send_blocks(&self) -> bool {
        self.send_blocks.load(Ordering::Relaxed)
    }

    /// Whether calls that receive, connect or accept wait.
    pub(super) fn receive_blocks(&self) -> bool {
        self.receive_blocks.load(Ordering::Relaxed)
    }

    /// When a call that sends gives up; `None` for never.
    pub(super) fn send_deadline(&self) -> Option<Instant> {
        deadline(self.send_timeout.load(Ordering::Relaxed))
    }

    /// When a call that receives gives up; `None` for never.
    pub(super) fn receive_deadline(&self) -> Option<Instant> {
        deadline(self.receive_timeout.load(Ordering::Relaxed))
    }

    /// The largest payload that the application wants, bytes.
    pub(super) fn payload(&self) -> usize {
        self.payload.load(Ordering::Relaxed)
    }
}

fn deadline(millis: i32) -> Option<Instant> {
    let millis = u64::try_from(millis).ok()?;
    now().checked_add(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SocketOptionValue;

    #[test]
    fn calls_read_what_was_set_last() {
        let mut options = Options::default();
        let settings = Settings::new(&options);
        assert!(settings.send_blocks() && settings.receive_blocks());
        assert_eq!((settings.send_deadline(), settings.receive_deadline()), (None, None));
        assert_eq!(settings.payload(), 1_316);
        options.set(OptionNumber::SNDSYN, SocketOptionValue::Bool(false)).unwrap();
        options.set(OptionNumber::RCVTIMEO, SocketOptionValue::Int(60_000)).unwrap();
        options.set(OptionNumber::PAYLOADSIZE, SocketOptionValue::Int(0)).unwrap();
        settings.follow(&options);
        assert!(!settings.send_blocks() && settings.receive_blocks());
        assert!(settings.receive_deadline().is_some_and(|deadline| deadline > now()));
        assert_eq!((settings.send_deadline(), settings.payload()), (None, 0));
    }
}
