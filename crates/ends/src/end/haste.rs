//! A warning of a pipe that delivers a transport stream faster than its own clock.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use punctual_mpegts::{Framer, Pcr};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use crate::end::bytes::ByteStream;

/// A pipe whose start is watched: receivers of live streams drop what comes too early.
pub(crate) struct WatchedPipe {
    stream: ByteStream,
    watch: Option<HasteWatch>,
    /// The option of the program that sets the pace.
    option: Option<&'static str>,
}

/// Compares the clock of a transport stream with the time.
#[derive(Default)]
struct HasteWatch {
    framer: Framer,
    /// The packet identifier of the clock, its first reference, and the time of that.
    start: Option<(u16, Pcr, Instant)>,
}

/// The result of a look at the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Haste {
    Unknown,
    None,
    /// So much of the stream came in so much time.
    Much(Duration, Duration),
}

impl WatchedPipe {
    /// The bytes of `stream`, with a warning if they come too fast.
    pub(crate) fn new(stream: ByteStream, option: Option<&'static str>) -> Self {
        Self { stream, watch: Some(HasteWatch::default()), option }
    }
}

impl AsyncRead for WatchedPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, watch, option } = &mut *self;
        let before = buf.filled().len();
        let polled = Pin::new(stream).poll_read(cx, buf);
        let Some(looking) = watch else { return polled };
        match looking.look(&buf.filled()[before..], Instant::now()) {
            Haste::Unknown => {}
            Haste::None => *watch = None,
            Haste::Much(stream, time) => {
                *watch = None;
                let remedy = match option {
                    Some(option) => format!("add `{option} pcr`, or `-re` at FFmpeg"),
                    None => "read it by its clock, or add `-re` at FFmpeg".to_owned(),
                };
                tracing::warn!(
                    "standard input delivers its transport stream faster than the clock in it, \
                     {:.1} s in {:.1} s, and receivers of live streams drop most of it: {remedy}",
                    stream.as_secs_f64(),
                    time.as_secs_f64()
                );
            }
        }
        polled
    }
}

impl HasteWatch {
    /// Takes in the bytes that were read by `now`.
    fn look(&mut self, bytes: &[u8], now: Instant) -> Haste {
        self.framer.push(bytes);
        while let Some(packet) = self.framer.next_packet() {
            let Some(pcr) = packet.pcr() else { continue };
            let Some((pid, first, begun)) = self.start else {
                self.start = Some((packet.pid(), pcr, now));
                continue;
            };
            let time = now - begun;
            if time > LONGEST_WATCH || packet.is_discontinuity() {
                return Haste::None;
            }
            let ticks = pcr.ticks_since(first).filter(|_| pid == packet.pid()).unwrap_or(0);
            let stream = Duration::from_secs(ticks / Pcr::HZ);
            if stream > time + HASTE {
                return Haste::Much(stream, time);
            }
        }
        Haste::Unknown
    }
}

/// The time by which the stream may be ahead of its clock: FFmpeg and segments of HLS come in
/// bursts.
const HASTE: Duration = Duration::from_secs(4);

/// The time after which a pipe that was not too fast is no longer watched.
const LONGEST_WATCH: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// 12 seconds of a transport stream.
    const CLIP: &[u8] = include_bytes!("../../../../assets/clip.ts");

    #[test]
    fn a_stream_ahead_of_its_clock_is_told_from_one_in_time() {
        let start = Instant::now();
        let mut fast = HasteWatch::default();
        assert!(matches!(fast.look(CLIP, start), Haste::Much(stream, _) if stream > HASTE));
        let mut in_time = HasteWatch::default();
        let pieces = CLIP.chunks(CLIP.len() / 120);
        for (piece, bytes) in (0..).zip(pieces) {
            let haste = in_time.look(bytes, start + Duration::from_millis(100 * piece));
            assert!(!matches!(haste, Haste::Much(..)), "{haste:?}");
        }
    }
}
