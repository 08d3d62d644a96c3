//! A recording, read at a pace: that of the clock in it, or a bit rate.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual::{Bitrate, Instant, Timer, now};
use punctual_mpegts::{Framer, PACKET_LEN, PcrPacer};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::end::bytes::ByteStream;
use crate::end::cut::Cut;
use crate::end::packets::PacketStream;
use crate::failure::Failure;

/// Reads each message at its time.
pub(crate) struct PacedReader {
    stream: ByteStream,
    /// The file that is read again at its end; `None` to end with it.
    again: Option<PathBuf>,
    clock: Clock,
    /// Messages with their times since the first.
    ready: VecDeque<(Duration, Bytes)>,
    timer: Timer,
    start: Option<Instant>,
    is_ended: bool,
}

/// The source of each message's time.
pub(crate) enum Clock {
    /// The program clock references of a transport stream.
    Pcr(Box<PcrClock>),
    /// A bit rate.
    Rate { rate: Bitrate, cut: Cut, bytes: u64 },
}

/// Messages of a transport stream, by its clock.
pub(crate) struct PcrClock {
    framer: Framer,
    pacer: PcrPacer,
    input: BytesMut,
    message: BytesMut,
    message_at: Duration,
    message_size: usize,
    is_transport_stream: bool,
}

impl Clock {
    /// The clock of a transport stream in messages of at most `message_size` bytes.
    pub(crate) fn pcr(message_size: usize) -> Self {
        Self::Pcr(Box::new(PcrClock {
            framer: Framer::default(),
            pacer: PcrPacer::default(),
            input: BytesMut::new(),
            message: BytesMut::new(),
            message_at: Duration::ZERO,
            message_size: (message_size / PACKET_LEN * PACKET_LEN).max(PACKET_LEN),
            is_transport_stream: false,
        }))
    }

    /// A bit rate for messages of `message_size` bytes.
    pub(crate) fn rate(rate: Bitrate, message_size: usize) -> Self {
        Self::Rate { rate, cut: Cut::new(message_size), bytes: 0 }
    }

    fn input(&mut self) -> &mut BytesMut {
        match self {
            Self::Pcr(clock) => {
                clock.input.clear();
                clock.input.reserve(READ_SIZE);
                &mut clock.input
            }
            Self::Rate { cut, .. } => cut.input(),
        }
    }

    /// Takes the bytes that were read; none at the end of the stream.
    fn take_in(
        &mut self,
        is_end: bool,
        ready: &mut VecDeque<(Duration, Bytes)>,
    ) -> Result<(), Failure> {
        match self {
            Self::Pcr(clock) => clock.take_in(is_end, ready),
            Self::Rate { rate, cut, bytes } => {
                let full = std::iter::from_fn(|| cut.next_full());
                let mut messages: Vec<Bytes> = full.collect();
                messages.extend(is_end.then(|| cut.rest()).flatten());
                for message in messages {
                    let at = rate.time_for(*bytes);
                    *bytes += message.len() as u64;
                    ready.push_back((at, message));
                }
                Ok(())
            }
        }
    }
}

impl PcrClock {
    fn take_in(
        &mut self,
        is_end: bool,
        ready: &mut VecDeque<(Duration, Bytes)>,
    ) -> Result<(), Failure> {
        self.framer.push(&self.input);
        if is_end {
            self.framer.finish();
        }
        while let Some(packet) = self.framer.next_packet() {
            self.pacer.push(packet).map_err(|error| Failure::no_clock(error.to_string()))?;
            self.is_transport_stream = true;
        }
        if is_end && !self.is_transport_stream {
            return Err(Failure::no_clock("this is not MPEG-TS, so it has no clock"));
        }
        if is_end {
            self.pacer.finish().map_err(|error| Failure::no_clock(error.to_string()))?;
        }
        while let Some((at, packet)) = self.pacer.pop() {
            if self.message.is_empty() {
                self.message_at = at;
            }
            self.message.extend_from_slice(&packet);
            if self.message.len() == self.message_size {
                ready.push_back((self.message_at, self.message.split().freeze()));
            }
        }
        if is_end && !self.message.is_empty() {
            ready.push_back((self.message_at, self.message.split().freeze()));
        }
        Ok(())
    }
}

impl PacedReader {
    /// Reads `stream` at the pace of `clock`, and then, if `again` is given, that file repeatedly.
    /// Messages that are due within `coalesce` of each other, or [`GRAIN`] if that is longer, are
    /// read together.
    pub(crate) fn new(
        stream: ByteStream,
        clock: Clock,
        again: Option<PathBuf>,
        coalesce: Duration,
    ) -> Result<Self, Failure> {
        let (ready, timer) = (VecDeque::new(), Timer::new()?.with_period(coalesce.max(GRAIN)));
        Ok(Self { stream, again, clock, ready, timer, start: None, is_ended: false })
    }

    /// Waits for the next message and reads all that are due, or returns `false` at the end. Cancel
    /// safe.
    pub(crate) async fn read(&mut self, batch: &mut Vec<Bytes>) -> Result<bool, Failure> {
        loop {
            let due = match (self.ready.front(), self.start) {
                (Some((at, _)), Some(start)) => Some(start + *at),
                (Some((at, _)), None) => {
                    let now = now();
                    self.start = Some(now - *at);
                    Some(now)
                }
                (None, _) if self.is_ended => return Ok(false),
                (None, _) => None,
            };
            let wants_more = !self.is_ended && self.ready.len() < READ_AHEAD;
            tokio::select! {
                biased;
                () = self.timer.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                    self.take_due(batch);
                    return Ok(true);
                }
                read = self.stream.read_buf(self.clock.input()), if wants_more => {
                    let is_end = read? == 0;
                    self.clock.take_in(is_end, &mut self.ready)?;
                    if is_end {
                        self.end().await?;
                    }
                }
            }
        }
    }

    /// Moves the messages that are due to `batch`. A stream that is late because its messages were
    /// not taken goes on from here, so that it does not catch up in one burst.
    fn take_due(&mut self, batch: &mut Vec<Bytes>) {
        let now = now();
        let (Some((first, _)), Some(start)) = (self.ready.front(), self.start) else { return };
        let mut start = start;
        let late = now.saturating_since(start + *first);
        if late > CATCH_UP {
            start += late;
            self.start = Some(start);
        }
        while self.ready.front().is_some_and(|(at, _)| start + *at <= now) {
            batch.extend(self.ready.pop_front().map(|(_, message)| message));
        }
    }

    /// Begins the file again, if it is repeated.
    async fn end(&mut self) -> Result<(), Failure> {
        match &self.again {
            Some(path) if !self.ready.is_empty() => {
                let file = File::open(path).await.map_err(|error| Failure::file(path, &error))?;
                let name = path.display().to_string();
                self.stream = Box::new(PacketStream::new(Box::new(file), name).quiet());
            }
            _ => self.is_ended = true,
        }
        Ok(())
    }
}

/// Messages that are due within this time are read together.
const GRAIN: Duration = Duration::from_micros(200);

/// The longest delay that a stream still makes up for.
const CATCH_UP: Duration = Duration::from_millis(200);

/// Messages that are read before they are due.
const READ_AHEAD: usize = 256;

/// Bytes to read at once.
const READ_SIZE: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

    async fn all(mut reader: PacedReader) -> Vec<Bytes> {
        let mut batch = Vec::new();
        while reader.read(&mut batch).await.unwrap() {}
        batch
    }

    #[tokio::test]
    async fn a_rate_spreads_the_messages_in_time() {
        let bytes: &'static [u8] = &[7; 10_000];
        let clock = Clock::rate(Bitrate::from_mbps(8), 1_000);
        let start = now();
        let messages =
            all(PacedReader::new(Box::new(bytes), clock, None, Duration::ZERO).unwrap()).await;
        assert!(now() - start >= Duration::from_millis(9));
        assert_eq!((messages.len(), messages.concat()), (10, bytes.to_vec()));
    }

    #[tokio::test]
    async fn a_transport_stream_goes_by_its_own_clock() {
        // The first 50 ms of a clip at 2 Mb/s.
        let clip: &'static [u8] = &include_bytes!("../../../../assets/clip.ts")[..70 * 188];
        let start = now();
        let reader =
            PacedReader::new(Box::new(clip), Clock::pcr(1316), None, Duration::ZERO).unwrap();
        let messages = all(reader).await;
        let last = Bitrate::from_mbps(2).time_for(9 * 1316);
        assert!(now() - start >= last, "{:?}", now() - start);
        assert_eq!((messages.len(), messages.concat()), (10, clip.to_vec()));
    }

    #[tokio::test]
    async fn bytes_without_a_clock_have_no_pace() {
        let bytes: &'static [u8] = &include_bytes!("../../../../assets/clip.ts")[..3 * 188];
        let mut reader =
            PacedReader::new(Box::new(bytes), Clock::pcr(1316), None, Duration::ZERO).unwrap();
        let failure = reader.read(&mut Vec::new()).await.unwrap_err();
        assert_eq!(failure.kind(), FailureKind::NoClock);
        let mut reader =
            PacedReader::new(Box::new(&b"text"[..]), Clock::pcr(1316), None, Duration::ZERO)
                .unwrap();
        let failure = reader.read(&mut Vec::new()).await.unwrap_err().to_string();
        assert!(failure.starts_with("this is not MPEG-TS"), "{failure}");
    }
}
