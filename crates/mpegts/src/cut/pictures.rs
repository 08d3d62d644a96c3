use crate::{Packet, PesHeader};

/// Finds the pictures that follow a random access point in the stream and precede it on the screen.
///
/// They may need pictures from before it, which the receiver does not have (leading pictures of an
/// open group). No later picture needs them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeadingPictures {
    pid: u16,
    /// When the picture of the random access point is shown.
    first: u64,
    is_over: bool,
}

impl LeadingPictures {
    pub(super) fn new(pid: u16, first: u64) -> Self {
        Self { pid, first, is_over: false }
    }

    /// Whether the PES packet that begins in this packet has such a picture.
    pub(super) fn has(&mut self, packet: Packet<'_>) -> bool {
        if self.is_over || packet.pid() != self.pid || packet.is_scrambled() {
            return false;
        }
        let Some(pts) = PesHeader::parse(packet.payload()).and_then(|it| it.pts) else {
            return false;
        };
        let before = self.first.wrapping_sub(pts) & TIMES;
        self.is_over = before != 0 && before > FARTHEST;
        (1..=FARTHEST).contains(&before)
    }
}

const TIMES: u64 = (1 << 33) - 1;
/// No picture is reordered over more than this.
const FARTHEST: u64 = 2 * PesHeader::HZ;
