use bytes::{Bytes, BytesMut};

use crate::{Framer, Layout, PACKET_LEN, SYNC_BYTE};

/// Makes messages of whole packets of a transport stream from messages of any size.
///
/// Whole packets pass as a part of the message that they came in, without a copy; a packet that
/// lies in two messages is joined. Where a packet does not follow the one before, a [`Framer`]
/// searches for the next ones, which are copied.
///
/// A stream that shows no packets at its start is no transport stream. It passes as it is until a
/// message is nothing but packets.
#[derive(Clone, Debug, Default)]
pub struct Aligner {
    state: State,
    sync_losses: u64,
    sync_byte_errors: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// The first messages, which wait until the stream shows what it is.
    Unknown(Vec<Bytes>),
    /// The start of a packet whose rest comes with the next message.
    Aligned(BytesMut),
    /// The packets are searched. The bytes that were skipped before the search, if it is for a
    /// packet that was missed.
    Searching {
        framer: Box<Framer>,
        lost_at: Option<u64>,
    },
    Other,
}

impl Default for State {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

impl Aligner {
    /// Takes in the next message and passes on what is whole: one message as a rule.
    pub fn push(&mut self, message: Bytes, mut pass: impl FnMut(Bytes)) {
        match &mut self.state {
            State::Unknown(first) => {
                first.push(message);
                let bytes: usize = first.iter().map(Bytes::len).sum();
                let is_enough = bytes >= Layout::EVIDENCE || first.len() >= MESSAGES;
                if let Some(layout) = Layout::find(&first.concat()) {
                    self.begin(layout, &mut pass);
                } else if is_enough {
                    self.finish(&mut pass);
                }
            }
            State::Other if is_plain(&message) => {
                self.state = State::Aligned(BytesMut::new());
                self.align(message, &mut pass);
            }
            State::Other => pass(message),
            State::Aligned(_) | State::Searching { .. } => self.align(message, &mut pass),
        }
    }

    /// Passes on the messages that still wait, of a stream that is too short to show what it is.
    pub fn finish(&mut self, mut pass: impl FnMut(Bytes)) {
        if let State::Unknown(first) = &mut self.state {
            std::mem::take(first).into_iter().for_each(&mut pass);
            self.state = State::Other;
        }
    }

    /// Whether the stream is a transport stream; `None` while that is not clear.
    pub fn is_transport_stream(&self) -> Option<bool> {
        match self.state {
            State::Unknown(_) => None,
            State::Other => Some(false),
            State::Aligned(_) | State::Searching { .. } => Some(true),
        }
    }

    /// Times that packets did not follow each other, and the next ones had to be searched.
    pub fn sync_losses(&self) -> u64 {
        self.sync_losses
    }

    /// Packets that were left out because of their first byte, where the next one stood at its
    /// place.
    pub fn sync_byte_errors(&self) -> u64 {
        self.sync_byte_errors
    }

    fn begin(&mut self, layout: Layout, pass: &mut impl FnMut(Bytes)) {
        let next = if layout.is_plain() {
            State::Aligned(BytesMut::new())
        } else {
            let framer = Box::new(Framer::with_spacing(layout.spacing));
            State::Searching { framer, lost_at: None }
        };
        if let State::Unknown(first) = std::mem::replace(&mut self.state, next) {
            first.into_iter().for_each(|message| self.align(message, pass));
        }
    }

    fn align(&mut self, mut message: Bytes, pass: &mut impl FnMut(Bytes)) {
        if let State::Aligned(start) = &mut self.state {
            if !start.is_empty() {
                let missing = (PACKET_LEN - start.len()).min(message.len());
                start.extend_from_slice(&message.split_to(missing));
                if start.len() < PACKET_LEN {
                    return;
                }
                pass(start.split().freeze());
            }
            let whole = whole_packets(&message);
            if whole > 0 {
                pass(message.split_to(whole));
            }
            if message.is_empty() {
                return;
            }
            if message.len() < PACKET_LEN && message[0] == SYNC_BYTE {
                start.extend_from_slice(&message);
                return;
            }
            let framer = Box::new(Framer::with_spacing(PACKET_LEN));
            self.state = State::Searching { framer, lost_at: Some(0) };
        }
        self.search(&message, pass);
    }

    fn search(&mut self, message: &[u8], pass: &mut impl FnMut(Bytes)) {
        let State::Searching { framer, lost_at } = &mut self.state else { return };
        let losses = framer.sync_losses();
        let mut found = BytesMut::new();
        framer.push(message);
        while let Some(packet) = framer.next_packet() {
            found.extend_from_slice(packet.bytes());
        }
        if let Some(before) = lost_at.filter(|_| !found.is_empty()) {
            *lost_at = None;
            if framer.skipped_bytes() - before == PACKET_LEN as u64 {
                self.sync_byte_errors += 1;
            } else {
                self.sync_losses += 1;
            }
        }
        self.sync_losses += framer.sync_losses() - losses;
        if framer.is_at_start_of_packet() {
            self.state = State::Aligned(BytesMut::new());
        }
        if !found.is_empty() {
            pass(found.freeze());
        }
    }
}

/// The length of the whole packets at the start of a message.
fn whole_packets(message: &[u8]) -> usize {
    let packets = message.as_chunks::<PACKET_LEN>().0;
    packets.iter().take_while(|packet| packet[0] == SYNC_BYTE).count() * PACKET_LEN
}

/// Whether a message is nothing but packets, and enough of them to show it.
fn is_plain(message: &[u8]) -> bool {
    message.len() >= PLAIN * PACKET_LEN && whole_packets(message) == message.len()
}

/// Messages that are enough to tell what a stream is.
const MESSAGES: usize = 8;

/// Packets in a row that show a transport stream.
const PLAIN: usize = 5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{packet, stream};

    fn packets(count: usize) -> Bytes {
        let all: Vec<_> = (0..count).map(|it| packet(0x100, it as u8).payload(it as u8)).collect();
        stream(&all).into()
    }

    fn align(aligner: &mut Aligner, messages: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
        let mut passed = Vec::new();
        messages.into_iter().for_each(|message| aligner.push(message, |it| passed.push(it)));
        passed
    }

    #[test]
    fn aligned_messages_pass_without_a_copy() {
        let mut aligner = Aligner::default();
        let messages: Vec<_> = (0..4).map(|_| packets(7)).collect();
        let passed = align(&mut aligner, messages.clone());
        assert_eq!(passed, messages);
        assert!(passed.iter().zip(&messages).all(|(a, b)| a.as_ptr() == b.as_ptr()));
        assert_eq!(aligner.is_transport_stream(), Some(true));
    }

    #[test]
    fn only_packets_in_two_messages_are_copied() {
        let mut aligner = Aligner::default();
        align(&mut aligner, [packets(7)]);
        let all = packets(14);
        let messages = [all.slice(..1_000), all.slice(1_000..)];
        let passed = align(&mut aligner, messages.clone());
        let lengths: Vec<_> = passed.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [940, 188, 8 * 188]);
        assert_eq!(passed.concat(), all);
        assert_eq!(passed[0].as_ptr(), messages[0].as_ptr());
        assert_eq!(passed[2].as_ptr(), messages[1][128..].as_ptr());
    }

    #[test]
    fn faults_of_sync_are_told_apart() {
        let mut aligner = Aligner::default();
        align(&mut aligner, [packets(7)]);
        let mut bytes = packets(7).to_vec();
        bytes[188] = 0;
        let passed = align(&mut aligner, [bytes.into(), packets(7)]).concat();
        assert_eq!(passed.len(), 13 * 188);
        assert_eq!((aligner.sync_byte_errors(), aligner.sync_losses()), (1, 0));

        let passed = align(&mut aligner, [packets(7).slice(50..), packets(7)]).concat();
        assert_eq!(passed.len(), 13 * 188);
        assert_eq!((aligner.sync_byte_errors(), aligner.sync_losses()), (1, 1));
        let last = packets(7);
        assert_eq!(align(&mut aligner, [last.clone()])[0].as_ptr(), last.as_ptr());
    }

    #[test]
    fn another_stream_passes_as_it_is() {
        let mut aligner = Aligner::default();
        let messages: Vec<_> = (0..20).map(|it| Bytes::from(vec![it; 300])).collect();
        assert_eq!(align(&mut aligner, messages.clone()), messages);
        assert_eq!(aligner.is_transport_stream(), Some(false));
        // It becomes one.
        assert_eq!(align(&mut aligner, [packets(7)]), [packets(7)]);
        assert_eq!(aligner.is_transport_stream(), Some(true));
        let mut short = Aligner::default();
        assert_eq!(align(&mut short, [packets(1)]), Vec::<Bytes>::new());
        let mut passed = Vec::new();
        short.finish(|it| passed.push(it));
        assert_eq!(passed, [packets(1)]);
    }

    proptest! {
        #[test]
        fn messages_of_any_size_give_the_same_packets(
            start in 0_usize..188,
            sizes in proptest::collection::vec(1_usize..1_500, 1..30),
        ) {
            let all = packets(60);
            let mut rest = all.slice(start..);
            let mut aligner = Aligner::default();
            let mut passed = Vec::new();
            for size in sizes.iter().cycle() {
                let message = rest.split_to((*size).min(rest.len()));
                aligner.push(message, |it| passed.push(it));
                if rest.is_empty() {
                    break;
                }
            }
            let skipped = if start == 0 { 0 } else { 188 - start };
            // Small messages hide what the stream is.
            prop_assume!(aligner.is_transport_stream() == Some(true));
            prop_assume!(sizes.iter().all(|it| *it >= 188));
            prop_assert!(passed.iter().all(|it| it.len() % PACKET_LEN == 0));
            let passed = passed.concat();
            prop_assert_eq!(&passed, &all[start + skipped..][..passed.len()]);
            prop_assert!(all.len() - passed.len() - start < 3 * PACKET_LEN + 1_500);
            prop_assert_eq!((aligner.sync_losses(), aligner.sync_byte_errors()), (0, 0));
        }

        #[test]
        fn nothing_is_kept_of_any_bytes(
            messages in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![Just(SYNC_BYTE), any::<u8>()], 0..600),
                0..40,
            ),
        ) {
            let mut aligner = Aligner::default();
            let (mut came, mut left) = (0, 0);
            for message in messages {
                came += message.len();
                aligner.push(message.into(), |it| left += it.len());
                prop_assert!(left <= came);
            }
        }
    }
}
