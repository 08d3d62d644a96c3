//! The packets of a transport stream, without what is before, between and after them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use punctual_mpegts::{Framer, Layout};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::end::bytes::ByteStream;

/// A stream of bytes that, if it is a transport stream, is read as its packets alone: from the
/// first whole one on, without timestamps, parity and damaged parts. Any other stream stays as it
/// is.
pub(crate) struct PacketStream {
    stream: ByteStream,
    name: String,
    kind: Kind,
    /// Bytes that are to be read from here.
    ready: BytesMut,
    /// Bytes to leave out, because they were read before.
    skip: u64,
    input: Vec<u8>,
    /// Whether bytes that are left out are told.
    tells: bool,
    is_ended: bool,
}

/// The kind of a stream, as far as it is known.
enum Kind {
    /// Nothing yet: it is looked at until this time is over.
    Unknown(Option<Pin<Box<Sleep>>>),
    Packets(Framer),
    /// It is no transport stream.
    Other,
}

impl PacketStream {
    /// The stream of this name, which is looked at as it is read.
    pub(crate) fn new(stream: ByteStream, name: String) -> Self {
        Self {
            stream,
            name,
            kind: Kind::Unknown(None),
            ready: BytesMut::new(),
            skip: 0,
            input: vec![0; READ_SIZE],
            tells: true,
            is_ended: false,
        }
    }

    /// The same, without messages about what is left out.
    pub(crate) fn quiet(self) -> Self {
        Self { tells: false, ..self }
    }

    /// The same, without the first bytes that would be read from it.
    pub(crate) fn skipping(self, bytes: u64) -> Self {
        Self { skip: bytes, ..self }
    }

    /// Takes in bytes that were read, none at the end.
    fn take_in(&mut self, read: usize) {
        let bytes = &self.input[..read];
        self.is_ended = read == 0;
        match &mut self.kind {
            Kind::Packets(framer) => {
                framer.push(bytes);
                self.frame();
            }
            Kind::Other => self.ready.extend_from_slice(bytes),
            Kind::Unknown(_) => {
                self.ready.extend_from_slice(bytes);
                self.look();
            }
        }
    }

    /// Looks for packets in the first bytes.
    fn look(&mut self) {
        if let Some(Layout { start, spacing }) = Layout::find(&self.ready) {
            if self.tells {
                tell_layout(&self.name, spacing);
            }
            let mut framer = Framer::with_spacing(spacing);
            framer.push(&self.ready);
            self.ready.clear();
            self.kind = Kind::Packets(framer);
            tracing::debug!("{}: the first transport packet begins at byte {start}", self.name);
            self.frame();
        } else if self.is_ended || self.ready.len() >= READ_SIZE {
            self.kind = Kind::Other;
        }
    }

    /// Moves whole packets to the bytes that are ready.
    fn frame(&mut self) {
        let Kind::Packets(framer) = &mut self.kind else { return };
        let before_end = framer.skipped_bytes();
        if self.is_ended {
            framer.finish();
        }
        while let Some(packet) = framer.next_packet() {
            self.ready.extend_from_slice(packet.bytes());
        }
        if self.is_ended {
            let (skipped, tail) = (framer.skipped_bytes(), framer.skipped_bytes() - before_end);
            self.tell_skipped(skipped, tail);
        }
    }

    fn tell_skipped(&self, skipped: u64, tail: u64) {
        if skipped > 0 && self.tells {
            let tail = match tail {
                0 => String::new(),
                tail => format!(", {tail} of them after the last one"),
            };
            tracing::warn!(
                "{}: {skipped} bytes that are no whole transport packet were left out{tail}",
                self.name
            );
        }
    }

    /// Hands over what is ready; `false` if there is nothing.
    fn hand_over(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let skipped = self.ready.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.ready.advance(skipped);
        self.skip -= skipped as u64;
        let count = self.ready.len().min(buf.remaining());
        buf.put_slice(&self.ready.split_to(count));
        count > 0
    }
}

impl AsyncRead for PacketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let is_known = !matches!(this.kind, Kind::Unknown(_));
            if buf.remaining() == 0 || is_known && (this.hand_over(buf) || this.is_ended) {
                return Poll::Ready(Ok(()));
            }
            let mut input = ReadBuf::new(&mut this.input);
            match Pin::new(&mut this.stream).poll_read(cx, &mut input)? {
                Poll::Ready(()) => {
                    let read = input.filled().len();
                    this.take_in(read);
                }
                Poll::Pending => {
                    let Kind::Unknown(wait) = &mut this.kind else { return Poll::Pending };
                    if this.ready.is_empty() {
                        return Poll::Pending;
                    }
                    let wait = wait.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
                    if wait.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    this.kind = Kind::Other;
                }
            }
        }
    }
}

/// Says that timestamps or parity are taken off at the source of this name.
pub(super) fn tell_layout(name: &str, spacing: usize) {
    let what = match spacing {
        Layout::STAMPED => "its timestamps (M2TS)",
        Layout::PROTECTED => "its 16 bytes of parity",
        _ => return,
    };
    tracing::info!("{name}: MPEG-TS with {spacing} bytes a packet, sent without {what}");
}

/// Reads the first bytes of a file, as many as show whether it is a transport stream. A file that
/// grows may be too short to tell yet; then this waits for more, and does not look as far.
pub(crate) async fn look_at(
    stream: &mut ByteStream,
    grows: bool,
) -> io::Result<(Vec<u8>, Option<Layout>)> {
    let mut start = Vec::new();
    stream.take(Layout::EVIDENCE as u64).read_to_end(&mut start).await?;
    let mut layout = Layout::find(&start);
    if layout.is_none() && !grows {
        stream.take((READ_SIZE - start.len()) as u64).read_to_end(&mut start).await?;
        layout = Layout::find(&start);
    }
    Ok((start, layout))
}

/// Bytes to read at once, and the most in which packets are looked for.
pub(super) const READ_SIZE: usize = 65_536;

/// The longest time that the first bytes of a stream wait for more, which show what it is.
const PATIENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn clip() -> &'static [u8] {
        &include_bytes!("../../../../assets/clip.ts")[..188 * 700]
    }

    async fn read(bytes: Vec<u8>, skip: u64) -> Vec<u8> {
        let stream: ByteStream = Box::new(io::Cursor::new(bytes));
        let mut stream = PacketStream::new(stream, "a.ts".to_owned()).skipping(skip);
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        read
    }

    fn wrapped(before: usize, after: usize) -> Vec<u8> {
        let wrap = |packet: &[u8]| [&vec![9; before][..], packet, &vec![8; after]].concat();
        clip().chunks(188).flat_map(wrap).collect()
    }

    #[tokio::test]
    async fn whole_packets_are_read_from_a_transport_stream_in_any_form() {
        assert!(read(clip().to_vec(), 0).await == clip());
        assert!(read(clip()[100..].to_vec(), 0).await == clip()[188..]);
        assert!(read([&[0; 5_000], clip()].concat(), 0).await == clip());
        assert!(read(wrapped(4, 0), 0).await == clip());
        assert!(read(wrapped(0, 16), 0).await == clip());
        assert!(read(clip()[..100_000].to_vec(), 0).await == clip()[..100_000 / 188 * 188]);
        let torn = [&clip()[..50_000], &clip()[50_100..]].concat();
        assert_eq!(read(torn, 0).await.len() % 188, 0);
    }

    #[tokio::test]
    async fn other_bytes_stay_as_they_are() {
        for bytes in [vec![], b"text".to_vec(), vec![7; 200_000], clip()[..400].to_vec()] {
            assert!(read(bytes.clone(), 0).await == bytes);
        }
    }

    #[tokio::test]
    async fn bytes_that_were_read_before_are_skipped_in_packets() {
        assert!(read(wrapped(4, 0), 1_316 * 50).await == clip()[1_316 * 50..]);
        let damaged = [&clip()[..50_000], &[0; 5_000], &clip()[50_000..]].concat();
        let whole = read(damaged.clone(), 0).await;
        assert!(read(damaged, 1_316 * 50).await == whole[1_316 * 50..]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pipe_with_few_bytes_waits_for_a_moment_only() {
        let (mut pipe, end) = tokio::io::duplex(65_536);
        let mut stream = PacketStream::new(Box::new(end), "-".to_owned());
        pipe.write_all(b"a little").await.unwrap();
        let start = tokio::time::Instant::now();
        let mut bytes = [0; 100];
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 8);
        assert_eq!(start.elapsed(), PATIENCE);
    }
}
