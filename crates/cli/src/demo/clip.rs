//! The clip that is sent: MPEG-TS in messages, each with its time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual::Bitrate;
use punctual_mpegts::{Framer, PcrPacer};

/// A recording in messages of seven transport packets.
pub(super) struct Clip {
    /// The messages with their times since the first, by the clock of the clip.
    pub(super) messages: Vec<(Duration, Bytes)>,
}

impl Clip {
    /// The clip that is part of the program.
    pub(super) fn load() -> Self {
        let (mut framer, mut pacer) = (Framer::default(), PcrPacer::default());
        framer.push(CLIP);
        framer.finish();
        while let Some(packet) = framer.next_packet() {
            pacer.push(packet).expect("the clip has a clock, as its test says");
        }
        pacer.finish().expect("the clip has a clock, as its test says");
        let mut messages = Vec::new();
        let mut message = BytesMut::new();
        let mut start = Duration::ZERO;
        while let Some((at, packet)) = pacer.pop() {
            if message.is_empty() {
                start = at;
            }
            message.extend_from_slice(&packet);
            if message.len() == MESSAGE {
                messages.push((start, message.split().freeze()));
            }
        }
        if !message.is_empty() {
            messages.push((start, message.freeze()));
        }
        Self { messages }
    }

    /// Whether a file that starts so is a part of the clip.
    pub(super) fn has(&self, start: &[u8]) -> bool {
        let Some(packet) = start.first_chunk::<PACKET>() else { return false };
        self.messages.iter().any(|(_, message)| message.chunks(PACKET).any(|it| it == packet))
    }

    /// The time from its first message to its last.
    pub(super) fn duration(&self) -> Duration {
        self.messages.last().map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// Its bit rate.
    pub(super) fn rate(&self) -> Bitrate {
        Bitrate::of(self.messages.iter().map(|(_, m)| m.len() as u64).sum(), self.duration())
    }
}

const CLIP: &[u8] = include_bytes!("../../../../assets/clip.ts");

/// Bytes of seven transport packets.
const MESSAGE: usize = 7 * PACKET;

/// The bytes of a transport packet.
const PACKET: usize = 188;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clip_is_whole_and_lasts_twelve_seconds() {
        let clip = Clip::load();
        let bytes: Vec<u8> = clip.messages.iter().flat_map(|(_, m)| m.to_vec()).collect();
        assert_eq!(bytes, CLIP);
        assert_eq!(clip.duration().as_secs(), 12);
        assert!(clip.messages.is_sorted_by_key(|(at, _)| *at));
    }
}
